import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from memoryd import project
from memoryd.edges.cli.main import main
from memoryd.edges.install import files
from memoryd.edges.install.agents import AGENTS
from memoryd.edges.install.errors import Refused

# Takes a payload as the real one does, and leaves it where no daemon takes it up.
FAKE_HOOK = """#!/bin/sh
echo "$*" >> "$FAKE_DIR/calls"
[ ! -e "$FAKE_DIR/deaf" ] || exec cat > /dev/null
[ ! -e "$FAKE_DIR/fail" ] || { echo "no room" >&2; exit 7; }
mkdir -p "$FAKE_SPOOL" && cat > "$FAKE_SPOOL/payload-$$"
"""
PYTHON = sys.executable
NAMES = list(AGENTS)
WITH_HOOKS = [name for name, agent in AGENTS.items() if agent.entry]

FOREIGN: dict[str, dict[str, list[Any]]] = {
    "claude-code": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]},
    "codex": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]},
    "gemini": {"AfterAgent": [{"matcher": "*", "hooks": [{"type": "command", "command": "x"}]}]},
    "copilot": {"sessionStart": [{"type": "command", "bash": "x"}]},
    "cursor": {"stop": [{"command": "./x.sh"}]},
}


class User:
    """A user with a home of their own whose path has a space, and a project in it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.work = home / "work"
        self.program = str(home / "bin" / "memory-hook")

    def run(self, *arguments: str) -> Result:
        """Run ``memory ...`` in the project."""
        return CliRunner().invoke(main, ["--project", str(self.work), *arguments])

    def good(self, *arguments: str) -> str:
        """Run ``memory ...``, which must succeed; give what it prints."""
        done = self.run(*arguments)
        assert done.exit_code == 0, done.output
        return done.output

    def settings(self, agent: str, scope: str = "user") -> Path:
        """The settings file of an agent."""
        return Path(AGENTS[agent].path(scope, str(self.work)))

    def write(self, agent: str, content: bytes | str) -> Path:
        """Give an agent settings."""
        path = self.settings(agent)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def beside(self, agent: str) -> list[Path]:
        """All files beside an agent's settings."""
        path = self.settings(agent)
        return sorted(one for one in path.parent.iterdir() if one != path)


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> User:
    """A user on whose machine no agent is yet."""
    for name in os.environ:
        if name.startswith(("MEMORY", "CLAUDE", "CODEX", "COPILOT", "OPENCODE")):
            monkeypatch.delenv(name)
    home = tmp_path / "my home"
    for name in ("bin", "work/.git"):
        (home / name).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("PATH", f"{home / 'bin'}:/usr/bin:/bin")
    monkeypatch.setattr(sys, "executable", str(home / "bin" / "python"))
    made = User(home)
    Path(made.program).write_text(FAKE_HOOK, encoding="utf-8")
    Path(made.program).chmod(0o755)
    monkeypatch.setenv("FAKE_DIR", str(home))
    data = project.data_dir(project.id_of_root(os.path.realpath(made.work)))
    monkeypatch.setenv("FAKE_SPOOL", f"{data}/spool")
    return made


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scope", ["user", "project"])
def test_where_nothing_was_a_file_is_made_and_removed(user: User, name: str, scope: str) -> None:
    """Without settings, install makes the file, shows it, tests it; uninstall removes it again."""
    output = user.good("install", name, f"--{scope}")
    path = user.settings(name, scope)
    assert f"wrote {path}" in output
    assert f"+++ {path}" in output
    assert "waits in the spool" in output
    assert user.program in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == (0o600 if scope == "user" else 0o644)
    assert "already installed" in user.good("install", name, f"--{scope}")
    assert f"removed {path}" in user.good("uninstall", name, f"--{scope}")
    assert not path.exists()
    assert not path.parent.exists() or not list(path.parent.iterdir())
    assert not (user.work / AGENTS[name].project_file.split("/")[0]).exists()
    assert "nothing of ours" in user.good("uninstall", name, f"--{scope}")


@pytest.mark.parametrize("name", WITH_HOOKS)
def test_the_file_says_what_the_agent_shall_run(user: User, name: str) -> None:
    """A new file holds the table's events and what the format needs beside them."""
    user.good("install", name)
    document = json.loads(user.settings(name).read_text())
    assert list(document["hooks"]) == list(AGENTS[name].events)
    assert ("version" in document) == (name in {"copilot", "cursor"})


@pytest.mark.parametrize("name", WITH_HOOKS)
@pytest.mark.parametrize("indent", [None, 3, "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_other_settings_come_back_byte_for_byte(
    user: User, name: str, indent: int | str | None, end: str, mark: bytes
) -> None:
    """Foreign hooks, any indentation, line ends and byte order mark survive the way there and back."""
    document: dict[str, Any] = {"theme": "dark", "hooks": FOREIGN[name], "empty": {}, "version": 1}
    content = mark + json.dumps(document, indent=indent).replace("\n", end).encode()
    path = user.write(name, content)
    user.good("install", name)
    made = path.read_bytes()
    assert made.startswith(mark)
    assert (b"\r\n" in made) == (b"\r\n" in content)
    read = json.loads(made.removeprefix(mark))
    assert list(read)[:4] == list(document)
    for event, entries in FOREIGN[name].items():
        assert read["hooks"][event][: len(entries)] == entries
    user.good("uninstall", name)
    assert path.read_bytes() == content


@pytest.mark.parametrize("name", WITH_HOOKS)
@pytest.mark.parametrize(
    "content", ["{}", "{\n}\n", '{"hooks": {}}', "", "\n", '{"hooks": {"Stop": []}, "stop": 1}']
)
def test_empty_settings_come_back_byte_for_byte(user: User, name: str, content: str) -> None:
    """Also a file with nothing in it is restored, from the copy that was kept of it."""
    path = user.write(name, content)
    user.good("install", name)
    user.good("uninstall", name)
    assert path.read_text() == content


@pytest.mark.parametrize("name", WITH_HOOKS)
def test_comments_stay(user: User, name: str) -> None:
    """Comments and commas at the end, where a file has them, stay where they are."""
    content = '// my settings\n{\n  "a": 1, // one\n  /* two */ "b": 2,\n  // "c": 3,\n}\n'
    path = user.write(name, content)
    user.good("install", name)
    made = path.read_text()
    for comment in ("// my settings", "// one", "/* two */", '// "c": 3,'):
        assert comment in made
    user.good("uninstall", name)
    assert path.read_text() == content


def test_what_was_changed_meanwhile_stays(user: User) -> None:
    """Uninstall takes only our entries out of a file that was edited after the installation."""
    path = user.write("gemini", '{\n  "theme": "dark"\n}\n')
    user.good("install", "gemini")
    path.write_text(path.read_text().replace("dark", "light"))
    user.good("uninstall", "gemini")
    assert path.read_text() == '{\n  "theme": "light"\n}\n'


def test_a_file_that_was_ours_and_grew_is_kept(user: User) -> None:
    """A file that we made is not removed once somebody else has put something into it."""
    user.good("install", "claude-code")
    path = user.settings("claude-code")
    path.write_text(path.read_text().replace('{\n  "hooks"', '{\n  "model": "opus",\n  "hooks"', 1))
    user.good("uninstall", "claude-code")
    assert path.read_text() == '{\n  "model": "opus"\n}\n'


@pytest.mark.parametrize("name", WITH_HOOKS)
@pytest.mark.parametrize("content", ['{"a": 1', "[1]", '{"hooks": 3}', b'{"a": "\xff"}'])
def test_what_cannot_be_read_is_left_alone(user: User, name: str, content: bytes | str) -> None:
    """A broken file is refused with its name; nothing is changed and nothing is kept."""
    path = user.write(name, content)
    before = path.read_bytes()
    for command in ("install", "uninstall"):
        done = user.run(command, name)
        assert done.exit_code == 1
        assert str(path) in done.output
    assert path.read_bytes() == before
    assert user.beside(name) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_dry_run_writes_nothing(user: User, name: str) -> None:
    """With --dry-run the difference is shown and the disk stays as it is."""
    output = user.good("install", name, "--dry-run")
    assert "+" in output
    assert "nothing was written" in output
    assert not user.settings(name).exists()
    assert not (user.home / "calls").exists()
    user.good("install", name)
    before = user.settings(name).read_bytes()
    assert "-" in user.good("uninstall", name, "--dry-run")
    assert user.settings(name).read_bytes() == before


@pytest.mark.parametrize("name", WITH_HOOKS)
def test_a_link_stays_a_link(user: User, name: str) -> None:
    """Settings that are a link into other files are changed there; the copy stays beside the link."""
    real = user.home / "dotfiles" / name
    real.parent.mkdir()
    real.write_text('{"a": 1}')
    real.chmod(0o640)
    path = user.settings(name)
    path.parent.mkdir(parents=True)
    path.symlink_to(real)
    user.good("install", name)
    assert path.is_symlink()
    assert "memory-hook" in real.read_text()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert [one.name for one in real.parent.iterdir()] == [name]
    (backup,) = user.beside(name)
    assert backup.read_text() == '{"a": 1}'


@pytest.mark.parametrize("name", WITH_HOOKS)
def test_a_read_only_file_is_refused(user: User, name: str) -> None:
    """A file that its owner may not write is not replaced, although the directory would allow it."""
    path = user.write(name, "{}")
    path.chmod(0o444)
    done = user.run("install", name)
    assert done.exit_code == 1
    assert "read-only" in done.output
    assert path.read_text() == "{}"
    assert user.beside(name) == []


def test_one_copy_is_kept_per_change(user: User) -> None:
    """Each change keeps the file as it was, readable for the user alone; no change, no copy."""
    path = user.write("codex", '{"a": 1}')
    user.good("install", "codex")
    user.good("install", "codex")
    (backup,) = user.beside("codex")
    assert backup.name.startswith("hooks.json.memoryd-")
    assert backup.read_text() == '{"a": 1}'
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    installed = path.read_text()
    user.good("uninstall", "codex")
    assert {one.read_text() for one in user.beside("codex")} == {'{"a": 1}', installed}


def test_a_file_that_changes_under_our_hands_is_refused(tmp_path: Path) -> None:
    """Between showing and writing somebody else may write: then nothing is written."""
    path = tmp_path / "settings.json"
    path.write_text("new")
    change = files.Change(str(path), b"old", b"ours")
    with pytest.raises(Refused, match="changed meanwhile"):
        files.apply(change, new_mode=0o600)
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_moved_program_is_followed(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a move of the program, installing again changes the path and leaves no second entry."""
    path = user.write("codex", '{\n  "a": 1\n}\n')
    user.good("install", "codex")
    other = user.home / "new bin"
    other.mkdir()
    Path(user.program).rename(other / "memory-hook")
    monkeypatch.setattr(sys, "executable", str(other / "python"))
    user.good("install", "codex")
    assert user.program not in path.read_text()
    assert str(other / "memory-hook") in path.read_text()
    user.good("uninstall", "codex")
    assert path.read_text() == '{\n  "a": 1\n}\n'


@pytest.mark.parametrize("name", NAMES)
def test_the_command_works_in_a_path_with_spaces(user: User, name: str) -> None:
    """The installed command is run as the agent runs it, and is told the agent."""
    user.good("install", name)
    (call,) = (user.home / "calls").read_text().splitlines()
    more = {"copilot": " sessionStart", "opencode": " session.start"}.get(name, "")
    assert call == f"--agent {name}{more}"
    (payload,) = (Path(os.environ["FAKE_SPOOL"])).iterdir()
    assert "memoryd-install-probe-" in payload.read_text()


@pytest.mark.parametrize(("how", "words"), [("deaf", "not in the spool"), ("fail", "ended with 7")])
def test_a_test_that_fails_is_told(user: User, how: str, words: str) -> None:
    """If the payload arrives nowhere, install says so and ends with 1."""
    (user.home / how).touch()
    done = user.run("install", "cursor")
    assert done.exit_code == 1
    assert words in done.output


def test_without_the_program_nothing_is_written(user: User) -> None:
    """If there is no memory-hook to run, no settings are touched."""
    Path(user.program).unlink()
    done = user.run("install", "claude-code")
    assert done.exit_code == 1
    assert "neither" in done.output
    assert not user.settings("claude-code").exists()


def test_claude_code_needs_no_shell(user: User) -> None:
    """Claude Code gets program and arguments apart, in the background where nothing is answered."""
    user.good("install", "claude-code")
    hooks = json.loads(user.settings("claude-code").read_text())["hooks"]
    for event, ((group,), waits) in {
        event: (groups, event in {"SessionStart", "UserPromptSubmit", "SessionEnd"})
        for event, groups in hooks.items()
    }.items():
        (handler,) = group["hooks"]
        assert handler["command"] == user.program
        assert handler["args"] == ["--agent", "claude-code"]
        assert handler.get("async", False) is not waits, event


def test_both_scopes_would_capture_twice(user: User) -> None:
    """An agent runs the hooks of both its settings, so the second place is refused."""
    user.good("install", "codex")
    done = user.run("install", "codex", "--project")
    assert done.exit_code == 1
    assert "memory uninstall codex`" in done.output
    assert not user.settings("codex", "project").exists()


def test_the_plugin_would_capture_twice(user: User) -> None:
    """Claude Code with our plugin enabled needs no hooks in its settings."""
    path = user.write("claude-code", '{"enabledPlugins": {"memoryd@memoryd": true}}')
    done = user.run("install", "claude-code")
    assert done.exit_code == 1
    assert "plugin" in done.output
    assert "memory-hook" not in path.read_text()


@pytest.mark.parametrize(
    ("name", "file", "content"),
    [
        ("claude-code", "settings.json", '{"disableAllHooks": true}'),
        ("gemini", "settings.json", '{"hooksConfig": {"enabled": false}}'),
        ("codex", "config.toml", "[features]\nhooks = false\n"),
    ],
)
def test_hooks_that_are_switched_off_are_told(
    user: User, name: str, file: str, content: str
) -> None:
    """If settings keep hooks from running, install says so."""
    path = user.settings(name).parent / file
    path.parent.mkdir(parents=True)
    path.write_text(content)
    assert "no hook will run" in user.good("install", name)


def test_codex_asks_for_trust(user: User) -> None:
    """Codex runs no hook that was not reviewed: the user is told where."""
    assert "/hooks" in user.good("install", "codex")


def test_agents_may_live_elsewhere(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variables that move an agent's directory are followed."""
    for name, variable in {
        "claude-code": "CLAUDE_CONFIG_DIR",
        "codex": "CODEX_HOME",
        "copilot": "COPILOT_HOME",
        "opencode": "OPENCODE_CONFIG_DIR",
    }.items():
        monkeypatch.setenv(variable, str(user.home / "else" / name))
        user.good("install", name)
        assert (user.home / "else" / name / AGENTS[name].user_file).exists()


def test_a_plugin_that_was_changed_is_kept(user: User) -> None:
    """Our plugin file with changes of the user is removed, and a copy of it stays."""
    user.good("install", "opencode")
    path = user.settings("opencode")
    path.write_text(path.read_text() + "// mine\n")
    user.good("uninstall", "opencode")
    assert not path.exists()
    (backup,) = user.beside("opencode")
    assert backup.read_text().endswith("// mine\n")


def test_a_plugin_of_somebody_else_is_left_alone(user: User) -> None:
    """A file under our plugin's name that we did not write is neither replaced nor removed."""
    path = user.write("opencode", "export const Mine = async () => ({})\n")
    done = user.run("install", "opencode")
    assert done.exit_code == 1
    assert "move it away" in done.output
    user.good("uninstall", "opencode")
    assert path.read_text().startswith("export const Mine")


@pytest.mark.parametrize(("version", "mark"), [("1.4.2", "1.x"), ("opencode 2.0.3", "2.x")])
def test_the_plugin_fits_the_version(user: User, version: str, mark: str) -> None:
    """OpenCode 1 and 2 load plugins of different shapes; the one that fits is written."""
    program = user.home / "bin" / "opencode"
    program.write_text(f"#!/bin/sh\necho '{version}'\n")
    program.chmod(0o755)
    user.good("install", "opencode")
    assert f"OpenCode {mark}" in user.settings("opencode").read_text().splitlines()[0]


def test_install_alone_offers_what_is_there(user: User) -> None:
    """In a pipe, the agents on this machine are listed with their commands; nothing is written."""
    assert "none of" in user.good("install")
    (user.home / ".codex").mkdir()
    program = user.home / "bin" / "gemini"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    output = user.good("install")
    assert output.splitlines() == [
        "Codex CLI: memory install codex",
        "Gemini CLI: memory install gemini",
        "all of them: memory install --yes",
    ]
    assert not user.settings("codex").exists()
    user.good("install", "--yes")
    assert user.settings("codex").exists()
    assert user.settings("gemini").exists()
    assert user.good("uninstall").splitlines()[0] == "Codex CLI: memory uninstall codex"
    user.good("uninstall", "--yes")
    assert not user.settings("codex").exists()


def test_a_refusal_does_not_stop_the_others(user: User) -> None:
    """Of several agents, those that can be installed are, and the exit code tells of the rest."""
    user.write("codex", "broken")
    done = user.run("install", "codex", "cursor")
    assert done.exit_code == 1
    assert user.settings("cursor").exists()


def test_a_terminal_is_asked(user: User) -> None:
    """On a terminal, nothing is written before the user says so."""
    script = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)"
    done = subprocess.run(
        [PYTHON, "-c", script, f"{os.path.dirname(PYTHON)}/memory", "install", "cursor"],
        input="n\n",
        capture_output=True,
        text=True,
        cwd=user.work,
        check=False,
        timeout=60,
    )
    assert "write" in done.stdout
    assert "nothing was written" in done.stdout
    assert not user.settings("cursor").exists()
