"""Between the messages of search and the domain's values."""

from typing import Final

from memoryd.domain.document import Kind
from memoryd.domain.errors import InvalidInput
from memoryd.pb import memory_pb2 as pb
from memoryd.rpc.convert import from_session
from memoryd.services.hits import Hit
from memoryd.services.indexer import IndexStatus
from memoryd.services.search import Answer, SearchQuery, SessionHit

_KINDS: Final = {
    pb.TELEPORT_DOC_TYPE_EVENT: Kind.EVENT,
    pb.TELEPORT_DOC_TYPE_TOC_NODE: Kind.NODE,
    pb.TELEPORT_DOC_TYPE_GRIP: Kind.GRIP,
    pb.TELEPORT_DOC_TYPE_NOTE: Kind.NOTE,
}
_TYPES: Final = {int(kind): type_ for type_, kind in _KINDS.items()}


def to_search(message: pb.TeleportSearchRequest) -> SearchQuery:
    """The question in a request. Raises InvalidInput for a number that stands for nothing."""
    for role in message.roles:
        if role not in pb.EventRole.values() or not role:
            raise InvalidInput(f"role {role} is not known")
    types = [*message.doc_types, *([message.doc_type] if message.doc_type else [])]
    for type_ in types:
        if type_ not in _KINDS:
            raise InvalidInput(f"doc_type {type_} is not known")
    return SearchQuery(
        text=message.query,
        kinds=frozenset(_KINDS[type_] for type_ in types),
        roles=frozenset(message.roles),
        agent=message.agent_filter,
        session_id=message.session_id,
        project=message.project,
        node_id=message.node_id,
        scope=message.scope,
        from_ms=message.from_timestamp_ms,
        to_ms=message.to_timestamp_ms,
        limit=message.limit,
        offset=message.offset,
        now_ms=message.now_ms,
        utc_offset_minutes=message.utc_offset_minutes,
        half_life_ms=message.recency_half_life_ms,
        per_session=message.per_session,
    )


def from_hit(hit: Hit, *, explain: bool) -> pb.TeleportSearchResult:
    """A result as a message."""
    head = hit.head
    return pb.TeleportSearchResult(
        doc_id=head.id,
        doc_type=_TYPES[head.kind],
        score=hit.score,
        timestamp_ms=head.time_ms,
        agent=hit.agent or None,
        keywords=", ".join(hit.keywords) or None,
        session_id=head.session,
        event_id=hit.recorded.event.event_id if hit.recorded else "",
        sequence=head.sequence,
        role=head.role,  # type: ignore[arg-type]
        project=hit.project,
        snippet=hit.snippet.text,
        highlights=[pb.Highlight(start=a, end=b) for a, b in hit.snippet.highlights],
        snippet_offset=hit.snippet.offset,
        node_ids=hit.path,
        segment_id=hit.segment_id,
        grip_ids=hit.grip_ids,
        title=hit.title,
        scope=head.scope,
        origin=hit.origin,
        less_trusted=hit.less_trusted,
        reasons=[pb.Reason(name=k, value=v) for k, v in hit.reasons.items()] if explain else (),
    )


def from_answer(answer: Answer, *, explain: bool) -> pb.TeleportSearchResponse:
    """What was found."""
    return pb.TeleportSearchResponse(
        results=[from_hit(hit, explain=explain) for hit in answer.hits],
        total_docs=answer.documents,
        index_state=int(answer.state),  # type: ignore[arg-type]
    )


def from_related(answer: Answer, *, explain: bool) -> pb.FindRelatedResponse:
    """What was found to be alike."""
    return pb.FindRelatedResponse(
        results=[from_hit(hit, explain=explain) for hit in answer.hits],
        total_docs=answer.documents,
        index_state=int(answer.state),  # type: ignore[arg-type]
    )


def from_session_hit(hit: SessionHit, *, explain: bool) -> pb.SessionResult:
    """A session with its best turns."""
    known = from_session(hit.session_id, hit.stats) if hit.stats is not None else None
    return pb.SessionResult(
        session=known or pb.Session(session_id=hit.session_id),
        score=hit.score,
        results=[from_hit(found, explain=explain) for found in hit.hits],
    )


def from_status(status: IndexStatus) -> pb.GetIndexStatusResponse:
    """How the index is doing."""
    return pb.GetIndexStatusResponse(
        state=int(status.state),  # type: ignore[arg-type]
        sequence=status.sequence,
        log_sequence=status.log_sequence,
        documents=status.documents,
        disk_bytes=status.bytes,
        segments=status.segments,
        reason=status.reason,
        rebuilds=status.rebuilds,
    )


def from_progress(status: IndexStatus) -> pb.RebuildIndexResponse:
    """How far the work is."""
    return pb.RebuildIndexResponse(
        done=status.sequence,
        total=status.log_sequence,
        state=int(status.state),  # type: ignore[arg-type]
        reason=status.reason,
    )
