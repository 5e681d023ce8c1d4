"""Works new events into their sessions' segments. Derived.

Rebuilds exactly what the new events touch: from the segment that each falls into, up to the next
boundary that stays where it was. Of the log it sees what has been worked in and what is new now,
nothing beyond, so that the work of a step is bounded by the step.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from memoryd.domain.calendar import Calendar
from memoryd.domain.event import Event, Recorded
from memoryd.domain.keys import event_key
from memoryd.domain.segment import Cutter, Rules, closes_ms, overlap, segment_id
from memoryd.storage.log import Log
from memoryd.storage.nodes import Extent, Nodes


class Piece(NamedTuple):
    """A segment that is new or has changed."""

    extent: Extent
    old: Extent | None  # what was said of the segment with the same beginning
    events: tuple[Event, ...]
    before: tuple[Event, ...]


class Reworked(NamedTuple):
    """What became of a session's segments."""

    pieces: list[Piece]
    removed: list[Extent]


class _Run(NamedTuple):
    """Segments found from one boundary to another, and the key behind the last of them."""

    pieces: list[Piece]
    first: bytes
    stop: bytes | None


class Segmenter:
    """Finds the segments that events touch. Reads, and writes nothing."""

    def __init__(
        self,
        log: Log,
        nodes: Nodes,
        rules: Rules,
        calendar: Calendar,
        clock_ms: Callable[[], int],
    ) -> None:
        self._log = log
        self._nodes = nodes
        self._rules = rules
        self._calendar = calendar
        self._clock_ms = clock_ms

    def rework(self, session_id: str, fresh: Mapping[bytes, Recorded], end: int) -> Reworked:
        """The segments of a session that its fresh events change.

        ``end`` is the last sequence number that is worked in after this.
        """
        stats = self._log.session(session_id)
        if stats is None:
            return Reworked([], [])
        work = _Session(self, stats.number, fresh, end)
        pieces: list[Piece] = []
        removed: list[Extent] = []
        place = 0
        while place < len(work.touched):
            run = work.run(work.touched[place])
            kept = {piece.extent.first for piece in run.pieces}
            old = {e.first: e for e in self._nodes.extents(stats.number, run.first, run.stop)}
            removed.extend(e for first, e in old.items() if first not in kept)
            for piece in run.pieces:
                known = old.get(piece.extent.first)
                if known != piece.extent:
                    pieces.append(piece._replace(old=known))
            place = len(work.touched) if run.stop is None else bisect_left(work.touched, run.stop)
        return Reworked(pieces, removed)

    def again(self, extent: Extent) -> Piece:
        """A segment as it is, with its events as they are now."""
        keys = self._log.session_keys(extent.session, extent.first, extent.last + b"\0")
        events = tuple(self._log.at_key(key).event for key in keys)
        before: tuple[Event, ...] = ()
        if extent.before:
            earlier = self._log.session_keys(extent.session, extent.before, extent.first)
            before = tuple(self._log.at_key(key).event for key in earlier)
        return Piece(extent, extent, events, before)

    def touching(self, session: int, key: bytes) -> Iterator[Extent]:
        """The segment that holds an event, and those that its summarizer saw it before."""
        own = self._nodes.extent_at(session, key)
        if own is not None and own.last >= key:
            yield own
        for extent in self._nodes.extents(session, (own.first if own else key) + b"\0", None):
            if not extent.before or extent.before > key:
                return
            yield extent


class _Session:
    """One session during one step."""

    def __init__(
        self, segmenter: Segmenter, number: int, fresh: Mapping[bytes, Recorded], end: int
    ) -> None:
        self._log = segmenter._log  # noqa: SLF001 - the segmenter's own other half
        self._nodes = segmenter._nodes  # noqa: SLF001
        self._rules = segmenter._rules  # noqa: SLF001
        self._calendar = segmenter._calendar  # noqa: SLF001
        self._now_ms = segmenter._clock_ms()  # noqa: SLF001
        self._number = number
        self._fresh = fresh
        self._end = end
        self.touched = sorted(fresh)
        # nothing has been worked in behind the last segment
        last = self._nodes.last_extent(number)
        self._stop = max(self.touched[-1], last.last if last else b"") + b"\0"

    def run(self, touched: bytes) -> _Run:
        """Cut from the segment that a key falls into, up to a boundary that stays."""
        extent = self._nodes.extent_at(self._number, touched)
        first = extent.first if extent else touched
        cutter = Cutter(self._rules, self._calendar)
        pieces: list[Piece] = []
        history = self._before(first)
        held: list[tuple[bytes, Event]] = []
        for key, event in self._events(first):
            if cutter.begins(event) and held:
                pieces.append(self._piece(held, history, ended=True))
                history = [*history, *(event for _, event in held)]
                history = history[-self._rules.overlap_tokens :]
                held = []
                if self._stays(key, event):
                    return _Run(pieces, first, key)
            held.append((key, event))
        pieces.append(self._piece(held, history, ended=False))
        return _Run(pieces, first, None)

    def _events(self, first: bytes) -> Iterator[tuple[bytes, Event]]:
        for key in self._log.session_keys(self._number, first, self._stop):
            event = self._event(key)
            if event is not None:
                yield key, event

    def _event(self, key: bytes) -> Event | None:
        """The event of a key; None if it comes with a later step."""
        recorded = self._fresh.get(key) or self._log.at_key(key)
        return recorded.event if recorded.sequence <= self._end else None

    def _before(self, first: bytes) -> list[Event]:
        """As much of what precedes a key as a context may hold."""
        start = self._event(first)
        keys = self._log.session_keys(self._number, b"", first, reverse=True)
        found = (event for event in map(self._event, keys) if event is not None)
        return list(overlap(found, start, self._rules)) if start is not None else []

    def _stays(self, key: bytes, event: Event) -> bool:
        """Whether all from this boundary on, up to the next touched event, is as it was."""
        extent = self._nodes.extent_at(self._number, key)
        if extent is None or extent.first != key:
            return False
        place = bisect_left(self.touched, key)
        if not place:
            return False
        last = int.from_bytes(self.touched[place - 1][:8], "big")
        if event.time_ms - last <= self._rules.overlap_ms:
            return False  # what is touched may be part of its context
        if place == len(self.touched):
            return True
        found = self._nodes.extent_at(self._number, self.touched[place])
        return found is not None and found.first > key

    def _piece(
        self,
        held: Sequence[tuple[bytes, Event]],
        history: Sequence[Event],
        *,
        ended: bool,
    ) -> Piece:
        events = tuple(event for _, event in held)
        first, last = events[0], events[-1]
        before = tuple(overlap(reversed(history), first, self._rules))
        closes = 0 if ended else closes_ms(last, self._rules, self._calendar)
        extent = Extent(
            session=self._number,
            first=held[0][0],
            last=held[-1][0],
            node_id=segment_id(first.session_id, first.time_ms, first.event_id),
            events=len(events),
            before=event_key(before[0].time_ms, before[0].event_id) if before else b"",
            before_events=len(before),
            closes_ms=closes if closes > self._now_ms else 0,
        )
        return Piece(extent, None, events, before)
