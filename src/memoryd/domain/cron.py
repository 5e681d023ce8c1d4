"""Cron expressions on the clock on the wall, and the instants at which it shows those times.

Five fields: minute, hour, day of the month, month, day of the week (0 or 7 is Sunday). Each is
``*``, numbers, ranges, lists, and steps such as ``*/15``; months and days may be named by three
letters. If both kinds of day are given, either will do. A time that the clock skips counts when
the clock has passed it; one that it shows twice counts once.
"""

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import Final, NamedTuple

from memoryd.domain.calendar import Calendar
from memoryd.domain.errors import InvalidInput

_MONTHS: Final = (
    "jan",
    "feb",
    "mar",
    "apr",
    "may",
    "jun",
    "jul",
    "aug",
    "sep",
    "oct",
    "nov",
    "dec",
)
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_HORIZON_DAYS: Final = 8 * 366 + 1  # 29 February may be eight years away
_SUNDAY: Final = 7


class _Field(NamedTuple):
    name: str
    low: int
    high: int
    names: dict[str, int]


_FIELDS: Final = (
    _Field("minute", 0, 59, {}),
    _Field("hour", 0, 23, {}),
    _Field("day of the month", 1, 31, {}),
    _Field("month", 1, 12, {name: n + 1 for n, name in enumerate(_MONTHS)}),
    _Field("day of the week", 0, 7, {name: n for n, name in enumerate(_DAYS)}),
)


class Cron(NamedTuple):
    """A parsed expression."""

    text: str
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]  # as in ISO: Monday is 1, Sunday 7
    either: bool  # both kinds of day are given, and one of them is enough

    def next_ms(self, after_ms: int, calendar: Calendar) -> int:
        """The first instant after one at which the expression holds."""
        for wall in self._walls(calendar.wall(after_ms)):
            instant = calendar.instant(wall)
            if instant > after_ms:
                return instant
        raise InvalidInput(f"cron expression {self.text!r} never comes true")

    def _walls(self, wall: datetime) -> Iterator[datetime]:
        for number in range(_HORIZON_DAYS):
            day = wall.date() + timedelta(days=number)
            if self._on(day):
                for hour in self.hours:
                    for minute in self.minutes:
                        yield datetime(day.year, day.month, day.day, hour, minute)  # noqa: DTZ001 - a clock on the wall

    def _on(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        by_date, by_name = day.day in self.days, day.isoweekday() in self.weekdays
        return by_date or by_name if self.either else by_date and by_name


def parse(text: str) -> Cron:
    """The expression in a text. Raises InvalidInput, which names the field."""
    parts = text.lower().split()
    if len(parts) != len(_FIELDS):
        raise InvalidInput(
            f"cron expression {text!r} has {len(parts)} fields, not 5: minute, hour, day of the "
            "month, month, day of the week"
        )
    minutes, hours, days, months, weekdays = (
        _values(field, part, text) for field, part in zip(_FIELDS, parts, strict=True)
    )
    cron = Cron(
        text=" ".join(parts),
        minutes=tuple(sorted(minutes)),
        hours=tuple(sorted(hours)),
        days=days,
        months=months,
        weekdays=frozenset(day or _SUNDAY for day in weekdays),
        either=not parts[2].startswith("*") and not parts[4].startswith("*"),
    )
    leap = date(2024, 1, 1)
    if not any(cron._on(leap + timedelta(days=n)) for n in range(366)):  # noqa: SLF001 - the class's own file
        raise InvalidInput(f"cron expression {text!r} never comes true")
    return cron


def _values(field: _Field, part: str, text: str) -> frozenset[int]:
    found: set[int] = set()
    for item in part.split(","):
        span, slash, step = item.partition("/")
        low, dash, high = span.partition("-")
        try:
            first, last = (field.low, field.high) if span == "*" else _span(field, low, dash, high)
            if slash and not dash and span != "*":
                last = field.high
            width = int(step) if slash else 1
            if not (field.low <= first <= last <= field.high and width > 0):
                raise ValueError(item)  # noqa: TRY301 - one message for all that is wrong with a field
        except ValueError:
            raise InvalidInput(
                f"cron expression {text!r}: {item!r} is not a {field.name}, which is a number "
                f"from {field.low} to {field.high}, a range such as 1-5, * or */2"
            ) from None
        found.update(range(first, last + 1, width))
    return frozenset(found)


def _span(field: _Field, low: str, dash: str, high: str) -> tuple[int, int]:
    first = _number(field, low)
    return first, _number(field, high) if dash else first


def _number(field: _Field, word: str) -> int:
    if word in field.names:
        return field.names[word]
    if not (word.isascii() and word.isdigit()):
        raise ValueError(word)
    return int(word)
