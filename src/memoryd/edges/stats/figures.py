"""Counts as pictures made of characters: a heatmap of days, bars, a sparkline. Pure.

Owns how strong a count is shown. Colours are the business of whoever draws.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from itertools import pairwise
from math import ceil, log1p, sqrt
from typing import Final, NamedTuple

SHADES: Final = 4
WEEKDAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
SIGNS: Final = ("·", "░", "▒", "▓", "█")  # for shades where there is no colour
DAY: Final = timedelta(days=1)
_WEEK: Final = 7
_YEAR_WEEKS: Final = 52
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"
_LEVELS: Final = "▁▂▃▄▅▆▇█"
_MONTH_WIDTH: Final = 4  # a month's name and a blank


class Cell(NamedTuple):
    """One day of a heatmap; ``shade`` is 0 for a day without events."""

    day: date
    events: int
    shade: int


class Heatmap(NamedTuple):
    """Days by weeks, Monday first; None stands for a day outside the span."""

    weeks: tuple[tuple[Cell | None, ...], ...]
    most: int

    def row(self, weekday: int) -> list[Cell | None]:
        """The cells of one day of the week, the earliest first."""
        return [week[weekday] for week in self.weeks]


class Habits(NamedTuple):
    """What the days of a span come to."""

    events: int
    active_days: int
    busiest: date | None
    busiest_count: int
    longest_streak: int
    streak: int  # days without a gap up to the last day of the span, or to the one before


def last_year(today: date) -> tuple[date, date]:
    """The first and last day of the year that ends today, in whole weeks."""
    monday = today - timedelta(days=today.weekday())
    return monday - timedelta(weeks=_YEAR_WEEKS), today


def calendar_year(year: int) -> tuple[date, date]:
    """The first and last day of a year."""
    return date(year, 1, 1), date(year, 12, 31)


def heatmap(counts: Mapping[date, int], first: date, last: date) -> Heatmap:
    """The days from the first to the last, each with its count and how strong to show it."""
    most = max((counts.get(day, 0) for day in _days(first, last)), default=0)
    monday = first - timedelta(days=first.weekday())
    weeks = []
    while monday <= last:
        days = (monday + timedelta(days=place) for place in range(_WEEK))
        weeks.append(
            tuple(_cell(day, counts, most) if first <= day <= last else None for day in days)
        )
        monday += timedelta(weeks=1)
    return Heatmap(tuple(weeks), most)


def shade(count: int, most: int) -> int:
    """How strong to show a count beside the largest: 0 for none, else 1 to SHADES.

    By its logarithm, so that one mad day does not make all others pale.
    """
    if count <= 0 or most <= 0:
        return 0
    return max(1, min(SHADES, ceil(SHADES * log1p(count) / log1p(most))))


def months(found: Heatmap, gap: int) -> list[tuple[int, date]]:
    """The weeks over which to name a month, and a day of it; at least ``gap`` weeks lie between."""
    marks: list[tuple[int, date]] = []
    for place, week in enumerate(found.weeks):
        begins = next(
            (cell.day for cell in week if cell and (not marks or cell.day.day == 1)), None
        )
        if begins is None:
            continue
        if marks and place - marks[-1][0] < gap:
            marks.pop()
        marks.append((place, begins))
    return marks


def month_line(found: Heatmap, width: int) -> str:
    """The names of the months over a heatmap whose weeks are so many characters wide."""
    line = ""
    for place, day in months(found, ceil(_MONTH_WIDTH / width)):
        line = f"{line:<{place * width}}{day.strftime('%b')}"
    return line


def habits(counts: Mapping[date, int], first: date, last: date) -> Habits:
    """Sums, the busiest day and the longest run of days with events."""
    inside = {day: counts[day] for day in counts if first <= day <= last and counts[day] > 0}
    busiest = max(inside, key=lambda day: (inside[day], day), default=None)
    longest = run = 0
    for day in _days(first, last):
        run = run + 1 if day in inside else 0
        longest = max(longest, run)
    end = last if last in inside else last - DAY
    streak = 0
    while end in inside:
        streak, end = streak + 1, end - DAY
    events = sum(inside.values())
    return Habits(
        events, len(inside), busiest, inside.get(busiest, 0) if busiest else 0, longest, streak
    )


def bar(value: int, most: int, width: int) -> str:
    """A bar as long as a value is beside the largest, to an eighth of a character."""
    if value <= 0 or most <= 0 or width <= 0:
        return ""
    eighths = max(1, round(min(value, most) * width * 8 / most))
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def sparkline(values: Sequence[float]) -> str:
    """One character for each value; what is not nothing stands above the ground."""
    most = max(values, default=0)
    if most <= 0:
        return _LEVELS[0] * len(values)
    top = len(_LEVELS) - 1
    return "".join(
        _LEVELS[min(top, ceil(value / most * top)) if value > 0 else 0] for value in values
    )


def spread(spans: Iterable[tuple[int, int, int]], edges: Sequence[int]) -> list[float]:
    """How much of spans (first and last moment, count) falls between each two edges.

    A span's events count as if they had come evenly.
    """
    found = [0.0] * (len(edges) - 1)
    for start, end, count in spans:
        length = max(1, end - start)
        for place, (left, right) in enumerate(pairwise(edges)):
            shared = min(start + length, right) - max(start, left)
            if shared > 0:
                found[place] += count * shared / length
    return found


def counted(count: int, noun: str) -> str:
    """A count with its noun: "1 day", "2,000 days"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def mark(count: int, most: int) -> str:
    """One character for how much happened, beside the largest count near it."""
    if count <= 0 or most <= 0:
        return " "
    return _LEVELS[min(len(_LEVELS) - 1, ceil((len(_LEVELS) - 1) * sqrt(count / most)))]


def _cell(day: date, counts: Mapping[date, int], most: int) -> Cell:
    count = counts.get(day, 0)
    return Cell(day, count, shade(count, most))


def _days(first: date, last: date) -> Iterable[date]:
    return (first + timedelta(days=place) for place in range((last - first).days + 1))
