"""The deriving half of the daemon: the pump, the jobs and the scheduler that wakes them.

Part of the wiring; only here is APScheduler known. It gets instants and no local times, because
on its own it skips midnights on days of 23 hours and repeats times on days of 25.
"""

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.base import BaseTrigger

from memoryd import care
from memoryd.config import Settings
from memoryd.domain import cron
from memoryd.domain.calendar import PERIODS, Calendar
from memoryd.domain.errors import Cancelled, MemorydError, Stopping
from memoryd.domain.segment import Rules
from memoryd.domain.summarize import Summarizer
from memoryd.domain.toc import Level
from memoryd.services.care import Care
from memoryd.services.jobs import Job, Jobs
from memoryd.services.pump import RECIPE, Pump, Recipe
from memoryd.services.rollup import Steps
from memoryd.services.status import ErrorBook
from memoryd.services.workshop import Workshop

if TYPE_CHECKING:
    from memoryd.storage.committer import Committer
    from memoryd.storage.store import Store

_log = logging.getLogger("memoryd")

_MINUTE_MS: Final = 60_000
_FAILPOINT: Final = "MEMORYD_FAILPOINT"
_ZONES: Final = "/zoneinfo/"
_CLOCK_SECONDS: Final = 5.0
_JUMP_MS: Final = 2_000


class Deriving(NamedTuple):
    """What derives, once it runs."""

    pump: Pump
    jobs: Jobs
    calendar: Calendar
    summarizer: Summarizer
    running: Callable[[], bool]
    care: Care


def start(
    stack: ExitStack,
    settings: Settings,
    store: "Store",
    committer: "Committer",
    errors: ErrorBook,
    clock_ms: Callable[[], int],
) -> Deriving:
    """Start to derive, and arrange for the end: the pump first, then the jobs that wait for it."""
    zone = _zone_name(settings.timezone, store.checkpoints.get(RECIPE))
    calendar = Calendar(_zone(zone))
    summarizer, factory = summarizer_of(settings)
    pump = Pump(
        store,
        committer,
        Workshop(summarizer, factory, errors.add),
        calendar,
        Recipe(zone, _rules(settings)),
        clock_ms,
        Steps(failpoint(), errors.add),
    )
    stopping = threading.Event()
    actions = _jobs(settings, pump, store, lambda: not stopping.is_set())
    caring = care.of(settings, store, clock_ms)
    if settings.backup_dir:
        actions.append(_backup_job(settings, caring, lambda: not stopping.is_set()))
    jobs = Jobs(actions, store.checkpoints, calendar, clock_ms, errors.add)
    pump.held = lambda level: jobs.paused(_job_name(level))
    scheduler, plan = _scheduler(jobs)
    scheduler.start()
    stack.callback(scheduler.shutdown)
    threading.Thread(
        target=_watch_clock, args=(clock_ms, stopping, plan), name="clock", daemon=True
    ).start()
    pump.start()
    stack.callback(pump.stop)
    stack.callback(stopping.set)
    return Deriving(pump, jobs, calendar, summarizer, lambda: bool(scheduler.running), caring)


def _rules(settings: Settings) -> Rules:
    return Rules(
        gap_ms=int(settings.segment_gap_minutes * _MINUTE_MS),
        tokens=settings.segment_tokens,
        tool_tokens=settings.segment_tool_tokens,
        overlap_ms=int(settings.segment_overlap_minutes * _MINUTE_MS),
        overlap_tokens=settings.segment_overlap_tokens,
    )


def _job_name(level: Level) -> str:
    return f"rollup-{level.name.lower()}"


def _jobs(settings: Settings, pump: Pump, store: "Store", alive: Callable[[], bool]) -> list[Job]:
    expressions = {
        Level.DAY: settings.jobs_rollup_day,
        Level.WEEK: settings.jobs_rollup_week,
        Level.MONTH: settings.jobs_rollup_month,
        Level.YEAR: settings.jobs_rollup_year,
    }

    def roll_up(level: Level) -> Callable[[], dict[str, str]]:
        return lambda: pump.ask(lambda: pump.roll_up(level)).result()

    def compact() -> dict[str, str]:
        store.db.compact(alive)
        return {}

    jobs = [Job(_job_name(lv), cron.parse(expressions[lv]), roll_up(lv)) for lv in PERIODS]
    return [*jobs, Job("compact", cron.parse(settings.jobs_compact), compact)]


def _backup_job(settings: Settings, caring: Care, alive: Callable[[], bool]) -> Job:
    def run() -> dict[str, str]:
        try:
            return care.daily_backup(settings, caring, alive)
        except Cancelled:
            raise Stopping("the daemon is stopping: the backup is made when it is back") from None

    return Job("backup", cron.parse(settings.jobs_backup), run)


class _Trigger(BaseTrigger):  # type: ignore[misc] # the library has no types
    """Fires at the instants that a job's cron expression names."""

    def __init__(self, next_ms: Callable[[], int]) -> None:
        self._next_ms = next_ms

    def get_next_fire_time(self, _previous: datetime | None, _now: datetime) -> datetime:
        """The next instant."""
        return datetime.fromtimestamp(self._next_ms() / 1000, UTC)


def _scheduler(jobs: Jobs) -> tuple[BackgroundScheduler, Callable[[], None]]:
    """A scheduler, and what has it plan anew: APScheduler itself never looks at the clock again."""
    logging.getLogger("apscheduler").setLevel(logging.ERROR)
    scheduler = BackgroundScheduler(
        timezone=UTC,
        executors={"default": ThreadPoolExecutor(2)},
        job_defaults={"misfire_grace_time": None, "coalesce": True, "max_instances": 1},
    )

    def wake(name: str) -> None:
        try:
            jobs.wake(name)
        except MemorydError as error:
            _log.warning("job not run", extra={"job": name, "reason": str(error)})

    def plan() -> None:
        for name in jobs.names:
            trigger = _Trigger(_next(jobs, name))
            scheduler.add_job(wake, trigger, args=(name,), id=name, replace_existing=True)
            scheduler.add_job(wake, args=(name,))  # at once: what was missed while nobody ran

    plan()
    return scheduler, plan


def jumps(offset_ms: Callable[[], int], ended: Callable[[float], bool]) -> Iterator[int]:
    """By how much the clock was set, each time that it was, until ``ended`` says yes.

    A sleep of the machine is such a time too: the clock that ``offset_ms`` is measured against
    stands still meanwhile.
    """
    before = offset_ms()
    while not ended(_CLOCK_SECONDS):
        now = offset_ms()
        if abs(now - before) >= _JUMP_MS:
            yield now - before
        before = now


def _watch_clock(
    clock_ms: Callable[[], int], stopping: threading.Event, plan: Callable[[], None]
) -> None:
    for jump in jumps(lambda: clock_ms() - int(time.monotonic() * 1000), stopping.wait):
        _log.info("the clock was set, or the machine slept", extra={"ms": jump})
        plan()


def _next(jobs: Jobs, name: str) -> Callable[[], int]:
    return lambda: jobs.next_ms(name)


def _zone_name(configured: str, recipe: Any) -> str:
    """The zone that is set; else the one that the store was made in; else the system's."""
    return configured or (recipe[0] if recipe else _system_zone())


def _system_zone() -> str:
    path = os.path.realpath("/etc/localtime")
    found = path.partition(_ZONES)[2] if _ZONES in path else ""
    for name in (os.environ.get("TZ", "").removeprefix(":"), found):
        try:
            if name and ZoneInfo(name):
                return name
        except (ValueError, OSError, ZoneInfoNotFoundError):
            continue
    return "UTC"


def _zone(name: str) -> tzinfo:
    return UTC if name == "UTC" else ZoneInfo(name)


def failpoint() -> Callable[[str], None]:
    """End the process at a named point, at the N-th time if it is spelled NAME:N. For tests."""
    wanted = os.environ.get(_FAILPOINT, "")
    name, _, number = wanted.partition(":")
    left = int(number) if number.isdigit() else 1

    def reach(reached: str) -> None:
        nonlocal left
        if name and reached == name:
            left -= 1
            if left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return reach


def summarizer_of(_settings: Settings) -> tuple[Summarizer, str]:
    """The summarizer that the settings name, and where a worker process finds it."""
    from memoryd.domain.extract.extractive import Extractive

    return Extractive(), f"{Extractive.__module__}:{Extractive.__name__}"
