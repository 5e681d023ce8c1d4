"""Points in time as people write and read them. Pure: the clock is an argument.

Owns the words for times on the command line ("2h", "yesterday", ISO) and the words for how long
ago something was. Times are milliseconds since 1970 in UTC; people mean their local time zone.
"""

import re
from datetime import date, datetime, time, timedelta
from typing import Final

# where the daemon's times end, in the year 2262
LAST_MS: Final = 9_223_372_036_854

_UNITS: Final = {
    "s": 1_000,
    "m": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "w": 7 * 86_400_000,
}
_RELATIVE: Final = re.compile(r"(?:[0-9]{1,9}[smhdw])+")
_PART: Final = re.compile(r"([0-9]+)([smhdw])")
_MS: Final = timedelta(milliseconds=1)
_BASIC_DATE: Final = 8  # digits, as in 20260131
_SECONDS: Final = range(9, 12)  # digits of a count of seconds since 1970, of our times
_HOW: Final = "take a date or time such as 2026-01-31 or 2026-01-31T14:30, 2h, 3d, 2w, 3 days ago, today, yesterday, tuesday, last week, this month, or milliseconds since 1970"
_DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SPANS: Final = re.compile(r"(?:last|this) (?:week|month|year)")
_COUNTED: Final = re.compile(r"(an?|[0-9]{1,9}) ?(second|minute|hour|day|week)s?")


def parse_time(text: str, now_ms: int, *, end: bool = False) -> int:
    """The moment that ``text`` means. Raises ValueError with what is allowed.

    A whole day, week, month or year means its first moment, or its last if ``end`` is set.
    """
    span = _span(" ".join(text.lower().split()), _local(now_ms).date())
    if span is not None:
        return _day(span[1] if end else span[0], end=end)
    word = _COUNTED.sub(_shortened, text.strip().lower())
    word = word.removesuffix(" ago").replace(" ", "T" if "-" in text else "")
    if word == "now":
        return now_ms
    if _RELATIVE.fullmatch(word):
        ago = sum(int(count) * _UNITS[unit] for count, unit in _PART.findall(word))
        return max(0, now_ms - ago)
    if word.isascii() and word.isdecimal() and len(word) != _BASIC_DATE:
        return _milliseconds(word)
    try:
        return _day(date.fromisoformat(word), end=end)
    except (ValueError, OverflowError, OSError):
        pass
    try:
        return _bounded(parse_iso(word.upper()))
    except ValueError:
        msg = f"time {text!r} is not understood: {_HOW}"
        raise ValueError(msg) from None


def as_seen_in(zone: str, now_ms: int) -> int:
    """The moment at which clocks here show what they show now in a zone; "" is here."""
    if not zone:
        return now_ms
    from zoneinfo import ZoneInfo

    there = datetime.fromtimestamp(now_ms / 1000, ZoneInfo(zone)).replace(tzinfo=None)
    return int((there - _local(now_ms).replace(tzinfo=None)) / _MS) + now_ms


def _span(words: str, today: date) -> tuple[date, date] | None:
    """The first and last day of a day of the week, or of the last or this week, month or year."""
    if words in {"today", "yesterday"}:
        day = today - timedelta(days=words == "yesterday")
        return day, day
    name = words.removeprefix("last ").removeprefix("on ")
    if name in _DAYS:  # the latest one before today
        day = today - timedelta(days=(today.weekday() - _DAYS.index(name) - 1) % 7 + 1)
        return day, day
    if not _SPANS.fullmatch(words):
        return None
    which, unit = words.split()
    if unit == "week":
        first = today - timedelta(days=today.weekday() + 7 * (which == "last"))
        return first, first + timedelta(days=6)
    first = today.replace(day=1) if unit == "month" else today.replace(month=1, day=1)
    if which == "last":
        before = first - timedelta(days=1)
        first = before.replace(day=1) if unit == "month" else before.replace(month=1, day=1)
    after = (first + timedelta(days=32 if unit == "month" else 366)).replace(day=1)
    return first, after - timedelta(days=1)


def _shortened(found: "re.Match[str]") -> str:
    """A span such as "3 days" in the short form, "3d"."""
    count, unit = found.groups()
    return f"{1 if count.startswith('a') else count}{unit[0]}"


def parse_iso(text: str) -> int:
    """The moment of an ISO date and time, local if it names no zone. Raises ValueError."""
    try:
        return round(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        msg = f"time {text!r} is not an ISO date and time, such as 2026-01-31T14:30:00Z"
        raise ValueError(msg) from None


def ago(then_ms: int, now_ms: int) -> str:
    """How long before ``now_ms`` something was, in one unit: "5m ago"."""
    if not then_ms:
        return "never"
    seconds = (now_ms - then_ms) // 1000
    if seconds < 0:
        return f"in {length(-seconds * 1000)}"
    return "just now" if seconds < 5 else f"{length(seconds * 1000)} ago"  # noqa: PLR2004 - a feeling


def length(span_ms: int) -> str:
    """A span of time in its largest fitting unit: "45s", "3h", "12d", "2y"."""
    days = span_ms // _UNITS["d"]
    for bound, size, unit in ((365, 365, "y"), (60, 30, "mo"), (14, 7, "w"), (1, 1, "d")):
        if days >= bound:
            return f"{days // size}{unit}"
    for unit in "hms":
        if span_ms >= _UNITS[unit]:
            return f"{span_ms // _UNITS[unit]}{unit}"
    return "0s"


def stamp(time_ms: int) -> str:
    """A moment as local date and time, to the second."""
    return _local(time_ms).strftime("%Y-%m-%d %H:%M:%S")


def clock(time_ms: int) -> str:
    """A moment as local time of day."""
    return _local(time_ms).strftime("%H:%M:%S")


def _local(time_ms: int) -> datetime:
    return datetime.fromtimestamp(time_ms / 1000).astimezone()


def _day(day: date, *, end: bool) -> int:
    # the next day's first moment, because a day has not always 24 hours
    first = datetime.combine(day + timedelta(days=1) if end else day, time.min)
    return _bounded(round(first.astimezone().timestamp() * 1000) - end)


def _milliseconds(word: str) -> int:
    if len(word) in _SECONDS:
        msg = f"time {word} looks like seconds since 1970: add 000 for milliseconds"
        raise ValueError(msg)
    return _bounded(int(word[:20]))


def _bounded(time_ms: int) -> int:
    return min(max(time_ms, 0), LAST_MS)
