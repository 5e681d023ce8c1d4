import os
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from memoryd.domain.calendar import Calendar
from memoryd.domain.cron import parse
from memoryd.domain.errors import NotFound, ReadOnly, Stopping
from memoryd.services.jobs import Job, Jobs, Result
from memoryd.storage.store import Store

HOUR = 3_600_000
BERLIN = Calendar(ZoneInfo("Europe/Berlin"))


def at(*when: int) -> int:
    """An instant in UTC."""
    return int(datetime(*when, tzinfo=UTC).timestamp() * 1000)  # type: ignore[arg-type,misc]


class Desk:
    """Jobs on a store, with a clock that is set by hand."""

    def __init__(self, store: Store, now_ms: int, expression: str = "0 0 * * *") -> None:
        self.store = store
        self.now_ms = now_ms
        self.runs = 0
        self.errors: list[str] = []
        self.action: Callable[[], dict[str, str]] = self.count
        self._expression = expression
        self.jobs = self.reopen()

    def count(self) -> dict[str, str]:
        """Count the run."""
        self.runs += 1
        return {"runs": str(self.runs)}

    def act(self) -> dict[str, str]:
        """Do what a test has set."""
        return self.action()

    def reopen(self) -> Jobs:
        """The jobs as a daemon that starts now finds them."""
        job = Job("nightly", parse(self._expression), self.act)
        self.jobs = Jobs(
            [job],
            self.store.checkpoints,
            BERLIN,
            lambda: self.now_ms,
            lambda name, said: self.errors.append(f"{name}: {said}"),
        )
        return self.jobs


@pytest.fixture
def desk(tmp_path: os.PathLike[str]) -> Iterator[Desk]:
    """A desk at noon on a day in June."""
    store = Store(f"{os.fspath(tmp_path)}/data")
    yield Desk(store, at(2026, 6, 1, 10))
    store.close()


def test_a_job_runs_when_it_is_due_and_only_once(desk: Desk) -> None:
    """Woken early it does nothing; woken at its time it runs; woken again it does nothing."""
    desk.jobs.wake("nightly")
    assert desk.runs == 0
    desk.now_ms = at(2026, 6, 1, 22)
    desk.jobs.wake("nightly")
    desk.jobs.wake("nightly")
    assert desk.runs == 1
    (status,) = desk.jobs.status()
    assert status.record.last_result == Result.SUCCESS
    assert status.record.metadata == {"runs": "1"}
    assert status.next_ms == at(2026, 6, 2, 22)


def test_what_was_missed_is_caught_up_once(desk: Desk) -> None:
    """After days without a daemon the job runs once at the start."""
    desk.now_ms = at(2026, 6, 9)
    desk.reopen().wake("nightly")
    desk.jobs.wake("nightly")
    assert desk.runs == 1


@pytest.mark.parametrize("day", [(2026, 3, 28), (2026, 10, 24)])
def test_no_run_is_lost_or_doubled_when_the_clock_is_set(
    tmp_path: os.PathLike[str], day: tuple[int, int, int]
) -> None:
    """Woken every half hour over a change of the clock, a job at 02:30 runs once a day."""
    store = Store(f"{os.fspath(tmp_path)}/data")
    desk = Desk(store, at(*day), "30 2 * * *")
    for _ in range(48 * 3):
        desk.now_ms += HOUR // 2
        desk.jobs.wake("nightly")
    assert desk.runs == 3
    store.close()


def test_no_run_is_doubled_when_the_clock_goes_back_an_hour(desk: Desk) -> None:
    """A job that has run is not run again at the same time of the clock."""
    desk.now_ms = at(2026, 6, 1, 22)
    desk.jobs.wake("nightly")
    desk.now_ms -= HOUR
    for _ in range(4):
        desk.jobs.wake("nightly")
        desk.now_ms += HOUR // 2
    assert desk.runs == 1
    desk.now_ms = at(2026, 6, 2, 22)
    desk.jobs.wake("nightly")
    assert desk.runs == 2


def test_no_run_is_lost_when_the_clock_was_a_year_ahead(desk: Desk) -> None:
    """A clock a year ahead makes a job run once; back in its own time, it runs every day."""
    desk.now_ms += 365 * 24 * HOUR
    desk.jobs.wake("nightly")
    assert desk.runs == 1
    desk.now_ms -= 365 * 24 * HOUR
    desk.jobs.wake("nightly")
    assert desk.runs == 1
    for day in (1, 2, 3):
        desk.now_ms = at(2026, 6, day, 22)
        desk.reopen().wake("nightly")
        desk.jobs.wake("nightly")
    assert desk.runs == 4


def test_a_job_on_the_leap_day_runs_once_in_four_years(tmp_path: os.PathLike[str]) -> None:
    """Woken every hour of the last days of February, it runs on the 29th and in leap years only."""
    store = Store(f"{os.fspath(tmp_path)}/data")
    desk = Desk(store, at(2026, 2, 27), "0 12 29 2 *")
    for year in (2026, 2027, 2028, 2029):
        desk.now_ms = at(year, 2, 27)
        for _ in range(24 * 4):
            desk.now_ms += HOUR
            desk.jobs.wake("nightly")
        assert desk.runs == (1 if year >= 2028 else 0)
    store.close()


def test_a_pause_survives_a_restart(desk: Desk) -> None:
    """A paused job does not run, also after a restart, and runs once when it is resumed."""
    desk.jobs.pause("nightly")
    desk.now_ms += 48 * HOUR
    desk.reopen().wake("nightly")
    assert desk.runs == 0
    assert desk.jobs.paused("nightly")
    assert desk.jobs.one("nightly").next_ms == 0
    desk.jobs.resume("nightly")
    desk.reopen().wake("nightly")
    assert desk.runs == 1


def test_what_came_of_a_run_survives_a_restart(desk: Desk) -> None:
    """Time, length, result, error and counts are kept."""

    def fail() -> dict[str, str]:
        desk.now_ms += 1_500
        raise ReadOnly("the disk is full")

    desk.jobs.run("nightly")
    desk.action = fail
    began = desk.now_ms
    desk.jobs.run("nightly")
    record = desk.reopen().one("nightly").record
    assert (record.runs, record.errors) == (2, 1)
    assert (record.last_run_ms, record.last_duration_ms) == (began, 1_500)
    assert (record.last_result, record.last_error) == (Result.FAILED, "the disk is full")
    assert desk.errors == ["nightly: the disk is full"]


def test_an_unforeseen_failure_says_nothing_of_what_it_met(desk: Desk) -> None:
    """The message of an error that nobody foresaw may quote text: only its kind is kept."""

    def fail() -> dict[str, str]:
        raise KeyError("secret")

    desk.action = fail
    assert desk.jobs.run("nightly").record.last_error == "unexpected KeyError"


def test_a_job_that_runs_is_not_started_again(desk: Desk) -> None:
    """A second run while the first is under way is skipped."""
    begun, end = threading.Event(), threading.Event()

    def wait() -> dict[str, str]:
        begun.set()
        end.wait(30)
        return desk.count()

    desk.action = wait
    thread = threading.Thread(target=desk.jobs.run, args=("nightly",))
    thread.start()
    assert begun.wait(30)
    assert desk.jobs.one("nightly").running
    assert desk.jobs.run("nightly").record.last_result == Result.SKIPPED
    end.set()
    thread.join()
    assert desk.runs == 1
    assert desk.jobs.one("nightly").record.runs == 1


def test_a_run_that_a_stop_cuts_off_stays_due(desk: Desk) -> None:
    """A daemon that stops in the middle runs the job when it is back."""

    def stop() -> dict[str, str]:
        raise Stopping("the daemon is stopping")

    desk.action = stop
    desk.now_ms += 24 * HOUR
    with pytest.raises(Stopping):
        desk.jobs.wake("nightly")
    desk.action = desk.count
    desk.reopen().wake("nightly")
    assert desk.runs == 1


def test_a_job_that_there_is_not_is_refused(desk: Desk) -> None:
    """The error names the jobs that there are."""
    for call in (desk.jobs.pause, desk.jobs.resume, desk.jobs.run):
        with pytest.raises(NotFound, match="there are nightly"):
            call("daily")
