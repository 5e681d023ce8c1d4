"""Gathers what an agent should know into one block, and keeps what was given. Reads, but for that.

A gatherer makes sections out of one source; one that fails costs those, not the block.
The service writes only when the caller says that it injects what it gets.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

from memoryd.domain import context, origin
from memoryd.domain.calendar import Calendar
from memoryd.domain.context import Item, Section, Told
from memoryd.domain.document import Kind
from memoryd.domain.errors import InvalidInput, MemorydError, NotFound
from memoryd.domain.event import EventRole, check_id
from memoryd.domain.toc import Bullet, Level, Node
from memoryd.services.hits import Hit
from memoryd.services.search import Search, SearchQuery
from memoryd.services.toc import Contents
from memoryd.storage.injections import Injection, Injections

FIRST_LOOK_MS: Final = 7 * 24 * 3_600_000  # how far back an agent sees that has never looked
_SINCE_TOKENS: Final = 2_000
_QUERY_LIMIT: Final = 10_000
_HITS: Final = 8
_EVENTS: Final = frozenset((int(Kind.EVENT),))
_LEVELS: Final = {Level.DAY: "%a %d %b", Level.SEGMENT: "%a %d %b %H:%M"}


class Ask(NamedTuple):
    """Who asks for a block, about what, and since when that agent has not looked."""

    session_id: str = ""
    agent: str = ""
    query: str = ""
    project: str = ""
    only: tuple[str, ...] = ()  # names of sections; all if there is none
    now_ms: int = 0
    since_ms: int = 0


class Gatherer(Protocol):
    """Makes sections of some names; none of those that have nothing to say."""

    @property
    def names(self) -> tuple[str, ...]:
        """Which sections it makes."""

    def gather(self, ask: Ask) -> list[Section]:
        """The sections for a question. Raises MemorydError."""


class Given(NamedTuple):
    """A block, what is in it, and under which number of its session it is kept; 0: it is not."""

    text: str
    sections: tuple[Told, ...]
    budget: int
    number: int
    time_ms: int


class ContextBlocks:
    """Makes blocks, and finds those that were given. Safe to call from many threads."""

    def __init__(
        self,
        gatherers: Sequence[Gatherer],
        injections: Injections,
        clock_ms: Callable[[], int],
        note: Callable[[str, str], object],
    ) -> None:
        """``note`` takes the name of an operation and what went wrong in it."""
        self._gatherers = gatherers
        self._injections = injections
        self._clock_ms = clock_ms
        self._note = note

    def make(self, ask: Ask, budget_bytes: int, budget_tokens: int, *, inject: bool) -> Given:
        """A block for a session as things are now; kept if it is injected and not empty.

        Raises InvalidInput, and ReadOnly if it cannot be kept.
        """
        most = context.budget(budget_bytes, budget_tokens)
        _check(ask, inject=inject)
        now = self._clock_ms()
        last = self._injections.last_ms(ask.agent) if ask.agent else 0
        ask = ask._replace(now_ms=now, since_ms=last or now - FIRST_LOOK_MS)
        sections, failed = self._gathered(ask)
        block = context.compose(sections, most)
        told = block.sections + failed
        number = 0
        if inject and block.text:
            number = self._injections.add(
                Injection(ask.session_id, 0, now, ask.agent, ask.query, most, block.text, told)
            ).number
        return Given(block.text, told, most, number, now)

    def as_of(self, session_id: str, number: int) -> Given:
        """A block as a session was given it, the last one if ``number`` is 0. Raises NotFound."""
        check_id("as_of_session", session_id)
        found = self._injections.get(session_id, number or self._injections.count(session_id))
        if found is None:
            which = f"block {number}" if number else "block"
            raise NotFound(f"session {session_id!r} was given no {which}")
        told = tuple(Told(*section) for section in found.sections)
        return Given(found.text, told, found.budget, found.number, found.time_ms)

    def _gathered(self, ask: Ask) -> tuple[list[Section], tuple[Told, ...]]:
        """The sections, and those that could not be had."""
        sections: list[Section] = []
        failed: list[Told] = []
        wanted = set(ask.only or context.PRIORITY)
        for gatherer in self._gatherers:
            if wanted.isdisjoint(gatherer.names):
                continue
            try:
                sections += [s for s in gatherer.gather(ask) if s.name in wanted]
            except MemorydError as error:
                self._note("context", str(error))
                failed += [Told(name, context.UNAVAILABLE, (), ()) for name in gatherer.names]
        return sections, tuple(failed)


class Since:
    """What happened since an agent last looked, newest first, without its own session."""

    names = (context.SINCE,)

    def __init__(self, contents: Contents, calendar: Calendar) -> None:
        self._contents = contents
        self._calendar = calendar

    def gather(self, ask: Ask) -> list[Section]:
        """Nodes of the finest level that fits, with their bullets and grips."""
        line = self._contents.timeline(ask.since_ms, ask.now_ms, _SINCE_TOKENS, 0)
        own = {ask.session_id}
        told = (n for n in reversed(line.nodes) if n.title or n.bullets)
        nodes = [n for n in told if not own.issuperset(n.session_ids)]
        if not nodes:
            return []
        day = self._calendar.wall(ask.since_ms).strftime("%d %B %Y")
        items = tuple(map(self._item, nodes))
        return [Section(context.SINCE, f"What happened since {day}", items)]

    def _item(self, node: Node) -> Item:
        form = _LEVELS.get(node.level)
        wall = self._calendar.wall(node.start_ms)
        when = wall.strftime(form) if form else node.node_id.rpartition(":")[2]
        sources = self._contents.sources(node)
        partly = f" ({origin.PARTLY})" if any(map(origin.less_trusted, sources)) else ""
        lines = [f"{when}: {node.title}{partly}", *map(_line, node.bullets, sources)]
        return Item(node.node_id, "\n".join(lines))


def _line(bullet: Bullet, sources: list[str]) -> str:
    mark = origin.MARK if origin.less_trusted(sources) else ""
    return f"- {mark}{' '.join(bullet.text.split())} [{', '.join(bullet.grip_ids)}]"


class Hits:
    """What was said about the query, best first, with the grips that stand on it."""

    names = (context.HITS,)

    def __init__(self, search: Search, contents: Contents, calendar: Calendar) -> None:
        self._search = search
        self._contents = contents
        self._calendar = calendar

    def gather(self, ask: Ask) -> list[Section]:
        """Turns of other sessions that answer the query."""
        if not ask.query.strip():
            return []
        query = SearchQuery(
            ask.query, _EVENTS, limit=2 * _HITS, now_ms=ask.now_ms, project=ask.project
        )
        hits = self._search.teleport(query).hits
        others = [h for h in hits if h.recorded and h.head.session != (ask.session_id or None)]
        items = tuple(map(self._item, others[:_HITS]))
        words = " ".join(ask.query.split())[:80]
        return [Section(context.HITS, f"Found for: {words}", items)] if items else []

    def _item(self, hit: Hit) -> Item:
        wall = self._calendar.wall(hit.head.time_ms)
        grips = self._contents.grips_on(hit.recorded) if hit.recorded else []
        who = EventRole(hit.head.role).name.lower() if hit.head.role else "somebody"
        text = f"{wall:%d %b %Y %H:%M}, {who}: {' '.join(hit.snippet.text.split())}"
        return Item(", ".join((*grips, hit.head.id)), text, hit.head.role == EventRole.TOOL)


def _check(ask: Ask, *, inject: bool) -> None:
    for name, value in (
        ("session_id", ask.session_id),
        ("agent", ask.agent),
        ("project", ask.project),
    ):
        check_id(name, value)
    for name in ask.only:
        if name not in context.PRIORITY:
            known = ", ".join(context.PRIORITY)
            raise InvalidInput(f"section {name[:80]!r} is not known: take some of {known}")
    if len(ask.query) > _QUERY_LIMIT:
        raise InvalidInput(f"query is longer than {_QUERY_LIMIT:,} characters")
    if inject and not ask.session_id:
        raise InvalidInput("inject is set, but session_id is empty: name the session it goes to")
