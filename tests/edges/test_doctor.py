"""The checks of `memory doctor`, each with the trouble that it looks for made for real."""

import os
import sys
import time
from typing import Any

import pytest

from memoryd import client, config, project, spool
from memoryd.edges.doctor import hooks, places, running, setup
from memoryd.edges.doctor.finding import Finding
from memoryd.edges.hooks import trouble
from memoryd.edges.install import files, plan
from memoryd.edges.install.agents import AGENTS

NOW = 1_780_000_000_000
HEALTHY: dict[str, Any] = {
    "version": "0.1.0",
    "writable": True,
    "write_error": "",
    "uptime_ms": 5_000,
    "last_errors": [],
    "pump_lag_events": 0,
    "pump_lag_ms": 0,
    "last_event_ms": NOW - 1_000,
    "started_ms": NOW - 5_000,
}


def states(found: list[Finding]) -> list[str]:
    """How the findings are."""
    return [item.state for item in found]


def trouble_in(found: list[Finding]) -> Finding:
    """The only finding, which must be a problem and say what to do."""
    (item,) = found
    assert (item.state, bool(item.todo)) == ("problem", True)
    return item


@pytest.fixture
def home(tmp_path: os.PathLike[str], monkeypatch: pytest.MonkeyPatch) -> config.Settings:
    """The settings of a project in a home of its own, with its directories."""
    base = os.fspath(tmp_path)
    for name in list(os.environ):
        if name.startswith(("MEMORY", "XDG_", "CLAUDE", "CODEX", "COPILOT", "CURSOR", "GEMINI")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", base)
    for name in ("DATA_HOME", "CONFIG_HOME", "RUNTIME_DIR"):
        monkeypatch.setenv(f"XDG_{name}", f"{base}/{name[0].lower()}")
    os.makedirs(f"{base}/p/.git")
    monkeypatch.chdir(f"{base}/p")
    settings, _ = client.load(".")
    project.private_dir(project.data_home())
    project.private_dir(settings.runtime_dir)
    for path in (settings.data_dir, spool.inbox(settings.data_dir), spool.aside(settings.data_dir)):
        project.private_dir(path)
    return settings


def test_package_is_whole() -> None:
    """The package that runs this test is as it was installed."""
    assert states(setup.package()) == ["ok"]


def test_changed_and_missing_files_of_a_package_are_seen(
    tmp_path: os.PathLike[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file with other bytes, one that is gone, and a requirement that is not there."""
    base = os.fspath(tmp_path)
    os.mkdir(f"{base}/broken-1.dist-info")
    with open(f"{base}/broken.py", "w", encoding="utf-8") as file:
        file.write("changed = True\n")
    with open(f"{base}/broken-1.dist-info/METADATA", "w", encoding="utf-8") as file:
        file.write("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
        file.write("Requires-Dist: no-such-thing-at-all>=1\n")
        file.write("Requires-Dist: neither-this; extra == 'dev'\n")
    with open(f"{base}/broken-1.dist-info/RECORD", "w", encoding="utf-8") as file:
        file.write("broken.py,sha256=AAAA,1\ngone.py,sha256=AAAA,1\n")
    monkeypatch.syspath_prepend(base)
    files_, needs = setup.package("broken")
    assert "broken.py, gone.py" in files_.said
    assert needs.said == "it lacks no-such-thing-at-all"
    assert states([files_, needs]) == ["problem", "problem"]
    assert "is not installed" in trouble_in(setup.package("no-such-package")).said


def test_commands_are_looked_for_on_path(
    tmp_path: os.PathLike[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """None at all is a problem; not on PATH, or those of another installation, is worth a note."""
    base = os.fspath(tmp_path)
    monkeypatch.setenv("PATH", f"{base}/other")
    assert states(setup.commands(f"{base}/none")) == ["problem"] * 3
    for place in ("own", "other"):
        os.mkdir(f"{base}/{place}")
    for name in setup.PROGRAMS:
        with open(os.open(f"{base}/own/{name}", os.O_CREAT | os.O_WRONLY, 0o755), "w"):
            pass
    assert "not on PATH" in setup.commands(f"{base}/own")[0].said
    with open(os.open(f"{base}/other/memory", os.O_CREAT | os.O_WRONLY, 0o755), "w"):
        pass
    assert "another installation" in setup.commands(f"{base}/own")[0].said
    monkeypatch.setenv("PATH", f"{base}/own")
    assert states(setup.commands(f"{base}/own")) == ["ok"]


def test_bad_configuration_is_named(home: config.Settings) -> None:
    """A value that is not allowed is a problem that names its file; nothing else is asked then."""
    path = project.config_file()
    os.makedirs(os.path.dirname(path))
    with open(path, "w", encoding="utf-8") as file:
        file.write("workers = 0\n")
    settings, found = setup.configuration(".")
    assert settings is None
    assert path in trouble_in(found).said


def test_rules_that_are_not_there_are_a_problem(
    home: config.Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The daemon would not start without its rules, so the doctor says so before."""
    monkeypatch.setenv("MEMORYD_REDACT_RULES", "/nowhere/rules.toml")
    assert "/nowhere/rules.toml" in trouble_in(setup.configuration(".")[1]).said


def test_open_directories_are_a_problem(home: config.Settings) -> None:
    """What others may read is named with the command that closes it."""
    assert states(places.permissions(home)) == ["ok"]
    os.chmod(home.data_dir, 0o755)
    found = trouble_in(places.permissions(home))
    assert found.todo == f"chmod 700 {home.data_dir}"
    os.chmod(home.data_dir, 0o700)
    with open(os.open(f"{home.data_dir}/token", os.O_CREAT | os.O_WRONLY, 0o644), "w"):
        pass
    assert trouble_in(places.permissions(home)).todo == f"chmod 600 {home.data_dir}/token"


def test_a_directory_that_cannot_be_written_is_a_problem(home: config.Settings) -> None:
    """A directory without the right to write is named."""
    if os.getuid() == 0:
        pytest.skip("root may write everywhere")
    os.chmod(spool.inbox(home.data_dir), 0o500)
    assert "cannot be written" in trouble_in(places.permissions(home)).said


def test_what_belongs_to_somebody_else_is_a_problem(home: config.Settings) -> None:
    """A directory, or a socket, of another user."""
    if os.getuid() != 0:
        pytest.skip("only root can give files away")
    os.chown(spool.aside(home.data_dir), 12_345, -1)
    assert "belongs to user 12345" in trouble_in(places.permissions(home)).said
    with open(home.socket_path, "w", encoding="utf-8"):
        os.chown(home.socket_path, 12_345, -1)
    assert "belongs to user 12345" in trouble_in(running.socket(home)[1]).said


def test_a_full_disk_is_a_problem(home: config.Settings) -> None:
    """Less room than is needed is a problem, also before the directory is there."""
    assert states(places.disk(home)) == ["ok"]
    assert "free for" in trouble_in(places.disk(home, least=2**80)).said


def test_payloads_that_pile_up_are_a_problem(home: config.Settings) -> None:
    """What waits is fine without a daemon, and a problem with one; what is set aside always is."""
    assert states(places.inbox(home, running=True)) == ["ok"]
    name = spool.file_name(time.time_ns() - 60_000_000_000, 1)
    spool.put(spool.inbox(home.data_dir), name, b"x")
    assert states(places.inbox(home, running=False)) == ["note"]
    assert "the oldest for 1m" in trouble_in(places.inbox(home, running=True)).said
    os.rename(f"{spool.inbox(home.data_dir)}/{name}", f"{spool.aside(home.data_dir)}/{name}")
    with open(f"{spool.aside(home.data_dir)}/{name}{spool.REASON}", "w", encoding="utf-8") as file:
        file.write("it is not JSON\n")
    assert f"{name}: it is not JSON" in trouble_in(places.inbox(home, running=True)).said


def test_problems_of_hooks_are_shown(home: config.Settings) -> None:
    """What hooks noted in the last day is a problem; older lines are only mentioned."""
    now = time.time()
    assert states(places.hook_log(now)) == ["ok"]
    trouble.note("codex", "Stop", OSError(28, "No space left on device", "/spool"))
    found = trouble_in(places.hook_log(now))
    assert "codex Stop No space left on device: /spool" in found.said
    assert states(places.hook_log(now + 3 * 86_400)) == ["ok"]


def test_a_socket_that_nobody_serves_is_a_problem(home: config.Settings) -> None:
    """Without a socket the daemon does not run; with one that is left over it has died."""
    import socket

    answer, found = running.socket(home)
    assert answer is None
    assert "is not running" in trouble_in(found).said
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(home.socket_path)
    os.chmod(home.socket_path, 0o666)
    _, (mode, dead) = running.socket(home)
    assert mode.todo == f"chmod 600 {home.socket_path}"
    assert "has left" in dead.said


def test_what_the_daemon_says_of_itself_is_judged() -> None:
    """Another version, a log that takes nothing, and late errors are told."""
    assert states(running.daemon(HEALTHY, NOW)) == ["ok"]
    assert "0.0.1" in trouble_in(running.daemon(HEALTHY | {"version": "0.0.1"}, NOW)).said
    full = HEALTHY | {"writable": False, "write_error": "no space left"}
    assert "no space left" in trouble_in(running.daemon(full, NOW)).said
    error = {"time_ms": NOW - 1, "operation": "drain", "message": "m", "error_id": "e1"}
    assert states(running.daemon(HEALTHY | {"last_errors": [error]}, NOW)) == ["note"]


def test_a_pump_that_stands_still_is_a_problem() -> None:
    """Events may wait for a moment, not for minutes."""
    assert states(running.lag(HEALTHY | {"pump_lag_events": 9, "pump_lag_ms": 800})) == ["ok"]
    late = HEALTHY | {"pump_lag_events": 9, "pump_lag_ms": 3_600_000}
    assert "the oldest for 1h" in trouble_in(running.lag(late)).said


class Index:
    """Stands in for a client that asks for the state of the index."""

    def __init__(self, state: str, sequence: int) -> None:
        self._answer = {"state": state, "sequence": sequence, "log_sequence": 9}

    def index_status(self) -> dict[str, Any]:
        """What was given."""
        return self._answer | {"documents": 9, "reason": "it was made by another version"}


def test_an_index_behind_the_log_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search that is not ready or has not seen all is a problem, unless it is at work."""
    monkeypatch.setattr(running, "_INDEX_S", 0)
    answers = {("ready", 9): "ok", ("ready", 4): "problem", ("rebuilding", 4): "note"}
    for given, expected in answers.items():
        found = running.index(Index(*given))  # type: ignore[arg-type]
        assert states(found) == [expected]


def test_jobs_that_fail_are_a_problem() -> None:
    """A failed job is named with the command that runs it again, a paused one is noted."""
    job = {"job_name": "compact", "last_error": "", "is_paused": False}
    assert states(running.jobs([job])) == ["ok"]
    assert trouble_in(running.jobs([job | {"last_error": "no room"}])).todo.startswith(
        "`memory jobs"
    )
    assert states(running.jobs([job | {"is_paused": True}])) == ["note"]


def test_a_wrong_clock_is_a_problem() -> None:
    """An event from the future, and a start that lies elsewhere by the clock of today."""
    assert states(running.clock(HEALTHY, NOW, NOW - 5_500)) == ["ok"]
    ahead = HEALTHY | {"last_event_ms": NOW + 86_400_000}
    assert "in 1d" in trouble_in(running.clock(ahead, NOW, None)).said
    jumped = trouble_in(running.clock(HEALTHY, NOW, NOW - 3_605_000))
    assert "jumped by 1h" in jumped.said


def test_the_begin_of_this_process_is_known() -> None:
    """The system tells when a process began, to within a minute of the truth."""
    if not os.path.exists("/proc/self/stat"):
        pytest.skip("this system does not tell")
    now = time.time_ns() // 1_000_000
    began = running.began(os.getpid(), now)
    assert began is not None
    assert now - 3_600_000 < began <= now + 1_000
    assert running.began(2**22 + 1, now) is None


def test_a_service_that_failed_is_a_problem(
    home: config.Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What systemd says of an enabled unit counts; one that is not enabled is only noted."""
    base = os.path.dirname(os.getcwd())
    os.mkdir(f"{base}/bin")
    with open(os.open(f"{base}/bin/systemctl", os.O_CREAT | os.O_WRONLY, 0o755), "w") as file:
        file.write('#!/bin/sh\ncat "$HOME/state"\n')
    monkeypatch.setenv("PATH", f"{base}/bin:{os.environ['PATH']}")
    assert states(running.service(home)) == ["note"]
    wants = f"{os.environ['XDG_CONFIG_HOME']}/systemd/user/default.target.wants"
    os.makedirs(wants)
    with open(f"{wants}/memoryd@{home.project}.service", "w", encoding="utf-8"):
        pass
    for state, expected in (("active", "ok"), ("failed", "problem")):
        with open(f"{base}/state", "w", encoding="utf-8") as file:
            file.write(state)
        assert states(running.service(home)) == [expected]
    monkeypatch.setenv("PATH", "/nowhere")
    assert states(running.service(home)) == ["ok"]


def install(name: str, scope: str = "user") -> str:
    """Install the hooks of an agent that run the hook of this environment; return their file."""
    agent = AGENTS[name]
    path = agent.path(scope, os.getcwd())
    program = f"{os.path.dirname(sys.executable)}/memory-hook"
    files.apply(plan.installing(agent, path, program), new_mode=0o600, keep=True)
    return path


def test_hooks_are_probed_without_a_daemon(home: config.Settings) -> None:
    """The probe reaches the spool, and is taken out of it again."""
    assert states(hooks.hooks(home, ".", running=False)) == ["note"]
    install("claude-code")
    (found,) = hooks.hooks(home, ".", running=False)
    assert (found.state, found.check) == ("ok", "hooks of claude-code")
    assert spool.waiting(spool.inbox(home.data_dir)) == []


def test_an_agent_that_is_not_captured_is_noted(home: config.Settings) -> None:
    """An agent that is here has no hooks of ours; broken settings of one are a problem."""
    os.mkdir(os.path.expanduser("~/.gemini"))
    (found,) = hooks.hooks(home, ".", running=False)
    assert (found.state, found.todo) == ("note", "`memory install gemini`")
    with open(os.path.expanduser("~/.gemini/settings.json"), "w", encoding="utf-8") as file:
        file.write("{ broken")
    assert "cannot be read" in trouble_in(hooks.hooks(home, ".", running=False)).said


def test_hooks_in_two_places_are_a_problem(home: config.Settings) -> None:
    """All would come twice."""
    install("codex")
    install("codex", "project")
    assert "twice" in trouble_in(hooks.hooks(home, ".", running=False)).said


def test_hooks_whose_command_is_gone_are_a_problem(home: config.Settings) -> None:
    """A hook that names a program that is not there, and one that is turned off."""
    path = install("claude-code")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace(os.path.dirname(sys.executable), "/nowhere"))
    assert "cannot be run" in trouble_in(hooks.hooks(home, ".", running=False)).said
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace("{", '{"disableAllHooks": true, ', 1))
    found = hooks.hooks(home, ".", running=False)
    assert "disableAllHooks" in found[0].said
    assert found[0].state == "problem"


def test_a_hook_that_captures_nothing_is_a_problem(
    home: config.Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hook that is off by the environment leaves no probe."""
    install("claude-code")
    monkeypatch.setenv("MEMORYD_HOOK", "off")
    assert "did not arrive" in trouble_in(hooks.hooks(home, ".", running=False)).said
