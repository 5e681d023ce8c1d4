"""Load over a long time: 200 events a second from 8 writers, with searches, browsing and rollups.

The disk is measured in the same run: a thread writes a small file with fsync now and then, beside
the daemon, on the same file system. What an acknowledgement takes is told as a ratio to that.
"""

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable

import grpc

from memoryd.pb import memory_pb2 as pb
from memoryd.pb.memory_pb2_grpc import MemoryServiceStub
from tests.faults.driver import Daemon, House, read_all
from tests.soak import vitals
from tests.soak.kill import verify
from tests.soak.outcome import Order, Outcome

RATE = 200
WRITERS = 8
ACK_MS_ABOVE_FSYNC = 50.0
SLOPE_MIB_PER_HOUR = 64.0
_LOOK_SECONDS = 5.0
_WARM_SHARE = 0.25  # of the run, in which caches and pools fill
_WORDS = [f"word{number}" for number in range(3_000)]


class Worker:
    """A thread that does one thing again and again, at a pace, and times it."""

    def __init__(self, work: Callable[[int], object], every: float) -> None:
        self._work = work
        self._every = every
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.seconds: list[float] = []
        self.problems: list[str] = []
        self._thread.start()

    def _run(self) -> None:
        due = time.monotonic()
        number = 0
        while not self._ended.wait(max(0.0, due - time.monotonic())):
            due = max(
                due + self._every, time.monotonic() - 1
            )  # what is late is caught up, a little
            began = time.monotonic()
            try:
                self._work(number)
            except grpc.RpcError as error:
                self.problems.append(f"{error.code()}: {error.details()}"[:200])
            self.seconds.append(time.monotonic() - began)
            number += 1

    def close(self) -> None:
        """End, and wait for it."""
        self._ended.set()
        self._thread.join()


def percentile(values: list[float], share: float) -> float:
    """The value below which so many lie, in ms."""
    ordered = sorted(values)
    return 1000 * ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0


def load(order: Order) -> Outcome:
    """Run for as many minutes as there are cycles."""
    outcome = Outcome("load", order.seed)
    house = House()
    try:
        daemon = house.serve()
        _load(house, daemon, order, outcome)
        daemon.terminate()
        outcome.problems += verify(house)
    finally:
        house.close()
    return outcome


def _load(house: House, daemon: Daemon, order: Order, outcome: Outcome) -> None:
    ids: list[str] = []
    writers = [
        Worker(_writing(daemon.stub, ids, order.seed, number), WRITERS / RATE)
        for number in range(WRITERS)
    ]
    readers = {
        "search": Worker(_searching(daemon.stub, order.seed), 0.5),
        "browse": Worker(lambda _: _browse(daemon.stub), 1.0),
        "rollup": Worker(lambda n: _roll_up(daemon.stub, n), 15.0),
    }
    disk = Worker(lambda _: _fsync(f"{house.base}/d/probe"), 0.25)
    workers = [*writers, *readers.values(), disk]
    began = time.monotonic()
    points: list[tuple[float, vitals.Vitals]] = []
    while (spent := time.monotonic() - began) < order.cycles * 60:
        points.append((spent / 3600, vitals.look(daemon.process.pid)))
        order.say(f"{spent / 60:.1f} of {order.cycles} minutes: {points[-1][1]}")
        time.sleep(_LOOK_SECONDS)
    for worker in workers:
        worker.close()
    seconds = time.monotonic() - began
    outcome.cycles = order.cycles
    for worker in workers:
        # a rollup waits for everything before it, which on a busy machine may take its time
        told = outcome.late if worker is readers["rollup"] else outcome.problems
        told += worker.problems
    acks = [value for writer in writers for value in writer.seconds]
    outcome.figures |= {"events": len(acks), "events/s": round(len(acks) / seconds)}
    _judge_times(outcome, acks, disk.seconds)
    for name, reader in readers.items():
        outcome.figures[f"{name} p99 ms"] = round(percentile(reader.seconds, 0.99))
    _judge_growth(outcome, points)
    lost = _lost(daemon.stub, ids)
    outcome.figures["lost"] = len(lost)
    outcome.problems += lost


def _judge_times(outcome: Outcome, acks: list[float], fsyncs: list[float]) -> None:
    ack, fsync = percentile(acks, 0.99), percentile(fsyncs, 0.99)
    outcome.figures |= {
        "ack p50 ms": round(percentile(acks, 0.5), 1),
        "ack p99 ms": round(ack, 1),
        "fsync p50 ms": round(percentile(fsyncs, 0.5), 1),
        "fsync p99 ms": round(fsync, 1),
        "ack p99 to fsync p99": round(ack / fsync, 1) if fsync else 0.0,
    }
    outcome.bound("ack p99 above fsync p99, ms", ack - fsync, ACK_MS_ABOVE_FSYNC)


def _judge_growth(outcome: Outcome, points: list[tuple[float, vitals.Vitals]]) -> None:
    """Slopes over what comes after the warm-up."""
    warm = points[int(len(points) * _WARM_SHARE) :]
    first, last = warm[0][1], warm[-1][1]
    outcome.figures |= {
        "RSS MiB": f"{first.rss_mib:.0f} to {last.rss_mib:.0f}",
        "workers' RSS MiB": f"{first.children_mib:.0f} to {last.children_mib:.0f}",
        "workers' RSS slope MiB/h": round(vitals.slope([(t, v.children_mib) for t, v in warm]), 1),
        "threads": f"{first.threads} to {last.threads}",
        "files": f"{first.files} to {last.files}",
    }
    rise = vitals.slope([(t, v.rss_mib) for t, v in warm])
    if warm[-1][0] - warm[0][0] < 0.25:  # hours; too short a line says nothing
        outcome.figures["RSS slope MiB/h, of a short run"] = round(rise, 1)
    else:
        outcome.bound("RSS slope MiB/h", rise, SLOPE_MIB_PER_HOUR)
        for name in ("threads", "files"):
            growth = vitals.slope([(t, float(getattr(v, name))) for t, v in warm])
            outcome.bound(f"{name} more each hour", growth, 8)


def _said(event_id: str) -> str:
    """The text that belongs to an id: about 600 bytes of words, some frequent and some rare."""
    chance = random.Random(event_id)
    return " ".join(_WORDS[int(len(_WORDS) * chance.random() ** 3)] for _ in range(80))


def _writing(
    stub: MemoryServiceStub, ids: list[str], seed: int, writer: int
) -> Callable[[int], None]:
    """An agent that speaks as an agent does, in a new session every few minutes."""

    def write(number: int) -> None:
        event_id = f"load{seed}-{writer}-{number}"
        event = pb.Event(
            event_id=event_id,
            session_id=f"session-{writer}-{number // 5_000}",
            timestamp_ms=int(time.time() * 1000),
            event_type=2 + number % 3,  # type: ignore[arg-type]
            text=_said(event_id),
            agent=f"agent-{writer % 3}",
        )
        answer = stub.IngestEvent(pb.IngestEventRequest(event=event), timeout=30)
        ids.append(answer.event_id)

    return write


def _lost(stub: MemoryServiceStub, ids: list[str]) -> list[str]:
    """What was acknowledged and is not in the log once, as it was sent."""
    counted: Counter[str] = Counter()
    problems = []
    for found in read_all(stub):
        counted[found.event_id] += 1
        if found.text != _said(found.event_id):
            problems.append(f"{found.event_id}: another text")
    return problems + [f"{i}: {counted[i]} times" for i in ids if counted[i] != 1]


def _searching(stub: MemoryServiceStub, seed: int) -> Callable[[int], None]:
    chance = random.Random(seed)

    def search(_number: int) -> None:
        query = " ".join(chance.choices(_WORDS, k=2))
        stub.TeleportSearch(pb.TeleportSearchRequest(query=query, limit=20), timeout=30)

    return search


def _browse(stub: MemoryServiceStub) -> None:
    """From the root down to a segment."""
    parent = ""
    for _ in range(6):
        found = stub.BrowseToc(pb.BrowseTocRequest(parent_id=parent, limit=50), timeout=30)
        if not found.children:
            return
        parent = found.children[-1].node_id


def _roll_up(stub: MemoryServiceStub, number: int) -> None:
    level = ("day", "week", "month", "year")[number % 4]
    stub.RunJob(pb.RunJobRequest(job_name=f"rollup-{level}"), timeout=120)


def _fsync(path: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(fd, b"x" * 700)
        os.fsync(fd)
    finally:
        os.close(fd)
