import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from memoryd import spool
from memoryd.pb import memory_pb2 as pb
from tests.faults.driver import Daemon, House, read_all

HOOK = os.path.join(os.path.dirname(sys.executable), "memory-hook")
WRITERS = 8
EACH = 125
PATIENCE = 120.0


def inbox_of(house: House) -> str:
    """The one inbox in a house."""
    (name,) = (n for n in os.listdir(f"{house.base}/d/memoryd") if n[0] != ".")
    return spool.inbox(f"{house.base}/d/memoryd/{name}")


def payload(session: int, number: int) -> bytes:
    """The payload of one prompt of a session."""
    fields = {"hook_event_name": "UserPromptSubmit", "session_id": f"session-{session}"}
    return json.dumps(fields | {"prompt": f"prompt {number}"}).encode()


def run_hooks(house: House, session: int) -> list[bytes]:
    """One agent: a session's hooks, one after the other; what they printed."""
    said = []
    for number in range(EACH):
        done = subprocess.run(
            [HOOK, "--agent", "claude-code"],
            input=payload(session, number),
            cwd=house.project,
            env=house.env,
            capture_output=True,
            timeout=60,
            check=True,
        )
        said.append(done.stdout + done.stderr)
    return said


@pytest.fixture(scope="module")
def left() -> Iterator[str]:
    """What 8 agents at once leave while no daemon runs: 1,000 payloads."""
    house = House()
    with ThreadPoolExecutor(WRITERS) as pool:
        said = list(pool.map(lambda s: run_hooks(house, s), range(WRITERS)))
    assert {line for lines in said for line in lines} == {b""}
    inbox = inbox_of(house)
    assert len(spool.waiting(inbox)) == WRITERS * EACH
    yield inbox
    house.close()


@pytest.fixture
def full(house: House, left: str) -> str:
    """The inbox of a house in which the 1,000 payloads wait."""
    house.serve().terminate()
    inbox = inbox_of(house)
    shutil.copytree(left, inbox, dirs_exist_ok=True)
    return inbox


def wait_empty(inbox: str) -> None:
    """Wait until everything has been drained."""
    deadline = time.monotonic() + PATIENCE
    while os.listdir(inbox):
        assert time.monotonic() < deadline, "the inbox does not become empty"
        time.sleep(0.02)


def check(daemon: Daemon) -> None:
    """Every payload is in the log once, and each session's in the order of its hooks."""
    sessions: dict[str, list[pb.Event]] = defaultdict(list)
    for event in read_all(daemon.stub):
        sessions[event.session_id].append(event)
    expected = [f"prompt {number}" for number in range(EACH)]
    assert sorted(sessions) == [f"session-{s}" for s in range(WRITERS)]
    for found in sessions.values():
        assert [event.text for event in found] == expected
        by_arrival = sorted(found, key=lambda event: event.sequence)
        assert [event.text for event in by_arrival] == expected
    status = daemon.status()
    assert (status.sequence, status.spool_files, status.spool_bad) == (WRITERS * EACH, 0, 0)
    assert list(status.last_errors) == []


def test_what_is_left_without_a_daemon_is_drained(house: House, full: str) -> None:
    """1,000 payloads of 8 agents wait for the daemon: all are in the log, once, in order."""
    daemon = house.serve()
    wait_empty(full)
    check(daemon)
    daemon.terminate()
    assert house.run("verify").returncode == 0


def test_kill_9_while_draining_loses_and_doubles_nothing(house: House, full: str) -> None:
    """Killed again and again, before and among its deletions, the daemon drains each file once."""
    chance = random.Random(3)
    kills = among = 0
    before = left_over = len(os.listdir(full))
    while left_over and kills < 60:
        daemon = house.spawn()
        mark = chance.randrange(max(1, left_over - 200), left_over + 1)
        deadline = time.monotonic() + PATIENCE
        while len(os.listdir(full)) > mark and time.monotonic() < deadline:
            time.sleep(0.0005)
        daemon.kill()
        kills += 1
        left_over = len(os.listdir(full))
        among += 0 < left_over < before
        before = left_over
    print(f"{kills} kills, {among} of them among the deletions")
    assert among
    daemon = house.serve()
    wait_empty(full)
    check(daemon)
    daemon.terminate()
    assert house.run("verify").returncode == 0


def test_hooks_do_not_disturb_a_daemon_that_is_killed(house: House) -> None:
    """Hooks that run while the daemon is killed and started again lose nothing."""
    daemon = house.serve()
    with ThreadPoolExecutor(WRITERS) as pool:
        running = [pool.submit(run_hooks, house, s) for s in range(WRITERS)]
        while not all(future.done() for future in running):
            time.sleep(0.3)
            daemon.kill()
            daemon = house.serve()
    assert all(set(future.result()) == {b""} for future in running)
    wait_empty(inbox_of(house))
    check(daemon)
