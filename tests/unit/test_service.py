import os
import plistlib
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from memoryd import project
from memoryd.config import load
from memoryd.edges.cli.service import render, service

REPOSITORY = Path(__file__).parents[2]
AWKWARD = "100% my  $disk"

FAKE_SYSTEMCTL = """#!/bin/sh
# Notes its arguments, keeps the links of enabled units, fails when told to.
echo "$*" >> "$FAKE_DIR/calls"
[ ! -e "$FAKE_DIR/fail" ] || { echo "Failed to connect to bus" >&2; exit 1; }
wants="$XDG_CONFIG_HOME/systemd/user/default.target.wants"
case "$2" in
  enable) mkdir -p "$wants"; shift 3; for unit; do : > "$wants/$unit"; done ;;
  disable) shift 3; for unit; do rm -f "$wants/$unit"; done ;;
  status) echo "active (running)"; exit 3 ;;
esac
"""


class User:
    """A user with a home of their own, a fake systemctl, and a project ``work``."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.units = home / "config" / "systemd" / "user"
        self.work = home / "work"
        self.id = project.id_of_root(os.path.realpath(self.work))
        self.data = home / "data" / "memoryd" / self.id

    def run(self, *arguments: str, directory: Path | None = None) -> Result:
        """Run ``memory service ...`` for the project."""
        where = str(directory or self.work)
        return CliRunner().invoke(service, [*arguments, "--project", where])

    def calls(self) -> list[str]:
        """Tell what systemctl was asked to do."""
        path = self.home / "calls"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> User:
    """Make a user whose directories all have awkward names."""
    for variable in [name for name in os.environ if name.startswith("MEMORY")]:
        monkeypatch.delenv(variable)
    home = tmp_path / AWKWARD
    for name in ("bin", "data", "config", "run", "work/.git", "other/.git"):
        (home / name).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("FAKE_DIR", str(home))
    _program(home / "bin" / "systemctl", FAKE_SYSTEMCTL)
    _program(home / "bin" / "memoryd", "#!/bin/sh\n")
    monkeypatch.setattr(sys, "executable", str(home / "bin" / "python"))
    monkeypatch.setenv("PATH", f"{home / 'bin'}:{os.environ['PATH']}")
    return User(home)


def _program(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def test_install_writes_enables_and_starts(user: User) -> None:
    """Install writes both units and the project's directories, and asks systemd to start them."""
    done = user.run("install")
    assert done.exit_code == 0, done.output
    assert {path.name for path in user.units.glob("memoryd@*")} == {
        "memoryd@.service",
        "memoryd@.path",
    }
    assert user.calls() == [
        "--user daemon-reload",
        f"--user enable --now memoryd@{user.id}.path memoryd@{user.id}.service",
    ]
    for directory in (user.data, user.data / "spool"):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    for name in (user.units / "memoryd@.service", user.data / "ROOT", user.data):
        assert str(name) in done.output


def test_the_unit_finds_the_project_by_its_id(user: User) -> None:
    """What install notes is what the settings of a daemon that knows only the id are read from."""
    user.run("install", "--no-start")
    settings, _ = load("/", {}, {"MEMORY_PROJECT_ID": user.id})
    assert settings.project_root == os.path.realpath(user.work)


def test_install_may_start_nothing(user: User) -> None:
    """With --no-start the files are written, systemctl is not called, and the way on is told."""
    done = user.run("install", "--no-start")
    assert done.exit_code == 0, done.output
    assert (user.units / "memoryd@.path").exists()
    assert user.calls() == []
    assert "systemctl --user enable --now" in done.output


def test_install_twice_is_install_once(user: User) -> None:
    """A second install changes no file and succeeds."""
    user.run("install")
    before = (user.units / "memoryd@.service").stat()
    done = user.run("install")
    assert done.exit_code == 0, done.output
    assert "wrote" not in done.output
    assert (user.units / "memoryd@.service").stat().st_ino == before.st_ino
    assert not list(user.units.glob("*.tmp"))


def test_a_failing_systemctl_leaves_the_rest_to_the_user(user: User) -> None:
    """When systemctl fails, its words and the commands that are left are shown; the exit is 1."""
    (user.home / "fail").touch()
    done = user.run("install")
    assert done.exit_code == 1
    assert "daemon-reload failed: Failed to connect to bus" in done.output
    assert f"  systemctl --user enable --now memoryd@{user.id}.path" in done.output


def test_without_systemctl_the_user_is_told(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """When there is no systemctl, every command says so and exits with 1."""
    user.run("install")
    monkeypatch.setenv("PATH", str(user.data))
    for command in ("install", "uninstall", "status"):
        done = user.run(command)
        assert (command, done.exit_code) == (command, 1)
        assert "systemctl is missing" in done.output


def test_without_the_daemon_nothing_is_installed(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When there is no program to run, no unit is written for it."""
    (user.home / "bin" / "memoryd").unlink()
    monkeypatch.setenv("PATH", str(user.data))
    done = user.run("install")
    assert done.exit_code == 1
    assert "neither" in done.output
    assert not user.units.exists()


def test_a_data_directory_that_the_unit_cannot_write_is_refused(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A data_dir away from the usual place is refused at install, not found out by the daemon."""
    monkeypatch.setenv("MEMORYD_DATA_DIR", str(user.home / "elsewhere"))
    done = user.run("install")
    assert done.exit_code == 1
    assert "environment MEMORYD_DATA_DIR" in done.output
    assert not user.units.exists()


def test_unified_is_one_service(user: User) -> None:
    """With unified = true, every project's service is the same one, and no root is noted."""
    (user.home / "config" / "memoryd").mkdir()
    (user.home / "config" / "memoryd" / "config.toml").write_text("unified = true")
    user.run("install")
    assert "memoryd@unified.service" in user.calls()[-1]
    assert not (user.home / "data" / "memoryd" / "unified" / "ROOT").exists()


def test_the_last_uninstall_removes_the_templates(user: User) -> None:
    """The templates stay while another project is enabled; data stays always."""
    user.run("install")
    user.run("install", directory=user.home / "other")
    done = user.run("uninstall")
    assert done.exit_code == 0, done.output
    assert "the templates stay" in done.output
    assert (user.units / "memoryd@.service").exists()
    done = user.run("uninstall", directory=user.home / "other")
    assert done.exit_code == 0, done.output
    assert not list(user.units.glob("memoryd@*"))
    assert user.calls()[-1] == "--user daemon-reload"
    assert (user.data / "ROOT").exists()
    done = user.run("uninstall")
    assert (done.exit_code, done.output) == (0, "not installed: nothing to do\n")


def test_the_path_unit_stops_first(user: User) -> None:
    """A path unit that outlives the service would start it again, so it is named first."""
    user.run("install")
    user.run("uninstall")
    assert f"--user disable --now memoryd@{user.id}.path memoryd@{user.id}.service" in user.calls()


def test_status_tells_what_systemd_says(user: User) -> None:
    """Status is systemctl's output and exit code, or that the service is not installed."""
    done = user.run("status")
    assert (done.exit_code, done.output.split(":")[0]) == (1, "not installed")
    user.run("install", directory=user.home / "other")
    done = user.run("status")
    assert done.exit_code == 1
    assert f"not installed for project {user.id}" in done.output
    user.run("install")
    done = user.run("status")
    assert (done.exit_code, done.output) == (3, "active (running)\n")


def test_macos_is_sent_to_launchd(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """On macOS every command names the launchd file and exits with 1."""
    monkeypatch.setattr(sys, "platform", "darwin")
    for command in ("install", "uninstall", "status"):
        done = user.run(command)
        assert done.exit_code == 1
        assert "docs/memoryd.plist" in done.output


def test_paths_are_written_as_systemd_reads_them() -> None:
    """Spaces and quotes are quoted where words are read; percent signs are doubled everywhere."""
    unit = render("memoryd@.service", "/a b/1%/m", "/d e/2%/memoryd", "/c f/3%")
    assert 'ExecStart="/a b/1%%/m" serve\n' in unit
    assert 'ReadWritePaths="/d e/2%%/memoryd"\n' in unit
    assert 'ReadWritePaths="/\\"d\\"\\\\"\n' in render("memoryd@.service", "/m", '/"d"\\', "/c")
    assert 'Environment="XDG_DATA_HOME=/d e/2%%"\n' in unit
    assert 'Environment="XDG_CONFIG_HOME=/c f/3%%"\n' in unit
    assert "%h" not in unit
    path = render("memoryd@.path", "/m", "/d e/2%/memoryd", "/c")
    assert "DirectoryNotEmpty=/d e/2%%/memoryd/%i/spool\n" in path
    assert "%h" not in path


def test_a_path_that_no_unit_can_hold_is_refused(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line break in a path would be a line of its own in the unit; it is refused."""
    odd = user.home / "bin\nExecStart=evil"
    odd.mkdir()
    _program(odd / "memoryd", "#!/bin/sh\n")
    monkeypatch.setattr(sys, "executable", str(odd / "python"))
    done = user.run("install", "--no-start")
    assert done.exit_code == 1
    assert "cannot stand in a unit file" in done.output


def test_a_program_that_systemd_would_not_start_is_refused(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Systemd takes no quote in a program's path, however it is written; install says so."""
    odd = user.home / "it's"
    odd.mkdir()
    _program(odd / "memoryd", "#!/bin/sh\n")
    monkeypatch.setattr(sys, "executable", str(odd / "python"))
    done = user.run("install")
    assert done.exit_code == 1
    assert "a quote or a backslash" in done.output
    assert not user.units.exists()


def _verify(units: list[Path], runtime: Path) -> str:
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is missing")
    runtime.mkdir(exist_ok=True)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--user", "--man=no", *units],
        env={**os.environ, "XDG_RUNTIME_DIR": str(runtime), "SYSTEMD_LOG_LEVEL": "info"},
        capture_output=True,
        text=True,
        check=False,
    )
    return f"{done.stdout}{done.stderr}exit code {done.returncode}"


def test_systemd_is_content_with_the_templates(tmp_path: Path) -> None:
    """The units as they are in the repository verify without a word."""
    units = []
    for name in ("memoryd@.service", "memoryd@.path"):
        text = (REPOSITORY / "systemd" / name).read_text(encoding="utf-8")
        text = re.sub(r"(?m)^ExecStart=\S+", "ExecStart=/bin/true", text)
        units.append(tmp_path / name.replace("@", "@api-3f2a91c0"))
        units[-1].write_text(text, encoding="utf-8")
    assert _verify(units, tmp_path / "run") == "exit code 0"


def test_systemd_is_content_with_what_is_installed(user: User, tmp_path: Path) -> None:
    """The units as installed, with awkward paths, verify without a word: the program is found."""
    user.run("install", "--no-start")
    units = []
    for name in ("memoryd@.service", "memoryd@.path"):
        units.append(tmp_path / name.replace("@", "@api-3f2a91c0"))
        shutil.copy(user.units / name, units[-1])
    assert _verify(units, tmp_path / "run") == "exit code 0"
    (user.home / "bin" / "memoryd").unlink()
    assert "memoryd is not executable" in _verify(units, tmp_path / "run")


def test_the_unit_does_not_need_what_a_user_manager_lacks() -> None:
    """Settings that drop capabilities end a user unit with 218/CAPABILITIES: none is used."""
    text = (REPOSITORY / "systemd" / "memoryd@.service").read_text(encoding="utf-8")
    keys = {line.partition("=")[0] for line in text.splitlines() if not line.startswith("#")}
    dropping = {
        "CapabilityBoundingSet",
        "AmbientCapabilities",
        "PrivateDevices",
        "ProtectClock",
        "ProtectKernelLogs",
        "ProtectKernelModules",
        "User",
        "Group",
        "SupplementaryGroups",
    }
    assert not keys & dropping


def test_the_launchd_file_is_whole() -> None:
    """The launchd file parses, and starts the daemon as the systemd unit does."""
    with (REPOSITORY / "docs" / "memoryd.plist").open("rb") as file:
        job = plistlib.load(file)
    assert job["ProgramArguments"][1:] == ["serve"]
    assert job["Umask"] == 0o077
    assert job["ExitTimeOut"] == 20


def test_the_score_is_printed() -> None:
    """The score script prints systemd's verdict, or says what is missing."""
    done = subprocess.run(
        [REPOSITORY / "scripts" / "unit-score"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"exposure level|systemd-analyze is missing", done.stdout + done.stderr)
