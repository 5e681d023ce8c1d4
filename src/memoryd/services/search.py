"""Answers questions: asks the index for candidates, `rank` for their order, `hits` for the words.

Unless kinds are named, events and notes answer. A node or a grip follows only where these do not
fill the answer, and only if it stands on none of the events in it, which name it themselves: it
mostly says again what an event says, and would take the event's place.

Reads never write. While the index is incomplete the answer says so; an index that fails a
question is put in doubt, and the answer is empty and says why.
"""

from collections.abc import Callable
from datetime import timedelta, timezone
from heapq import merge
from typing import Final, NamedTuple

from memoryd.domain import analyze, question, rank, when
from memoryd.domain.document import DERIVED, KIND_NAMES, ROLE_NAMES, Head, Kind
from memoryd.domain.errors import IndexDoubt, InvalidInput, NotFound
from memoryd.domain.event import TIME_LIMIT_MS, EventRole, check_id
from memoryd.domain.note import SCOPES, check_word
from memoryd.domain.question import Question
from memoryd.domain.session import SessionStats
from memoryd.index.reader import POOL, Filters
from memoryd.services.asking import Asking, about
from memoryd.services.hits import Hit, Hits
from memoryd.services.indexer import Indexer, IndexState
from memoryd.services.whereabouts import is_segment
from memoryd.storage.log import Log

LIMIT_DEFAULT: Final = 10
LIMIT_MOST: Final = 100
OFFSET_MOST: Final = 1_000
_SESSION_SHARE: Final = 0.25  # of each further turn, for the score of a session
_DAY_MINUTES: Final = 24 * 60
_KINDS: Final = {name: kind for kind, name in KIND_NAMES.items()}
_ROLES: Final = {name: role for role, name in ROLE_NAMES.items()}


class SearchQuery(NamedTuple):
    """A question with its filters; an empty part asks for nothing in particular."""

    text: str
    kinds: frozenset[int] = frozenset()
    roles: frozenset[int] = frozenset()
    agent: str = ""
    session_id: str = ""
    project: str = ""
    node_id: str = ""
    scope: str = ""
    from_ms: int = 0
    to_ms: int = 0
    limit: int = 0
    offset: int = 0
    now_ms: int = 0
    utc_offset_minutes: int = 0
    half_life_ms: int = 0
    per_session: int = 0


class Answer(NamedTuple):
    """What was found, in how many documents, and whether the index was complete."""

    hits: list[Hit]
    documents: int
    state: IndexState


class SessionHit(NamedTuple):
    """A session that matters for a question, and its best turns."""

    session_id: str
    score: float
    stats: SessionStats | None
    hits: list[Hit]


class Search:
    """The searching side. Safe to call from many threads."""

    def __init__(self, log: Log, indexer: Indexer, hits: Hits, clock_ms: Callable[[], int]) -> None:
        self._log = log
        self._hits = hits
        self._indexer = indexer
        self._clock_ms = clock_ms

    def teleport(self, query: SearchQuery) -> Answer:
        """The best documents for a question. Raises InvalidInput for filters out of range."""
        limit, offset = _page(query)
        asked = question.read(query.text)
        ranked, documents = self._ranked(asked, query, limit + offset, filled=True)
        wanted = frozenset(term.token for term in asked.terms)
        hits = [self._hit(found, wanted) for found in ranked[offset : offset + limit]]
        return Answer([h for h in hits if h is not None], documents, self._indexer.state())

    def sessions(
        self, query: SearchQuery, hits_each: int
    ) -> tuple[list[SessionHit], int, IndexState]:
        """The sessions that matter for a question, each with its best turns."""
        limit, offset = _page(query)
        each = min(max(1, hits_each or 3), 10)
        asked = question.read(query.text)
        ranked, documents = self._ranked(asked, query, POOL)
        groups: dict[str, list[rank.Ranked]] = {}
        for found in ranked:
            if found.head.session:
                groups.setdefault(found.head.session, []).append(found)
        scores = {name: _session_score(members) for name, members in groups.items()}
        order = sorted(groups, key=lambda name: (-scores[name], name))[offset : offset + limit]
        wanted = frozenset(term.token for term in asked.terms)
        made = [
            SessionHit(
                name,
                scores[name],
                self._log.session(name),
                [h for h in (self._hit(f, wanted) for f in groups[name][:each]) if h is not None],
            )
            for name in order
        ]
        return made, documents, self._indexer.state()

    def related(self, event_id: str, node_id: str, query: SearchQuery) -> Answer:
        """What is like an event, or like a node and not in it. Raises NotFound."""
        if bool(event_id) == bool(node_id):
            raise InvalidInput("event_id and node_id: one of them is needed")
        check_id("event_id", event_id)
        check_id("node_id", node_id)
        limit, offset = _page(query)
        query = query._replace(text="")
        if event_id:
            asked = about(self._log.get(event_id).event.text)
            ranked, documents = self._ranked(asked, query, limit + offset + 1)
            others = [f for f in ranked if (f.head.kind, f.head.id) != (Kind.EVENT, event_id)]
        else:
            words, around = self._hits.gist(node_id)
            asked = about(words)
            ranked, documents = self._ranked(asked, query, POOL)
            others = [f for f in ranked if not self._within(f.head, node_id, around)]
        wanted = frozenset(term.token for term in asked.terms)
        hits = [self._hit(found, wanted) for found in others[offset : offset + limit]]
        return Answer([h for h in hits if h is not None], documents, self._indexer.state())

    def _within(self, head: Head, node_id: str, around: frozenset[str]) -> bool:
        """Whether a document lies in a node, or is the node or one above it."""
        if head.kind == Kind.EVENT:
            return node_id in self._path(head)
        return head.id in around or node_id in head.path

    def _ranked(
        self, asked: Question, query: SearchQuery, wanted: int, *, filled: bool = False
    ) -> tuple[list[rank.Ranked], int]:
        """At least so many results, if there are, and the number of documents.

        With ``filled``, nodes and grips fill up what events and notes leave empty.
        """
        filters = _filters(query, asked)
        reader = self._indexer.reader
        if reader is None or filters is None:
            return [], 0
        said, gist = _parts(filters)
        asking = Asking(reader, asked, _wishes(query, query.now_ms or self._clock_ms()), wanted)
        try:
            documents = max(0, reader.count() - 1)  # a new index has no state yet
            if not asked.terms and not asked.without and filters == Filters():
                return [], documents
            ranked = self._said(asking, said) if said is not None else []
            if gist is not None and filters.kinds:
                return list(merge(ranked, asking.ranked(gist), key=_best_first)), documents
            if gist is not None and filled and asked.terms and len(ranked) < wanted:
                ranked += self._unsaid(ranked, asking.ranked(gist))
        except IndexDoubt as error:
            self._indexer.doubt(str(error))
            return [], 0
        return ranked, documents

    def _said(self, asking: Asking, filters: Filters) -> list[rank.Ranked]:
        """Events and notes. Those below a node are those of its time and session."""
        node_id = filters.node
        if not node_id:
            return asking.ranked(filters)
        span = self._hits.whereabouts.span(node_id)
        if filters.session and span.session and filters.session != span.session:
            return []
        inside = filters._replace(
            node="",
            session=span.session or filters.session,
            from_ms=max(filters.from_ms, span.from_ms),
            to_ms=min(filters.to_ms or span.to_ms, span.to_ms),
        )
        if inside.from_ms > inside.to_ms:
            return []
        found = asking.ranked(inside)
        if is_segment(node_id):  # two segments of a session may share a millisecond
            found = [f for f in found if node_id in self._path(f.head) or f.head.kind == Kind.NOTE]
        return found

    def _unsaid(self, said: list[rank.Ranked], gist: list[rank.Ranked]) -> list[rank.Ranked]:
        """Nodes and grips that stand on none of the events that are said, behind these."""
        events = [found.head for found in said if found.head.kind == Kind.EVENT]
        known = {head.id for head in events}
        above = {node_id for head in events for node_id in self._path(head)}
        least = said[-1].score if said else float("inf")
        return [
            found._replace(score=min(found.score, least))
            for found in gist
            if found.head.id not in above
            and (found.head.kind != Kind.GRIP or not self._hits.stands_on(found.head) & known)
        ]

    def _path(self, head: Head) -> tuple[str, ...]:
        return self._hits.whereabouts.of_event(head.session, head.time_ms, head.id)

    def _hit(self, found: rank.Ranked, wanted: frozenset[str]) -> Hit | None:
        """The words of a found document; None for one that is no more."""
        try:
            return self._hits.of(found, wanted)
        except NotFound:
            self._indexer.doubt("it knows an event that the log does not hold")
            return None


def _wishes(query: SearchQuery, now_ms: int) -> rank.Wishes:
    """What the caller wants beyond the best first."""
    zone = timezone(timedelta(minutes=query.utc_offset_minutes))
    periods = when.periods(query.text[: question.LENGTH_LIMIT], now_ms, zone)
    return rank.Wishes(periods, query.half_life_ms, now_ms, query.per_session)


def _parts(filters: Filters) -> tuple[Filters | None, Filters | None]:
    """The filters for events and notes, and those for nodes and grips; None: none are wanted."""
    kinds = frozenset(filters.kinds) or frozenset(Kind)
    said, gist = kinds - DERIVED, kinds & DERIVED
    every = not filters.kinds  # the text field alone keeps the others out then
    return (
        filters._replace(kinds=() if every else tuple(sorted(said))) if said else None,
        filters._replace(kinds=tuple(sorted(gist))) if gist else None,
    )


def _best_first(found: rank.Ranked) -> tuple[float, int]:
    return -found.score, -found.head.time_ms


def _filters(query: SearchQuery, asked: Question) -> Filters | None:
    """What request and question ask for together; None if nothing can fulfil both."""
    kinds, roles = set(query.kinds), set(query.roles)
    values = {"agent": query.agent, "session": query.session_id, "project": query.project}
    values["scope"] = query.scope
    speaker: tuple[str, ...] = ()
    for name, value in asked.fields:
        if name in {"kind", "role"}:
            known: dict[str, int] = {**(_KINDS if name == "kind" else _ROLES)}
            into = kinds if name == "kind" else roles
            number = known.get(value.lower())
            if number is None or (into and number not in into):
                return None
            into &= {number}
            into.add(number)
        elif name == "speaker":
            speaker += tuple(analyze.tokens(value))
        elif values[name] and values[name] != value:
            return None
        else:
            values[name] = value
    return Filters(
        kinds=tuple(sorted(Kind(kind) for kind in kinds)),
        roles=tuple(sorted(ROLE_NAMES[EventRole(role)] for role in roles)),
        **values,
        node=query.node_id,
        speaker=speaker,
        from_ms=query.from_ms,
        to_ms=query.to_ms,
    )


def _page(query: SearchQuery) -> tuple[int, int]:
    """Limit and offset. Raises InvalidInput for what is out of range."""
    if query.limit < 0:
        raise InvalidInput(f"limit {query.limit} is negative")
    if not 0 <= query.offset <= OFFSET_MOST:
        raise InvalidInput(
            f"offset {query.offset} is out of range: it lies between 0 and {OFFSET_MOST}"
        )
    for name, value in (
        ("from_timestamp_ms", query.from_ms),
        ("to_timestamp_ms", query.to_ms),
        ("now_ms", query.now_ms),
        ("recency_half_life_ms", query.half_life_ms),
        ("per_session", query.per_session),
    ):
        if not 0 <= value <= TIME_LIMIT_MS:
            raise InvalidInput(f"{name} {value} is out of range")
    if not -_DAY_MINUTES < query.utc_offset_minutes < _DAY_MINUTES:
        raise InvalidInput(f"utc_offset_minutes {query.utc_offset_minutes} is more than a day")
    for name, text in (
        ("agent_filter", query.agent),
        ("session_id", query.session_id),
        ("project", query.project),
        ("node_id", query.node_id),
    ):
        check_id(name, text)
    if query.scope:
        check_word("scope", query.scope, SCOPES)
    return min(query.limit, LIMIT_MOST) or LIMIT_DEFAULT, query.offset


def _session_score(members: list[rank.Ranked]) -> float:
    """A session's best turn, and a falling share of its next ones."""
    return sum(found.score * _SESSION_SHARE**place for place, found in enumerate(members[:4]))
