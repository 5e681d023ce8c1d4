import os
import random
import time
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)
from ulid import ULID

from memoryd.pb import memory_pb2 as pb
from tests.unit import planted

MIB = 1024 * 1024
Code = grpc.StatusCode


def event(**more: Any) -> pb.Event:
    """An event of a user at a fixed time."""
    fields: dict[str, Any] = {
        "session_id": "s",
        "timestamp_ms": 1_000,
        "event_type": 2,
        "text": "hello",
    }
    return pb.Event(**(fields | more))


def one(**more: Any) -> pb.IngestEventRequest:
    """A request to take one event."""
    return pb.IngestEventRequest(event=event(**more))


def failure(call: Any, request: Any) -> Any:
    """The error that a call must end in."""
    with pytest.raises(grpc.RpcError) as caught:
        call(request, timeout=30)
    return caught.value


def fill(served: Any, session: str, count: int, **more: Any) -> list[str]:
    """Write events of a session, one each millisecond; their ids."""
    events = [
        event(event_id=f"{session}-{n:04}", session_id=session, timestamp_ms=n + 1, **more)
        for n in range(count)
    ]
    response = served.stub.IngestEvents(pb.IngestEventsRequest(events=events), timeout=30)
    assert response.refused == 0
    return [result.event_id for result in response.results]


def all_pages(served: Any, request: pb.GetEventsRequest) -> list[pb.GetEventsResponse]:
    """Every page to the end."""
    pages = []
    while True:
        page = served.stub.GetEvents(request, timeout=30)
        pages.append(page)
        assert page.has_more == bool(page.continuation_token)
        if not page.has_more:
            return pages
        request.continuation_token = page.continuation_token


def test_an_event_is_created_once(served: Any) -> None:
    """The first call writes the event, the second finds it, under the same number."""
    first = served.stub.IngestEvent(one(event_id="once"))
    again = served.stub.IngestEvent(one(event_id="once"))
    assert (first.event_id, first.created, first.deduplicated) == ("once", True, False)
    assert (again.event_id, again.created, again.deduplicated) == ("once", False, True)
    assert first.sequence == again.sequence > 0


def test_the_daemon_gives_id_and_time(served: Any) -> None:
    """Without id and time the daemon makes both, and says what it set."""
    before = time.time_ns() // 1_000_000
    sent = one(timestamp_ms=0, agent="claude", metadata={"k": "v"}, sequence=99, store_id="x")
    answer = served.stub.IngestEvent(sent)
    got = served.stub.GetEvent(pb.GetEventRequest(event_id=answer.event_id)).event
    assert before <= got.timestamp_ms <= time.time_ns() // 1_000_000
    assert ULID.from_str(answer.event_id).milliseconds == got.timestamp_ms
    assert (got.role, got.project, got.agent) == (pb.EVENT_ROLE_USER, "p", "claude")
    assert (got.sequence, dict(got.metadata)) == (answer.sequence, {"k": "v"})
    assert before <= got.arrival_ms <= time.time_ns() // 1_000_000
    assert got.store_id not in ("", "x")


def test_an_agent_is_absent_or_named(served: Any) -> None:
    """An event without an agent comes back without one."""
    answer = served.stub.IngestEvent(one())
    got = served.stub.GetEvent(pb.GetEventRequest(event_id=answer.event_id)).event
    assert not got.HasField("agent")


def test_idempotent_capture(served: Any) -> None:
    """The same event without id, sent twice, is written once; without a time it is refused."""
    request = pb.IngestEventRequest(event=event(text="capture"), idempotent=True)
    first, again = served.stub.IngestEvent(request), served.stub.IngestEvent(request)
    assert first.event_id == again.event_id
    assert (first.created, again.created) == (True, False)
    untimed = pb.IngestEventRequest(event=event(timestamp_ms=0), idempotent=True)
    error = failure(served.stub.IngestEvent, untimed)
    assert error.code() == Code.INVALID_ARGUMENT


def test_a_conflict_names_the_field(served: Any) -> None:
    """Other content under a known id is refused with the name of the field."""
    served.stub.IngestEvent(one(event_id="fixed"))
    for change in ({"text": "x"}, {"timestamp_ms": 5}, {"session_id": "t"}, {"event_type": 5}):
        error = failure(served.stub.IngestEvent, one(event_id="fixed", **change))
        assert error.code() == Code.ALREADY_EXISTS
        assert f"another {next(iter(change))}" in error.details()


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"session_id": ""}, "session_id"),
        ({"timestamp_ms": -1}, "timestamp_ms"),
        ({"event_id": "a\nb"}, "event_id"),
        ({"agent": "x" * 257}, "agent"),
        ({"event_type": 77}, "event_type"),
        ({"event_type": 0}, "event_type"),
        ({"metadata": {"k": "x" * 65_536}}, "metadata"),
        ({"text": "x" * (16 * MIB + 1)}, "text"),
    ],
)
def test_a_bad_event_is_refused_by_field(served: Any, change: dict[str, Any], name: str) -> None:
    """A refusal is INVALID_ARGUMENT and names the field."""
    error = failure(served.stub.IngestEvent, one(**change))
    assert error.code() == Code.INVALID_ARGUMENT
    assert name in error.details()


def test_a_request_without_an_event_is_refused(served: Any) -> None:
    """An empty request is the caller's mistake."""
    error = failure(served.stub.IngestEvent, pb.IngestEventRequest())
    assert error.code() == Code.INVALID_ARGUMENT


def test_one_bad_event_stops_no_other(served: Any) -> None:
    """In a batch a bad event is refused alone, with the code that it alone would have got."""
    batch = [
        event(event_id="b1"),
        event(event_id="b2", session_id=""),
        event(event_id="b1"),
        event(event_id="b1", text="other"),
        event(event_id="b3"),
    ]
    answer = served.stub.IngestEvents(pb.IngestEventsRequest(events=batch))
    assert (answer.created, answer.deduplicated, answer.refused) == (2, 1, 2)
    assert [r.event_id for r in answer.results] == ["b1", "b2", "b1", "b1", "b3"]
    assert [r.created for r in answer.results] == [True, False, False, False, True]
    codes = [0, Code.INVALID_ARGUMENT.value[0], 0, Code.ALREADY_EXISTS.value[0], 0]
    assert [r.error_code for r in answer.results] == codes
    assert "session_id" in answer.results[1].error
    assert "text" in answer.results[3].error
    assert answer.results[1].sequence == answer.results[3].sequence == 0


def test_a_batch_over_1000_is_refused(served: Any) -> None:
    """A batch over the limit is refused as a whole, and an empty one is fine."""
    batch = pb.IngestEventsRequest(events=[event(event_id=f"over{n}") for n in range(1_001)])
    error = failure(served.stub.IngestEvents, batch)
    assert error.code() == Code.INVALID_ARGUMENT
    assert "1000" in error.details()
    missing = failure(served.stub.GetEvent, pb.GetEventRequest(event_id="over0"))
    assert missing.code() == Code.NOT_FOUND
    assert len(served.stub.IngestEvents(pb.IngestEventsRequest()).results) == 0


def test_an_unknown_event_is_not_found(served: Any) -> None:
    """NOT_FOUND names the id; an id that cannot be is INVALID_ARGUMENT, however long."""
    error = failure(served.stub.GetEvent, pb.GetEventRequest(event_id="missing"))
    assert (error.code(), "missing" in error.details()) == (Code.NOT_FOUND, True)
    for bad in ("", "x" * 100_000):
        error = failure(served.stub.GetEvent, pb.GetEventRequest(event_id=bad))
        assert error.code() == Code.INVALID_ARGUMENT


@pytest.mark.parametrize("order", [0, 1, 2])
def test_pages_hold_every_event_once(served: Any, order: int) -> None:
    """Paging returns every event of a session once, in both directions."""
    ids = fill(served, "paged", 57)
    request = pb.GetEventsRequest(session_id="paged", limit=10, order=order)  # type: ignore[arg-type]
    pages = all_pages(served, request)
    got = [e.event_id for page in pages for e in page.events]
    assert got == (ids[::-1] if order == 2 else ids)
    assert len(pages) == 6


def test_events_are_filtered(served: Any) -> None:
    """Time range, agent, role, type and project each choose, and unknown numbers are refused."""
    fill(served, "f1", 4, agent="fa")
    fill(served, "f2", 4, agent="fb", event_type=4, project="elsewhere")

    def found(**asked: Any) -> list[str]:
        request = pb.GetEventsRequest(limit=1_000, **asked)
        return [e.event_id for e in served.stub.GetEvents(request).events]

    assert found(agent="fa") == [f"f1-{n:04}" for n in range(4)]
    assert found(project="elsewhere") == [f"f2-{n:04}" for n in range(4)]
    assert found(agent="fb", from_timestamp_ms=2, to_timestamp_ms=3) == ["f2-0001", "f2-0002"]
    assert found(agent="fb", roles=[pb.EVENT_ROLE_TOOL]) == found(agent="fb")
    assert found(agent="fb", roles=[pb.EVENT_ROLE_USER]) == []
    assert found(session_id="f1", event_types=[pb.EVENT_TYPE_USER_MESSAGE]) == found(agent="fa")
    assert found(session_id="f1", event_types=[pb.EVENT_TYPE_TOOL_RESULT]) == []
    refused: list[dict[str, Any]] = [
        {"roles": [9]},
        {"event_types": [0]},
        {"limit": -1},
        {"continuation_token": "?"},
    ]
    for bad in refused:
        error = failure(served.stub.GetEvents, pb.GetEventsRequest(**bad))
        assert error.code() == Code.INVALID_ARGUMENT


def test_max_bytes_bounds_an_answer(served: Any) -> None:
    """No answer is larger than asked for, and an event larger by itself still comes."""
    ids = fill(served, "bytes", 20, text="ß" * 5_000)
    pages = all_pages(served, pb.GetEventsRequest(session_id="bytes", max_bytes=35_000))
    assert [e.event_id for page in pages for e in page.events] == ids
    assert all(page.ByteSize() <= 35_200 for page in pages)
    assert max(len(page.events) for page in pages) == 3
    single = served.stub.GetEvents(pb.GetEventsRequest(session_id="bytes", max_bytes=1))
    assert (len(single.events), single.has_more) == (1, True)


def test_16_mib_of_text_come_back(served: Any) -> None:
    """The longest text goes in and comes out, alone and in a page."""
    text = "ß" * (8 * MIB)
    answer = served.stub.IngestEvent(one(text=text, session_id="large"))
    got = served.stub.GetEvent(pb.GetEventRequest(event_id=answer.event_id)).event
    assert got.text == text
    page = served.stub.GetEvents(pb.GetEventsRequest(session_id="large"))
    assert [e.text == text for e in page.events] == [True]


def test_hostile_text_comes_back(served: Any) -> None:
    """NUL, direction marks and escapes in text are data."""
    text = "\0\u202e\u2066\x1b[2J👩‍👩‍👧‍👦\r\n"
    answer = served.stub.IngestEvent(one(text=text, session_id="ü😀"))
    got = served.stub.GetEvent(pb.GetEventRequest(event_id=answer.event_id)).event
    assert (got.text, got.session_id) == (text, "ü😀")


def test_tail_from_a_number(served: Any) -> None:
    """A tail begins behind its number, in the order of writing, and goes on with new events."""
    start = served.stub.GetStatus(pb.GetStatusRequest()).sequence
    ids = fill(served, "tailed", 5)
    call = served.stub.TailEvents(
        pb.TailEventsRequest(after_sequence=start, session_id="tailed"), timeout=30
    )
    got = [next(call).event for _ in range(5)]
    assert [e.event_id for e in got] == ids
    assert [e.sequence for e in got] == list(range(start + 1, start + 6))
    served.stub.IngestEvent(one(event_id="late", session_id="tailed", timestamp_ms=1))
    assert next(call).event.event_id == "late"
    call.cancel()


def test_tail_from_now(served: Any) -> None:
    """A tail from now gives only what is written after it began."""
    fill(served, "before", 3)
    call = served.stub.TailEvents(pb.TailEventsRequest(from_now=True), timeout=30)
    deadline = time.monotonic() + 10
    while served.stub.GetStatus(pb.GetStatusRequest()).open_streams == 0:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    time.sleep(0.1)
    served.stub.IngestEvent(one(event_id="now"))
    assert next(call).event.event_id == "now"
    call.cancel()


def test_status_tells_the_truth(served: Any) -> None:
    """The figures of the status are those of the daemon and its log."""
    before = served.stub.GetStatus(pb.GetStatusRequest())
    fill(served, "counted", 3, agent="counting")
    now = served.stub.GetStatus(pb.GetStatusRequest())
    assert (now.sequence, now.sessions) == (before.sequence + 3, before.sessions + 1)
    assert now.agents == before.agents + 1
    assert now.commits == before.commits + 1
    assert (now.project, now.project_root) == ("p", served.root)
    assert (now.pid, now.data_dir) == (served.process.pid, served.data_dir)
    assert (now.writable, now.write_error) == (True, "")
    assert now.first_event_ms == 1
    assert now.last_event_ms >= 1_000
    assert now.disk_bytes > 10_000
    assert now.memory_bytes > MIB
    assert now.uptime_ms >= before.uptime_ms
    assert now.started_ms == before.started_ms
    assert (now.format_version, bool(now.version), len(now.store_id)) == (2, True, 36)
    assert len(now.endpoints) == 1
    assert now.endpoints[0].startswith("unix:")
    assert list(now.last_errors) == []


def test_no_secret_reaches_the_disk(served: Any) -> None:
    """What was sent as a secret is in no file of the data directory, and it is counted."""
    rng = random.Random(7)
    made = [planted.plant(rule, template, rng) for rule, template in planted.ALL]
    before = sum(served.stub.GetStatus(pb.GetStatusRequest()).redactions.values())
    witness = "".join(rng.choices("abcdefgh", k=32))
    for number, secret in enumerate(made):
        text = f"{witness}: {secret.text}"
        served.stub.IngestEvent(
            one(event_id=f"secret-{number}", text=text, metadata={"output": secret.text})
        )
    served.stub.IngestEvent(one(event_id="private", text=f"<private>{witness * 2}</private>"))
    counts = served.stub.GetStatus(pb.GetStatusRequest()).redactions
    assert sum(counts.values()) >= before + 2 * len(made) + 1
    assert counts["private"] >= 1
    stored = b"".join(_files(served.data_dir))
    assert witness.encode() in stored
    assert (witness * 2).encode() not in stored
    assert [secret.rule for secret in made if secret.secret.encode() in stored] == []


def _files(directory: str) -> Iterator[bytes]:
    for folder, _, names in os.walk(directory):
        for name in names:
            with open(f"{folder}/{name}", "rb") as file:
                yield file.read()


def test_sessions_and_agents_are_listed(served: Any) -> None:
    """Sessions come by pages, most recent first, and agents with their counts."""
    for n in range(5):
        sent = one(session_id=f"list{n}", timestamp_ms=10**12 + n, agent="lister")
        served.stub.IngestEvent(sent)
    request = pb.ListSessionsRequest(agent="lister", limit=2)
    got: list[pb.Session] = []
    while True:
        page = served.stub.ListSessions(request)
        got += page.sessions
        if not page.has_more:
            break
        request.continuation_token = page.continuation_token
    assert [s.session_id for s in got] == [f"list{n}" for n in (4, 3, 2, 1, 0)]
    assert (got[0].event_count, got[0].first_event_ms) == (1, 10**12 + 4)
    assert (list(got[0].agents), list(got[0].projects)) == (["lister"], ["p"])
    agents = {a.agent: a for a in served.stub.ListAgents(pb.ListAgentsRequest()).agents}
    lister = agents["lister"]
    assert (lister.event_count, lister.session_count) == (5, 5)
    assert (lister.first_event_ms, lister.last_event_ms) == (10**12, 10**12 + 4)


def test_health_is_told(served: Any) -> None:
    """The server and the service are SERVING, and an unknown service is NOT_FOUND."""
    health: Any = health_pb2_grpc.HealthStub(served.channel)
    for name in ("", "memory.MemoryService"):
        answer = health.Check(health_pb2.HealthCheckRequest(service=name), timeout=10)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
    error = failure(health.Check, health_pb2.HealthCheckRequest(service="nobody"))
    assert error.code() == Code.NOT_FOUND


def test_reflection_lists_the_services(served: Any) -> None:
    """Reflection names the service, health and itself, and describes the service."""
    database = ProtoReflectionDescriptorDatabase(served.channel)
    assert set(database.get_services()) == {
        "memory.MemoryService",
        "memory.NoteService",
        "memory.CareService",
        "memory.ErasureService",
        "grpc.health.v1.Health",
        "grpc.reflection.v1alpha.ServerReflection",
    }
    file = database.FindFileContainingSymbol("memory.MemoryService")
    assert file.package == "memory"


def test_streams_over_the_limit_are_refused(served: Any) -> None:
    """The ninth stream is refused while unary calls go on, and a closed stream makes room."""
    request = pb.TailEventsRequest(after_sequence=0)
    fill(served, "streams", 1)
    deadline = time.monotonic() + 20
    while served.stub.GetStatus(pb.GetStatusRequest()).open_streams:  # of tests before
        assert time.monotonic() < deadline
        time.sleep(0.05)
    calls = [served.stub.TailEvents(request, timeout=60) for _ in range(8)]
    for call in calls:
        next(call)
    error = failure(lambda r, timeout: next(served.stub.TailEvents(r, timeout=timeout)), request)
    assert error.code() == Code.RESOURCE_EXHAUSTED
    assert "8 streams" in error.details()
    assert served.stub.GetStatus(pb.GetStatusRequest(), timeout=10).open_streams == 8
    assert served.stub.IngestEvent(one(event_id="beside"), timeout=10).created
    for call in calls:
        call.cancel()
    while served.stub.GetStatus(pb.GetStatusRequest()).open_streams:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    again = served.stub.TailEvents(request, timeout=10)
    next(again)
    again.cancel()


def test_a_message_over_the_limit_is_refused(served: Any) -> None:
    """A message over 32 MiB is refused before it is read, and the daemon goes on."""
    error = failure(served.stub.IngestEvent, one(text="x" * (33 * MIB)))
    assert error.code() == Code.RESOURCE_EXHAUSTED
    assert served.stub.GetStatus(pb.GetStatusRequest(), timeout=10).writable


@pytest.mark.parametrize(
    "data", [b"\xff" * 50, b"\x0a\xff\xff\xff\xff\x0f", b"\x0a\x03\x0a\x01\xff"]
)
def test_malformed_bytes_end_only_their_call(served: Any, data: bytes) -> None:
    """Bytes that are no message are refused, and the daemon goes on."""
    raw = served.channel.unary_unary("/memory.MemoryService/IngestEvent")
    assert failure(raw, data).code() == Code.INVALID_ARGUMENT
    assert failure(raw, os.urandom(200)) is not None
    assert served.stub.GetStatus(pb.GetStatusRequest(), timeout=10).writable


def test_an_unknown_method_is_unimplemented(served: Any) -> None:
    """A method that the contract does not have is UNIMPLEMENTED."""
    raw = served.channel.unary_unary("/memory.MemoryService/Nothing")
    assert failure(raw, b"").code() == Code.UNIMPLEMENTED
