from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.domain.calendar import Calendar
from memoryd.domain.event import Event, EventType
from memoryd.domain.segment import (
    PREFIX,
    Rules,
    Segment,
    closes_ms,
    cost,
    cut,
    overlap,
    segment_floor,
    segment_id,
    tokens,
)

BERLIN = Calendar(ZoneInfo("Europe/Berlin"))
MINUTE = 60_000
NOON = 1_780_308_000_000  # 2026-06-01 12:00 in Berlin
MIDNIGHT = NOON + 12 * 60 * MINUTE
RULES = Rules()


def event(minute: float, text: str = "x", **more: Any) -> Event:
    """An event some minutes after noon."""
    time = NOON + int(minute * MINUTE)
    fields: dict[str, Any] = {"type": 2, "role": 1, "metadata": {}, "agent": "a", "project": "p"}
    fields |= more
    return Event(
        event_id=f"e{time}",
        session_id="s",
        time_ms=time,
        text=text,
        parent_id="",
        turn_id="",
        **fields,
    )


def sizes(events: list[Event], rules: Rules = RULES) -> list[int]:
    """How many events each segment has."""
    return [len(s.events) for s in cut(events, rules, BERLIN)]


EVENTS = st.lists(
    st.builds(
        lambda minute, size, kind, compaction: event(
            minute, "x" * size, type=kind, metadata={"compaction": "true"} if compaction else {}
        ),
        st.integers(0, 60 * 24 * 3),
        st.sampled_from([0, 10, 900, 5_000, 20_000]),
        st.sampled_from([1, 2, 3, 4, 8]),
        st.integers(0, 9).map(lambda n: n == 0),
    ),
    max_size=40,
    unique_by=lambda e: e.time_ms,
).map(lambda events: sorted(events, key=lambda e: e.time_ms))


@given(EVENTS)
def test_segments_partition_the_events(events: list[Event]) -> None:
    """Every event is in one segment, in order; no segment is empty, too long or over midnight."""
    segments = list(cut(events, RULES, BERLIN))
    assert [e for s in segments for e in s.events] == events
    for segment in segments:
        assert segment.events
        assert segment.tokens == sum(cost(e, RULES) for e in segment.events)
        assert segment.tokens <= RULES.tokens or len(segment.events) == 1
        assert len({BERLIN.day(e.time_ms) for e in segment.events}) == 1
        gaps = [b.time_ms - a.time_ms for a, b in pairwise(segment.events)]
        assert all(gap < RULES.gap_ms for gap in gaps)
        assert all(e.type != EventType.SESSION_END for e in segment.events[:-1])


@given(EVENTS)
def test_cutting_is_memoryless_at_its_boundaries(events: list[Event]) -> None:
    """Cut again from any boundary on, the rest is cut as before."""
    segments = list(cut(events, RULES, BERLIN))
    for place in range(len(segments)):
        rest = [e for s in segments[place:] for e in s.events]
        assert list(cut(rest, RULES, BERLIN)) == segments[place:]


def test_a_gap_begins_a_segment() -> None:
    """Thirty minutes of silence are a boundary; a moment less is not."""
    assert sizes([event(0), event(29.99), event(59.99)]) == [2, 1]


def test_a_full_segment_ends() -> None:
    """An event that would make the segment longer than its limit begins the next."""
    words = "x" * 4 * 1_500
    assert sizes([event(n, words) for n in range(5)]) == [2, 2, 1]


def test_one_long_event_is_a_segment_of_its_own() -> None:
    """An event over the limit stands alone and is not cut."""
    assert sizes([event(0), event(1, "x" * 99_999), event(2)]) == [1, 1, 1]


def test_a_session_that_ends_ends_its_segment() -> None:
    """What comes after a session's end belongs to the next segment."""
    assert sizes([event(0), event(1, type=8), event(2), event(3)]) == [2, 2]


def test_a_compaction_begins_a_segment() -> None:
    """Notices of one compaction stay together and begin a segment with what follows."""
    compacted: dict[str, Any] = {"metadata": {"compaction": "true"}}
    events = [event(0), event(1), event(2, **compacted), event(3, type=1), event(4)]
    assert sizes(events) == [2, 3]


def test_midnight_begins_a_segment() -> None:
    """Events on both sides of local midnight are in different segments."""
    assert sizes([event(719), event(719.5), event(720), event(721)]) == [2, 2]


def test_results_of_tools_count_to_a_limit() -> None:
    """A dump of a file does not push the conversation out of its segment."""
    dump = event(1, "x" * 1_000_000, type=4)
    assert cost(dump, RULES) == RULES.tool_tokens + 1
    assert sizes([event(0), dump, event(2)]) == [3]


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("", 0, 0),
        ("The parser fails on an empty line because split returns one item.", 13, 20),
        ("def start_ms(self, day: date) -> int:\n    return self._start(day)\n", 15, 25),
        ("解析器在空行上失败,因为拆分返回一个项目。", 18, 24),
        ("パーサーは空の行で失敗します。", 13, 18),
        ("빈 줄에서 파서가 실패합니다.", 10, 16),
        ("Der Parser scheitert an einer leeren Zeile, größer geht's nicht.", 12, 20),
    ],
)
def test_tokens_are_about_right(text: str, least: int, most: int) -> None:
    """Prose, code and the scripts of East Asia are counted about as models count them."""
    assert least <= tokens(text) <= most


def test_context_ends_by_time_and_by_length() -> None:
    """The context holds what was said within five minutes and 500 tokens before."""
    start = event(10)
    before = [event(n) for n in (9, 6, 5, 4.9)]
    assert overlap(before, start, RULES) == [event(5), event(6), event(9)]
    long = [event(9), event(8, "x" * 4 * 498), event(7)]
    assert overlap(long, start, RULES) == [event(9)]


def test_when_a_segment_closes() -> None:
    """A segment closes after the gap, at midnight, or at once when the session has ended."""
    assert closes_ms(event(5), RULES, BERLIN) == NOON + 35 * MINUTE
    assert closes_ms(event(719), RULES, BERLIN) == MIDNIGHT
    assert closes_ms(event(5, type=8), RULES, BERLIN) == NOON + 5 * MINUTE


def test_ids_of_segments_follow_from_their_beginning() -> None:
    """The id depends on session and first event alone, and sorts by time."""
    events = [event(n) for n in range(3)]
    segment = Segment(tuple(events), 3)
    assert segment.node_id == segment_id("s", NOON, f"e{NOON}")
    assert segment.node_id == Segment(tuple(events[:1]), 1).node_id
    assert segment.node_id != segment_id("t", NOON, f"e{NOON}")
    assert segment.node_id.startswith(PREFIX)
    assert segment_floor(NOON) <= segment.node_id < segment_floor(NOON + 1)
