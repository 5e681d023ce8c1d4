import glob
import json
import os
import pty
import resource
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from memoryd import project, spool
from memoryd.edges.hooks import main as hook_main
from memoryd.edges.hooks import trouble
from memoryd.pb import memory_pb2 as pb
from memoryd.spool import Envelope
from tests.faults.driver import Daemon, House, read_all

HOOK = os.path.join(os.path.dirname(sys.executable), "memory-hook")
NOTIFY = '{"type": "agent-turn-complete", "thread-id": "t", "last-assistant-message": "done"}'
MIB = 1024 * 1024
SECRET = "AKIA" + "Q3EGTIFRMWVOJ6XZ"  # in parts, so that no scanner takes this file for a leak

Done = subprocess.CompletedProcess[bytes]


def prompt(text: str = "hello", **more: object) -> bytes:
    """The payload of a prompt."""
    fields = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": text}
    return json.dumps(fields | more).encode()


def environment(house: House, **changes: str | None) -> dict[str, str]:
    """The house's environment, with changes; None takes a variable away."""
    env = {k: v for k, v in house.env.items() if not k.startswith("PYTHON")}
    merged = env | {k: v for k, v in changes.items() if v is not None}
    return {k: v for k, v in merged.items() if changes.get(k, v) is not None}


def hook(
    house: House,
    *arguments: str,
    payload: bytes | None = None,
    cwd: str | None = None,
    env: dict[str, str] | None = None,
    **options: Any,
) -> Done:
    """Run the installed command; whatever happens, it must end with 0."""
    done = subprocess.run(
        [HOOK, *(arguments or ("--agent", "claude-code"))],
        input=prompt() if payload is None and "stdin" not in options else payload,
        cwd=cwd or house.project,
        env=env or environment(house),
        capture_output=True,
        timeout=60,
        check=False,
        **options,
    )
    assert done.returncode == 0, done.stderr
    return done


def data_dir(house: House, name: str | None = None) -> str:
    """The data directory of the house's project, or of another."""
    return f"{house.base}/d/memoryd/{name or project.id_of_root(os.path.realpath(house.project))}"


def spooled(house: House, name: str | None = None) -> list[Envelope]:
    """What waits in the inbox of a project."""
    inbox = spool.inbox(data_dir(house, name))
    found = []
    for file_name in spool.waiting(inbox):
        with open(f"{inbox}/{file_name}", "rb") as file:
            found.append(spool.decode(file.read()))
    return found


def log_text(house: House, place: str = "d/memoryd") -> str:
    """What hook.log says; empty if there is none."""
    path = f"{house.base}/{place}/{trouble.NAME}"
    if not os.path.exists(path):
        return ""
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    with open(path, encoding="utf-8") as file:
        return file.read()


def until(condition: Callable[[], object]) -> None:
    """Wait, with much patience, until something is so."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


# --- the usual way


@pytest.mark.parametrize(
    ("agent", "answer"),
    [
        ("claude-code", b""),
        ("codex", b""),
        ("gemini", b"{}\n"),
        ("copilot", b"{}\n"),
        ("cursor", b"{}\n"),
        ("opencode", b""),
    ],
)
def test_each_agent_reads_what_it_expects(house: House, agent: str, answer: bytes) -> None:
    """Stdout is exactly what the agent wants to read, and stderr is silent."""
    done = hook(house, "--agent", agent)
    assert (done.stdout, done.stderr) == (answer, b"")
    assert [envelope.agent for envelope in spooled(house)] == [agent]
    assert log_text(house) == ""


def test_the_payload_is_left_as_it_came(house: House) -> None:
    """The inbox holds the bytes of stdin, and when, where and by whom they came."""
    payload = b'  {"session_id":"s",\r\n "text": "\xc3\xa9 \\ud800"}\n'
    before = time.time_ns() // 1_000_000
    hook(house, "--agent=gemini", "BeforeAgent", payload=payload)
    (envelope,) = spooled(house)
    assert envelope.payload == payload
    assert (envelope.agent, envelope.event) == ("gemini", "BeforeAgent")
    assert (envelope.cwd, envelope.chosen) == (os.path.realpath(house.project), False)
    assert envelope.project == project.id_of_root(envelope.cwd)
    assert before <= envelope.time_ms <= time.time_ns() // 1_000_000


def test_everything_is_private(house: House) -> None:
    """Whatever the user's umask is, files are 0600 and directories 0700."""
    hook(house, umask=0)
    hook(house, payload=b"", umask=0)
    modes = {}
    for path in glob.glob(f"{house.base}/d/**", recursive=True):
        modes[path] = stat.S_IMODE(os.stat(path).st_mode)
    inbox = spool.inbox(data_dir(house))
    (name,) = spool.waiting(inbox)
    for directory in (f"{house.base}/d/memoryd", data_dir(house), inbox):
        assert modes[directory] == 0o700
    assert modes[f"{inbox}/{name}"] == 0o600
    assert modes[f"{house.base}/d/memoryd/hook.log"] == 0o600


def test_codex_passes_its_notice_as_an_argument(house: House) -> None:
    """JSON as the last argument is the payload, and stdin is not waited for."""
    read_end, write_end = os.pipe()
    try:
        hook(house, "--agent", "codex", "notify", NOTIFY, stdin=read_end)
    finally:
        os.close(read_end)
        os.close(write_end)
    (envelope,) = spooled(house)
    assert (envelope.payload, envelope.event) == (NOTIFY.encode(), "notify")


def test_a_subdirectory_belongs_to_its_project(house: House) -> None:
    """The project is that of the repository around the working directory."""
    os.makedirs(f"{house.project}/.git")
    os.makedirs(f"{house.project}/a/b")
    hook(house, cwd=f"{house.project}/a/b")
    assert len(spooled(house)) == 1


def test_a_chosen_project_is_kept_to(house: House) -> None:
    """MEMORY_PROJECT_ID decides on the inbox, and the envelope says that it was chosen."""
    hook(house, env=environment(house, MEMORY_PROJECT_ID="mine"))
    (envelope,) = spooled(house, "mine")
    assert (envelope.project, envelope.chosen) == ("mine", True)


@pytest.mark.parametrize(
    ("agent", "variable"),
    [
        ("claude-code", "CLAUDE_PROJECT_DIR"),
        ("cursor", "CURSOR_PROJECT_DIR"),
        ("gemini", "GEMINI_PROJECT_DIR"),
    ],
)
def test_an_agent_says_which_project_it_works_in(house: House, agent: str, variable: str) -> None:
    """A hook that runs elsewhere, as Cursor's in ~/.cursor, keeps to what its agent says."""
    elsewhere = f"{house.base}/.cursor"
    os.makedirs(elsewhere)
    said = environment(house, **{variable: house.project})
    hook(house, "--agent", agent, cwd=elsewhere, env=said)
    (envelope,) = spooled(house)
    assert (envelope.cwd, envelope.chosen) == (house.project, False)
    hook(house, "--agent", "codex", cwd=elsewhere, env=said)
    for nonsense in (f"{house.base}/gone", "relative", ""):
        env = environment(house, **{variable: nonsense})
        hook(house, "--agent", agent, cwd=elsewhere, env=env)
    assert len(spooled(house)) == 1
    assert len(spooled(house, project.id_of_root(os.path.realpath(elsewhere)))) == 4


def test_a_session_can_opt_out(house: House) -> None:
    """MEMORYD_HOOK=off takes nothing, says what the agent expects and leaves no trace."""
    done = hook(
        house,
        *("--agent", "gemini"),
        payload=prompt("x" * MIB),
        env=environment(house, MEMORYD_HOOK="off"),
    )
    assert done.stdout == b"{}\n"
    assert os.listdir(f"{house.base}/d") == []


def test_nothing_is_left_running(house: House) -> None:
    """When the command has ended, so has everything that it could have started."""
    process = subprocess.Popen(
        [HOOK, "--agent", "claude-code"],
        stdin=subprocess.PIPE,
        cwd=house.project,
        env=environment(house),
        start_new_session=True,
    )
    process.communicate(prompt(), timeout=60)
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


def test_the_fast_path_imports_next_to_nothing(house: House) -> None:
    """A usual call imports, beyond a bare interpreter, a hash and a few modules of ours."""
    _check_imports(house)


def test_a_configuration_costs_its_reader_once(house: House) -> None:
    """With a configuration file, only the first call after a change reads TOML."""
    os.makedirs(f"{house.base}/c/memoryd")
    with open(f"{house.base}/c/memoryd/config.toml", "w", encoding="utf-8") as file:
        file.write("workers = 20\n")
    hook(house)
    _check_imports(house)


def _check_imports(house: House) -> None:
    ours = {
        "_blake2",
        "memoryd",
        "memoryd.domain",
        "memoryd.domain.gate",
        "memoryd.edges",
        "memoryd.edges.hooks",
        "memoryd.edges.hooks.main",
        "memoryd.edges.hooks.place",
        "memoryd.project",
        "memoryd.spool",
    }

    def imported(*command: str) -> set[str]:
        done = subprocess.run(
            [sys.executable, "-X", "importtime", *command],
            input=prompt(),
            cwd=house.project,
            env=environment(house),
            capture_output=True,
            timeout=60,
            check=True,
        )
        lines = [line for line in done.stderr.decode().splitlines() if "|" in line]
        return {line.rpartition("|")[2].strip() for line in lines}

    bare = imported("-c", "pass")
    assert imported(HOOK, "--agent", "claude-code") - bare == ours
    assert spooled(house)


# --- secrets


def _on_disk(house: House) -> bytes:
    """Every byte that a hook has left below the data home."""
    found = b""
    for path in glob.glob(f"{house.base}/d/**", recursive=True, include_hidden=True):
        if os.path.isfile(path):
            with open(path, "rb") as file:
                found += file.read()
    return found


@pytest.mark.parametrize(
    "payload",
    [
        prompt(f"use {SECRET} for it"),
        prompt("x", more=[{"deep": f"aws_access_key_id = {SECRET}"}]),
        f'{{"session_id": "s", "prompt": "half {SECRET} '.encode(),
        b'"\xff ' + SECRET.encode() + b' "',
        b"[" * 300 + b'"' + SECRET.encode() + b'"' + b"]" * 300,
    ],
    ids=["prompt", "deep", "half", "no UTF-8", "nested"],
)
def test_a_secret_never_reaches_the_disk(house: House, payload: bytes) -> None:
    """A secret is replaced before the first byte is written, in bad JSON too."""
    hook(house, payload=payload)
    assert len(spooled(house)) == 1
    assert b"[redacted:" in _on_disk(house)
    assert SECRET.encode() not in _on_disk(house)
    assert log_text(house) == ""


def test_private_words_never_reach_the_disk(house: House) -> None:
    """What a person marks as private is not stored, and the words around it are."""
    hook(house, payload=prompt("before <private>my diary</private> after"))
    (envelope,) = spooled(house)
    said = json.loads(envelope.payload)["prompt"]
    assert said == "before [redacted:private] after"


def test_a_keyword_alone_changes_no_byte(house: House) -> None:
    """A payload that only looks suspicious is left exactly as it came."""
    payload = b'{ "session_id": "s",  "prompt": "where is the token and the key? \\u00e9" }'
    hook(house, payload=payload)
    assert [envelope.payload for envelope in spooled(house)] == [payload]


def test_rules_of_the_user_count_in_hooks_too(house: House) -> None:
    """A secret that only the user's own rule knows does not reach the disk either."""
    rules = f"{house.base}/rules.toml"
    with open(rules, "w", encoding="utf-8") as file:
        file.write('[[rules]]\nid = "staff"\npattern = "staff-[0-9]{6}"\nkeywords = ["staff-"]\n')
    _configure(house, f"redact.rules = '{rules}'\n")
    hook(house, payload=prompt("ask staff-123456"))
    hook(house, payload=prompt("ask staff-123456"))
    assert len(spooled(house)) == 2
    assert b"123456" not in _on_disk(house)
    os.unlink(rules)
    hook(house, payload=prompt("ask staff-123456"))
    assert b"123456" not in _on_disk(house)
    assert "there is no file" in log_text(house)


def test_a_broken_redactor_keeps_the_payload_off_the_disk(house: House) -> None:
    """If secrets cannot be looked for, nothing is written but a line that says so."""
    os.mkdir(f"{house.base}/broken")
    with open(f"{house.base}/broken/ahocorasick_rs.py", "w", encoding="utf-8") as file:
        file.write("raise ImportError('broken')\n")
    env = environment(house, PYTHONPATH=f"{house.base}/broken")
    hook(house, payload=prompt(f"use {SECRET}"), env=env)
    assert spooled(house) == []
    assert SECRET.encode() not in _on_disk(house)
    assert "ImportError" in log_text(house)


# --- everything that can go wrong


@pytest.mark.parametrize("payload", [b"{", b"[1, 2", b"\xff\xfe\x00", b"null", b"hello"])
def test_bad_json_is_left_to_the_daemon(house: House, payload: bytes) -> None:
    """What is not JSON costs the hook nothing; the daemon sets it aside."""
    hook(house, payload=payload)
    assert [envelope.payload for envelope in spooled(house)] == [payload]
    daemon = house.serve()
    until(lambda: daemon.status().spool_bad)
    assert daemon.status().spool_files == 0
    (error,) = daemon.status().last_errors
    assert error.operation == "drain"


def test_an_empty_payload_is_noted(house: House) -> None:
    """A hook that is given nothing leaves nothing but a line in its log."""
    hook(house, payload=b" \n")
    assert spooled(house) == []
    assert log_text(house).endswith(" claude-code - the payload is empty\n")


def test_a_closed_stdin_is_noted(house: House) -> None:
    """Without a stdin there is no payload, and no error."""
    hook(house, stdin=None, preexec_fn=lambda: os.close(0))
    assert "stdin is closed" in log_text(house)


def test_a_closed_stdout_loses_nothing(house: House) -> None:
    """An agent that does not listen is still captured, and its file is not written into."""
    hook(house, "--agent", "gemini", preexec_fn=lambda: os.close(1))
    (envelope,) = spooled(house)
    assert envelope.payload == prompt()
    assert "Bad file descriptor" in log_text(house)


def test_a_stdin_that_never_ends_is_given_up(house: House) -> None:
    """An agent that forgets to close the pipe waits for ten seconds at most."""
    read_end, write_end = os.pipe()
    try:
        hook(house, stdin=read_end)
    finally:
        os.close(read_end)
        os.close(write_end)
    assert "given up: stdin" in log_text(house)


def test_a_key_press_does_not_end_it(house: House) -> None:
    """SIGINT is for the agent: a hook that is under way finishes."""
    process = subprocess.Popen(
        [HOOK, "--agent", "claude-code"],
        stdin=subprocess.PIPE,
        cwd=house.project,
        env=environment(house),
    )
    assert process.stdin is not None
    process.stdin.write(b"{")
    process.stdin.flush()
    until(lambda: b"\nSigIgn:" in _status(process.pid) and _ignores_sigint(process.pid))
    process.send_signal(signal.SIGINT)
    process.communicate(b"}", timeout=60)
    assert process.returncode == 0
    assert [envelope.payload for envelope in spooled(house)] == [b"{}"]


def _status(pid: int) -> bytes:
    with open(f"/proc/{pid}/status", "rb") as file:
        return file.read()


def _ignores_sigint(pid: int) -> bool:
    ignored = int(_status(pid).split(b"\nSigIgn:")[1].split()[0], 16)
    return bool(ignored & 1 << (signal.SIGINT - 1))


def test_no_home_is_no_problem(house: House) -> None:
    """Without HOME the user's home is that of the user database."""
    env = environment(house, HOME=None)
    hook(house, env=env)
    assert len(spooled(house)) == 1


def test_no_home_at_all_writes_nothing_where_it_stands(house: House) -> None:
    """With no home to be found, nothing is written into the working directory."""
    env = environment(house, HOME="nowhere", XDG_DATA_HOME=None)
    done = hook(house, "--agent", "gemini", env=env)
    assert (done.stdout, done.stderr) == (b"{}\n", b"")
    assert os.listdir(house.project) == []
    assert "is not absolute: set HOME" in log_text(house, "r/memoryd")


def test_a_data_home_that_takes_nothing_is_noted_elsewhere(house: House) -> None:
    """If the data home cannot be written, the log is beside the sockets."""
    os.rmdir(f"{house.base}/d")
    with open(f"{house.base}/d", "wb"):
        pass
    hook(house)
    assert "Not a directory" in log_text(house, "r/memoryd")


def test_a_directory_of_somebody_else_is_noted(house: House) -> None:
    """An inbox that is not ours is not written to, and the reason is in the log."""
    os.makedirs(data_dir(house))
    os.symlink("/nonexistent", spool.inbox(data_dir(house)))
    hook(house)
    assert "claude-code" in log_text(house)


def test_no_place_at_all_is_survived(house: House) -> None:
    """Where no byte can be written anywhere, the hook ends with 0 and says nothing."""
    done = hook(
        house,
        *("--agent", "cursor"),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)),
    )
    assert (done.stdout, done.stderr) == (b"{}\n", b"")
    assert spooled(house) == []
    assert os.listdir(spool.inbox(data_dir(house))) == []


def test_a_full_disk_is_noted(house: House) -> None:
    """On a full disk nothing half written stays, and the log beside the sockets says why."""
    if os.geteuid():
        pytest.skip("only root can mount a small file system")
    place = f"{house.base}/d"
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", place]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this machine does not let root mount a small file system")
    try:
        hook(house)
        for _ in range(20):
            hook(house, payload=prompt("x" * 8_000))
        assert 1 <= len(spooled(house)) < 21
        assert all(name[0] != "." for name in os.listdir(spool.inbox(data_dir(house))))
        said = log_text(house) + log_text(house, "r/memoryd")
        assert "No space left on device" in said
    finally:
        subprocess.run(["umount", place], check=True)


def test_a_working_directory_that_is_gone(house: House) -> None:
    """The shell's word for the directory stands in; without one the log says what is missing."""
    gone = f"{house.base}/gone"
    command = 'mkdir "$1" && cd "$1" && rmdir "$1" && exec "$2" --agent codex'
    for pwd in (gone, ""):
        done = subprocess.run(
            [
                "/usr/bin/env",
                "-u",
                "PWD",
                "sh",
                "-c",
                f"{command.replace('exec', f'export PWD={pwd!r}; exec')}",
                "sh",
                gone,
                HOOK,
            ],
            input=prompt(),
            env=environment(house),
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    (envelope,) = spooled(house, project.id_of_root(os.path.realpath(gone)))
    assert envelope.cwd == gone
    assert "the working directory is gone" in log_text(house)


def test_a_long_payload_is_shortened(house: House) -> None:
    """Of a payload of 50 MB, the long texts are cut and all the rest is kept."""
    answer = {"stdout": "x" * 50 * MIB, "stderr": "short"}
    call = {"hook_event_name": "PostToolUse", "session_id": "s", "tool_name": "Bash"}
    payload = json.dumps(call | {"tool_response": answer, "tool_input": {}}).encode()
    hook(house, payload=payload)
    (envelope,) = spooled(house)
    assert len(envelope.payload) <= spool.PAYLOAD_LIMIT
    kept = json.loads(envelope.payload)
    assert kept["tool_response"]["stderr"] == "short"
    assert kept["tool_response"]["stdout"].endswith(
        f"x\n[{49 * MIB} characters left out by memory-hook]"
    )
    assert log_text(house) == ""


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        (b'"' + b"x" * 17 * MIB, "over the limit of 16777216, and is not JSON"),
        (b"[" + b"1," * 9 * MIB + b"1]", "over the limit of 16777216"),
        (b" " * (hook_main.READ_LIMIT + 1), "over the limit of 67108864"),
    ],
    ids=["no JSON", "no texts", "beyond all measure"],
)
def test_a_payload_that_cannot_fit_is_noted(house: House, payload: bytes, said: str) -> None:
    """What cannot be made to fit is not written, and the log says how long it was."""
    hook(house, payload=payload)
    assert spooled(house) == []
    assert said in log_text(house)


def test_an_unknown_agent_is_noted(house: House) -> None:
    """A misspelt agent leaves a line that names the known ones."""
    hook(house, "--agent", "claud")
    assert "agent 'claud' is not known: take one of claude-code, codex" in log_text(house)
    assert spooled(house) == []


@pytest.mark.parametrize("arguments", [("--agent",), ("Stop",), ("--what", "-x", "\udcff")])
def test_a_senseless_command_line_is_survived(house: House, arguments: tuple[str, ...]) -> None:
    """Arguments that mean nothing are noted."""
    assert hook(house, *arguments).stdout == b""
    assert "is not known" in log_text(house)


def test_help_is_for_people(house: House) -> None:
    """--help, and a call by hand, say how the command is used."""
    assert hook(house, "--help").stdout.startswith(b"usage: memory-hook --agent claude-code|")
    parent, child = pty.openpty()
    try:
        assert b"usage: memory-hook" in hook(house, stdin=child).stderr
    finally:
        os.close(parent)
        os.close(child)
    assert os.listdir(f"{house.base}/d") == []


def test_an_unusable_project_id_is_noted_and_replaced(house: House) -> None:
    """A MEMORY_PROJECT_ID that cannot be one falls back to the directory's."""
    hook(house, env=environment(house, MEMORY_PROJECT_ID="../x"))
    assert len(spooled(house)) == 1
    assert "MEMORY_PROJECT_ID: project id '../x' is not usable" in log_text(house)


def test_the_log_is_kept_small(house: House) -> None:
    """hook.log is at most 64 KiB, with one predecessor."""
    hook(house, payload=b"")
    path = f"{house.base}/d/memoryd/{trouble.NAME}"
    for _ in range(3):
        with open(path, "ab") as file:
            file.truncate(trouble.LIMIT)
        hook(house, payload=b"")
    assert sorted(n for n in os.listdir(f"{house.base}/d/memoryd") if "hook" in n) == [
        "hook.log",
        "hook.log.1",
    ]
    assert log_text(house).count("\n") == 1
    assert os.path.getsize(f"{path}.1") == trouble.LIMIT


# --- configuration


def _configure(house: House, text: str) -> None:
    os.makedirs(f"{house.base}/c/memoryd", exist_ok=True)
    with open(f"{house.base}/c/memoryd/config.toml", "w", encoding="utf-8") as file:
        file.write(text)


def test_a_unified_store_has_one_inbox(house: House) -> None:
    """With unified = true every project's payloads are in one inbox, each with its project."""
    _configure(house, "unified = true\n")
    hook(house)
    hook(house)
    name = project.id_of_root(os.path.realpath(house.project))
    assert [e.project for e in spooled(house, project.UNIFIED)] == [name, name]
    _configure(house, "# no longer\n")
    hook(house)
    assert len(spooled(house)) == 1


def test_the_environment_comes_before_the_file(house: House) -> None:
    """Variables that set the store are heeded without reading any file."""
    _configure(house, "unified = true\n")
    elsewhere = f"{house.base}/elsewhere"
    hook(house, env=environment(house, MEMORYD_UNIFIED="no"))
    hook(house, env=environment(house, MEMORYD_DATA_DIR=elsewhere))
    assert len(spooled(house)) == 1
    assert len(spool.waiting(spool.inbox(elsewhere))) == 1


def test_a_data_directory_of_the_file_is_used(house: House) -> None:
    """The hook and the daemon take the data directory from the same file."""
    _configure(house, f"data_dir = '{house.base}/own'\n")
    hook(house)
    hook(house)
    assert len(spool.waiting(f"{house.base}/own/spool")) == 2
    daemon = house.serve()
    until(lambda: daemon.status().sequence == 2)


def test_a_broken_file_is_noted_once(house: House) -> None:
    """A configuration that cannot be used loses nothing, and is noted once per change."""
    _configure(house, "workers = \n")
    hook(house)
    hook(house)
    assert len(spooled(house)) == 2
    assert log_text(house).count("is not TOML that can be read") == 1


# --- with a daemon


def events(daemon: Daemon) -> list[pb.Event]:
    """All events of the log."""
    return list(read_all(daemon.stub))


def test_a_payload_is_an_event_and_its_file_is_gone(house: House) -> None:
    """What a hook leaves is in the log soon after, whether it came before or after the daemon."""
    hook(house, payload=prompt("before"))
    daemon = house.serve()
    hook(house, payload=prompt("after"))
    until(lambda: len(events(daemon)) == 2)
    assert [event.text for event in events(daemon)] == ["before", "after"]
    assert {event.project for event in events(daemon)} == {daemon.status().project}
    until(lambda: daemon.status().spool_files == 0)
    assert os.listdir(spool.inbox(data_dir(house))) == []
    daemon.terminate()
    assert daemon.process.returncode == 0
    assert "hello" not in house.log_text()


def test_the_status_tells_of_what_was_set_aside(house: House, daemon: Daemon) -> None:
    """`memory status` shows people how many payloads could not be read, and why."""
    hook(house, payload=b"{")
    until(lambda: daemon.status().spool_bad)
    shown = subprocess.run(
        [os.path.join(os.path.dirname(sys.executable), "memory"), "status", "--no-json"],
        cwd=house.project,
        env=environment(house, COLUMNS="300"),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout
    assert "1 payloads that cannot be read" in shown
    assert "the payload is not JSON" in shown


def test_events_of_a_unified_store_name_their_project(house: House) -> None:
    """In a store that projects share, each event has the project of its directory."""
    env = environment(house, MEMORYD_UNIFIED="yes")
    other = f"{house.base}/other"
    os.makedirs(f"{other}/.git")
    hook(house, payload=prompt("one"), env=env)
    hook(house, payload=prompt("two", cwd=other), env=env)
    daemon = house.serve("--unified")
    until(lambda: len(events(daemon)) == 2)
    assert [event.project for event in events(daemon)] == [
        project.id_of_root(os.path.realpath(house.project)),
        project.id_of_root(os.path.realpath(other)),
    ]


def test_by_rpc_nothing_lies_in_the_spool(house: House, daemon: Daemon) -> None:
    """With hook.transport = "rpc" the daemon has the event when the hook has ended."""
    elsewhere = f"{house.base}/elsewhere"  # a spool that no daemon drains
    env = environment(house, MEMORYD_HOOK_TRANSPORT="rpc", MEMORYD_DATA_DIR=elsewhere)

    def sent() -> bool:
        """Whether it went directly; a busy machine may need more than 300 ms."""
        waiting = len(spool.waiting(spool.inbox(elsewhere)))
        done = hook(house, "--agent", "gemini", payload=_gemini("by rpc"), env=env)
        assert (done.stdout, done.stderr) == (b"{}\n", b"")
        return len(spool.waiting(spool.inbox(elsewhere))) == waiting

    until(sent)
    assert "by rpc" in [event.text for event in events(daemon)]


def test_by_rpc_without_a_daemon_the_spool_takes_it(house: House) -> None:
    """A daemon that does not answer costs nothing but a line in the log."""
    _configure(house, '[hook]\ntransport = "rpc"\n')
    hook(house, "--agent", "gemini", payload=_gemini("by spool"))
    assert "is not running" in log_text(house)
    assert len(spooled(house)) == 1
    daemon = house.serve()
    until(lambda: [event.text for event in events(daemon)] == ["by spool"])


def _gemini(text: str) -> bytes:
    return json.dumps(
        {"hook_event_name": "BeforeAgent", "session_id": "s", "prompt": text}
    ).encode()
