"""Reads the log: pages of events, single events, the growing end, sessions and agents.

Reads never write. A long scan asks its caller now and then whether anybody still waits.
"""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from memoryd.domain.errors import Cancelled, InvalidInput
from memoryd.domain.event import TIME_LIMIT_MS, Event, Recorded, check_id
from memoryd.domain.keys import time_floor
from memoryd.domain.session import AgentStats, SessionStats
from memoryd.services.paging import PAGE_DEFAULT, PAGE_LIMIT, bounded, make_token, read_token
from memoryd.storage.committer import Committer
from memoryd.storage.log import Log

BYTES_DEFAULT: Final = 3 * 1024 * 1024
BYTES_LIMIT: Final = 32 * 1024 * 1024
_SCAN_LIMIT: Final = 20_000
_ASK_EVERY: Final = 256
_EVENT_OVERHEAD: Final = 200

Alive = Callable[[], bool]


class Filter(NamedTuple):
    """Which events are wanted; an empty part asks for nothing in particular."""

    session_id: str = ""
    agent: str = ""
    project: str = ""
    roles: frozenset[int] = frozenset()
    types: frozenset[int] = frozenset()

    def matches(self, recorded: Recorded) -> bool:
        """Whether an event is wanted."""
        event = recorded.event
        return (
            (not self.session_id or event.session_id == self.session_id)
            and (not self.agent or event.agent == self.agent)
            and (not self.project or event.project == self.project)
            and (not self.roles or event.role in self.roles)
            and (not self.types or event.type in self.types)
        )


class EventQuery(NamedTuple):
    """A page of events: a range of time with both ends included, a filter, a direction."""

    from_ms: int = 0
    to_ms: int = 0
    filter: Filter = Filter()
    newest_first: bool = False
    limit: int = 0
    max_bytes: int = 0
    token: str = ""


class Page(NamedTuple):
    """Some of what was asked for, and the token for the rest, empty at the end."""

    events: list[Recorded]
    token: str


class SessionQuery(NamedTuple):
    """A page of sessions."""

    agent: str = ""
    project: str = ""
    since_ms: int = 0
    until_ms: int = 0
    limit: int = 0
    token: str = ""


class Query:
    """The reading side. Safe to call from many threads."""

    def __init__(self, log: Log, committer: Committer) -> None:
        self._log = log
        self._committer = committer

    def event(self, event_id: str) -> Recorded:
        """One event. Raises NotFound, or InvalidInput without an id."""
        if not event_id:
            raise InvalidInput("event_id is empty")
        check_id("event_id", event_id)
        return self._log.get(event_id)

    def events(self, query: EventQuery, alive: Alive) -> Page:
        """One page. Raises InvalidInput for bad bounds or a foreign token, Cancelled if unwanted."""
        limit = bounded("limit", query.limit, PAGE_DEFAULT, PAGE_LIMIT)
        max_bytes = bounded("max_bytes", query.max_bytes, BYTES_DEFAULT, BYTES_LIMIT)
        for name, value in (("from", query.from_ms), ("to", query.to_ms)):
            if not 0 <= value <= TIME_LIMIT_MS:
                raise InvalidInput(f"{name}_timestamp_ms {value} is out of range")
        fingerprint = repr((query.from_ms, query.to_ms, _sorted(query.filter), query.newest_first))
        start, stop = _range(query, read_token(query.token, fingerprint))
        found: list[Recorded] = []
        size, last = 0, b""
        for scanned, (key, recorded) in enumerate(self._scan(query, start, stop), 1):
            if scanned % _ASK_EVERY == 0 and not alive():
                raise Cancelled("the caller has gone")
            if query.filter.matches(recorded):
                bytes_ = _size(recorded)
                if found and size + bytes_ > max_bytes:
                    return Page(found, make_token(fingerprint, last))
                found.append(recorded)
                size += bytes_
                if len(found) > limit:
                    return Page(found[:limit], make_token(fingerprint, last))
            last = key
            if scanned >= _SCAN_LIMIT:
                return Page(found, make_token(fingerprint, last))
        return Page(found, "")

    def nearby(self, event: Event, window_ms: int) -> Iterator[Event]:
        """What an event's session holds within so many milliseconds of it."""
        start = time_floor(event.time_ms - window_ms)
        stop = time_floor(event.time_ms + window_ms + 1)
        for _, recorded in self._log.by_session(event.session_id, start, stop):
            yield recorded.event

    def tail(self, after: int | None, wanted: Filter, alive: Alive) -> Iterator[Recorded]:
        """Events in the order of writing, behind a number (None: the present end), for ever."""
        position = self._committer.synced if after is None else after
        while alive():
            end = self._committer.wait_beyond(position, 0.5)
            if end <= position:
                continue
            for recorded in self._log.after(position, end):
                if wanted.matches(recorded):
                    yield recorded
                if not alive():
                    return
            position = end

    def sessions(self, query: SessionQuery) -> tuple[list[tuple[str, SessionStats]], str]:
        """One page of sessions, most recently active first, and the token for the rest."""
        limit = bounded("limit", query.limit, PAGE_DEFAULT, PAGE_LIMIT)
        fingerprint = repr(query._replace(limit=0, token=""))
        position = read_token(query.token, fingerprint)
        wanted = [(s, stats) for s, stats in self._log.sessions() if _session_matches(stats, query)]
        wanted.sort(key=_session_order)
        if position:
            wanted = [item for item in wanted if _session_key(item) > position]
        page = wanted[:limit]
        more = len(wanted) > limit
        return page, make_token(fingerprint, _session_key(page[-1])) if more else ""

    def agents(self) -> list[tuple[str, AgentStats]]:
        """Every agent, most recently active first."""
        return sorted(self._log.agents().items(), key=lambda item: (-item[1].last_ms, item[0]))

    def _scan(
        self, query: EventQuery, start: bytes, stop: bytes | None
    ) -> Iterator[tuple[bytes, Recorded]]:
        session = query.filter.session_id
        if session:
            return self._log.by_session(session, start, stop, reverse=query.newest_first)
        return self._log.by_time(start, stop, reverse=query.newest_first)


def _range(query: EventQuery, resume: bytes) -> tuple[bytes, bytes | None]:
    """The keys between which to scan: the range of time, less what was given already."""
    start = time_floor(query.from_ms) if query.from_ms else b""
    stop = time_floor(query.to_ms + 1) if query.to_ms else None
    if resume and query.newest_first:
        return start, resume
    return (resume + b"\0" if resume else start), stop


def _size(recorded: Recorded) -> int:
    """About how many bytes an event takes in an answer; never much less than it really does."""
    event = recorded.event
    size = len(event.text) if event.text.isascii() else len(event.text.encode())
    for name, value in event.metadata.items():
        size += len(name.encode()) + len(value.encode()) + 8
    return size + len(event.session_id) + len(event.event_id) + _EVENT_OVERHEAD


def _sorted(wanted: Filter) -> tuple[object, ...]:
    return (*wanted[:3], sorted(wanted.roles), sorted(wanted.types))


def _session_matches(stats: SessionStats, query: SessionQuery) -> bool:
    return (
        (not query.agent or query.agent in stats.agents)
        and (not query.project or query.project in stats.projects)
        and (not query.since_ms or stats.last_ms >= query.since_ms)
        and (not query.until_ms or stats.first_ms <= query.until_ms)
    )


def _session_order(item: tuple[str, SessionStats]) -> tuple[int, str]:
    return -item[1].last_ms, item[0]


def _session_key(item: tuple[str, SessionStats]) -> bytes:
    """Bytes in the order of `_session_order`."""
    return (2**63 - item[1].last_ms).to_bytes(8, "big") + item[0].encode()
