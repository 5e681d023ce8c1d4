from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from memoryd.domain.calendar import Calendar
from memoryd.domain.cron import parse
from memoryd.domain.errors import InvalidInput


def times(expression: str, zone: str, start: datetime, count: int) -> list[str]:
    """The next times at which an expression holds, in UTC."""
    cron, calendar = parse(expression), Calendar(ZoneInfo(zone))
    now = int(start.replace(tzinfo=UTC).timestamp() * 1000)
    found = []
    for _ in range(count):
        now = cron.next_ms(now, calendar)
        found.append(datetime.fromtimestamp(now / 1000, UTC).strftime("%m-%d %H:%M"))
    return found


def utc(*when: int) -> datetime:
    """A moment in UTC."""
    return datetime(*when, tzinfo=UTC)  # type: ignore[arg-type,misc]


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("5 0 * * *", ["01-01 00:05", "01-02 00:05"]),
        ("*/20 3 * * *", ["01-01 03:00", "01-01 03:20"]),
        ("0 0 * * 1", ["01-05 00:00", "01-12 00:00"]),
        ("0 0 * * sun", ["01-04 00:00", "01-11 00:00"]),
        ("0 0 * * 0", ["01-04 00:00", "01-11 00:00"]),
        ("0 0 * * 7", ["01-04 00:00", "01-11 00:00"]),
        ("30 12 1 * *", ["01-01 12:30", "02-01 12:30"]),
        ("0 0 29 feb *", ["02-29 00:00", "02-29 00:00"]),
        ("0 0 13 * fri", ["01-02 00:00", "01-09 00:00"]),
        ("0 9-17/4 * * mon-fri", ["01-01 09:00", "01-01 13:00"]),
        ("1,2 0 1 1 *", ["01-01 00:01", "01-01 00:02"]),
    ],
)
def test_expressions_mean_what_they_say(expression: str, wanted: list[str]) -> None:
    """Numbers, names, lists, ranges and steps select the times they name."""
    assert times(expression, "UTC", utc(2026, 1, 1), 2) == wanted


def test_a_skipped_midnight_is_not_missed() -> None:
    """Where the clock jumps from 24:00 to 01:00, a job at midnight comes when it jumps."""
    found = times("0 0 * * *", "America/Sao_Paulo", utc(2018, 11, 3, 12), 3)
    assert found == ["11-04 03:00", "11-05 02:00", "11-06 02:00"]


def test_a_time_within_the_skipped_hour_comes_after_it() -> None:
    """A job at 02:30 on the day without that time still comes once."""
    found = times("30 2 * * *", "Europe/Berlin", utc(2026, 3, 28, 12), 2)
    assert found == ["03-29 01:30", "03-30 00:30"]


def test_a_repeated_hour_counts_once() -> None:
    """A job at 02:30 comes once on the day that shows that time twice."""
    found = times("30 2 * * *", "Europe/Berlin", utc(2026, 10, 24, 12), 2)
    assert found == ["10-25 00:30", "10-26 01:30"]
    assert times("30 2 * * *", "Europe/Berlin", utc(2026, 10, 25, 0, 45), 1) == ["10-26 01:30"]


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("", "0 fields"),
        ("* * * *", "4 fields"),
        ("60 * * * *", "not a minute"),
        ("* 24 * * *", "not a hour"),
        ("* * 0 * *", "not a day of the month"),
        ("* * * dez *", "not a month"),
        ("* * * * 8", "not a day of the week"),
        ("*/0 * * * *", "not a minute"),
        ("5-1 * * * *", "not a minute"),
        ("-1 * * * *", "not a minute"),
        ("0 0 31 2 *", "never comes true"),
    ],
)
def test_what_is_no_expression_is_refused(expression: str, said: str) -> None:
    """An error names the field and what it may be."""
    with pytest.raises(InvalidInput, match=said):
        parse(expression)
