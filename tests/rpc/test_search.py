import time

import grpc
import pytest

from memoryd.pb import memory_pb2 as pb
from tests.faults.driver import House
from tests.rpc.conftest import Served


@pytest.fixture(scope="module")
def talk(served: Served) -> Served:
    """A daemon that has heard a short conversation, all of it searchable."""
    texts = (
        (pb.EVENT_ROLE_USER, "Why does getUserName fail with ECONNREFUSED?"),
        (pb.EVENT_ROLE_ASSISTANT, "The pool in src/net/pool.py was closed too early"),
        (pb.EVENT_ROLE_TOOL, "npm ERR! code EACCES"),
    )
    for number, (role, text) in enumerate(texts, 1):
        event = pb.Event(
            event_id=f"turn-{number}",
            session_id="talk",
            timestamp_ms=1_000 * number,
            role=role,
            text=text,
            agent="codex",
        )
        served.stub.IngestEvent(pb.IngestEventRequest(event=event), timeout=30)
    deadline = time.monotonic() + 60
    while True:
        status = served.stub.GetIndexStatus(pb.GetIndexStatusRequest(), timeout=30)
        if status.sequence >= 3 and status.state == pb.INDEX_STATE_READY:
            return served
        assert time.monotonic() < deadline, status
        time.sleep(0.05)


def find(served: Served, query: str, **more: object) -> pb.TeleportSearchResponse:
    """One search."""
    request = pb.TeleportSearchRequest(query=query, **more)  # type: ignore[arg-type]
    return served.stub.TeleportSearch(request, timeout=30)


def test_a_result_tells_what_was_found(talk: Served) -> None:
    """A result has the ids, who spoke and when, and the words that fit."""
    answer = find(talk, "get_user_name")
    first = answer.results[0]
    assert answer.index_state == pb.INDEX_STATE_READY
    assert answer.total_docs >= 3
    assert (first.doc_id, first.event_id, first.session_id) == ("turn-1", "turn-1", "talk")
    assert first.doc_type == pb.TELEPORT_DOC_TYPE_EVENT
    assert (first.role, first.agent, first.timestamp_ms) == (pb.EVENT_ROLE_USER, "codex", 1_000)
    marked = [first.snippet[m.start : m.end] for m in first.highlights]
    assert marked == ["getUserName"]
    assert not first.reasons


def test_explain_gives_reasons(talk: Served) -> None:
    """With explain, every result says what its score is made of."""
    found = find(talk, "pool.py", explain=True).results
    assert {reason.name for reason in found[0].reasons} >= {"terms", "around", "kind", "time"}


def test_filters_are_taken_from_the_request(talk: Served) -> None:
    """Roles, times, types and agents that do not fit find nothing."""
    assert len(find(talk, "pool", roles=[pb.EVENT_ROLE_ASSISTANT]).results) == 1
    assert not find(talk, "pool", roles=[pb.EVENT_ROLE_TOOL]).results
    assert not find(talk, "pool", from_timestamp_ms=5_000).results
    assert not find(talk, "pool", doc_type=pb.TELEPORT_DOC_TYPE_NOTE).results
    assert not find(talk, "pool", scope="global").results
    assert not find(talk, "pool", agent_filter="other").results
    assert len(find(talk, "", session_id="talk").results) == 3


@pytest.mark.parametrize(
    "more", [{"limit": -1}, {"doc_types": [77]}, {"roles": [9]}, {"scope": "all"}]
)
def test_bad_requests_are_refused(talk: Served, more: dict[str, object]) -> None:
    """What is out of range is INVALID_ARGUMENT."""
    with pytest.raises(grpc.RpcError) as caught:
        find(talk, "pool", **more)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_sessions_and_relatives_are_found(talk: Served) -> None:
    """The session of a question and the events like another come by their own calls."""
    search = pb.TeleportSearchRequest(query="pool closed")
    sessions = talk.stub.SearchSessions(pb.SearchSessionsRequest(search=search), timeout=30)
    assert [s.session.session_id for s in sessions.sessions] == ["talk"]
    assert sessions.sessions[0].session.event_count == 3
    related = talk.stub.FindRelated(pb.FindRelatedRequest(event_id="turn-2"), timeout=30)
    assert "turn-2" not in [r.doc_id for r in related.results]
    with pytest.raises(grpc.RpcError) as caught:
        talk.stub.FindRelated(pb.FindRelatedRequest(event_id="none"), timeout=30)
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND


def test_a_rebuild_tells_how_far_it_is(talk: Served) -> None:
    """The stream ends when the index is ready, and search finds the same."""
    told = list(talk.stub.RebuildIndex(pb.RebuildIndexRequest(), timeout=120))
    assert (told[-1].done, told[-1].total) == (3, 3)
    assert told[-1].state == pb.INDEX_STATE_READY
    assert find(talk, "EACCES").results[0].doc_id == "turn-3"
    status = talk.stub.GetStatus(pb.GetStatusRequest(), timeout=30)
    assert (status.index_state, status.indexed_sequence) == (pb.INDEX_STATE_READY, 3)


def test_what_follows_from_events_is_found_with_its_place(talk: Served) -> None:
    """A node and a grip come when they are asked for; an event says which ones it lies under."""
    deadline = time.monotonic() + 60
    while not find(talk, "pool", doc_type=pb.TELEPORT_DOC_TYPE_TOC_NODE).results:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    nodes = find(talk, "pool", doc_type=pb.TELEPORT_DOC_TYPE_TOC_NODE).results
    segment = next(n for n in nodes if n.doc_id.startswith("toc:segment:"))
    assert segment.title
    assert segment.snippet
    assert segment.session_id == "talk"
    event = find(talk, "pool.py").results[0]
    assert event.event_id == "turn-2"
    assert event.segment_id == segment.doc_id == event.node_ids[-1]
    assert event.node_ids[0] == "toc:year:1970"
    related = pb.FindRelatedRequest(node_id=segment.doc_id)
    assert not talk.stub.FindRelated(related, timeout=30).results  # all that was said lies in it
    inside = find(talk, "pool", node_id=segment.doc_id).results
    assert "turn-2" in [result.doc_id for result in inside]
    for result in find(talk, "pool", doc_type=pb.TELEPORT_DOC_TYPE_GRIP).results:
        assert list(result.grip_ids) == [result.doc_id]
        assert result.segment_id == segment.doc_id
    with pytest.raises(grpc.RpcError) as caught:
        find(talk, "pool", node_id="toc:year:1999")
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND


def test_a_store_without_an_event_is_searched(house: House) -> None:
    """A search before anything was written finds nothing, in no document."""
    stub = house.serve().stub
    search = pb.TeleportSearchRequest(query="anything")
    assert stub.TeleportSearch(search, timeout=30).total_docs == 0
    answer = stub.SearchSessions(pb.SearchSessionsRequest(search=search), timeout=30)
    assert (list(answer.sessions), answer.total_docs) == ([], 0)
