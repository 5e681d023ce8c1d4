"""Days, weeks, months and years in one time zone: which period an instant lies in, and its bounds.

Weeks are ISO weeks. A week belongs, whole, to the month and the year of its Thursday, so a month
is four or five weeks and a year 52 or 53, and each level tiles the one above it. A day begins at
the first midnight that its clock shows; where the clock is set, days have 23 or 25 hours, and an
hour that is set back over midnight counts to the day that had begun.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from typing import Final, NamedTuple

from memoryd.domain.errors import InvalidInput
from memoryd.domain.toc import Level

PERIODS: Final = (Level.DAY, Level.WEEK, Level.MONTH, Level.YEAR)
_PREFIX: Final = "toc:"
_DAY: Final = timedelta(days=1)
_WEEK: Final = timedelta(days=7)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MS: Final = timedelta(milliseconds=1)
_DECEMBER: Final = 12


class Period(NamedTuple):
    """A day, week, month or year: from the first day up to, not including, ``end``."""

    level: Level
    first: date
    end: date

    @property
    def node_id(self) -> str:
        """The id of the period's node, the same in every time zone."""
        name = self.level.name.lower()
        if self.level is Level.DAY:
            return f"{_PREFIX}{name}:{self.first.isoformat()}"
        year, week, _ = self.first.isocalendar()
        if self.level is Level.WEEK:
            return f"{_PREFIX}{name}:{year:04}-W{week:02}"
        thursday = _thursday(self.first)
        if self.level is Level.MONTH:
            return f"{_PREFIX}{name}:{thursday.year:04}-{thursday.month:02}"
        return f"{_PREFIX}{name}:{thursday.year:04}"

    @property
    def parent(self) -> "Period | None":
        """The period of the next level that it lies in; a year lies in none."""
        if self.level is Level.YEAR:
            return None
        return period_of(self.first, Level(self.level - 1))

    @property
    def children(self) -> "Iterator[Period]":
        """The periods of the next level that tile it, in order; days are tiled by segments."""
        day = self.first
        while self.level is not Level.DAY and day < self.end:
            child = period_of(day, Level(self.level + 1))
            yield child
            day = child.end


def period_of(day: date, level: Level) -> Period:
    """The period of a level that a day lies in."""
    if level is Level.DAY:
        return Period(level, day, day + _DAY)
    monday = day - timedelta(days=day.weekday())
    if level is Level.WEEK:
        return Period(level, monday, monday + _WEEK)
    thursday = _thursday(day)
    if level is Level.MONTH:
        year, month = thursday.year, thursday.month
        after = (year + 1, 1) if month == _DECEMBER else (year, month + 1)
        return Period(level, _first_monday(year, month), _first_monday(*after))
    year = thursday.year
    return Period(level, date.fromisocalendar(year, 1, 1), date.fromisocalendar(year + 1, 1, 1))


def parse(node_id: str) -> Period:
    """The period of a node's id. Raises InvalidInput if it is no id of a period."""
    kind, _, name = node_id.removeprefix(_PREFIX).partition(":")
    try:
        period = period_of(*_day_in(kind, name))
    except (ValueError, KeyError, OverflowError):
        period = None
    if period is None or period.node_id != node_id:
        raise InvalidInput(
            f"node_id {node_id[:80]!r} is not one of a day, week, month or year, such as "
            "toc:day:2026-01-31, toc:week:2026-W05, toc:month:2026-01 or toc:year:2026"
        )
    return period


def _day_in(kind: str, name: str) -> tuple[date, Level]:
    level = Level[kind.upper()]
    if level is Level.DAY:
        return date.fromisoformat(name), level
    if level is Level.WEEK:
        year, _, week = name.partition("-W")
        return date.fromisocalendar(int(year), int(week), 4), level
    if level is Level.MONTH:
        year, _, month = name.partition("-")
        return _thursday(_first_monday(int(year), int(month))), level
    return date.fromisocalendar(int(name), 1, 4), level


class Calendar:
    """The periods as a time zone sees them. Milliseconds since 1970 in UTC are instants."""

    def __init__(self, zone: tzinfo) -> None:
        self.zone = zone
        self._start = lru_cache(4096)(self._find_start)

    def start_ms(self, day: date) -> int:
        """The instant at which a day begins."""
        return self._start(day)

    def day(self, time_ms: int) -> date:
        """The day that an instant lies in."""
        day = (_EPOCH + time_ms * _MS).astimezone(self.zone).date()
        while time_ms < self.start_ms(day):
            day -= _DAY
        while time_ms >= self.start_ms(day + _DAY):
            day += _DAY
        return day

    def period(self, time_ms: int, level: Level) -> Period:
        """The period of a level that an instant lies in."""
        return period_of(self.day(time_ms), level)

    def bounds(self, period: Period) -> tuple[int, int]:
        """The first instant of a period, and the first instant after it."""
        return self.start_ms(period.first), self.start_ms(period.end)

    def instant(self, wall: datetime) -> int:
        """The instant at which a clock on the wall first shows a time, or has passed it."""
        local = wall.replace(tzinfo=self.zone, fold=0)
        return (local.astimezone(UTC) - _EPOCH) // _MS

    def wall(self, time_ms: int) -> datetime:
        """What a clock on the wall shows at an instant; without a zone."""
        return (_EPOCH + time_ms * _MS).astimezone(self.zone).replace(tzinfo=None)

    def moment(self, time_ms: int) -> tuple[str, str]:
        """The day that an instant belongs to, and what the clock shows, such as 14:30."""
        return self.day(time_ms).isoformat(), self.wall(time_ms).strftime("%H:%M")

    def _find_start(self, day: date) -> int:
        return self.instant(datetime.combine(day, time.min))


def _thursday(day: date) -> date:
    return day + timedelta(days=3 - day.weekday())


def _first_monday(year: int, month: int) -> date:
    """The Monday of the first week whose Thursday lies in the month."""
    first = date(year, month, 1)
    thursday = first + timedelta(days=(3 - first.weekday()) % 7)
    return thursday - timedelta(days=3)
