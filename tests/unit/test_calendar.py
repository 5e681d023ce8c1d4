from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.domain.calendar import PERIODS, Calendar, Period, parse, period_of
from memoryd.domain.errors import InvalidInput
from memoryd.domain.event import TIME_LIMIT_MS
from memoryd.domain.toc import Level

# a zone of each kind: none, half hours, changes at midnight, at one minute past, a lost day
ZONES = (
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/Sao_Paulo",
    "America/St_Johns",
    "Asia/Kolkata",
    "Asia/Beirut",
    "Pacific/Apia",
    "Australia/Lord_Howe",
)
HOUR = 3_600_000
INSTANTS = st.integers(0, TIME_LIMIT_MS)
LEVELS = st.sampled_from(PERIODS)


def at(zone: str, *when: int) -> int:
    """The instant of a time on the wall."""
    return int(datetime(*when, tzinfo=ZoneInfo(zone)).timestamp() * 1000)  # type: ignore[arg-type,misc]


@given(st.sampled_from(ZONES), INSTANTS, LEVELS)
def test_every_instant_lies_in_one_period_of_each_level(zone: str, time: int, level: Level) -> None:
    """An instant lies within the bounds of its period, and the neighbours begin where it ends."""
    calendar = Calendar(ZoneInfo(zone))
    period = calendar.period(time, level)
    start, end = calendar.bounds(period)
    assert start <= time < end
    assert calendar.period(start, level) == period
    assert calendar.period(end - 1, level) == period
    after = period_of(period.end, level)
    assert after.first == period.end
    assert calendar.bounds(after)[0] == end


@given(st.dates(date(1969, 12, 1), date(2262, 4, 20)), LEVELS)
def test_children_tile_their_parent(day: date, level: Level) -> None:
    """The children of a period follow each other from its first day to its last."""
    period = period_of(day, level)
    assert period.first <= day < period.end
    children = list(period.children)
    if level is Level.DAY:
        assert children == []
        return
    assert children[0].first == period.first
    assert children[-1].end == period.end
    assert all(a.end == b.first for a, b in pairwise(children))
    assert all(child.parent == period for child in children)


@given(st.dates(date(1969, 12, 1), date(2262, 4, 20)), LEVELS)
def test_an_id_names_its_period(day: date, level: Level) -> None:
    """The id of a period gives the period back, and sorts as the periods do."""
    period = period_of(day, level)
    assert parse(period.node_id) == period
    later = period_of(period.end, level)
    assert period.node_id < later.node_id


def test_a_week_belongs_to_the_month_and_the_year_of_its_thursday() -> None:
    """The week from 2025-12-29 has its Thursday in 2026, and so has all that it lies in."""
    monday = date(2025, 12, 29)
    assert period_of(monday, Level.WEEK).node_id == "toc:week:2026-W01"
    assert period_of(monday, Level.MONTH).node_id == "toc:month:2026-01"
    assert period_of(monday, Level.YEAR).node_id == "toc:year:2026"
    assert period_of(monday, Level.MONTH).end == date(2026, 2, 2)
    assert period_of(date(2026, 12, 31), Level.MONTH).end == date(2027, 1, 4)


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("Europe/Berlin", date(2026, 3, 29), 23),
        ("Europe/Berlin", date(2026, 10, 25), 25),
        ("America/Sao_Paulo", date(2018, 11, 4), 23),  # midnight is skipped
        ("America/Sao_Paulo", date(2018, 2, 17), 25),  # 23 o'clock comes twice
        ("Pacific/Apia", date(2011, 12, 30), 0),  # the day is skipped
        ("Australia/Lord_Howe", date(2026, 10, 4), 23.5),
    ],
)
def test_days_are_as_long_as_their_clock_says(zone: str, day: date, hours: float) -> None:
    """A day in which the clock is set has as many hours as went by."""
    calendar = Calendar(ZoneInfo(zone))
    start, end = calendar.bounds(period_of(day, Level.DAY))
    assert (end - start) / HOUR == hours


def test_an_hour_set_back_over_midnight_stays_in_the_day_that_had_begun() -> None:
    """In St. John's the clock went from 00:01 back to 23:01; no day begins twice."""
    calendar = Calendar(ZoneInfo("America/St_Johns"))
    midnight = at("America/St_Johns", 2010, 11, 7)
    assert [calendar.day(midnight + m * 60_000) for m in (-1, 0, 30, 70)] == [
        date(2010, 11, 6),
        *[date(2010, 11, 7)] * 3,
    ]


def test_the_day_depends_on_the_zone() -> None:
    """One instant lies in different days in different places."""
    late = int(datetime(2026, 6, 30, 23, 30, tzinfo=UTC).timestamp() * 1000)
    days = {zone: Calendar(ZoneInfo(zone)).day(late) for zone in ("UTC", "Asia/Kolkata")}
    assert days["Asia/Kolkata"] - days["UTC"] == timedelta(days=1)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "toc:",
        "toc:day:",
        "toc:day:2026-02-30",
        "toc:day:20260101",
        "toc:week:2026-W60",
        "toc:week:2026-5",
        "toc:month:2026-13",
        "toc:month:2026-1",
        "toc:year:26",
        "toc:year:99999",
        "toc:segment:x",
        "day:2026-01-01",
        "toc:decade:2020",
    ],
)
def test_what_names_no_period_is_refused(text: str) -> None:
    """An id that is not exactly one of a period is an error that shows what ids look like."""
    with pytest.raises(InvalidInput, match="toc:week:2026-W05"):
        parse(text)


def test_a_moment_has_a_day_and_a_time_of_day() -> None:
    """The log of a day is that of the day in the calendar's zone, whatever the machine's is."""
    late = 1_800_000_000_000  # 2027-01-15T08:00Z
    assert Calendar(UTC).moment(late) == ("2027-01-15", "08:00")
    assert Calendar(ZoneInfo("Pacific/Honolulu")).moment(late) == ("2027-01-14", "22:00")


def test_a_period_is_a_value() -> None:
    """Periods of the same days are equal."""
    assert period_of(date(2026, 5, 5), Level.DAY) == Period(
        Level.DAY, date(2026, 5, 5), date(2026, 5, 6)
    )
