"""Segments: where a session's events are cut into runs that belong together. Derived.

Greedy from left to right, and memoryless where it cuts: what comes after a boundary does not
depend on what came before it. So an event that arrives late moves boundaries only from the
segment it falls into up to the next boundary that stays, and the order of arrival leaves no
trace.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple

from memoryd.domain import ids
from memoryd.domain.calendar import Calendar
from memoryd.domain.event import Event, EventType
from memoryd.domain.toc import Level

PREFIX: Final = "toc:segment:"
_LETTERS: Final = 4  # characters of an alphabet to a token, as in English prose and in code
_WIDE: Final = re.compile(
    "[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]"
)


class Rules(NamedTuple):
    """Where to cut, and how much of what came before a summarizer may see."""

    gap_ms: int = 30 * 60_000
    tokens: int = 4_000
    tool_tokens: int = 400
    overlap_ms: int = 5 * 60_000
    overlap_tokens: int = 500


class Segment(NamedTuple):
    """A run of events of one session, at least one, in the order of their keys."""

    events: tuple[Event, ...]
    tokens: int

    @property
    def node_id(self) -> str:
        """The id of its node: it follows from the session and the first event."""
        first = self.events[0]
        return segment_id(first.session_id, first.time_ms, first.event_id)


def segment_id(session_id: str, time_ms: int, event_id: str) -> str:
    """The id of the segment that begins with an event. In the order of time."""
    digest = blake2b(digest_size=ids.ENTROPY_BYTES, person=b"memoryd segment")
    for part in (session_id.encode(), event_id.encode()):
        digest.update(len(part).to_bytes(4, "big") + part)
    return PREFIX + ids.make(time_ms, digest.digest())


def segment_floor(time_ms: int) -> str:
    """Sorts at or before the id of every segment that begins at this time or later."""
    return PREFIX + ids.make(max(time_ms, 0), bytes(ids.ENTROPY_BYTES))


def tokens(text: str) -> int:
    """About how many tokens a model would count.

    A quarter of the characters, which holds for prose and for code in most alphabets; but each
    Chinese, Japanese or Korean character counts as one. Cheap for ASCII, which is most text.
    """
    if text.isascii():
        return (len(text) + _LETTERS - 1) // _LETTERS
    wide = len(_WIDE.findall(text))
    return wide + (len(text) - wide + _LETTERS - 1) // _LETTERS


def cost(event: Event, rules: Rules) -> int:
    """What an event adds to its segment; the result of a tool only up to a limit."""
    if event.type == EventType.TOOL_RESULT:
        return 1 + min(tokens(event.text[: rules.tool_tokens * _LETTERS]), rules.tool_tokens)
    return 1 + tokens(event.text)


class Cutter:
    """Says, event by event in the order of their keys, where a new segment begins."""

    def __init__(self, rules: Rules, calendar: Calendar) -> None:
        self._rules = rules
        self._calendar = calendar
        self._last: Event | None = None
        self._midnight = 0
        self.tokens = 0

    def begins(self, event: Event) -> bool:
        """Take the next event; say whether it begins a segment."""
        size = cost(event, self._rules)
        last, self._last = self._last, event
        if last is not None and not self._cut(last, event, size):
            self.tokens += size
            return False
        day = self._calendar.period(event.time_ms, Level.DAY)
        self._midnight = self._calendar.start_ms(day.end)
        self.tokens = size
        return True

    def _cut(self, last: Event, event: Event, size: int) -> bool:
        return (
            event.time_ms - last.time_ms >= self._rules.gap_ms
            or event.time_ms >= self._midnight
            or self.tokens + size > self._rules.tokens
            or ends(last)
            or (_opens(event) and not _opens(last))
        )


def cut(events: Iterable[Event], rules: Rules, calendar: Calendar) -> Iterator[Segment]:
    """The segments of a session's events, which come in the order of their keys."""
    cutter = Cutter(rules, calendar)
    held: list[Event] = []
    size = 0
    for event in events:
        if cutter.begins(event) and held:
            yield Segment(tuple(held), size)
            held = []
        held.append(event)
        size = cutter.tokens
    if held:
        yield Segment(tuple(held), size)


def overlap(newest_first: Iterable[Event], start: Event, rules: Rules) -> Sequence[Event]:
    """The context of a segment: of the events before it, in reverse, those still near, in order."""
    near: list[Event] = []
    size = 0
    for event in newest_first:
        size += cost(event, rules)
        if event.time_ms < start.time_ms - rules.overlap_ms or size > rules.overlap_tokens:
            break
        near.append(event)
    near.reverse()
    return near


def closes_ms(last: Event, rules: Rules, calendar: Calendar) -> int:
    """From when on no event that happens now can join the segment that ends with ``last``."""
    if ends(last):
        return last.time_ms
    day = calendar.period(last.time_ms, Level.DAY)
    return min(last.time_ms + rules.gap_ms, calendar.start_ms(day.end))


def ends(event: Event) -> bool:
    """Whether nothing belongs to an event's segment after it."""
    return event.type == EventType.SESSION_END


def _opens(event: Event) -> bool:
    """Whether a conversation begins here, or begins again with its context compacted."""
    return event.type == EventType.SESSION_START or event.metadata.get("compaction") == "true"
