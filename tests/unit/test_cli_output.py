import json
import os
from datetime import datetime

import pytest

from memoryd.edges.cli import times
from memoryd.edges.cli.ingest import parse_line
from memoryd.edges.cli.lines import Line, read_lines
from memoryd.edges.cli.output import json_line, one_line, size, visible

NOW = round(datetime(2026, 1, 31, 14, 30).astimezone().timestamp() * 1000)
HOUR = 3_600_000
DAY = 24 * HOUR


def at(*parts: int) -> int:
    """A moment of local time."""
    return round(datetime(*parts).astimezone().timestamp() * 1000)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now", NOW),
        ("90s", NOW - 90_000),
        ("2h", NOW - 2 * HOUR),
        ("2h30m", NOW - 2 * HOUR - 30 * 60_000),
        ("3d", NOW - 3 * DAY),
        ("2w ago", NOW - 14 * DAY),
        ("today", at(2026, 1, 31)),
        ("Yesterday", at(2026, 1, 30)),
        ("tuesday", at(2026, 1, 27)),
        ("last Tuesday", at(2026, 1, 27)),
        ("saturday", at(2026, 1, 24)),  # today is one: the one before is meant
        ("this week", at(2026, 1, 26)),
        ("last week", at(2026, 1, 19)),
        ("this month", at(2026, 1, 1)),
        ("last  month", at(2025, 12, 1)),
        ("last year", at(2025, 1, 1)),
        ("3 days ago", NOW - 3 * DAY),
        ("an hour ago", NOW - HOUR),
        ("2 weeks", NOW - 14 * DAY),
        ("2026-01-15", at(2026, 1, 15)),
        ("20260115", at(2026, 1, 15)),
        ("2026-01-15T12:34", at(2026, 1, 15, 12, 34)),
        ("2026-01-15 12:34:56", at(2026, 1, 15, 12, 34, 56)),
        ("2026-01-15T12:00:00Z", 1_768_478_400_000),
        ("2026-01-15t13:00:00+01:00", 1_768_478_400_000),
        ("1768478400000", 1_768_478_400_000),
        ("0", 0),
        ("999999999w", 0),
        ("9999-12-31", times.LAST_MS),
        ("9" * 5000, times.LAST_MS),
    ],
)
def test_times_are_understood(text: str, expected: int) -> None:
    """Dates, times, spans, day names and milliseconds all name a moment, in local time."""
    assert times.parse_time(text, NOW) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("yesterday", at(2026, 1, 31) - 1),
        ("today", at(2026, 2, 1) - 1),
        ("2026-01-15", at(2026, 1, 16) - 1),
        ("tuesday", at(2026, 1, 28) - 1),
        ("last week", at(2026, 1, 26) - 1),
        ("last month", at(2026, 1, 1) - 1),
        ("this year", at(2027, 1, 1) - 1),
        ("2026-01-15T12:00:00Z", 1_768_478_400_000),
        ("2h", NOW - 2 * HOUR),
    ],
)
def test_a_day_as_an_end_is_its_last_moment(text: str, expected: int) -> None:
    """An end that names a day takes in the whole day; one that names a moment is that moment."""
    assert times.parse_time(text, NOW, end=True) == expected


@pytest.mark.parametrize("text", ["", "soon", "2x", "h", "-2h", "2026-13-01", "12:30", "\u0663h"])
def test_other_words_are_refused_with_what_is_allowed(text: str) -> None:
    """What is no time is refused with a list of what is."""
    with pytest.raises(ValueError, match="yesterday"):
        times.parse_time(text, NOW)


def test_seconds_since_1970_are_not_taken_for_milliseconds() -> None:
    """A count of seconds would silently mean 1970, so it is refused."""
    with pytest.raises(ValueError, match="looks like seconds"):
        times.parse_time("1768478400", NOW)


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        (0, "just now"),
        (30_000, "30s ago"),
        (5 * 60_000, "5m ago"),
        (2 * HOUR, "2h ago"),
        (DAY, "1d ago"),
        (15 * DAY, "2w ago"),
        (90 * DAY, "3mo ago"),
        (800 * DAY, "2y ago"),
        (-2 * HOUR, "in 2h"),
    ],
)
def test_relative_times_take_one_unit(before: int, expected: str) -> None:
    """How long ago something was is said in its largest unit, and the future is called so."""
    assert times.ago(NOW - before, NOW) == expected


def test_no_time_is_never() -> None:
    """The time 0 means that nothing has happened yet."""
    assert times.ago(0, NOW) == "never"


@pytest.mark.parametrize(
    "raw", ["\x1b", "\x07", "\r", "\x00", "\x7f", "\x9b", "\x85", "\u202e", "\u2028"]
)
def test_control_characters_become_visible(raw: str) -> None:
    """No character that a terminal obeys survives, and the words around it do."""
    shown = visible(f"a{raw}b")
    assert raw not in shown
    assert shown.startswith("a")
    assert shown.endswith("b")
    assert len(shown) > 2


def test_ordinary_text_stays_as_it_is() -> None:
    """Letters of all scripts, emoji, newlines and tabs are left alone."""
    text = "Größe 大 \U0001f469\u200d\U0001f4bb\n\tend"
    assert visible(text) == text


def test_one_line_has_no_line_ends() -> None:
    """A value for one cell holds neither newline nor tab."""
    assert one_line("a\nb\tc") == "a\u240ab\u2409c"


@pytest.mark.parametrize(
    "text", ["Größe", "a\x9bb", "a\u2028b", "\x1b[31m", "\x7f", "\ud800", "\x85"]
)
def test_json_is_one_line_and_reads_back(text: str) -> None:
    """JSON keeps letters readable, escapes what could be misread, and loses nothing."""
    line = json_line({"text": text})
    assert len(line.splitlines()) == 1
    assert not set(line) & set("\x1b\x7f\x85\x9b\u2028")
    assert json.loads(line) == {"text": text}


def test_sizes_are_for_people() -> None:
    """Bytes are counted in the unit that fits."""
    assert [size(n) for n in (0, 1023, 1536, 5 << 30)] == ["0 B", "1023 B", "1.5 KiB", "5.0 GiB"]


def lines_of(data: bytes, limit: int) -> list[Line | None]:
    """What the reader makes of bytes that come through a pipe."""
    end, begin = os.pipe()
    try:
        os.write(begin, data)
        os.close(begin)
        return list(read_lines(end, limit=limit))
    finally:
        os.close(end)


def test_lines_are_numbered_and_the_long_ones_dropped() -> None:
    """A line over the limit is reported without its data, and the next one is whole again."""
    found = lines_of(b"one\n" + b"x" * 20 + b"\n\nlast", 10)
    assert found == [Line(1, b"one"), Line(2, None), Line(3, b""), Line(4, b"last")]


def test_a_source_that_pauses_is_reported() -> None:
    """Between two writes that lie apart, the reader says that nothing has come."""
    end, begin = os.pipe()
    try:
        os.write(begin, b"one\n")
        lines = read_lines(end, pause=0.01)
        assert next(lines) == Line(1, b"one")
        assert next(lines) is None
        os.write(begin, b"two\n")
        assert next(lines) == Line(2, b"two")
    finally:
        os.close(begin)
        os.close(end)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"{", "not JSON"),
        (b"[1]", "not a JSON object"),
        (b"\xff", "not UTF-8"),
        (b"[" * 100_000, "not JSON"),
        (b"1" * 5000, "not JSON that can be read"),
        (b'{"timestamp": 5}', "timestamp is not ISO text"),
        (b'{"timestamp": "x"}', "not an ISO date"),
        (b'{"timestamp": "2026-01-01", "timestamp_ms": 5}', "both"),
        (None, "longer than"),
    ],
)
def test_a_bad_line_says_what_is_wrong(data: bytes | None, reason: str) -> None:
    """Every kind of line that is no event is refused with its reason."""
    with pytest.raises(ValueError, match=reason):
        parse_line(Line(1, data))


def test_a_line_becomes_an_event() -> None:
    """Times are read, nothings are left out, a byte order mark is passed over, blanks are no event."""
    line = b'\xef\xbb\xbf{"text":"a","agent":null,"timestamp":"2026-01-15T12:00:00Z"}\r'
    assert parse_line(Line(1, line)) == {"text": "a", "timestamp_ms": 1_768_478_400_000}
    assert parse_line(Line(2, b"  \r")) is None


def test_today_is_that_of_the_zone_that_is_set() -> None:
    """Words such as "today" can be read by the clocks of another zone."""
    for zone, day in (("Pacific/Kiritimati", "2026-02-01"), ("Etc/GMT+12", "2026-01-31")):
        seen = times.as_seen_in(zone, 1_769_860_800_000)  # 2026-01-31T12:00Z
        assert times.stamp(times.parse_time("today", seen))[:10] == day
        assert times.stamp(times.parse_time("2026-03-01", seen))[:10] == "2026-03-01"
    assert times.as_seen_in("", NOW) == NOW
