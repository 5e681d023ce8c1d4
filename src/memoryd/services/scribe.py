"""The scribe: has a model write the nodes that are finished, beside the pump. Derived.

A model takes seconds and may not answer at all, so the pump never waits for one: it puts every
node into the extractive summarizer's words and, if a model is set up, marks those that are
finished. The scribe, a thread of its own, takes the marks one by one, the newest segments first,
periods when all below them is done, and hands the pump the new words. The mark goes with the
write; a node that has changed meanwhile is left alone and has a mark of its own.
"""

import logging
import threading
from collections.abc import Iterator
from typing import Final, Protocol

from memoryd.domain.calendar import PERIODS, Calendar, parse
from memoryd.domain.errors import MemorydError, Stopping
from memoryd.domain.segment import segment_floor
from memoryd.domain.summarize import Summarizer
from memoryd.domain.toc import Grip, Level, Node
from memoryd.services.pump import Pump
from memoryd.services.rollup import Steps
from memoryd.services.segmenter import Piece
from memoryd.services.wording import period_node, segment_node
from memoryd.storage.store import Store

_log = logging.getLogger(__name__)

_LOOK_SECONDS: Final = 2.0
_ENDING_SECONDS: Final = 2.0
_FAILED_SECONDS: Final = 30.0


class Writer(Summarizer, Protocol):
    """A summarizer that takes its time, and may want to be left alone for a while."""

    def pause(self) -> float:
        """For how many seconds it is of no use to ask."""


class Scribe:
    """Writes from `start` to `stop`."""

    def __init__(
        self, store: Store, pump: Pump, calendar: Calendar, writer: Writer, steps: Steps
    ) -> None:
        self._nodes = store.nodes
        self._log = store.log
        self._pump = pump
        self._calendar = calendar
        self._writer = writer
        self._steps = steps
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="scribe", daemon=True)

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def stop(self) -> None:
        """End; a request under way is given a moment, and its words are dropped."""
        self._stop.set()
        self._thread.join(_ENDING_SECONDS)

    def turn(self) -> bool:
        """Have one node written; say whether there was one."""
        return any(self._write(node) for node in self._waiting())

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                wait = self._writer.pause() or (0.0 if self.turn() else _LOOK_SECONDS)
            except Stopping:
                return
            except Exception as error:  # noqa: BLE001 - the thread must not end over one node
                reason = str(error) if isinstance(error, MemorydError) else type(error).__name__
                self._steps.on_error("write", reason)
                _log.error("the scribe has failed", extra={"reason": reason})
                wait = _FAILED_SECONDS
            self._stop.wait(wait)

    def _waiting(self) -> Iterator[Node]:
        """The marked nodes whose parts are all done, segments first."""
        for level in (Level.SEGMENT, *PERIODS):
            if level not in self._nodes.to_write:
                continue
            for node_id in self._nodes.unwritten(level):
                node = self._nodes.find(node_id)
                if node is not None and not node.provisional and self._settled(node):
                    yield node

    def _settled(self, node: Node) -> bool:
        """Whether neither the node nor anything right below it is to be derived or written."""
        if node.level is Level.SEGMENT:
            return True
        if node.node_id in self._nodes.dirty(node.level):
            return False
        below = Level(node.level + 1)
        open_ids = {*self._nodes.unwritten(below)} if below in self._nodes.to_write else set()
        if below is not Level.SEGMENT:
            open_ids |= {*self._nodes.dirty(below)}
        return open_ids.isdisjoint(node.child_ids)

    def _write(self, node: Node) -> bool:
        """Have a node written; False if it is about to change."""
        found = self._segment(node) if node.level is Level.SEGMENT else self._period(node)
        if found is None:
            return False
        fresh, grips = found
        if fresh.summarizer != self._writer.name and self._writer.pause():
            return True  # the model is out of reach: the mark stays, and the node is tried again
        return self._pump.ask(lambda: self._pump.rewrite(fresh, grips, node.version)).result()

    def _segment(self, node: Node) -> tuple[Node, list[Grip]] | None:
        piece = self._piece(node)
        if piece is None:
            return None
        summary = self._writer.segment(piece.events, piece.before)
        return segment_node(piece, summary, summary.by or self._writer.name)

    def _period(self, node: Node) -> tuple[Node, list[Grip]] | None:
        period = parse(node.node_id)
        if period.level is Level.DAY:
            start, end = self._calendar.bounds(period)
            children = list(self._nodes.between(segment_floor(start), segment_floor(end)))
        else:
            found = (self._nodes.find(child) for child in node.child_ids)
            children = [child for child in found if child is not None]
        if tuple(child.node_id for child in children) != node.child_ids:
            return None
        digest = self._writer.period(node.level, children)
        name = digest.by or self._writer.name
        return period_node(period, children, digest, name, self._calendar), []

    def _piece(self, node: Node) -> Piece | None:
        """The events of a segment, or None if the log has more or fewer than the node."""
        stats = self._log.session(node.session_ids[0])
        if stats is None:
            return None
        number = stats.number
        near = (node.start_ms.to_bytes(8, "big"), (node.start_ms + 1).to_bytes(8, "big"))
        for extent in self._nodes.extents(number, *near):
            if extent.node_id == node.node_id:
                break
        else:
            return None
        keys = self._log.session_keys(number, extent.first, extent.last + b"\0")
        events = tuple(self._log.at_key(key).event for key in keys)
        context = self._log.session_keys(number, extent.before, extent.first)
        before = tuple(self._log.at_key(key).event for key in context) if extent.before else ()
        if len(events) != node.event_count:
            return None
        return Piece(extent, None, events, before)
