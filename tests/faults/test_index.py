"""Kill -9 of the daemon, or of the process that writes its index, while it has work to do."""

import glob
import os
import signal
import time
from contextlib import suppress

import pytest

from memoryd.domain.document import Kind
from memoryd.index import files
from memoryd.index.reader import Filters, Reader
from memoryd.pb import memory_pb2 as pb
from tests.faults.driver import Daemon, House

EVENTS = 900
ROUNDS = 3
WAIT_SECONDS = 90.0


def fill(daemon: Daemon, start: int) -> None:
    """Write a part of a conversation."""
    events = [
        pb.Event(
            event_id=f"e{n:05}",
            session_id=f"s{n % 7}",
            timestamp_ms=1_780_308_000_000 + n * 1_000,
            role=pb.EVENT_ROLE_USER,
            text=f"Number {n} was fixed because the lock {n * 7} was stale. " * 4,
        )
        for n in range(start, start + EVENTS)
    ]
    daemon.stub.IngestEvents(pb.IngestEventsRequest(events=events), timeout=60)


def workers(daemon: Daemon) -> list[int]:
    """The processes that a daemon has started."""
    found: list[int] = []
    base = f"/proc/{daemon.process.pid}/task"
    for task in os.listdir(base):
        with suppress(OSError), open(f"{base}/{task}/children", encoding="ascii") as file:
            found += map(int, file.read().split())
    return [pid for pid in found if "index_worker" in command(pid)]


def command(pid: int) -> str:
    """How a process was started; empty if it is no more."""
    with suppress(OSError), open(f"/proc/{pid}/cmdline", encoding="utf-8") as file:
        return file.read()
    return ""


@pytest.mark.parametrize("victim", ["daemon", "worker"])
def test_a_kill_while_indexing_loses_and_doubles_nothing(house: House, victim: str) -> None:
    """Killed in the middle of its work, the index comes to hold every event once."""
    daemon = house.serve()
    ended = []
    for part in range(ROUNDS):
        fill(daemon, part * EVENTS)
        deadline = time.monotonic() + WAIT_SECONDS
        while not (found := workers(daemon)) and time.monotonic() < deadline:
            time.sleep(0.01)
        ended += found
        if victim == "worker":
            for pid in found:
                os.kill(pid, signal.SIGKILL)
        else:
            daemon.kill()
            daemon = house.serve()
    assert ended
    deadline = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline:
        status = daemon.stub.GetIndexStatus(pb.GetIndexStatusRequest(), timeout=30)
        if status.sequence == ROUNDS * EVENTS and status.state == pb.INDEX_STATE_READY:
            break
        time.sleep(0.05)
    assert status.sequence == ROUNDS * EVENTS
    if victim == "daemon":
        assert not [pid for pid in ended if "index_worker" in command(pid)]
    daemon.kill()
    (path,) = glob.glob(f"{house.base}/d/memoryd/*/index")
    reader = Reader(files.open_existing(path))
    assert reader.count(Filters(kinds=(Kind.EVENT,))) == ROUNDS * EVENTS
    assert reader.state().events == ROUNDS * EVENTS
