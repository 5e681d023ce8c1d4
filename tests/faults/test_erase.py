import time
from collections.abc import Iterator

import grpc
import pytest

from memoryd.pb import erasure_pb2, note_pb2
from memoryd.pb import memory_pb2 as pb
from memoryd.pb.erasure_pb2_grpc import ErasureServiceStub
from memoryd.pb.note_pb2_grpc import NoteServiceStub
from memoryd.storage import rawbytes
from tests.faults.driver import Daemon, House

SECRET = "the vault of Amsterdam opens with marzipan and patience"
STEPS = (
    "erase.after_receipt",
    "erase.after_bodies",
    "anew.after_drop",
    "anew.after_segments",
    "erase.after_derived",
    "erase.after_notes",
    "erase.after_index",
    "erase.after_compact",
    "erase.after_search",
)
FIRST_MS = 1_700_000_000_000


@pytest.fixture
def house() -> Iterator[House]:
    """A home of its own."""
    made = House()
    yield made
    made.close()


def _events() -> list[pb.Event]:
    """A conversation; the secret is said, summed up, and stands in metadata."""
    said = []
    for number in range(12):
        text = f"In turn {number} we looked at the harbour cranes and found them sound."
        metadata = {"cwd": "/srv"}
        if number in {4, 7}:
            text = f"Decision: {SECRET}, said number {number}."
        if number == 5:
            metadata["hint"] = SECRET
        if number == 8:
            text, metadata = f"Summary so far: {SECRET}.", {"compaction": "true"}
        said.append(
            pb.Event(
                event_id=f"e{number}",
                session_id="s",
                timestamp_ms=FIRST_MS + 60_000 * number,
                role=1 + number % 2,  # type: ignore[arg-type]
                text=text,
                metadata=metadata,
                agent="a",
            )
        )
    return said


def _fill(daemon: Daemon) -> None:
    """Events, nodes of several versions, an archive, a daily log, a block that was given."""
    events = _events()
    for part in (events[:6], events[6:]):
        daemon.stub.IngestEvents(pb.IngestEventsRequest(events=part), timeout=30)
        _settled(daemon)
    NoteServiceStub(daemon.channel).Remember(
        note_pb2.RememberRequest(name="cranes", content="They are sound.", provenance=["e4", "e1"])
    )
    daemon.stub.GetContext(
        pb.GetContextRequest(session_id="other", agent="b", query="vault Amsterdam", inject=True)
    )


def _settled(daemon: Daemon) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        for name in ("day", "week", "month", "year"):
            daemon.stub.RunJob(pb.RunJobRequest(job_name=f"rollup-{name}"), timeout=30)
        status = daemon.status()
        if status.indexed_sequence == status.sequence:
            return
        time.sleep(0.05)
    pytest.fail("the daemon does not come to rest")


def _erase(daemon: Daemon) -> list[erasure_pb2.EraseProgress]:
    """Erase what holds the secret; what was told up to the end, or to the daemon's death."""
    stub = ErasureServiceStub(daemon.channel)
    which = erasure_pb2.ErasureFilter(matching="MARZIPAN and patience")
    *_, plan = stub.Plan(erasure_pb2.PlanErasureRequest(filter=which), timeout=30)
    assert plan.count == 4
    request = erasure_pb2.EraseRequest(
        filter=which, log_sequence=plan.log_sequence, digest=plan.digest, reason="a test"
    )
    told: list[erasure_pb2.EraseProgress] = []
    try:
        told.extend(stub.Erase(request, timeout=60))
    except grpc.RpcError:
        assert daemon.process.wait(10)
    return told


def _follow(daemon: Daemon) -> erasure_pb2.EraseProgress:
    stub = ErasureServiceStub(daemon.channel)
    *_, last = stub.FollowErasure(erasure_pb2.FollowErasureRequest(receipt=1), timeout=60)
    return last


def _check(house: House, daemon: Daemon) -> None:
    """No word is left, the log is whole, and what is there says so."""
    found = daemon.stub.GetEvent(pb.GetEventRequest(event_id="e4"), timeout=10).event
    assert (found.text, dict(found.metadata), found.sequence) == ("", {}, 5)
    assert found.erased_ms
    again = pb.IngestEventsRequest(events=_events())
    answer = daemon.stub.IngestEvents(again, timeout=30)
    assert (answer.created, answer.refused) == (0, 0)
    notes = NoteServiceStub(daemon.channel)
    cranes = notes.Get(note_pb2.GetNoteRequest(name="cranes")).note
    assert list(cranes.provenance) == ["erased:e4", "e1"]
    nodes = daemon.stub.GetTocRoot(pb.GetTocRootRequest(), timeout=10).nodes
    assert nodes
    assert nodes[0].event_count == 12
    listed = ErasureServiceStub(daemon.channel).ListReceipts(erasure_pb2.ListReceiptsRequest())
    assert [(r.number, r.events, r.reason) for r in listed.receipts] == [(1, 4, "a test")]
    directory = daemon.status().data_dir
    daemon.terminate()
    holds = rawbytes.search(directory, lambda data: b"marzipan" in data)
    assert holds.found == ()
    assert holds.files > 10
    verified = house.run("verify")
    assert verified.returncode == 0, verified.stdout
    assert "12 events" in verified.stdout


def test_no_word_is_left(house: House) -> None:
    """Erased texts and metadata are gone from every file, and the log still verifies."""
    daemon = house.serve()
    _fill(daemon)
    assert rawbytes.search(daemon.status().data_dir, lambda data: b"marzipan" in data).found
    last = _erase(daemon)[-1]
    assert (last.step, list(last.outcome.remains)) == ("done", [])
    assert last.outcome.texts == 4
    _check(house, daemon)


@pytest.mark.parametrize("step", STEPS)
def test_an_erasure_that_was_cut_off_is_finished(house: House, step: str) -> None:
    """Killed after any step, the daemon comes back and erases the rest by itself."""
    daemon = house.serve()
    _fill(daemon)
    daemon.terminate()
    house.env["MEMORYD_FAILPOINT"] = step
    daemon = house.serve()
    told = _erase(daemon)
    assert daemon.process.returncode == -9
    assert all(progress.step != "done" for progress in told)
    del house.env["MEMORYD_FAILPOINT"]
    daemon = house.serve()
    found = daemon.stub.GetEvent(pb.GetEventRequest(event_id="e7"), timeout=10).event
    assert found.text == ""  # from the first answer on, whatever goes on behind it
    last = _follow(daemon)
    assert list(last.outcome.remains) == []
    _check(house, daemon)


def test_only_what_was_planned_goes(house: House) -> None:
    """A digest that stands for other events, or for none, erases nothing."""
    daemon = house.serve()
    daemon.stub.IngestEvents(pb.IngestEventsRequest(events=_events()), timeout=30)
    stub = ErasureServiceStub(daemon.channel)
    which = erasure_pb2.ErasureFilter(session_ids=["s"], to_timestamp_ms=FIRST_MS + 60_000)
    *_, plan = stub.Plan(erasure_pb2.PlanErasureRequest(filter=which), timeout=30)
    assert plan.count == 2
    wider = erasure_pb2.ErasureFilter(session_ids=["s"])
    for wrong, digest in ((wider, plan.digest), (which, ""), (which, plan.digest[::-1])):
        request = erasure_pb2.EraseRequest(
            filter=wrong, log_sequence=plan.log_sequence, digest=digest
        )
        with pytest.raises(grpc.RpcError) as refused:
            list(stub.Erase(request, timeout=30))
        assert refused.value.code() == grpc.StatusCode.ABORTED
    assert not stub.ListReceipts(erasure_pb2.ListReceiptsRequest()).receipts
    late = pb.Event(
        event_id="late",
        session_id="s",
        timestamp_ms=FIRST_MS,
        role=pb.EVENT_ROLE_USER,
        text="later",
    )
    daemon.stub.IngestEvent(pb.IngestEventRequest(event=late), timeout=30)
    request = erasure_pb2.EraseRequest(
        filter=which, log_sequence=plan.log_sequence, digest=plan.digest
    )
    *_, last = stub.Erase(request, timeout=60)
    assert last.step == "done"
    kept = daemon.stub.GetEvent(pb.GetEventRequest(event_id="late"), timeout=10).event
    assert kept.text == "later"
