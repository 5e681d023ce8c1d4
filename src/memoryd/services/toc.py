"""Reads the table of contents: browse, open, search, expand. Derived; reads never write."""

from collections import deque
from collections.abc import Callable, Collection, Iterator
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple, TypeVar

from memoryd.domain.calendar import Calendar, parse
from memoryd.domain.errors import Cancelled, InvalidInput, StoreDamaged
from memoryd.domain.event import TIME_LIMIT_MS, Recorded, check_id
from memoryd.domain.keys import event_key
from memoryd.domain.lookup import ALL_FIELDS, Found, Match, SearchField, passages, search
from memoryd.domain.segment import segment_floor, tokens
from memoryd.domain.toc import Grip, Level, Node
from memoryd.services.paging import PAGE_DEFAULT, PAGE_LIMIT, bounded, make_token, read_token
from memoryd.storage.log import Log
from memoryd.storage.nodes import Nodes

AROUND_DEFAULT: Final = 3
AROUND_LIMIT: Final = 1_000
FOUND_DEFAULT: Final = 10
FOUND_LIMIT: Final = 100
BUDGET_DEFAULT: Final = 2_000
_QUESTION_LIMIT: Final = 10_000
_ASK_EVERY: Final = 64
_PASSAGES_KEPT: Final = 256

Alive = Callable[[], bool]
_T = TypeVar("_T")


class Expanded(NamedTuple):
    """A grip, and the conversation around it."""

    grip: Grip
    session_id: str
    before: list[Recorded]
    evidence: list[Recorded]
    after: list[Recorded]


class Question(NamedTuple):
    """What to look for in nodes, where, and how much of it to give."""

    text: str
    fields: frozenset[SearchField] = frozenset()
    limit: int = 0
    token_budget: int = 0


class Timeline(NamedTuple):
    """The nodes of one level between two times."""

    level: Level
    nodes: list[Node]
    tokens: int
    truncated: bool


class Contents:
    """The reading side of the table of contents. Safe to call from many threads."""

    def __init__(self, nodes: Nodes, log: Log, calendar: Calendar) -> None:
        self._nodes = nodes
        self._log = log
        self._calendar = calendar
        self._passages = lru_cache(_PASSAGES_KEPT)(passages)

    def root(self) -> list[Node]:
        """Every year, oldest first."""
        return list(self._level(Level.YEAR))

    def node(self, node_id: str, version: int = 0) -> Node:
        """One node. Raises NotFound, or InvalidInput for what is no id."""
        _check("node_id", node_id)
        if version < 0:
            raise InvalidInput(f"version {version} is negative")
        return self._nodes.get(node_id, version)

    def parent_id(self, node: Node) -> str:
        """The id of the node right above one; empty for a year."""
        if node.level is Level.SEGMENT:
            return self._calendar.period(node.start_ms, Level.DAY).node_id
        above = parse(node.node_id).parent
        return above.node_id if above else ""

    def children(self, parent_id: str, limit: int, token: str) -> tuple[list[Node], str]:
        """One page of the nodes right below one, and the token for the rest. Raises NotFound."""
        limit = bounded("limit", limit, PAGE_DEFAULT, PAGE_LIMIT)
        ids = [n.node_id for n in self.root()] if not parent_id else self.node(parent_id).child_ids
        last = read_token(token, parent_id).decode("utf-8", "replace")
        rest = [node_id for node_id in ids if node_id > last] if last else list(ids)
        page = [n for node_id in rest[:limit] if (n := self._nodes.find(node_id)) is not None]
        more = len(rest) > limit
        return page, make_token(parent_id, rest[limit - 1].encode()) if more else ""

    def expand(self, grip_id: str, before: int | None, after: int | None) -> Expanded:
        """A grip with the events around it, all of its session. Raises NotFound."""
        _check("grip_id", grip_id)
        counts = [AROUND_DEFAULT if n is None else n for n in (before, after)]
        for name, count in zip(("events_before", "events_after"), counts, strict=True):
            if not 0 <= count <= AROUND_LIMIT:
                raise InvalidInput(f"{name} {count} is not between 0 and {AROUND_LIMIT}")
        grip = self._nodes.grip(grip_id)
        first, last = (self._log.get(i) for i in (grip.first_event_id, grip.last_event_id))
        session = first.event.session_id
        if last.event.session_id != session:
            raise StoreDamaged(f"grip {grip_id} spans two sessions: run `memory rebuild toc`")
        start, end = _key(first), _key(last) + b"\0"
        earlier = self._log.by_session(session, b"", start, reverse=True)
        later = self._log.by_session(session, end)
        return Expanded(
            grip,
            session,
            [recorded for _, recorded in islice(earlier, counts[0])][::-1],
            [recorded for _, recorded in self._log.by_session(session, start, end)],
            [recorded for _, recorded in islice(later, counts[1])],
        )

    def grip(self, grip_id: str) -> Grip:
        """One grip. Raises NotFound."""
        return self._nodes.grip(grip_id)

    def sources(self, node: Node) -> list[list[str]]:
        """Who said the evidence of each bullet of a node."""
        all_ids = [grip_id for bullet in node.bullets for grip_id in bullet.grip_ids]
        found = iter(self._nodes.sources(all_ids) if all_ids else ())
        return [list(islice(found, len(bullet.grip_ids))) for bullet in node.bullets]

    def grips_on(self, recorded: Recorded) -> list[str]:
        """The ids of the grips whose evidence an event is part of; often there are none."""
        stats = self._log.session(recorded.event.session_id)
        key = _key(recorded)
        extent = self._nodes.extent_at(stats.number, key) if stats else None
        node = self._nodes.find(extent.node_id) if extent and key <= extent.last else None
        found = []
        for grip_id in unique_grips(node) if node else ():
            grip = self._nodes.grip(grip_id)
            ends = (self._log.get(i) for i in (grip.first_event_id, grip.last_event_id))
            first, last = map(_key, ends)
            if first <= key <= last:
                found.append(grip_id)
        return found

    def search_node(self, node_id: str, question: Question) -> tuple[Node, list[Match]]:
        """Where in a node the words of a question occur, best first. Raises NotFound."""
        limit = _checked(question)
        node = self.node(node_id)
        fields = question.fields or ALL_FIELDS
        found, _ = search([node], question.text, fields, read=self._passages)
        matches = list(found[0].matches[:limit]) if found else []
        kept, _ = _within(matches, question.token_budget, lambda match: tokens(match.text))
        return node, kept

    def search_below(
        self, parent_id: str, level: int, question: Question, alive: Alive
    ) -> tuple[list[Found], bool]:
        """The nodes below one that speak of a question, best first, and whether there are more.

        ``level`` 0 looks right below. Raises NotFound, InvalidInput, Cancelled.
        """
        limit = _checked(question)
        below, fields = self._below(parent_id, level, alive), question.fields or ALL_FIELDS
        found, count = search(below, question.text, fields, limit, self._passages)
        kept, cut = _within(found, question.token_budget, _size_of_found)
        return kept, cut or count > limit

    def timeline(self, from_ms: int, to_ms: int, budget: int, level: int) -> Timeline:
        """What happened between two times, at the finest level whose words fit into a budget."""
        for name, value in (("from", from_ms), ("to", to_ms)):
            if not 0 <= value <= TIME_LIMIT_MS:
                raise InvalidInput(f"{name}_timestamp_ms {value} is out of range")
        budget = bounded("token_budget", budget, BUDGET_DEFAULT, 1_000_000)
        levels = [_level(level)] if level else sorted(Level, reverse=True)
        for candidate in levels:
            nodes: deque[Node] = deque(maxlen=PAGE_LIMIT)
            count = size = 0
            found = self._level(candidate, from_ms, to_ms or TIME_LIMIT_MS)
            for count, node in enumerate(found, 1):  # noqa: B007 - wanted after the loop
                nodes.append(node)
                size += node_tokens(node)
                if size > budget and not level and candidate is not Level.YEAR:
                    break
            else:
                return _newest(candidate, nodes, count, 0 if level else budget)
        raise AssertionError("a year always answers")

    def _level(self, level: Level, from_ms: int = 0, to_ms: int = TIME_LIMIT_MS) -> Iterator[Node]:
        """The nodes of a level that reach into a range of time, oldest first."""
        day = self._calendar.day(from_ms)
        if level is Level.SEGMENT:
            first = segment_floor(self._calendar.start_ms(day))
            last = segment_floor(to_ms + 1)
        else:
            first = self._calendar.period(from_ms, level).node_id
            last = self._calendar.period(to_ms, level).node_id
        for node in self._nodes.between(first, last):
            if node.end_ms >= from_ms:
                yield node

    def _below(self, parent_id: str, level: int, alive: Alive) -> Iterator[Node]:
        """The nodes of a level below a node; of the level right below it if none is named."""
        parent = self.node(parent_id) if parent_id else None
        depth = parent.level if parent else 0
        wanted = _level(level) if level else Level(min(depth + 1, Level.SEGMENT))
        if wanted <= depth:
            raise InvalidInput(f"child_level {level} does not lie below {parent_id}")
        span = (parent.start_ms, parent.end_ms - 1) if parent else (0, TIME_LIMIT_MS)
        return _while(alive, self._level(wanted, *span))


def _while(alive: Alive, nodes: Iterator[Node]) -> Iterator[Node]:
    """The nodes, as long as somebody waits for them. Raises Cancelled."""
    for number, node in enumerate(nodes, 1):
        if number % _ASK_EVERY == 0 and not alive():
            raise Cancelled("the caller has gone")
        yield node


def unique_grips(node: Node) -> Iterator[str]:
    """The ids of the grips of a node, each once."""
    yield from dict.fromkeys(g for bullet in node.bullets for g in bullet.grip_ids)


def node_tokens(node: Node) -> int:
    """About how many tokens the words of a node are."""
    return tokens(node.title) + tokens(node.summary) + sum(tokens(b.text) for b in node.bullets)


def _newest(level: Level, nodes: Collection[Node], count: int, budget: int) -> Timeline:
    """The newest of the nodes that fit, of so many; all of them with a budget of 0."""
    kept: list[Node] = []
    size = 0
    for node in reversed(list(nodes)):
        cost = node_tokens(node)
        if budget and kept and size + cost > budget:
            break
        kept.append(node)
        size += cost
    kept.reverse()
    return Timeline(level, kept, size, len(kept) < count)


def _within(items: list[_T], budget: int, size: Callable[[_T], int]) -> tuple[list[_T], bool]:
    """As many of the first items as fit into a budget, at least one; whether some did not."""
    if not budget:
        return items, False
    used = 0
    for number, item in enumerate(items):
        used += size(item)
        if number and used > budget:
            return items[:number], True
    return items, False


def _size_of_found(found: Found) -> int:
    return tokens(found.node.title) + sum(tokens(match.text) for match in found.matches)


def _checked(question: Question) -> int:
    """The limit of a question. Raises InvalidInput if it asks nothing, or too much."""
    if not question.text.strip():
        raise InvalidInput("query is empty: give at least one word")
    if len(question.text) > _QUESTION_LIMIT:
        raise InvalidInput(f"query is longer than {_QUESTION_LIMIT:,} characters")
    if question.token_budget < 0:
        raise InvalidInput(f"token_budget {question.token_budget} is negative")
    return bounded("limit", question.limit, FOUND_DEFAULT, FOUND_LIMIT)


def _level(number: int) -> Level:
    try:
        return Level(number)
    except ValueError:
        raise InvalidInput(f"level {number} is not known") from None


def _check(name: str, value: str) -> None:
    if not value:
        raise InvalidInput(f"{name} is empty")
    check_id(name, value)


def _key(recorded: Recorded) -> bytes:
    return event_key(recorded.event.time_ms, recorded.event.event_id)
