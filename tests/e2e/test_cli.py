import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

BIN = os.path.dirname(sys.executable)


@dataclass
class House:
    """A home of its own, a project in it, and the programs that run there."""

    base: str
    daemons: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def project(self) -> str:
        """The project's directory."""
        return f"{self.base}/work/api"

    def env(self, **more: str) -> dict[str, str]:
        """An environment in which everything stays below the base."""
        ours = ("MEMORY", "XDG_", "CLAUDE_", "CURSOR_", "GEMINI_")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
        return kept | {
            "HOME": self.base,
            "XDG_RUNTIME_DIR": f"{self.base}/r",
            "XDG_DATA_HOME": f"{self.base}/d",
            "XDG_CONFIG_HOME": f"{self.base}/c",
            "TZ": "UTC",
            "TERM": "xterm-256color",
            **more,
        }

    def serve(self, *flags: str, **env: str) -> subprocess.Popen[bytes]:
        """Start the daemon and wait until it answers."""
        command = [f"{BIN}/memoryd", "serve", *flags]
        log = open(f"{self.base}/log", "ab")  # noqa: SIM115 - the daemon keeps it
        daemon = subprocess.Popen(command, cwd=self.project, env=self.env(**env), stderr=log)
        log.close()
        self.daemons.append(daemon)
        deadline = time.monotonic() + 30
        while self.memory("status", **env).returncode:
            if daemon.poll() is not None or time.monotonic() > deadline:
                with open(f"{self.base}/log", encoding="utf-8") as file:
                    pytest.fail(f"the daemon did not start: {file.read()}")
            time.sleep(0.05)
        return daemon

    def memory(
        self, *args: str, data: str | bytes = b"", cwd: str = "", **env: str
    ) -> subprocess.CompletedProcess[str]:
        """Run `memory` to its end."""
        raw = data.encode() if isinstance(data, str) else data
        done = subprocess.run(
            [f"{BIN}/memory", *args],
            input=raw,
            capture_output=True,
            cwd=cwd or self.project,
            env=self.env(**env),
            timeout=60,
            check=False,
        )
        return subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
        )

    def rows(self, *args: str) -> list[dict[str, Any]]:
        """The JSON lines that a command prints, which must succeed."""
        done = self.memory(*args)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def texts(self, *args: str) -> list[str]:
        """The texts that `memory events` prints."""
        return [row["text"] for row in self.rows("events", *args)]

    def say(self, *events: dict[str, Any]) -> None:
        """Write events, all of which must be taken."""
        done = self.memory("ingest", data="\n".join(map(json.dumps, events)))
        assert done.returncode == 0, done.stderr

    def stop(self) -> None:
        """Stop the daemons that were started here."""
        for daemon in self.daemons:
            if daemon.poll() is None:
                daemon.terminate()
                daemon.wait(30)


@pytest.fixture
def house() -> Iterator[House]:
    """An empty house; its path is short, because sockets live in it."""
    base = tempfile.mkdtemp(prefix="md", dir="/tmp")
    made = House(base)
    os.makedirs(f"{made.project}/.git")
    os.makedirs(f"{made.project}/src/deep")
    os.mkdir(f"{base}/r", 0o700)
    try:
        yield made
    finally:
        made.stop()
        shutil.rmtree(base)


@pytest.fixture
def home(house: House) -> House:
    """A house with a running daemon."""
    house.serve()
    return house


def event(text: str, **more: Any) -> dict[str, Any]:
    """An event with what it needs."""
    return {"session_id": "s1", "role": "user", "text": text} | more


def test_what_goes_in_through_stdin_comes_out(home: House) -> None:
    """Events written from stdin are read back with all their fields."""
    done = home.memory(
        "ingest",
        data=json.dumps(
            event(
                "Größe 大",
                event_id="e1",
                event_type="EVENT_TYPE_USER_MESSAGE",
                role=1,
                timestamp="2026-01-15T12:00:00Z",
                agent="claude-code",
                metadata={"cwd": "/x"},
                parent_id="p",
                turn_id="t",
            )
        ),
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == {"created": 1, "known": 0, "refused": 0}
    (found,) = home.rows("event", "e1")
    assert found["text"] == "Größe 大"
    assert found["timestamp_ms"] == 1_768_478_400_000
    assert (found["event_type"], found["role"]) == ("user_message", "user")
    assert (found["agent"], found["metadata"]) == ("claude-code", {"cwd": "/x"})
    assert (found["parent_id"], found["turn_id"], found["sequence"]) == ("p", "t", 1)


def test_a_file_goes_in_twice_and_changes_nothing(home: House) -> None:
    """With --idempotent, the same file again is known, more than one batch of it too."""
    path = f"{home.base}/history.jsonl"
    with open(path, "w", encoding="utf-8") as file:
        for number in range(2500):
            print(json.dumps(event(f"n{number}", timestamp_ms=1 + number)), file=file)
    first = home.memory("ingest", "--idempotent", path)
    again = home.memory("ingest", "--idempotent", path)
    assert json.loads(first.stdout) == {"created": 2500, "known": 0, "refused": 0}
    assert json.loads(again.stdout) == {"created": 0, "known": 2500, "refused": 0}
    assert home.texts("--limit", "0") == [f"n{number}" for number in range(2500)]
    assert len(home.texts("--limit", "1200", "--newest")) == 1200


def test_bad_lines_are_named_and_the_rest_goes_on(home: House) -> None:
    """Each line that cannot be taken is reported with its number; the exit code says so."""
    lines = [
        json.dumps(event("good", timestamp_ms=1)).encode(),
        b"nonsense",
        b"",
        b'{"session_id":"s1","role":"user","text":"\\ud800"}',
        b"\xff",
        b'{"session_id":"s1","role":"nobody"}',
        b'{"session_id":"s1","role":"user","colour":"red"}',
        b'{"role":"user","text":"no session"}',
        b'{"session_id":"s1","role":"user","text":"' + b"x" * (17 * 1024 * 1024) + b'"}',
        json.dumps(event("also good", timestamp_ms=2)).encode(),
    ]
    done = home.memory("ingest", data=b"\n".join(lines))
    assert done.returncode == 1
    assert json.loads(done.stdout) == {"created": 2, "known": 0, "refused": 7}
    named = {line.partition(":")[0] for line in done.stderr.splitlines()}
    assert named == {f"line {number}" for number in (2, 4, 5, 6, 7, 8, 9)}
    assert home.texts() == ["good", "also good"]


def test_defaults_fill_what_lines_leave_open(home: House) -> None:
    """--session and --agent stand in for lines that name none, and for those only."""
    own = {"role": "user", "text": "b", "session_id": "own", "agent": "own"}
    home.memory(
        "ingest",
        "--session",
        "given",
        "--agent",
        "codex",
        data='{"role":"user","text":"a"}\n' + json.dumps(own),
    )
    found = {(row["session_id"], row["agent"]) for row in home.rows("events")}
    assert found == {("given", "codex"), ("own", "own")}


def test_events_are_filtered(home: House) -> None:
    """Session, agent, role, type and time each narrow what is shown."""
    home.say(
        event("a", timestamp="2026-01-10T10:00:00Z", agent="codex"),
        event("b", timestamp="2026-01-11T10:00:00Z", role="assistant"),
        event("c", timestamp="2026-01-12T10:00:00Z", role="tool", session_id="s2"),
        event("d", event_type="session_end", role=None),
    )
    assert home.texts("--session", "s2") == ["c"]
    assert home.texts("--agent", "codex") == ["a"]
    assert home.texts("--role", "user", "--role", "tool") == ["a", "c"]
    assert home.texts("--type", "session_end") == ["d"]
    assert home.texts("--since", "2026-01-11", "--until", "2026-01-11") == ["b"]
    assert home.texts("--since", "1h") == ["d"]
    assert home.texts("--until", "2d") == ["a", "b", "c"]


def test_events_come_in_reading_order(home: House) -> None:
    """The newest are chosen and read downwards; --newest turns them, --oldest chooses others."""
    home.say(*(event(str(number), timestamp_ms=number) for number in range(1, 61)))
    assert home.texts() == [str(number) for number in range(11, 61)]
    assert home.texts("--limit", "2") == ["59", "60"]
    assert home.texts("--limit", "2", "--newest") == ["60", "59"]
    assert home.texts("--limit", "2", "--oldest") == ["1", "2"]


def follow(home: House, *args: str) -> subprocess.Popen[str]:
    """Start `memory events -f`."""
    return subprocess.Popen(
        [f"{BIN}/memory", "events", "-f", *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=home.project,
        env=home.env(),
    )


def test_follow_shows_each_event_once(home: House) -> None:
    """Following begins with the last events and goes on with new ones, without gap or doubles."""
    home.say(*(event(f"old {number}", timestamp_ms=1 + number) for number in range(3)))
    follower = follow(home, "--limit", "2")
    assert follower.stdout is not None
    shown = [json.loads(follower.stdout.readline())["text"] for _ in range(2)]
    for number in range(3):
        home.say(event(f"new {number}"))
    shown += [json.loads(follower.stdout.readline())["text"] for _ in range(3)]
    follower.send_signal(signal.SIGINT)
    rest, said = follower.communicate(timeout=20)
    assert shown == ["old 1", "old 2", "new 0", "new 1", "new 2"]
    assert (follower.returncode, rest, said) == (130, "", "")


def test_follow_ends_when_the_daemon_stops(home: House) -> None:
    """A daemon that stops ends the following with a message, and exit code 3."""
    home.say(event("one"))
    follower = follow(home)
    assert follower.stdout is not None
    follower.stdout.readline()
    home.stop()
    rest, said = follower.communicate(timeout=30)
    assert (follower.returncode, rest) == (3, "")
    assert "has stopped" in said
    assert "Traceback" not in said


def test_a_live_pipe_is_written_as_it_comes(home: House) -> None:
    """A source that pauses does not hold back the events it has given."""
    ingest = subprocess.Popen(
        [f"{BIN}/memory", "ingest"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=home.project,
        env=home.env(),
    )
    assert ingest.stdin is not None
    ingest.stdin.write(json.dumps(event("first")).encode() + b"\n")
    ingest.stdin.flush()
    deadline = time.monotonic() + 20
    while not home.texts() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert home.texts() == ["first"]
    said, _ = ingest.communicate()
    assert json.loads(said)["created"] == 1


def test_sessions_agents_and_status_count(home: House) -> None:
    """Sessions, agents and status tell of the same log."""
    home.say(
        event("a", agent="codex", timestamp_ms=1000),
        event("b", agent="codex", timestamp_ms=3000),
        event("c", session_id="s2", timestamp_ms=2000),
    )
    sessions = home.rows("sessions")
    assert [(row["session_id"], row["event_count"]) for row in sessions] == [("s1", 2), ("s2", 1)]
    assert [row["session_id"] for row in home.rows("sessions", "--limit", "1")] == ["s1"]
    assert [row["session_id"] for row in home.rows("sessions", "--agent", "codex")] == ["s1"]
    agents = {row["agent"]: row["session_count"] for row in home.rows("agents")}
    assert agents == {"codex": 1, "": 1}
    (status,) = home.rows("status")
    assert (status["sequence"], status["sessions"], status["writable"]) == (3, 2, True)
    assert status["project_root"] == os.path.realpath(home.project)


def test_config_show_names_every_place(house: House) -> None:
    """Each setting is shown with where it comes from, and no daemon is needed."""
    done = house.memory("config", "show", MEMORYD_WORKERS="40")
    rows = {row["key"]: row for row in map(json.loads, done.stdout.splitlines())}
    assert rows["workers"] == {
        "key": "workers",
        "value": 40,
        "source": "environment MEMORYD_WORKERS",
    }
    assert rows["listen"]["source"] == "default"
    assert rows["project"]["value"].startswith("api-")


def test_redact_shows_what_would_go(house: House) -> None:
    """A text is shown without its secrets, with rules and lines, and no daemon is needed."""
    text = 'one\npassword = "hunter2hunter"\nmq://b:x1@h mq://b:x2@h\n'
    clean = 'one\npassword = "[redacted:password]"\n' + " ".join(
        ["mq://b:[redacted:url-password]@h"] * 2
    )
    (shown,) = map(json.loads, house.memory("redact", data=text).stdout.splitlines())
    assert shown["text"] == clean + "\n"
    assert shown["redactions"] == [
        {"rule": "password", "count": 1, "lines": [2]},
        {"rule": "url-password", "count": 2, "lines": [3]},
    ]
    assert house.memory("redact", "--no-json", "-", data=text).stdout == clean + "\n"
    told = house.memory("redact", "--test", "--no-json", data=text).stdout
    assert told.startswith(clean)
    assert [line.split() for line in told.splitlines()[-2:]] == [
        ["password", "1", "2"],
        ["url-password", "2", "3"],
    ]
    assert "nothing would be" in house.memory("redact", "--test", "--no-json", data="x").stdout


def test_redact_uses_the_rules_of_the_user(house: House) -> None:
    """redact.rules holds for the command as for the daemon; a wrong file is a usage error."""
    path = f"{house.base}/rules.toml"
    with open(path, "w", encoding="utf-8") as file:
        file.write("allow = ['^hunter']\n[[rules]]\nid = 'ticket'\npattern = 'ACME-[0-9]+'\n")
    text = "ACME-7 mq://b:hunter2@h"
    done = house.memory("redact", "--no-json", data=text, MEMORYD_REDACT_RULES=path)
    assert done.stdout == "[redacted:ticket] mq://b:hunter2@h"
    done = house.memory("redact", data=text, MEMORYD_REDACT_RULES=f"{path}x")
    assert (done.returncode, "there is no file" in done.stderr) == (2, True)


def test_status_tells_what_was_redacted(home: House) -> None:
    """The counts of secrets are in the status, for programs and for people."""
    home.say(event("mq://b:x1@h"), event("<private>x</private> mq://b:x2@h"))
    (status,) = home.rows("status")
    assert status["redactions"] == {"private": 1, "url-password": 2}
    told = home.memory("--no-json", "status").stdout
    assert "3 secrets: url-password 2, private 1" in told


@pytest.mark.parametrize("command", ["status", "events", "sessions", "agents", "ingest"])
def test_a_missing_daemon_is_reported_at_once(house: House, command: str) -> None:
    """Without a daemon every command says how to start it, quickly, with exit code 3."""
    begin = time.monotonic()
    done = house.memory(command)
    assert time.monotonic() - begin < 2
    assert done.returncode == 3
    assert "is not running: start it with `memoryd serve`" in done.stderr


def test_a_socket_that_was_left_behind_counts_as_not_running(home: House) -> None:
    """A daemon that was killed leaves a socket on which nobody answers."""
    home.daemons[0].kill()
    home.daemons[0].wait()
    done = home.memory("status")
    assert done.returncode == 3
    assert "is not running" in done.stderr


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("event", "nothing"), 1),
        (("bogus",), 2),
        (("events", "--since", "soon"), 2),
        (("events", "--role", "nobody"), 2),
        (("events", "-f", "--newest"), 2),
        (("ingest", "missing.jsonl"), 2),
        (("--help",), 0),
        (("events", "--help"), 0),
    ],
)
def test_exit_codes(home: House, args: tuple[str, ...], code: int) -> None:
    """What was refused ends with 1, wrong usage with 2, neither with a traceback."""
    done = home.memory(*args)
    assert done.returncode == code
    assert "Traceback" not in done.stderr


def test_bad_configuration_is_usage(house: House) -> None:
    """A setting that cannot be used ends every command with 2 and names itself."""
    done = house.memory("status", MEMORYD_WORKERS="none")
    assert done.returncode == 2
    assert "MEMORYD_WORKERS" in done.stderr


def test_any_directory_of_the_project_will_do(home: House) -> None:
    """Below the project, or from afar with --project, the same daemon answers."""
    home.say(event("here"))
    deep = home.memory("events", cwd=f"{home.project}/src/deep")
    afar = home.memory("--project", f"{home.project}/src", "events", cwd=home.base)
    assert json.loads(deep.stdout)["text"] == json.loads(afar.stdout)["text"] == "here"


def test_json_is_taken_before_and_after_the_command(home: House) -> None:
    """--json and --no-json stand on the group or on the command, and the command wins."""
    before = home.memory("--no-json", "status")
    after = home.memory("--no-json", "status", "--json")
    assert before.stdout.startswith("project")
    assert json.loads(after.stdout)["writable"] is True


def on_a_terminal(home: House, *args: str, **env: str) -> str:
    """What `memory` prints on a terminal."""
    parent, child = pty.openpty()
    run = subprocess.Popen(
        [f"{BIN}/memory", *args], stdout=child, cwd=home.project, env=home.env(**env)
    )
    os.close(child)
    said = b""
    while select.select([parent], [], [], 30)[0]:
        try:
            said += os.read(parent, 65536)
        except OSError:
            break
    os.close(parent)
    assert run.wait(30) == 0
    return said.decode()


def test_a_terminal_gets_words_and_colours(home: House) -> None:
    """On a terminal there are relative times and colours; NO_COLOR takes the colours away."""
    home.say(event("hello", agent="codex"))
    coloured = on_a_terminal(home, "events")
    plain = on_a_terminal(home, "events", NO_COLOR="1")
    assert "hello" in coloured
    assert "\x1b[36m" in coloured or "\x1b[1;36m" in coloured
    assert "just now" in plain
    assert "36m" not in plain
    assert json.loads(on_a_terminal(home, "events", "--json"))["text"] == "hello"


@pytest.mark.parametrize("command", [("events",), ("event", "e1"), ("event", "e1", "--json")])
def test_event_text_cannot_speak_to_the_terminal(home: House, command: tuple[str, ...]) -> None:
    """Escape sequences in an event are shown, not obeyed."""
    home.say(event("a\x1b]0;title\x07b\x9b31mc\rd", event_id="e1"))
    said = on_a_terminal(home, *command, NO_COLOR="1")
    assert "\x1b]" not in said
    assert not set("\x07\x9b") & set(said)
    assert "title" in said


def test_a_reader_that_leaves_ends_it_quietly(home: House) -> None:
    """`memory events | head -1` ends without a word."""
    home.say(*(event("x" * 2000) for _ in range(500)))
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {BIN}/memory events --limit 0 | head -1 | wc -l"],
        capture_output=True,
        text=True,
        cwd=home.project,
        env=home.env(),
        check=False,
    )
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "1", "")


def test_a_store_for_all_projects_marks_each_event(house: House) -> None:
    """In unified mode an event carries the id of the directory that it was written from."""
    house.serve(MEMORYD_UNIFIED="true")
    house.memory("ingest", data=json.dumps(event("a")), MEMORYD_UNIFIED="true")
    found = json.loads(house.memory("events", MEMORYD_UNIFIED="true").stdout)
    assert found["project"].startswith("api-")


def test_over_tcp_the_token_decides(house: House) -> None:
    """With an address the client brings the token from its file; a wrong one is not allowed."""
    house.serve("--listen", "127.0.0.1:0")
    endpoints = json.loads(house.memory("status").stdout)["endpoints"]
    (address,) = [end for end in endpoints if not end.startswith("unix:")]
    good = house.memory("status", MEMORYD_ADDRESS=address)
    wrong = house.memory("status", MEMORYD_ADDRESS=address, MEMORYD_TOKEN="wrong")
    away = house.memory("status", MEMORYD_ADDRESS="192.0.2.1:50051")
    assert good.returncode == 0, good.stderr
    assert wrong.returncode == 4
    assert away.returncode == 2


def test_status_starts_fast(home: House) -> None:
    """`memory status` takes less than three times what Python and grpc need to start."""

    def best(command: list[str]) -> float:
        times = []
        for _ in range(5):
            begin = time.perf_counter()
            subprocess.run(
                command, cwd=home.project, env=home.env(), stdout=subprocess.DEVNULL, check=True
            )
            times.append(time.perf_counter() - begin)
        return min(times)

    bare = best([sys.executable, "-c", "import grpc"])
    assert best([f"{BIN}/memory", "status"]) < 3 * bare


def test_search_finds_what_was_said(home: House) -> None:
    """What was written is found by its words, with filters, in JSON and for people."""
    home.say(
        event("why does getUserName fail with ECONNREFUSED?", timestamp_ms=1000),
        event("the pool in src/net/pool.py was closed", role="assistant", timestamp_ms=2000),
        event("who closed the pool?", timestamp_ms=3000),
    )
    deadline = time.monotonic() + 30
    while not home.rows("search", "get_user_name") and time.monotonic() < deadline:
        time.sleep(0.1)
    assert home.rows("search", "get_user_name")[0]["snippet"].startswith("why does getUserName")
    assert [r["role"] for r in home.rows("search", "pool", "--role", "assistant")] == ["assistant"]
    assert home.rows("search", "pool", "--since", "1d") == []
    who = home.rows("search", "who closed")[0]["doc_id"]
    like = home.rows("related", who)
    assert like[0]["snippet"].startswith("the pool in")
    assert who not in [row["doc_id"] for row in like]
    everywhere = home.rows("search", "--all-projects", "pool.py")
    assert everywhere[0]["store_project"] == home.rows("status")[0]["project"]
    shown = home.memory("search", "pool", "--no-json", "--explain").stdout
    assert "src/net/pool.py" in shown
    assert "terms" in shown
    assert home.rows("reindex")[-1]["state"] == "ready"
