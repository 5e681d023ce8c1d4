"""A disk that is full, and then is not: reads go on, hooks spool, writes come back by themselves."""

import json
import os
import random
import subprocess
import sys
import time

import grpc

from memoryd.pb import memory_pb2 as pb
from tests.faults.driver import Daemon, House, Oracle, read_all
from tests.soak import searching
from tests.soak.kill import verify
from tests.soak.outcome import CannotRun, Order, Outcome
from tests.soak.power import unmount

RECOVERY_SECONDS = 30.0
_MIB = 1024 * 1024
_SIZE_MIB = 96
_HOOKS = 3
_ROOM = 64 * 1024  # what a disk that is full for a database may still have for small files
_HOOK = os.path.join(os.path.dirname(sys.executable), "memory-hook")


class SmallDisk:
    """A file system in memory, of which a ballast takes what it likes."""

    def __init__(self, house: House) -> None:
        """Mount it in the place of a house's data. Raises CannotRun."""
        self._place = f"{house.base}/d"
        self._ballast = f"{self._place}/ballast"
        options = f"size={_SIZE_MIB}m"
        if os.geteuid():
            raise CannotRun("only root can mount a small file system")
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "none", self._place],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise CannotRun(f"a small file system cannot be mounted: {done.stderr.strip()}")

    def fill(self) -> None:
        """Leave no byte."""
        with open(self._ballast, "ab", buffering=0) as file:
            for size in (_MIB, 4096, 1):
                try:
                    while file.write(b"x" * size) == size:
                        pass
                except OSError:
                    continue

    def ease(self, size: int) -> None:
        """Give some bytes back."""
        os.truncate(self._ballast, max(0, os.path.getsize(self._ballast) - size))

    def free(self) -> None:
        """Give everything back."""
        os.unlink(self._ballast)

    def close(self) -> None:
        """Unmount; nothing of memoryd may run on it any more."""
        unmount(self._place)


def full(order: Order) -> Outcome:
    """Fill the disk under a daemon that is written to, and free it again."""
    outcome = Outcome("full", order.seed)
    house = House()
    disk = None
    try:
        disk = SmallDisk(house)
        _full(house, disk, order, outcome)
    except CannotRun as error:
        outcome.skipped = str(error)
    finally:
        house.stop_all()
        if disk is not None:
            disk.close()
        house.close()
    return outcome


def _full(house: House, disk: SmallDisk, order: Order, outcome: Outcome) -> None:
    chance, oracle = random.Random(order.seed), Oracle()
    prompts: list[str] = []
    slowest = 0.0
    daemon = house.serve()
    for cycle in range(order.cycles):
        oracle.write_batch(daemon.stub, f"before{cycle}", chance.randrange(1, 200))
        disk.fill()
        outcome.problems += _write_until_refused(daemon, oracle, f"full{cycle}")
        outcome.problems += oracle.check_ids(daemon.stub, oracle.ids[-50:])
        if daemon.serving() or daemon.status().writable:
            outcome.problems.append(f"time {cycle}: the daemon says that it takes events")
        disk.ease(_ROOM)
        outcome.problems += _spool(house, prompts, cycle)
        time.sleep(chance.uniform(0, 3))
        disk.free()
        slowest = max(slowest, _recover(daemon, outcome))
        oracle.write_batch(daemon.stub, f"after{cycle}", 20)
        outcome.problems += _drained(daemon, prompts)
        if chance.random() < 0.2:
            daemon.kill()
            daemon = house.serve()
        outcome.cycles += 1
        order.say(f"{outcome.cycles} of {order.cycles} times full")
    outcome.problems += _check_log(oracle, daemon, prompts)
    outcome.problems += _check_index(daemon)
    daemon.terminate()
    outcome.problems += verify(house)
    outcome.figures |= {
        "acknowledged": len(oracle.ids),
        "spooled meanwhile": len(prompts),
        "lost": len(outcome.problems),
    }
    outcome.bound("writable again, max s", slowest, RECOVERY_SECONDS)


def _write_until_refused(daemon: Daemon, oracle: Oracle, name: str) -> list[str]:
    for number in range(3000):
        try:
            oracle.write_batch(daemon.stub, f"{name}x{number}", 100)
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED:
                return []
            return [f"{name}: a full disk says {error.code()}"]
    return [f"{name}: the disk did not become full"]


def _spool(house: House, prompts: list[str], cycle: int) -> list[str]:
    """Run hooks; what they took in must come into the log."""
    problems = []
    for number in range(_HOOKS):
        prompt = f"spooled {cycle} {number}"
        fields = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": prompt}
        done = subprocess.run(
            [_HOOK, "--agent", "claude-code"],
            input=json.dumps(fields).encode(),
            cwd=house.project,
            env=house.env,
            capture_output=True,
            timeout=60,
            check=False,
        )
        if done.returncode or done.stderr:
            problems.append(f"{prompt}: the hook ended with {done.returncode}")
        prompts.append(prompt)
    return problems


def _recover(daemon: Daemon, outcome: Outcome) -> float:
    """Wait until the daemon takes events again; how long that took."""
    freed = time.monotonic()
    while time.monotonic() < freed + 2 * RECOVERY_SECONDS:
        if daemon.serving():
            return time.monotonic() - freed
        time.sleep(0.1)
    outcome.problems.append("the log does not take events again")
    return time.monotonic() - freed


def _drained(daemon: Daemon, prompts: list[str]) -> list[str]:
    deadline = time.monotonic() + 2 * RECOVERY_SECONDS
    while daemon.status().spool_files:
        if time.monotonic() > deadline:
            return [f"{daemon.status().spool_files} of {len(prompts)} payloads stay in the spool"]
        time.sleep(0.1)
    return []


def _check_log(oracle: Oracle, daemon: Daemon, prompts: list[str]) -> list[str]:
    """The oracle's events and the hooks' prompts are in the log, each once."""
    texts = [found.text for found in read_all(daemon.stub) if found.session_id == "s"]
    problems = [f"{prompt}: {texts.count(prompt)} times" for prompt in prompts]
    problems = [problem for problem in problems if not problem.endswith(" 1 times")]
    return problems + oracle.check_all(daemon.stub, strangers="s")


def _check_index(daemon: Daemon) -> list[str]:
    """The index is what an index made anew from the log would be, and finds the newest event."""
    request = pb.IngestEventRequest(event=searching.events(0, 1)[0])
    daemon.stub.IngestEvent(request, timeout=30)
    before = _at_rest(daemon)
    found = searching.answers(daemon.stub, 1)["unique00000"]
    list(daemon.stub.RebuildIndex(pb.RebuildIndexRequest(), timeout=300))
    after = _at_rest(daemon)
    whole = before.sequence == daemon.status().sequence and before.documents == after.documents
    if not whole or found != ("w00000",):
        return [f"the index does not equal the log: {before}, {after}, {found}"]
    return []


def _at_rest(daemon: Daemon) -> pb.GetIndexStatusResponse:
    """The state of the index when nothing more comes into it."""
    last, still = searching.settle(daemon, 120), 0
    while still < 10:
        time.sleep(0.2)
        status = searching.settle(daemon, 120)
        still = still + 1 if status.documents == last.documents else 0
        last = status
    return last
