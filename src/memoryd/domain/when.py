"""Periods that a question names, in English: "in May 2023", "yesterday", "last spring". Pure.

Owns how words become stretches of time, relative to a moment and a zone that the caller gives.
What it does not understand it leaves alone: a period only ever lifts results, it drops none.
"""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Final, NamedTuple

YEARS_BACK: Final = 10  # how many years "in May" may mean

_NAMES: Final = (
    "january february march april may june july august september october november december"
)
_MONTHS: Final = {
    form: number
    for number, name in enumerate(_NAMES.split(), 1)
    for form in {name, name[:3], "sept" if number == 9 else name}  # noqa: PLR2004 - September
}
_DAYS: Final = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_SEASONS: Final = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}  # first month
_COUNTS: Final = {
    word: number
    for number, word in enumerate(
        [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
        ]
    )
} | {"a": 1, "an": 1, "couple": 2, "a couple of": 2, "few": 3, "a few": 3, "several": 5}
_UNITS: Final = {"day": 1, "week": 7, "month": 30, "year": 365}
_LONG_AGO: Final = 100 * 365

_MONTH: Final = "(?P<month>" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + r")\.?"
_YEAR: Final = r"(?P<year>(?:19|20)\d\d)"
_DAY: Final = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"
_IN: Final = r"(?:in|during|of|since|until|by|before|after|around|early|late|mid|throughout|this|last|for|from)"
_COUNT: Final = (
    r"(?P<count>\d{1,4}|a couple of|a few|" + "|".join(sorted(_COUNTS, key=len, reverse=True)) + ")"
)
_UNIT: Final = r"(?P<unit>day|week|month|year)"
_PATTERNS: Final = tuple(
    (kind, re.compile(rf"\b{pattern}\b", re.IGNORECASE))
    for kind, pattern in (
        ("date", rf"{_YEAR}[-/](?P<number>\d\d?)[-/]{_DAY}"),
        ("date", rf"{_DAY}(?: of)? {_MONTH}(?:,? {_YEAR})?"),
        ("date", rf"{_MONTH} {_DAY}(?:,? {_YEAR})?"),
        ("month", rf"{_YEAR}-(?P<number>\d\d)"),
        ("month", rf"{_MONTH}(?: of|,)? {_YEAR}"),
        ("season", rf"(?P<season>{'|'.join(_SEASONS)})(?: of|,)? {_YEAR}"),
        ("season", rf"(?P<which>last|this) (?P<season>{'|'.join(_SEASONS)})"),
        ("month", rf"{_IN} (?:the )?(?:month of )?{_MONTH}"),
        ("ago", rf"{_COUNT} {_UNIT}s? ago"),
        ("span", rf"(?:last|past|previous) {_COUNT} {_UNIT}s"),
        ("relative", rf"(?P<which>last|past|previous|this) (?:{_UNIT}|(?P<name>night|weekend))"),
        ("weekday", rf"(?:on|last|this) (?P<weekday>{'|'.join(_DAYS)})"),
        ("near", r"(?P<near>today|day before yesterday|yesterday)"),
        ("year", _YEAR),
    )
)


class Period(NamedTuple):
    """A stretch of time in milliseconds, its end not included, and the words that named it."""

    start_ms: int
    end_ms: int
    words: str


class _Days(NamedTuple):
    """From a day up to, not including, another."""

    first: date
    end: date


def periods(question: str, now_ms: int, zone: tzinfo = UTC) -> list[Period]:
    """The periods that a question names, without those inside a longer expression."""
    today = datetime.fromtimestamp(now_ms / 1000, zone).date()
    found: list[Period] = []
    taken: list[tuple[int, int]] = []
    for kind, pattern in _PATTERNS:
        for match in pattern.finditer(question):
            first, last = match.span()
            if any(first < end and start < last for start, end in taken):
                continue
            days = list(_days(kind, match.groupdict(), today))
            if days:
                taken.append((first, last))
            found += [_period(each, match[0], zone) for each in days]
    return found


def _days(kind: str, parts: dict[str, str | None], today: date) -> Iterator[_Days]:
    try:
        yield from _READERS[kind](parts, today)
    except (ValueError, OverflowError):  # the 31st of February, or before the calendar begins
        return


def _on_date(parts: dict[str, str | None], today: date) -> Iterator[_Days]:
    month, day = _month_number(parts), int(parts["day"] or 0)
    for year in _years(parts, today):
        try:
            first = date(year, month, day)
        except ValueError:  # not a leap year
            continue
        yield _Days(first, first + timedelta(days=1))


def _in_month(parts: dict[str, str | None], today: date) -> Iterator[_Days]:
    month = _month_number(parts)
    for year in _years(parts, today):
        yield _months(year, month, 1)


def _in_season(parts: dict[str, str | None], today: date) -> Iterator[_Days]:
    month = _SEASONS[str(parts["season"]).lower()]
    if parts.get("year"):
        yield _months(int(str(parts["year"])), month, 3)
        return
    past = [_months(year, month, 3) for year in range(today.year, today.year - 3, -1)]
    if str(parts["which"]).lower() == "this":
        yield next(days for days in past if days.first <= today)
    else:
        yield next(days for days in past if days.end <= today)


def _ago(parts: dict[str, str | None], today: date) -> Iterator[_Days]:
    unit = str(parts["unit"]).lower()
    length = _UNITS[unit]
    middle = today - timedelta(days=min(_count(parts) * length, _LONG_AGO))
    slack = timedelta(days=length // 2)  # "two weeks ago" is a guess by half a week
    yield _Days(middle - slack, middle + slack + timedelta(days=1))


def _span(parts: dict[str, str | None], today: date) -> Iterator[_Days]:
    days = min(_count(parts) * _UNITS[str(parts["unit"]).lower()], _LONG_AGO)
    yield _Days(today - timedelta(days=days), today + timedelta(days=1))


def _relative(parts: dict[str, str | None], today: date) -> Iterator[_Days]:
    back = 0 if str(parts["which"]).lower() == "this" else 1
    unit = str(parts["unit"] or parts["name"]).lower()
    monday = today - timedelta(days=today.weekday())
    if unit in {"day", "night"}:
        first = today - timedelta(days=back)
        yield _Days(first, first + timedelta(days=1))
    elif unit in {"week", "weekend"}:
        start = 5 if unit == "weekend" else 0
        first = monday + timedelta(days=start - 7 * back)
        yield _Days(first, first + timedelta(days=7 - start))
    elif unit == "month":
        month = today.year * 12 + today.month - 1 - back
        yield _months(month // 12, month % 12 + 1, 1)
    else:
        yield _months(today.year - back, 1, 12)


def _weekday(parts: dict[str, str | None], today: date) -> Iterator[_Days]:
    number = _DAYS.index(str(parts["weekday"]).lower())
    first = today - timedelta(days=(today.weekday() - number) % 7 or 7)
    yield _Days(first, first + timedelta(days=1))


def _near(parts: dict[str, str | None], today: date) -> Iterator[_Days]:
    back = ("today", "yesterday", "day before yesterday").index(str(parts["near"]).lower())
    first = today - timedelta(days=back)
    yield _Days(first, first + timedelta(days=1))


def _in_year(parts: dict[str, str | None], today: date) -> Iterator[_Days]:
    for year in _years(parts, today):
        yield _months(year, 1, 12)


_READERS: Final = {
    "date": _on_date,
    "month": _in_month,
    "season": _in_season,
    "ago": _ago,
    "span": _span,
    "relative": _relative,
    "weekday": _weekday,
    "near": _near,
    "year": _in_year,
}


def _years(parts: dict[str, str | None], today: date) -> range:
    """The year that is named, or every one that may be meant."""
    year = parts.get("year")
    if year:
        return range(int(year), int(year) + 1)
    return range(today.year, today.year - YEARS_BACK, -1)


def _month_number(parts: dict[str, str | None]) -> int:
    name = parts.get("month")
    return _MONTHS[name.lower()] if name else int(parts["number"] or 0)


def _count(parts: dict[str, str | None]) -> int:
    word = str(parts["count"]).lower()
    return int(word) if word.isdecimal() else _COUNTS[word]


def _months(year: int, month: int, count: int) -> _Days:
    end = year * 12 + month - 1 + count
    return _Days(date(year, month, 1), date(end // 12, end % 12 + 1, 1))


def _period(days: _Days, words: str, zone: tzinfo) -> Period:
    return Period(_midnight(days.first, zone), _midnight(days.end, zone), words)


def _midnight(day: date, zone: tzinfo) -> int:
    return round(datetime.combine(day, time.min, zone).timestamp() * 1000)
