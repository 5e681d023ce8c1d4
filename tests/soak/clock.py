"""A clock that is set: back an hour, on a year and back, over both changes to and from summer time.

Where libfaketime is installed, a real daemon lives through it: only its wall clock is moved (the
clock that measures time spans goes on, as in a real machine). Without it, jobs are woken over an
injected clock, which is always done as well, by many random walks.
"""

import glob
import os
import random
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

from memoryd.domain.calendar import Calendar
from memoryd.domain.cron import parse
from memoryd.pb import memory_pb2 as pb
from memoryd.services.jobs import Job, Jobs
from memoryd.storage.store import Store
from tests.faults.driver import Daemon, House, read_all
from tests.soak.outcome import Order, Outcome

ZONE = "Europe/Berlin"
_LIBRARY = "/usr/lib/*/faketime/libfaketimeMT.so.1"
_PATIENCE = 20.0
_HOUR = 3_600_000
_JOB = "rollup-day"
_SETTINGS = f'timezone = "{ZONE}"\n[jobs]\nrollup_day = "30 2 * * *"\nrollup_week = "0 12 29 2 *"\n'


class Move(NamedTuple):
    """A clock is set to a local time; the night job and the leap-day job have then run so often."""

    at: str
    nightly: int
    leap: int = 0


SCENARIOS: dict[str, tuple[Move, ...]] = {
    "back 1 h": (
        Move("2026-06-01 02:10:00", 0),
        Move("2026-06-01 02:30:10", 1),
        Move("2026-06-01 01:30:10", 1),
        Move("2026-06-01 02:30:10", 1),
        Move("2026-06-02 02:30:10", 2),
    ),
    "forward 1 year": (
        Move("2026-06-01 12:00:00", 0),
        Move("2027-06-01 12:00:00", 1),
        Move("2026-06-01 12:01:00", 1),
        Move("2026-06-02 02:30:10", 2),
        Move("2026-06-03 02:30:10", 3),
    ),
    "summer time begins": (  # 02:30 is not on that day's clock: an hour later is meant
        Move("2026-03-28 12:00:00", 0),
        Move("2026-03-29 01:59:50", 0),
        Move("2026-03-29 03:00:10", 0),
        Move("2026-03-29 03:30:10", 1),
        Move("2026-03-30 02:30:10", 2),
    ),
    "summer time ends": (
        Move("2026-10-24 12:00:00", 0),
        Move("2026-10-25 02:30:10", 1),
        Move("2026-10-25 02:30:10 second", 1),
        Move("2026-10-25 03:30:00", 1),
        Move("2026-10-26 02:30:10", 2),
    ),
    "leap day": (
        Move("2028-02-28 12:00:00", 0),
        Move("2028-02-29 02:30:10", 1),
        Move("2028-02-29 12:00:10", 1, 1),
        Move("2028-03-01 02:30:10", 2, 1),
        Move("2029-03-01 02:30:10", 3, 1),
    ),
}


def instant(words: str) -> int:
    """The instant in ms of a local time; the second of two that are called the same if so said."""
    text, again, _ = words.partition(" second")
    local = datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(ZONE), fold=int(bool(again)))
    return int(local.timestamp() * 1000)


def clock(order: Order) -> Outcome:
    """Live through every scenario, once for each cycle, and through as many random walks."""
    outcome = Outcome("clock", order.seed)
    chance = random.Random(order.seed)
    library = next(iter(glob.glob(_LIBRARY)), "")
    for _ in range(order.cycles):
        for name in SCENARIOS:
            outcome.problems += injected(name)
        outcome.problems += _walk(chance)
        if library:
            with ThreadPoolExecutor(len(SCENARIOS)) as pool:
                lived = pool.map(lambda name: _lived(name, library), SCENARIOS)
                outcome.problems += [problem for problems in lived for problem in problems]
        outcome.cycles += 1
        order.say(f"{outcome.cycles} of {order.cycles} rounds")
    done = len(SCENARIOS) * outcome.cycles if library else 0
    outcome.figures["scenarios with a real daemon"] = done
    outcome.figures["scenarios"] = len(SCENARIOS) * outcome.cycles
    outcome.figures["out of order, lost or doubled"] = len(outcome.problems)
    if not library:
        outcome.figures["libfaketime"] = "not installed"
    return outcome


class _Desk:
    """Jobs over a store of their own, with a clock set by hand."""

    def __init__(self, folder: str, now_ms: int) -> None:
        self.now_ms = now_ms
        self.runs = {"nightly": 0, "leap": 0}
        self.store = Store(folder)
        jobs = (
            Job("nightly", parse("30 2 * * *"), lambda: self._count("nightly")),
            Job("leap", parse("0 12 29 2 *"), lambda: self._count("leap")),
        )
        calendar = Calendar(ZoneInfo(ZONE))
        self.jobs = Jobs(
            jobs, self.store.checkpoints, calendar, lambda: self.now_ms, lambda *_: None
        )

    def _count(self, name: str) -> dict[str, str]:
        self.runs[name] += 1
        return {}

    def wake(self) -> None:
        """What the scheduler does, now and then."""
        for name in self.runs:
            self.jobs.wake(name)


def injected(name: str) -> list[str]:
    """What is wrong after a scenario that jobs live through over an injected clock."""
    moves = SCENARIOS[name]
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        desk = _Desk(f"{folder}/d", instant(moves[0].at))
        for move in moves:
            desk.now_ms = instant(move.at)
            desk.wake()
            desk.wake()
            if desk.runs != {"nightly": move.nightly, "leap": move.leap}:
                problems.append(f"{name}, injected, at {move.at}: {desk.runs}")
        desk.store.close()
    return problems


def _walk(chance: random.Random) -> list[str]:
    """Hours on end, with steps back of up to an hour: a run for each day, none twice."""
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        start = instant("2026-01-01 12:00:00") + chance.randrange(0, 365) * 24 * _HOUR
        desk = _Desk(f"{folder}/d", start)
        furthest = start
        cron, calendar = parse("30 2 * * *"), Calendar(ZoneInfo(ZONE))
        due = cron.next_ms(start, calendar)
        expected = 0
        for _ in range(400):
            desk.now_ms += chance.choice((1, 1, 1, -1)) * chance.randrange(_HOUR)
            furthest = max(furthest, desk.now_ms)
            desk.wake()
            if furthest >= due and desk.now_ms >= due:
                expected += 1
                due = cron.next_ms(desk.now_ms, calendar)
        if desk.runs["nightly"] != expected:
            problems.append(f"a walk from {start}: {desk.runs['nightly']} runs, not {expected}")
        desk.store.close()
    return problems


def _lived(name: str, library: str) -> list[str]:
    """A real daemon, whose clock is moved under it while it is written to."""
    moves = SCENARIOS[name]
    house = House()
    try:
        path = f"{house.base}/time"
        _set(path, instant(moves[0].at))
        os.makedirs(f"{house.base}/c/memoryd")
        with open(f"{house.base}/c/memoryd/config.toml", "w", encoding="utf-8") as file:
            file.write(_SETTINGS)
        house.env |= {
            "LD_PRELOAD": library,
            "FAKETIME_TIMESTAMP_FILE": path,
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "TZ": "UTC",
        }
        daemon = house.serve()
        problems, written = [], 0
        for move in moves:
            _set(path, instant(move.at))
            written += _write(daemon, written)
            found = _wait(daemon, move)
            if found != (move.nightly, move.leap):
                problems.append(f"{name}, real, at {move.at}: the jobs have run {found}")
        problems += [f"{name}: {problem}" for problem in _order(daemon, written)]
        daemon.terminate()
        return problems
    finally:
        house.close()


def _set(path: str, now_ms: int) -> None:
    """Set the daemon's clock; it goes on from there."""
    with open(f"{path}.new", "w", encoding="ascii") as file:
        file.write(f"{(now_ms / 1000) - time.time():+.3f}\n")
    os.rename(f"{path}.new", path)


def _write(daemon: Daemon, first: int) -> int:
    """Write events that name no time; return how many."""
    for number in range(first, first + 5):
        event = pb.Event(session_id="s", role=pb.EVENT_ROLE_USER, text=f"number {number}")
        daemon.stub.IngestEvent(pb.IngestEventRequest(event=event), timeout=30)
    return 5


def _wait(daemon: Daemon, move: Move) -> tuple[int, int]:
    """How often the jobs have run, once they have run as often as expected and a little longer."""
    deadline, settled = time.monotonic() + _PATIENCE, 0.0
    while True:
        jobs = daemon.stub.GetSchedulerStatus(pb.GetSchedulerStatusRequest(), timeout=30).jobs
        runs = {job.job_name: job.run_count for job in jobs}
        found = (runs[_JOB], runs["rollup-week"])
        settled = settled or (time.monotonic() if found == (move.nightly, move.leap) else 0.0)
        if time.monotonic() > deadline or (settled and time.monotonic() > settled + 7):
            return found
        time.sleep(0.2)


def _order(daemon: Daemon, written: int) -> list[str]:
    """The log has everything in the order of writing, whatever the clock said."""
    found = sorted(read_all(daemon.stub), key=lambda event: event.sequence)
    texts = [event.text for event in found]
    if texts != [f"number {number}" for number in range(written)]:
        return [f"the order of {written} events is not kept"]
    if [event.sequence for event in found] != list(range(1, written + 1)):
        return ["the sequence has gaps"]
    return []
