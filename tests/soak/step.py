"""Kill -9 while things are derived: tree and index come out as if nothing had happened.

Half of the kills come at named steps of the pump, the others at any moment of deriving,
indexing, rolling up, or making tree and index anew.
"""

import os
import random
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import grpc

from memoryd.pb import memory_pb2 as pb
from memoryd.pb.memory_pb2_grpc import MemoryServiceStub
from tests.faults.driver import Daemon, House
from tests.soak import searching, vitals
from tests.soak.outcome import Order, Outcome

POINTS = (
    "pump.after_read",
    "pump.before_write",
    "pump.after_write",
    "rollup.before_write",
    "rollup.after_write:2",
    "rollup.after_write:4",
    "rebuild.before_write",
    "rebuild.after_write",
)
LEVELS = ("day", "week", "month", "year")
_NOON = 1_780_308_000_000
_MINUTE = 60_000
_EVENTS = 90
_KILLS_PER_HOUSE = 5
_WORKER_SHARE = 0.3

Tree = dict[str, str]
KINDS = ("at named steps", "at any moment", "houses compared")


def fill(stub: MemoryServiceStub) -> None:
    """Write conversations of three sessions over some days, not in order, in three batches."""
    numbers = [(n * 37) % _EVENTS for n in range(_EVENTS)]
    for part in range(3):
        events = [
            pb.Event(
                event_id=f"w{n:05}",
                session_id=f"s{n % 3}",
                timestamp_ms=_NOON + n * 47 * _MINUTE // (1 + n % 4),
                event_type=2 + n % 3,  # type: ignore[arg-type]
                text=f"Number {n} was fixed because the lock {n * 7} was stale. "
                f"Then it was tested: {searching.said(n)}",
            )
            for n in numbers[part * 30 : part * 30 + 30]
        ]
        stub.IngestEvents(pb.IngestEventsRequest(events=events), timeout=30)


def roll_up(daemon: Daemon) -> None:
    """Have every period derived."""
    for level in LEVELS:
        daemon.stub.RunJob(pb.RunJobRequest(job_name=f"rollup-{level}"), timeout=60)


def tree(daemon: Daemon) -> Tree:
    """Every node but its version, and the grips under it, once everything has been derived."""
    roll_up(daemon)
    found: Tree = {}

    def walk(parent: str) -> None:
        request = pb.BrowseTocRequest(parent_id=parent, limit=1000)
        for node in daemon.stub.BrowseToc(request, timeout=30).children:
            node.version = 0
            found[node.node_id] = str(node)
            for grip_id in (g for b in node.bullets for g in b.grip_ids):
                grip = daemon.stub.ExpandGrip(pb.ExpandGripRequest(grip_id=grip_id), timeout=30)
                found[grip_id] = str(grip.grip)
            if node.level != pb.TOC_LEVEL_SEGMENT:
                walk(node.node_id)

    walk("")
    return found


def undisturbed() -> tuple[Tree, int]:
    """The tree of a run in which nothing happens, and how many documents its index has."""
    house = House()
    try:
        daemon = house.serve()
        fill(daemon.stub)
        found = tree(daemon)
        return found, _documents(daemon, 0)
    finally:
        house.close()


def _documents(daemon: Daemon, expected: int) -> int:
    """How many documents the index has when it has come to rest, or to what is expected."""
    deadline = time.monotonic() + 30
    last, still = -1, 0
    while time.monotonic() < deadline:
        count = searching.settle(daemon).documents
        still = still + 1 if count == last else 0
        last = count
        if count == expected or (not expected and still >= 20):
            break
        time.sleep(0.1)
    return last


def differences(daemon: Daemon, expected: tuple[Tree, int]) -> list[str]:
    """In what tree and index of a daemon differ from those of an undisturbed run."""
    found = tree(daemon)
    names = sorted(found.keys() | expected[0].keys())
    problems = [f"{n} differs" for n in names if found.get(n) != expected[0].get(n)]
    documents = _documents(daemon, expected[1])
    if documents != expected[1]:
        problems.append(f"the index has {documents} documents, not {expected[1]}")
    answers = searching.answers(daemon.stub, _EVENTS)
    wrong = [q for q, hits in searching.truth(_EVENTS).items() if answers[q] != hits]
    return problems + [f"search for {query} is wrong" for query in wrong]


def provoke(daemon: Daemon, point: str) -> bool:
    """Have a daemon come to the point at which it is killed; whether it came there."""
    with suppress(grpc.RpcError):
        fill(daemon.stub)
        if point.startswith("rebuild"):
            list(daemon.stub.RebuildToc(pb.RebuildTocRequest(), timeout=60))
        roll_up(daemon)
    with suppress(Exception):
        daemon.process.wait(5)
    return daemon.process.poll() is not None


def step(order: Order) -> Outcome:
    """Kill at steps and at moments, several times in each house, and compare at the end of each."""
    outcome = Outcome("step", order.seed)
    chance = random.Random(order.seed)
    expected = undisturbed()
    outcome.figures |= dict.fromkeys(KINDS, 0)
    while outcome.cycles < order.cycles:
        kills = min(_KILLS_PER_HOUSE, order.cycles - outcome.cycles)
        one_house(kills, chance, expected, outcome)
        order.say(f"{outcome.cycles} of {order.cycles} kills")
    outcome.figures["different"] = len(outcome.problems)
    outcome.figures |= {"nodes and grips": len(expected[0]), "documents": expected[1]}
    return outcome


def one_house(
    kills: int, chance: random.Random, expected: tuple[Tree, int], outcome: Outcome
) -> None:
    """Kill so many times in one house, and then compare."""
    house = House()
    try:
        for _ in range(kills):
            if chance.random() < 0.5:
                _kill_at_step(house, chance.choice(POINTS), outcome)
            else:
                _kill_at_moment(house, chance, outcome)
            outcome.cycles += 1
        daemon = house.serve()
        fill(daemon.stub)
        problems = differences(daemon, expected)
        outcome.problems += [f"after kill {outcome.cycles}: {problem}" for problem in problems]
        outcome.figures["houses compared"] = int(outcome.figures["houses compared"]) + 1
    finally:
        house.close()


def _kill_at_step(house: House, point: str, outcome: Outcome) -> None:
    house.env["MEMORYD_FAILPOINT"] = point
    try:
        daemon = house.serve()
        reached = provoke(daemon, point)
    except RuntimeError:  # the step came before the first answer
        reached = True
    del house.env["MEMORYD_FAILPOINT"]
    house.stop_all()
    kind = "at named steps" if reached else "at any moment"  # nothing was left to be derived
    outcome.figures[kind] = int(outcome.figures[kind]) + 1


def _kill_at_moment(house: House, chance: random.Random, outcome: Outcome) -> None:
    daemon = house.serve()
    stub = daemon.stub
    work: list[Callable[[], object]] = [
        lambda: fill(stub),
        lambda: roll_up(daemon),
        lambda: list(stub.RebuildToc(pb.RebuildTocRequest(), timeout=60)),
        lambda: list(stub.RebuildIndex(pb.RebuildIndexRequest(), timeout=60)),
    ]
    chosen = [work[0], chance.choice(work)]

    def busy() -> None:
        for one in chosen:
            with suppress(grpc.RpcError, ValueError):
                one()

    thread = threading.Thread(target=busy)
    thread.start()
    time.sleep(chance.uniform(0.0, 2.0))
    if chance.random() < _WORKER_SHARE:
        _kill_workers(daemon)
        time.sleep(chance.uniform(0.0, 1.0))
    daemon.process.kill()
    thread.join(60)
    daemon.kill()
    outcome.figures["at any moment"] = int(outcome.figures["at any moment"]) + 1


def _kill_workers(daemon: Daemon) -> None:
    """Kill the processes that work for the daemon, which goes on without them."""
    with suppress(OSError):
        for pid in vitals.children(daemon.process.pid):
            os.kill(pid, signal.SIGKILL)
