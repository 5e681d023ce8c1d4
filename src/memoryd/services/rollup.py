"""Derives days from segments, weeks from days, months from weeks, years from months. Derived.

A period is derived again when something below it has changed, which a durable mark says, and
closed when its end has passed. Each period is one atomic step: its node, the mark taken away, and
a mark on the period above. For one thread alone, the pump's.
"""

from collections.abc import Callable
from typing import NamedTuple

from memoryd.domain.calendar import Calendar, Period, parse
from memoryd.domain.segment import segment_floor
from memoryd.domain.summarize import Digest, Summarizer
from memoryd.domain.toc import Level, Node
from memoryd.services.wording import period_node
from memoryd.storage.nodes import Nodes


class Steps(NamedTuple):
    """What to call on the way: named points at which a test may end the process, and errors."""

    reach: Callable[[str], None] = lambda _name: None
    on_error: Callable[[str, str], object] = lambda _operation, _message: None


class Rollup:
    """Derives periods from what lies below them."""

    def __init__(
        self,
        nodes: Nodes,
        calendar: Calendar,
        summarizer: Summarizer,
        clock_ms: Callable[[], int],
        steps: Steps,
    ) -> None:
        self._nodes = nodes
        self._calendar = calendar
        self._summarizer = summarizer
        self._clock_ms = clock_ms
        self._steps = steps

    def refresh(self, level: Level, alive: Callable[[], bool] = lambda: True) -> int:
        """Derive every marked period of a level, as long as it is wanted; how many were."""
        count = 0
        for node_id in self._nodes.dirty(level):
            if not alive():
                break
            self._derive(parse(node_id))
            count += 1
        return count

    def close(self, level: Level) -> int:
        """Derive every period of a level whose end has passed once more; how many are closed now."""
        closed = 0
        for due in list(self._nodes.due(level, self._clock_ms())):
            node = self._derive(parse(due.node_id))
            closed += node is not None and not node.provisional
        return closed

    def anew(self, period: Period) -> None:
        """Derive a period again whatever there is, and keep no earlier version of it."""
        self._derive(period, anew=True)

    def _derive(self, period: Period, *, anew: bool = False) -> Node | None:
        children = self._children(period)
        change = self._nodes.change()
        node = None
        if children:
            node = self._node(period, children)
            changed = change.put_node(node, anew=anew)
        else:
            changed = change.remove_node(period.node_id)
            if anew:
                change.drop_versions(period.node_id)
        change.clear_dirty(period.level, period.node_id)
        above = period.parent
        if changed and above is not None:
            change.mark_dirty(above.level, above.node_id)
        self._steps.reach("rollup.before_write")
        change.write()
        self._steps.reach("rollup.after_write")
        return node

    def _children(self, period: Period) -> list[Node]:
        if period.level is Level.DAY:
            start, end = self._calendar.bounds(period)
            return list(self._nodes.between(segment_floor(start), segment_floor(end)))
        found = (self._nodes.find(child.node_id) for child in period.children)
        return [node for node in found if node is not None]

    def _node(self, period: Period, children: list[Node]) -> Node:
        name = self._summarizer.name
        try:
            digest = self._summarizer.period(period.level, children)
        except Exception as error:  # noqa: BLE001 - one bad period must not stop the pump
            said = f"{period.node_id} has no words ({type(error).__name__})"
            self._steps.on_error("summarize", said)
            digest, name = Digest("", "", (), ()), ""
        node = period_node(period, children, digest, name, self._calendar)
        running = self._clock_ms() < node.end_ms
        return node._replace(provisional=True) if running else node
