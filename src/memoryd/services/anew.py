"""Derives again what stands on events that were erased, and drops every earlier version. Derived.

Segments keep their bounds and get new words; the periods above them follow, from the days up.
Earlier versions, nodes that are no more and grips may hold words of the erased events, so those of
the sessions concerned go. For one thread alone, the pump's. Doing it twice changes nothing more.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple

from memoryd.domain.calendar import PERIODS, Calendar, Period
from memoryd.domain.toc import Level
from memoryd.services.rollup import Rollup
from memoryd.services.segmenter import Segmenter
from memoryd.services.wording import WORDLESS, segment_node
from memoryd.services.workshop import Workshop
from memoryd.storage.nodes import Extent
from memoryd.storage.store import Store

_PORTION: Final = 16


class Renewed(NamedTuple):
    """The nodes that were derived again, and the grips that are no more."""

    node_ids: frozenset[str]
    gone_grips: frozenset[str]


class Anew:
    """One run over the table of contents."""

    def __init__(
        self,
        store: Store,
        segmenter: Segmenter,
        workshop: Workshop,
        rollup: Rollup,
        calendar: Calendar,
    ) -> None:
        self._nodes = store.nodes
        self._segmenter = segmenter
        self._workshop = workshop
        self._rollup = rollup
        self._calendar = calendar
        self._dropped: set[str] = set()
        self._periods: dict[Level, set[Period]] = defaultdict(set)

    def run(
        self, keys: Mapping[int, Sequence[bytes]], reach: Callable[[str], None] = lambda _: None
    ) -> Renewed:
        """Renew what stands on events, given by their keys and the numbers of their sessions."""
        extents = {
            extent.node_id: extent
            for session, wanted in keys.items()
            for key in wanted
            for extent in self._segmenter.touching(session, key)
        }
        own = self._segments(self._sessions(extents))
        grips = self._grips(own)
        self._drop_earlier(own, extents, grips)
        reach("anew.after_drop")
        waiting = iter(extents.values())
        while portion := list(islice(waiting, _PORTION)):
            self._write(portion, grips)
            reach("anew.after_segments")
        done = set(extents)
        for level in PERIODS:
            for period in sorted(self._periods[level], key=lambda p: p.node_id):
                self._rollup.anew(period)
                done.add(period.node_id)
        return Renewed(frozenset(done), frozenset(self._dropped))

    def _sessions(self, extents: Mapping[str, Extent]) -> frozenset[str]:
        found = (self._nodes.find(node_id) for node_id in extents)
        return frozenset(s for node in found if node is not None for s in node.session_ids)

    def _segments(self, sessions: frozenset[str]) -> dict[str, int]:
        """The sessions' segments, also those that are no more, and when they began."""
        return {
            node.node_id: node.start_ms
            for node in self._nodes.stored()
            if node.level is Level.SEGMENT and not sessions.isdisjoint(node.session_ids)
        }

    def _grips(self, own: Collection[str]) -> dict[str, set[str]]:
        found: dict[str, set[str]] = defaultdict(set)
        for grip in self._nodes.grips():
            if grip.node_id in own:
                found[grip.node_id].add(grip.grip_id)
        return found

    def _drop_earlier(
        self,
        own: Mapping[str, int],
        renewed: Collection[str],
        grips: Mapping[str, set[str]],
    ) -> None:
        """Take out what is not the latest of the sessions' segments, with its grips."""
        change = self._nodes.change()
        for node_id, start_ms in own.items():
            latest = self._nodes.find(node_id)
            alone = latest is not None and self._nodes.versions(node_id) == [latest.version]
            if node_id in renewed or alone:
                continue
            change.drop_versions(node_id, but=latest.version if latest else 0)
            held = {g for b in latest.bullets for g in b.grip_ids} if latest else set()
            for grip_id in grips.get(node_id, set()) - held:
                change.drop_grip(grip_id)
                self._dropped.add(grip_id)
            self._above(start_ms)
        change.write()

    def _write(self, portion: Sequence[Extent], grips: Mapping[str, set[str]]) -> None:
        """Put segments into words again, and let their grips and earlier versions go."""
        pieces = [self._segmenter.again(extent) for extent in portion]
        name = self._workshop.summarizer.name
        change = self._nodes.change()
        tasks = [(piece.events, piece.before) for piece in pieces]
        for piece, summary in zip(pieces, self._workshop.segments(tasks), strict=True):
            node, made = segment_node(piece, summary or WORDLESS, name if summary else "")
            fresh = {grip.grip_id for grip in made}
            for grip_id in grips.get(node.node_id, set()) - fresh:
                change.drop_grip(grip_id)
                self._dropped.add(grip_id)
            for grip in made:
                change.put_grip(grip)
            change.put_node(node, anew=True)
            change.mark_dirty(Level.DAY, self._above(node.start_ms).node_id)
        change.write()

    def _above(self, time_ms: int) -> Period:
        """Have the periods of a time derived again; the day among them."""
        day = self._calendar.period(time_ms, Level.DAY)
        period: Period | None = day
        while period is not None:
            self._periods[period.level].add(period)
            period = period.parent
        return day
