"""Jobs: what runs by the clock, what came of it, and whether it is due.

What is due follows from what has been done, which is kept on disk with every run; the clock only
wakes. So a job that was missed while the daemon was down, or that a change of the clock swallowed,
runs once, late; and none runs twice. A job that is still running is not started again. Where the
clock is set back by more than a day, jobs are planned from then on, and not from where it had been.
"""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Any, Final, NamedTuple

from memoryd.domain.calendar import Calendar
from memoryd.domain.cron import Cron
from memoryd.domain.errors import MemorydError, NotFound, Stopping
from memoryd.storage.checkpoints import Checkpoints

_log = logging.getLogger(__name__)

_PREFIX: Final = "job:"
_AHEAD_MS: Final = 86_400_000  # a record further ahead of the clock is of a clock that was wrong


class Result(IntEnum):
    """How a run ended; the numbers are those on the wire."""

    UNSPECIFIED = 0
    SUCCESS = 1
    FAILED = 2
    SKIPPED = 3


class Record(NamedTuple):
    """What is kept of a job."""

    seen_ms: int  # up to when every planned run has been seen to
    paused: bool = False
    last_run_ms: int = 0
    last_duration_ms: int = 0
    last_result: int = Result.UNSPECIFIED
    last_error: str = ""
    runs: int = 0
    errors: int = 0
    metadata: Mapping[str, str] = {}


class Job(NamedTuple):
    """A job by its name: when it runs, and what it does; that says what it did."""

    name: str
    cron: Cron
    action: Callable[[], dict[str, str]]


class JobStatus(NamedTuple):
    """A job as it stands."""

    name: str
    cron: str
    record: Record
    next_ms: int  # 0 while it is paused
    running: bool


class Jobs:
    """The jobs of a daemon. Safe to call from many threads."""

    def __init__(
        self,
        jobs: Sequence[Job],
        checkpoints: Checkpoints,
        calendar: Calendar,
        clock_ms: Callable[[], int],
        on_error: Callable[[str, str], object],
    ) -> None:
        self._jobs = {job.name: job for job in jobs}
        self._checkpoints = checkpoints
        self._calendar = calendar
        self._clock_ms = clock_ms
        self._on_error = on_error
        self._lock = threading.Lock()
        self._running: set[str] = set()
        self._records = {job.name: self._load(job.name) for job in jobs}

    @property
    def names(self) -> list[str]:
        """The names of all jobs."""
        return list(self._jobs)

    def paused(self, name: str) -> bool:
        """Whether a job is paused; one that there is not is not."""
        return name in self._records and self._records[name].paused

    def status(self) -> list[JobStatus]:
        """Every job as it stands."""
        return [self.one(name) for name in self._jobs]

    def one(self, name: str) -> JobStatus:
        """A job as it stands. Raises NotFound."""
        job, record = self._get(name), self._records[name]
        planned = 0 if record.paused else self.next_ms(name)
        return JobStatus(name, job.cron.text, record, planned, name in self._running)

    def next_ms(self, name: str) -> int:
        """When the clock wakes a job next. Raises NotFound."""
        return self._get(name).cron.next_ms(self._clock_ms(), self._calendar)

    def pause(self, name: str) -> None:
        """Have a job wait until it is resumed, also over restarts. Raises NotFound, ReadOnly."""
        self._get(name)
        self._keep(name, {"paused": True}, sync=True)

    def resume(self, name: str) -> None:
        """Have a job run again; once if it has missed something. Raises NotFound, ReadOnly."""
        self._get(name)
        self._keep(name, {"paused": False}, sync=True)

    def wake(self, name: str) -> None:
        """Run a job if it is due."""
        record = self._records[name]
        if record.seen_ms > self._clock_ms() + _AHEAD_MS:
            self._keep(name, {"seen_ms": self._clock_ms()})
            record = self._records[name]
        planned = self._get(name).cron.next_ms(record.seen_ms, self._calendar)
        if not record.paused and planned <= self._clock_ms():
            self.run(name)

    def run(self, name: str) -> JobStatus:
        """Run a job now, paused or not, and wait for its end. Raises NotFound, Stopping."""
        job = self._get(name)
        with self._lock:
            busy = name in self._running
            self._running.add(name)
        if busy:
            skipped = self._records[name]._replace(last_result=Result.SKIPPED)
            return self.one(name)._replace(record=skipped)
        try:
            self._run(job)
        finally:
            self._running.discard(name)
        return self.one(name)

    def _run(self, job: Job) -> None:
        began = self._clock_ms()
        done: dict[str, str] = {}
        error = ""
        try:
            done = job.action()
        except Stopping:
            raise  # it stays due
        except MemorydError as failure:
            error = str(failure)
        except Exception as failure:  # noqa: BLE001 - a job must not end the scheduler
            error = f"unexpected {type(failure).__name__}"
        took = self._clock_ms() - began
        record = self._records[job.name]
        self._keep(
            job.name,
            {
                "seen_ms": began,
                "last_run_ms": began,
                "last_duration_ms": took,
                "last_result": int(Result.FAILED if error else Result.SUCCESS),
                "last_error": error,
                "runs": record.runs + 1,
                "errors": record.errors + bool(error),
                "metadata": done,
            },
        )
        if error:
            self._on_error(job.name, error)
            _log.error("job failed", extra={"job": job.name, "reason": error})
        else:
            _log.info("job done", extra={"job": job.name, "ms": took, **done})

    def _get(self, name: str) -> Job:
        if name not in self._jobs:
            raise NotFound(f"there is no job {name[:80]!r}: there are {', '.join(self._jobs)}")
        return self._jobs[name]

    def _load(self, name: str) -> Record:
        stored = self._checkpoints.get(_PREFIX + name)
        if stored is not None:
            return Record(*stored)
        record = Record(seen_ms=self._clock_ms())
        self._checkpoints.put(_PREFIX + name, record)
        return record

    def _keep(self, name: str, changes: dict[str, Any], *, sync: bool = False) -> None:
        with self._lock:
            record = self._records[name]._replace(**changes)
            self._checkpoints.put(_PREFIX + name, record, sync=sync)
            self._records[name] = record
