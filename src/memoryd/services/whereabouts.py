"""Where things lie in the table of contents: the nodes above them, and the grips on them. Derived.

The place of an event is looked up when it is asked for and kept nowhere: segments move while a
conversation goes on, and every event in the index would have to move with them.
"""

from datetime import date
from functools import lru_cache
from typing import Final, NamedTuple

from memoryd.domain.calendar import Calendar, parse, period_of
from memoryd.domain.errors import NotFound
from memoryd.domain.keys import event_key, split_event_key
from memoryd.domain.segment import PREFIX
from memoryd.domain.toc import Level, Node
from memoryd.storage.log import Log
from memoryd.storage.nodes import Nodes

_DAYS_KEPT: Final = 4_096
_NODES_KEPT: Final = 512

Path = tuple[str, ...]  # ids of nodes, from the year down


class Span(NamedTuple):
    """What a node covers: events from one time to another, included, of one session or of all."""

    from_ms: int
    to_ms: int
    session: str = ""


class Whereabouts:
    """Looks places up. Safe to call from many threads."""

    def __init__(self, nodes: Nodes, log: Log, calendar: Calendar) -> None:
        self._nodes = nodes
        self._log = log
        self._calendar = calendar
        self._above = lru_cache(_DAYS_KEPT)(_above)
        self._grips = lru_cache(_NODES_KEPT)(self._read_grips)

    def of_node(self, node: Node) -> Path:
        """The nodes above a node, and the node."""
        if node.level is Level.SEGMENT:
            return (*self._above(self._calendar.day(node.start_ms)), node.node_id)
        period = parse(node.node_id)
        return self._above(period.first, period.level)

    def of_event(self, session_id: str, time_ms: int, event_id: str) -> Path:
        """The nodes that an event lies in; none while it has not been worked in."""
        stats = self._log.session(session_id)
        key = event_key(time_ms, event_id)
        extent = self._nodes.extent_at(stats.number, key) if stats is not None else None
        if extent is None or key > extent.last:
            return ()
        day = self._calendar.day(split_event_key(extent.first)[0])
        return (*self._above(day), extent.node_id)

    def grips_on(self, event_id: str, path: Path) -> tuple[str, ...]:
        """The grips whose evidence begins or ends with an event of a place."""
        version = self._nodes.latest(path[-1]) if path else 0
        return self._grips(path[-1], version).get(event_id, ()) if version else ()

    def span(self, node_id: str) -> Span:
        """What a node covers. Raises NotFound."""
        node = self._nodes.get(node_id)
        if node.level is Level.SEGMENT:
            return Span(node.start_ms, node.end_ms, node.session_ids[0])
        return Span(node.start_ms, node.end_ms - 1)

    def _read_grips(self, node_id: str, version: int) -> dict[str, tuple[str, ...]]:
        node = self._nodes.find(node_id, version)
        found: dict[str, tuple[str, ...]] = {}
        for grip_id in dict.fromkeys(g for b in (node.bullets if node else ()) for g in b.grip_ids):
            try:
                grip = self._nodes.grip(grip_id)
            except NotFound:  # the table of contents is being made anew
                continue
            for event_id in dict.fromkeys((grip.first_event_id, grip.last_event_id)):
                found[event_id] = (*found.get(event_id, ()), grip_id)
        return found


def is_segment(node_id: str) -> bool:
    """Whether an id is that of a segment."""
    return node_id.startswith(PREFIX)


def _above(day: date, level: Level = Level.DAY) -> Path:
    """The nodes that a day, or the period of a level that begins with it, lies in, and itself."""
    found = [period_of(day, level)]
    while (above := found[-1].parent) is not None:
        found.append(above)
    return tuple(period.node_id for period in reversed(found))
