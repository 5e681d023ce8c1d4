from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.domain.when import periods

NOW = round(datetime(2026, 7, 15, 12, tzinfo=UTC).timestamp() * 1000)  # a Wednesday

TABLE = {
    "what happened in May 2023": ("2023-05-01", "2023-06-01"),
    "on 8 May, 2023": ("2023-05-08", "2023-05-09"),
    "on May 8th 2023": ("2023-05-08", "2023-05-09"),
    "the 3rd of October 2024": ("2024-10-03", "2024-10-04"),
    "2023-05-08": ("2023-05-08", "2023-05-09"),
    "since 2023-05": ("2023-05-01", "2023-06-01"),
    "in 2024": ("2024-01-01", "2025-01-01"),
    "summer of 2022": ("2022-06-01", "2022-09-01"),
    "last spring": ("2026-03-01", "2026-06-01"),
    "last winter": ("2025-12-01", "2026-03-01"),
    "this summer": ("2026-06-01", "2026-09-01"),
    "today": ("2026-07-15", "2026-07-16"),
    "what did we do yesterday?": ("2026-07-14", "2026-07-15"),
    "the day before yesterday": ("2026-07-13", "2026-07-14"),
    "last week": ("2026-07-06", "2026-07-13"),
    "this week": ("2026-07-13", "2026-07-20"),
    "last month": ("2026-06-01", "2026-07-01"),
    "last year": ("2025-01-01", "2026-01-01"),
    "last weekend": ("2026-07-11", "2026-07-13"),
    "last night": ("2026-07-14", "2026-07-15"),
    "on Monday": ("2026-07-13", "2026-07-14"),
    "last Wednesday": ("2026-07-08", "2026-07-09"),
    "three days ago": ("2026-07-12", "2026-07-13"),
    "2 weeks ago": ("2026-06-28", "2026-07-05"),
    "the last 3 days": ("2026-07-12", "2026-07-16"),
}


def day(time_ms: int) -> str:
    """The day of a moment in UTC."""
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d")


@pytest.mark.parametrize("text", TABLE)
def test_words_mean_these_days(text: str) -> None:
    """A period that is named is understood, relative to the moment that is given."""
    found = periods(text, NOW)
    assert [(day(p.start_ms), day(p.end_ms)) for p in found] == [TABLE[text]]


@pytest.mark.parametrize(
    "text", ["what may happen", "march on", "the 31st of nothing", "version 1.2", "second fall", ""]
)
def test_other_words_mean_no_time(text: str) -> None:
    """Words that only look like a time are left alone."""
    assert periods(text, NOW) == []


def test_a_month_without_a_year_may_be_any() -> None:
    """The words "in May" are every May of the last ten years."""
    found = periods("in May", NOW)
    assert len(found) == 10
    assert all(day(period.start_ms)[5:] == "05-01" for period in found)


def test_a_day_begins_at_midnight_where_the_caller_is() -> None:
    """The zone of the caller decides what yesterday is."""
    east = timezone(timedelta(hours=9))
    found = periods("yesterday", NOW, east)[0]
    start = datetime.fromtimestamp(found.start_ms / 1000, east)
    assert (start.day, start.hour) == (14, 0)


@given(st.text(max_size=200), st.integers(0, 9_000_000_000_000))
def test_no_text_fails(text: str, now_ms: int) -> None:
    """Any text at any moment gives periods that begin before they end."""
    assert all(period.start_ms < period.end_ms for period in periods(text, now_ms))


@given(
    st.sampled_from(list(TABLE)) | st.from_regex(r"\d{1,4} (day|year)s ago", fullmatch=True),
    st.integers(0, 9_000_000_000_000),
)
def test_no_moment_fails(text: str, now_ms: int) -> None:
    """Every expression is understood or left alone at any moment."""
    assert all(period.start_ms < period.end_ms for period in periods(text, now_ms))
