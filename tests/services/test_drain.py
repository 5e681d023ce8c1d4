import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from memoryd import arrivals, project, spool
from memoryd.domain.errors import DiskFull
from memoryd.domain.event import Appended, Event, Recorded
from memoryd.domain.redact import Redactor
from memoryd.services.drain import Drain
from memoryd.services.ingest import Ingest
from memoryd.services.query import Query
from memoryd.services.replies import Replies
from memoryd.services.status import ErrorBook
from memoryd.services.watch import Watch
from memoryd.spool import Envelope
from memoryd.storage.committer import Committer
from memoryd.storage.store import Store

NOW = 1_700_000_000_000


class Bench(NamedTuple):
    """A drain that does not run by itself, and what is around it."""

    data_dir: str
    store: Store
    committer: Committer
    ingest: Ingest
    errors: ErrorBook
    drain: Drain

    @property
    def nearby(self) -> Callable[[Event, int], Iterator[Event]]:
        """How a drain looks around an event."""
        return Query(self.store.log, self.committer).nearby

    def leave(self, number: int, payload: bytes | None = None, **header: object) -> str:
        """Put a payload into the inbox, as a hook does; return its name."""
        if payload is None:
            payload = prompt(f"words {number}")
        fields = {"agent": "claude-code", "time_ms": NOW + number, "cwd": "/w", "project": "own"}
        name = spool.file_name(1_000_000 + number, 7)
        envelope = Envelope(payload, **(fields | header))  # type: ignore[arg-type]
        spool.put(spool.inbox(self.data_dir), name, spool.encode(envelope))
        return name

    def log(self) -> list[Recorded]:
        """The events in the order of writing."""
        return list(self.store.log.after(0))

    def texts(self) -> list[str]:
        """Their texts."""
        return [recorded.event.text for recorded in self.log()]

    def waiting(self) -> list[str]:
        """What is in the inbox."""
        return os.listdir(spool.inbox(self.data_dir))

    def aside(self) -> list[str]:
        """What has been set aside."""
        return sorted(os.listdir(spool.aside(self.data_dir)))


def prompt(text: str, session: str = "s", **more: object) -> bytes:
    """The payload of a prompt."""
    fields = {"hook_event_name": "UserPromptSubmit", "session_id": session, "prompt": text}
    return json.dumps(fields | more).encode()


@pytest.fixture
def bench(tmp_path: os.PathLike[str]) -> Iterator[Bench]:
    """Everything that a drain needs, for real."""
    data_dir = f"{os.fspath(tmp_path)}/data"
    store = Store(data_dir)
    os.makedirs(spool.inbox(data_dir), exist_ok=True)
    os.makedirs(spool.aside(data_dir), exist_ok=True)
    committer = Committer(store, lambda: NOW)
    committer.start()
    ingest = Ingest(committer, lambda: NOW, "own", Redactor())
    errors = ErrorBook(lambda: NOW)
    drain = Drain(
        data_dir,
        ingest,
        Query(store.log, committer).nearby,
        errors,
        Replies(f"{os.fspath(tmp_path)}/copilot"),
    )
    yield Bench(data_dir, store, committer, ingest, errors, drain)
    drain.stop()
    committer.stop()
    store.close()


def until(condition: Callable[[], bool]) -> None:
    """Wait, with much patience, until something is so."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


def test_payloads_become_events_in_order(bench: Bench) -> None:
    """What waits is in the log in the order of the names, and the inbox is empty."""
    for number in (3, 1, 2):
        bench.leave(number)
    bench.drain.once()
    assert bench.texts() == ["words 1", "words 2", "words 3"]
    assert [r.event.time_ms for r in bench.log()] == [NOW + 1, NOW + 2, NOW + 3]
    assert bench.waiting() == []


def test_a_probe_is_told_of_and_not_written(bench: Bench) -> None:
    """What `memory doctor` sends leaves the inbox, is known to have come, and is in no log."""
    bench.leave(1, prompt("are you there?", f"{spool.PROBE}1"))
    bench.leave(2)
    bench.drain.once()
    assert bench.texts() == ["words 2"]
    assert (bench.waiting(), bench.errors.probes()) == ([], [f"{spool.PROBE}1"])


def test_a_compaction_is_told_of_after_its_write(bench: Bench) -> None:
    """While it cannot be archived its file stays; the next try tells of the event it knows."""
    payload = {"hook_event_name": "PostCompact", "session_id": "s", "compact_summary": "we did"}
    bench.leave(1, json.dumps(payload).encode())
    bench.leave(2)

    def full(_event: Event) -> None:
        raise DiskFull("no space left")

    bench.ingest.on_compaction = full
    with pytest.raises(DiskFull):
        bench.drain.once()
    assert (len(bench.waiting()), len(bench.log())) == (2, 2)
    told: list[Event] = []
    bench.ingest.on_compaction = told.append
    bench.drain.once()
    assert [event.text for event in told] == ["we did"]
    assert (bench.waiting(), len(bench.log())) == ([], 2)
    bench.ingest.many(told, 1, idempotent=False, restoring=True)
    assert len(told) == 1


def test_many_payloads_share_one_write(bench: Bench) -> None:
    """Up to 1,000 payloads cost one synced write."""
    for number in range(1_001):
        bench.leave(number)
    bench.drain.once()
    assert bench.committer.commits == 2
    assert bench.texts() == [f"words {n}" for n in range(1_001)]


def test_a_file_outlives_a_write_that_fails(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the log takes nothing the files stay, and are drained when it takes events again."""
    bench.leave(1)
    with monkeypatch.context() as broken:

        def full(*_: object) -> None:
            raise DiskFull("no space left")

        broken.setattr(bench.store, "sync", full)
        with pytest.raises(DiskFull):
            bench.drain.once()
        assert len(bench.waiting()) == 1
    bench.drain.once()
    assert bench.texts() == ["words 1"]
    assert bench.waiting() == []


def test_a_file_is_deleted_only_after_its_write(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the moment of the sync, every file of the batch is still there."""
    seen: list[int] = []
    sync = bench.store.sync

    def look() -> None:
        seen.append(len(bench.waiting()))
        sync()

    monkeypatch.setattr(bench.store, "sync", look)
    for number in range(5):
        bench.leave(number)
    bench.drain.once()
    assert seen == [5]


def test_a_payload_that_comes_twice_is_known(bench: Bench) -> None:
    """A crash between write and delete drains a file twice, and the log has its event once."""
    first = bench.leave(1)
    bench.drain.once()
    assert bench.leave(1) == first
    bench.drain.once()
    assert bench.texts() == ["words 1"]
    assert bench.waiting() == []
    assert bench.errors.latest() == []


def test_equal_payloads_are_two(bench: Bench) -> None:
    """A person who says the same twice in one millisecond has said it twice."""
    bench.leave(1, prompt("yes"), time_ms=NOW)
    bench.leave(2, prompt("yes"), time_ms=NOW)
    bench.drain.once()
    assert bench.texts() == ["yes", "yes"]


def test_the_same_tool_call_by_two_ways_is_one(bench: Bench) -> None:
    """An event that another source has told of, in other words, is no error."""
    call = {
        "hook_event_name": "PostToolUse",
        "session_id": "s",
        "tool_use_id": "t1",
        "tool_name": "Bash",
        "tool_input": {"command": "ls"},
    }
    for number, response in enumerate(("a", "b")):
        bench.leave(number, json.dumps(call | {"tool_response": response}).encode())
    bench.drain.once()
    assert len(bench.log()) == 1
    assert (bench.waiting(), bench.aside(), bench.errors.latest()) == ([], [], [])


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b'{"prompt": "half', "the payload is not JSON: "),
        (b"[" * 100_000, "the payload is nested too deeply"),
        (b'"\xff"', "the payload is not UTF-8"),
        (b"[1]", "payload is an array, not an object"),
        (b"9" * 5_000, "the payload holds a number that is too long"),
        (prompt("", session=""), "session_id is missing"),
        (prompt("x", session="s" * 300), "session_id has 300 bytes"),
    ],
)
def test_a_payload_nobody_can_read_is_set_aside(bench: Bench, payload: bytes, reason: str) -> None:
    """A bad payload goes out of the way with its reason, and holds up no other."""
    name = bench.leave(1, payload)
    bench.leave(2)
    bench.drain.once()
    assert bench.texts() == ["words 2"]
    assert bench.waiting() == []
    assert bench.aside() == [name, f"{name}.reason"]
    with open(f"{spool.aside(bench.data_dir)}/{name}.reason", encoding="utf-8") as file:
        assert file.read().startswith(reason)
    assert reason in bench.errors.latest()[0].message


def test_an_agent_that_is_not_known_is_set_aside(bench: Bench) -> None:
    """The payload of a program that nobody has a parser for is kept."""
    name = bench.leave(1, agent="abacus")
    bench.drain.once()
    assert name in bench.aside()


def test_what_is_no_envelope_is_set_aside(bench: Bench) -> None:
    """Foreign files in the inbox, and directories, are set aside like bad payloads."""
    inbox = spool.inbox(bench.data_dir)
    with open(f"{inbox}/foreign", "wb") as file:
        file.write(b"hello")
    os.mkdir(f"{inbox}/folder")
    os.mkfifo(f"{inbox}/pipe")
    os.symlink("/etc/passwd", f"{inbox}/link")
    bench.drain.once()
    assert bench.waiting() == []
    assert [n for n in bench.aside() if not n.endswith(".reason")] == [
        "folder",
        "foreign",
        "link",
        "pipe",
    ]


def test_a_file_beyond_the_limit_is_set_aside(bench: Bench) -> None:
    """A file that no hook would have written is not read into memory."""
    name = bench.leave(1, b'"' + b"x" * spool.FILE_LIMIT + b'"')
    bench.drain.once()
    assert name in bench.aside()


def test_a_payload_without_anything_to_remember_is_gone(bench: Bench) -> None:
    """An event that means nothing to the log leaves nothing behind."""
    bench.leave(1, json.dumps({"hook_event_name": "CwdChanged", "session_id": "s"}).encode())
    bench.drain.once()
    assert (bench.log(), bench.waiting(), bench.aside()) == ([], [], [])


def test_a_file_that_cannot_be_removed_is_told_of_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that stays although it is in the log does not keep the drain busy."""
    bench.leave(1)

    def stubborn(_path: str) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as broken:
        broken.setattr(os, "unlink", stubborn)
        bench.drain.once()
        bench.drain.once()
    assert bench.texts() == ["words 1"]
    assert [e.message.rpartition(": ")[2] for e in bench.errors.latest()] == ["Permission denied"]


def test_events_belong_to_the_project_of_their_directory(
    bench: Bench, tmp_path: os.PathLike[str]
) -> None:
    """The payload's directory decides on the project, unless one was chosen."""
    other = f"{os.fspath(tmp_path)}/other"
    os.makedirs(f"{other}/.git")
    os.makedirs(f"{other}/below")
    bench.leave(1, prompt("same", cwd="/w"))
    bench.leave(2, prompt("other", cwd=f"{other}/below"))
    bench.leave(3, prompt("chosen", cwd=other), chosen=True, project="mine")
    bench.leave(4, prompt("relative", cwd="below"))
    bench.drain.once()
    assert [r.event.project for r in bench.log()] == [
        "own",
        project.id_of_root(os.path.realpath(other)),
        "mine",
        "own",
    ]


def test_a_running_drain_takes_what_arrives(bench: Bench) -> None:
    """What waits at the start is taken, and so is what arrives later, without being asked."""
    bench.leave(1)
    bench.drain.start()
    until(lambda: len(bench.log()) == 1)
    bench.leave(2)
    until(lambda: len(bench.log()) == 2)
    until(lambda: bench.waiting() == [])


def test_without_notification_it_looks(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the kernel does not tell of new files, the drain finds them all the same."""
    monkeypatch.setattr("memoryd.services.watch._inotify", lambda _directory: None)
    drain = Drain(bench.data_dir, bench.ingest, bench.nearby, bench.errors, Replies(""))
    drain.start()
    bench.leave(1)
    until(lambda: len(bench.log()) == 1)
    drain.stop()


def test_a_running_drain_tries_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that nobody foresaw is told of once, without words of events, and tried again."""
    many = bench.ingest.many
    tries: list[int] = []

    def moody(*arguments: object, **options: object) -> list[Appended]:
        tries.append(1)
        if len(tries) < 3:
            raise RuntimeError("words 1")
        return many(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("memoryd.services.drain._RETRY_SECONDS", 0.01)
    monkeypatch.setattr(bench.ingest, "many", moody)
    bench.leave(1)
    bench.drain.start()
    until(lambda: bench.waiting() == [])
    (error,) = bench.errors.latest()
    assert error.message.endswith("RuntimeError")


def test_old_unfinished_files_are_swept(bench: Bench) -> None:
    """What a killed hook left half written is removed after an hour, and not before."""
    inbox = spool.inbox(bench.data_dir)
    for name in (".old", ".new"):
        with open(f"{inbox}/{name}", "wb"):
            pass
    os.utime(f"{inbox}/.old", (1, 1))
    bench.drain.start()
    until(lambda: bench.waiting() == [".new"])


def test_a_stopped_drain_leaves_no_thread_and_no_file_open(bench: Bench) -> None:
    """Start and stop, again and again, cost nothing that stays."""
    files = len(os.listdir("/proc/self/fd"))
    threads = threading.active_count()
    for _ in range(5):
        drain = Drain(bench.data_dir, bench.ingest, bench.nearby, bench.errors, Replies(""))
        drain.start()
        drain.stop()
    assert len(os.listdir("/proc/self/fd")) == files
    assert threading.active_count() == threads


def test_ids_follow_from_the_name(bench: Bench) -> None:
    """The same payload under the same name has the same id; under another name, another."""
    envelope = Envelope(prompt("x"), agent="claude-code", time_ms=NOW)
    first, again, other = (arrivals.events(envelope, n)[0].event_id for n in ("a", "a", "b"))
    assert first == again
    assert first != other


def test_a_watch_is_woken_and_ends(bench: Bench) -> None:
    """A wake before the wait counts too."""
    watch = Watch(spool.inbox(bench.data_dir))
    assert watch.told
    watch.wake()
    watch.wait(60)
    watch.close()


def test_copilots_replies_come_with_the_end_of_a_turn(bench: Bench) -> None:
    """Each is written once, before the end of the session, however often a turn ends."""
    folder = f"{os.path.dirname(bench.data_dir)}/copilot/session-state/s-1"
    os.makedirs(folder)
    said = {"type": "assistant.message", "timestamp": "2026-03-01T10:00:00Z"}
    with open(f"{folder}/events.jsonl", "w", encoding="utf-8") as file:
        file.writelines(
            json.dumps(said | {"id": name, "data": {"content": "Done."}}) + "\n"
            for name in ("a", "b")
        )
    payload = json.dumps({"sessionId": "s-1", "timestamp": NOW}).encode()
    for number, event in enumerate(("agentStop", "agentStop", "sessionEnd")):
        bench.leave(number, payload, agent="copilot", event=event)
        bench.drain.once()
    assert bench.texts()[:2] == ["Done.", "Done."]
    assert len(bench.texts()) == 3
    assert (bench.waiting(), bench.aside()) == ([], [])
