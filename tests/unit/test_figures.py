"""Heatmap, bars, sparkline and the picture: pure functions of counts."""

import xml.etree.ElementTree as ET
from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from memoryd.edges.stats import figures, gather, picture

FIRST, LAST = date(2026, 1, 1), date(2026, 12, 31)
COUNTS = st.dictionaries(st.dates(FIRST, LAST), st.integers(0, 10_000), max_size=60)


@given(COUNTS)
def test_a_heatmap_holds_every_day_of_its_span_once(counts: dict[date, int]) -> None:
    """Each day stands in the row of its weekday with its count, and nothing else is there."""
    heat = figures.heatmap(counts, FIRST, LAST)
    cells = [cell for week in heat.weeks for cell in week if cell]
    assert [cell.day for cell in cells] == [FIRST + timedelta(days=n) for n in range(365)]
    assert all(cell.events == counts.get(cell.day, 0) for cell in cells)
    for weekday in range(7):
        assert all(cell.day.weekday() == weekday for cell in heat.row(weekday) if cell)


@given(st.integers(0, 10**7), st.integers(0, 10**7), st.integers(1, 10**7))
def test_more_is_never_shown_paler(one: int, other: int, most: int) -> None:
    """Shades follow counts; nothing has none, something has one, the largest has the strongest."""
    low, high = sorted((one, other))
    assert figures.shade(low, most) <= figures.shade(high, most) <= figures.SHADES
    assert (figures.shade(one, most) == 0) == (one == 0)
    assert figures.shade(most, most) == figures.SHADES


def test_a_year_up_to_today_is_whole_weeks() -> None:
    """It begins on a Monday and takes 53 columns, so that it always has the same width."""
    for offset in range(400):
        today = date(2026, 2, 1) + timedelta(days=offset)
        first, last = figures.last_year(today)
        assert first.weekday() == 0
        assert last == today
        assert len(figures.heatmap({}, first, last).weeks) == 53


def test_the_months_stand_over_their_first_weeks() -> None:
    """Every month of a year is named once, in order, and names never touch."""
    heat = figures.heatmap({}, FIRST, LAST)
    for width in (1, 2):
        line = figures.month_line(heat, width)
        assert len(line.split()) == 12
        assert line.split()[0] == "Jan"
    first, last = figures.last_year(date(2026, 11, 18))
    assert figures.month_line(figures.heatmap({}, first, last), 1).split()[0] == "Dec"


def test_habits_count_days_in_a_row() -> None:
    """Sums, the busiest day, the longest run, and the run that still goes on."""
    days = {date(2026, 3, day): day for day in (1, 2, 3, 7, 8)}
    found = figures.habits(days, date(2026, 3, 1), date(2026, 3, 9))
    assert found == (21, 5, date(2026, 3, 8), 8, 3, 2)
    assert figures.habits({}, FIRST, LAST) == (0, 0, None, 0, 0, 0)


def test_bars_are_as_long_as_their_values() -> None:
    """The largest fills the width, half of it half, a little is seen, nothing is not."""
    assert figures.bar(10, 10, 8) == "████████"
    assert figures.bar(5, 10, 8) == "████"
    assert figures.bar(1, 10_000, 8) == "▏"
    assert figures.bar(0, 10, 8) == figures.bar(1, 0, 8) == figures.bar(1, 1, 0) == ""


@given(st.lists(st.floats(0, 1e9, allow_nan=False), max_size=80))
def test_a_sparkline_has_one_sign_for_each_value(values: list[float]) -> None:
    """The ground is for nothing alone, the top for the largest."""
    line = figures.sparkline(values)
    assert len(line) == len(values)
    if max(values, default=0) > 1e-6:
        assert line[values.index(max(values))] == "█"
    assert all(sign == "▁" for sign, value in zip(line, values, strict=True) if value == 0)


def test_a_span_is_spread_over_the_hours_it_lies_in() -> None:
    """What lies half outside counts half, a moment counts where it is."""
    assert figures.spread([(50, 150, 10)], [0, 100, 200]) == [5, 5]
    assert figures.spread([(-100, 100, 10), (150, 150, 3)], [0, 100, 200]) == [5, 3]


def test_activity_marks_grow_with_counts() -> None:
    """Nothing is blank, the largest is a full block."""
    assert figures.mark(0, 10) == " "
    assert figures.mark(10, 10) == "█"
    assert figures.mark(1, 1000) < figures.mark(500, 1000)


def made(agents: list[str]) -> gather.Figures:
    """Figures of a year, with agents of these names."""
    days = {date(2026, 5, 11): 121, date(2026, 5, 12): 1}
    told = [{"agent": name, "event_count": 9, "session_count": 1} for name in agents]
    status = {"project": "api-12345678", "sequence": 122, "sessions": 1, "agents": len(agents)}
    status |= {"first_event_ms": 1, "last_event_ms": 2, "disk_bytes": 3}
    return gather.Figures(FIRST, LAST, days, figures.habits(days, FIRST, LAST), told, status, 4)


def test_the_picture_is_xml_that_holds_names_as_text() -> None:
    """A name full of markup and control characters is shown, and makes nothing of its own."""
    names = ["codex", "<script>alert(1)</script>", "a&b\x1b[31m\x00", "", "x" * 200]
    text = picture.svg(made(names), 'What "<api>" remembers')
    root = ET.fromstring(text)
    tags = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert tags == {"svg", "style", "rect", "text", "title"}
    assert "\x1b" not in text
    titles = [element.text for element in root.iter() if element.tag.endswith("title")]
    assert "Mon 11 May 2026: 121 events" in titles
    assert "Tue 12 May 2026: 1 event" in titles
    assert len(titles) == 365
    assert "prefers-color-scheme: dark" in text


def test_figures_as_json_have_all_sums() -> None:
    """What programs get: the days that have events, the agents, the totals."""
    told = made(["codex"]).as_json()
    assert told["days"][0] == {"day": "2026-05-11", "events": 121}
    assert told["busiest_day"] == "2026-05-11"
    assert told["total"]["notes"] == 4
    assert told["agents"][0]["agent"] == "codex"
