"""Between protobuf messages and the domain's values."""

from operator import attrgetter

import grpc

from memoryd.domain.errors import (
    Cancelled,
    Conflict,
    DiskFull,
    IndexDoubt,
    InvalidInput,
    MemorydError,
    NotFound,
    Outdated,
    ReadOnly,
    Stopping,
    StoreDamaged,
    StoreError,
    TooBusy,
)
from memoryd.domain.event import Appended, Event, Recorded
from memoryd.domain.session import AgentStats, SessionStats
from memoryd.pb import memory_pb2 as pb
from memoryd.services.query import EventQuery, Filter, SessionQuery

# the first row whose class fits decides
_STATUS: tuple[tuple[type[MemorydError], grpc.StatusCode], ...] = (
    (InvalidInput, grpc.StatusCode.INVALID_ARGUMENT),
    (NotFound, grpc.StatusCode.NOT_FOUND),
    (Outdated, grpc.StatusCode.ABORTED),
    (Conflict, grpc.StatusCode.ALREADY_EXISTS),
    (DiskFull, grpc.StatusCode.RESOURCE_EXHAUSTED),
    (ReadOnly, grpc.StatusCode.FAILED_PRECONDITION),
    (Stopping, grpc.StatusCode.UNAVAILABLE),
    (TooBusy, grpc.StatusCode.RESOURCE_EXHAUSTED),
    (Cancelled, grpc.StatusCode.CANCELLED),
    (StoreDamaged, grpc.StatusCode.DATA_LOSS),
    (IndexDoubt, grpc.StatusCode.UNAVAILABLE),
    (StoreError, grpc.StatusCode.FAILED_PRECONDITION),
)


def status_of(error: BaseException) -> grpc.StatusCode | None:
    """The status that an error answers with, or None for one that nobody foresaw."""
    for kind, code in _STATUS:
        if isinstance(error, kind):
            return code
    return None


_fields = attrgetter(
    *("event_id", "session_id", "timestamp_ms", "event_type", "role", "text"),
    *("agent", "project", "parent_id", "turn_id"),
)


def to_event(message: pb.Event) -> Event:
    """The event in a request; what the daemon sets itself is left out."""
    event_id, session, time_ms, type_, role, text, agent, project, parent, turn = _fields(message)
    metadata = message.metadata
    plain = dict(metadata) if len(metadata) else {}  # half the time of all this
    return Event(event_id, session, time_ms, type_, role, text, plain, agent, project, parent, turn)


def from_recorded(recorded: Recorded) -> pb.Event:
    """An event of the log as a message."""
    event, sequence, arrival_ms, store_id, erased_ms = recorded
    return pb.Event(
        event_id=event.event_id,
        session_id=event.session_id,
        timestamp_ms=event.time_ms,
        event_type=event.type,  # type: ignore[arg-type]
        role=event.role,  # type: ignore[arg-type]
        text=event.text,
        metadata=event.metadata,
        agent=event.agent or None,
        project=event.project,
        parent_id=event.parent_id,
        turn_id=event.turn_id,
        arrival_ms=arrival_ms,
        sequence=sequence,
        store_id=store_id,
        erased_ms=erased_ms,
    )


def from_appended(results: list[Appended]) -> pb.IngestEventsResponse:
    """What became of a batch."""
    response = pb.IngestEventsResponse()
    add = response.results.add
    created = refused = 0
    for event_id, sequence, is_new, error, _ in results:
        if error is None:
            add(event_id=event_id, created=is_new, sequence=sequence)
            created += is_new
        else:
            code = status_of(error) or grpc.StatusCode.INTERNAL
            add(event_id=event_id, error=str(error), error_code=code.value[0])
            refused += 1
    response.created = created
    response.refused = refused
    response.deduplicated = len(results) - created - refused
    return response


def to_filter(message: pb.GetEventsRequest | pb.TailEventsRequest) -> Filter:
    """Which events a request asks for. Raises InvalidInput for a number that stands for nothing."""
    for role in message.roles:
        if role not in pb.EventRole.values() or not role:
            raise InvalidInput(f"role {role} is not known")
    for type_ in message.event_types:
        if type_ not in pb.EventType.values() or not type_:
            raise InvalidInput(f"event_type {type_} is not known")
    return Filter(
        session_id=message.session_id,
        agent=message.agent,
        project=message.project,
        roles=frozenset(message.roles),
        types=frozenset(message.event_types),
    )


def to_event_query(message: pb.GetEventsRequest) -> EventQuery:
    """The page that a request asks for."""
    return EventQuery(
        from_ms=message.from_timestamp_ms,
        to_ms=message.to_timestamp_ms,
        filter=to_filter(message),
        newest_first=message.order == pb.EVENT_ORDER_NEWEST_FIRST,
        limit=message.limit,
        max_bytes=message.max_bytes,
        token=message.continuation_token,
    )


def to_session_query(message: pb.ListSessionsRequest) -> SessionQuery:
    """The page of sessions that a request asks for."""
    return SessionQuery(
        agent=message.agent,
        project=message.project,
        since_ms=message.active_since_ms,
        until_ms=message.active_until_ms,
        limit=message.limit,
        token=message.continuation_token,
    )


def from_session(session_id: str, stats: SessionStats) -> pb.Session:
    """A session as a message."""
    return pb.Session(
        session_id=session_id,
        event_count=stats.events,
        first_event_ms=stats.first_ms,
        last_event_ms=stats.last_ms,
        agents=[a for a in stats.agents if a],
        projects=[p for p in stats.projects if p],
    )


def from_agent(agent: str, stats: AgentStats) -> pb.Agent:
    """An agent as a message."""
    return pb.Agent(
        agent=agent,
        event_count=stats.events,
        session_count=stats.sessions,
        first_event_ms=stats.first_ms,
        last_event_ms=stats.last_ms,
    )
