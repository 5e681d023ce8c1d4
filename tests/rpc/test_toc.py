"""The table of contents over the wire, from a real daemon."""

import time
from typing import Any

import grpc
import pytest

from memoryd.pb import memory_pb2 as pb

Code = grpc.StatusCode
NOON = 1_780_308_000_000  # 2026-06-01 10:00 UTC
MINUTE = 60_000
DAY = 24 * 60 * MINUTE
JOBS = ["rollup-day", "rollup-week", "rollup-month", "rollup-year"]
SAID = (
    "Why does the parser fail on an empty line?",
    "The parser fails because split returns one item. I will check the length first.",
    "Please move the sessions to Redis, the refresh tokens race with each other.",
    "Fixed: the refresh now takes a lock before it reads the token. All 14 tests pass.",
)


def failure(call: Any, request: Any) -> Any:
    """The error that a call must end in."""
    with pytest.raises(grpc.RpcError) as caught:
        call(request, timeout=30)
    return caught.value


@pytest.fixture(scope="module")
def filled(served: Any) -> Any:
    """A daemon that has worked in three days of conversation."""
    events = [
        pb.Event(
            event_id=f"e{day}-{place}",
            session_id=f"s{day}",
            timestamp_ms=NOON + day * DAY + place * MINUTE,
            event_type=2 + place % 2,  # type: ignore[arg-type]
            text=text,
            agent="claude-code",
        )
        for day in range(3)
        for place, text in enumerate(SAID)
    ]
    served.stub.IngestEvents(pb.IngestEventsRequest(events=events), timeout=30)
    for job in JOBS:
        run = served.stub.RunJob(pb.RunJobRequest(job_name=job), timeout=60).job
        assert run.last_result == pb.JOB_RESULT_STATUS_SUCCESS
    return served


def descend(served: Any) -> list[pb.TocNode]:
    """Every node, each before its children."""
    found: list[pb.TocNode] = []

    def walk(node: pb.TocNode) -> None:
        found.append(node)
        answer = served.stub.BrowseToc(pb.BrowseTocRequest(parent_id=node.node_id), timeout=30)
        assert [c.node_id for c in answer.children] == list(node.child_node_ids)
        for child in answer.children:
            assert child.parent_id == node.node_id
            walk(child)

    for year in served.stub.GetTocRoot(pb.GetTocRootRequest(), timeout=30).nodes:
        walk(year)
    return found


def test_the_tree_is_there_with_its_evidence(filled: Any) -> None:
    """From the year down, every bullet's grips open on events that contain their excerpts."""
    nodes = descend(filled)
    counted = [sum(n.level == level for n in nodes) for level in range(1, 6)]
    assert counted == [1, 1, 1, 3, 3]
    assert nodes[0].event_count == 12
    assert nodes[0].summarizer.startswith("extractive/")
    assert list(nodes[0].agents) == ["claude-code"]
    bullets = [b for n in nodes for b in n.bullets]
    assert bullets
    for bullet in bullets:
        assert bullet.grip_ids
        for grip_id in bullet.grip_ids:
            found = filled.stub.ExpandGrip(pb.ExpandGripRequest(grip_id=grip_id), timeout=30)
            assert any(found.grip.excerpt in e.text for e in found.excerpt_events)
            around = [*found.events_before, *found.excerpt_events, *found.events_after]
            assert {e.session_id for e in around} == {found.grip.session_id}
            assert len(around) == 4


def test_expanding_gives_as_many_as_asked(filled: Any) -> None:
    """Zero is zero, and one is one."""
    segment = descend(filled)[4]
    grip_id = segment.bullets[-1].grip_ids[0]
    request = pb.ExpandGripRequest(grip_id=grip_id, events_before=1, events_after=0)
    found = filled.stub.ExpandGrip(request, timeout=30)
    assert len(found.events_after) == 0
    assert len(found.events_before) == 1


def test_searching_leads_to_the_day(filled: Any) -> None:
    """A word of one event is found in its segment; unknown fields and empty queries are refused."""
    request = pb.SearchChildrenRequest(query="redis sessions", child_level=5)  # type: ignore[arg-type]
    results = filled.stub.SearchChildren(request, timeout=30).results
    assert len(results) == 3
    assert all("redis" in str(r.matches).lower() for r in results)
    asked = pb.SearchNodeRequest(node_id=results[0].node_id, query="redis")
    answer = filled.stub.SearchNode(asked, timeout=30)
    assert answer.matched
    assert answer.level == pb.TOC_LEVEL_SEGMENT
    nothing = pb.SearchNodeRequest(node_id=results[0].node_id, query="kubernetes")
    assert not filled.stub.SearchNode(nothing, timeout=30).matched
    empty = pb.SearchChildrenRequest(query=" ")
    assert failure(filled.stub.SearchChildren, empty).code() is Code.INVALID_ARGUMENT
    odd = pb.SearchChildrenRequest(query="x", fields=[9])  # type: ignore[list-item]
    assert failure(filled.stub.SearchChildren, odd).code() is Code.INVALID_ARGUMENT


def test_a_timeline_of_one_day(filled: Any) -> None:
    """Between two times come the nodes of that day at the finest level that fits."""
    request = pb.GetTimelineRequest(
        from_timestamp_ms=NOON + DAY, to_timestamp_ms=NOON + DAY + 60 * MINUTE
    )
    line = filled.stub.GetTimeline(request, timeout=30)
    assert line.level == pb.TOC_LEVEL_SEGMENT
    assert [list(n.session_ids) for n in line.nodes] == [["s1"]]


def test_unknown_names_are_not_found(filled: Any) -> None:
    """A node, grip or job that there is not is NOT_FOUND, or said in the answer."""
    stub = filled.stub
    assert failure(stub.GetNode, pb.GetNodeRequest(node_id="toc:year:1999")).code() is (
        Code.NOT_FOUND
    )
    assert failure(stub.ExpandGrip, pb.ExpandGripRequest(grip_id="grip:1:x")).code() is (
        Code.NOT_FOUND
    )
    assert failure(stub.RunJob, pb.RunJobRequest(job_name="x")).code() is Code.NOT_FOUND
    paused = stub.PauseJob(pb.PauseJobRequest(job_name="x"), timeout=30)
    assert not paused.success
    assert "rollup-day" in paused.error


def test_jobs_can_be_paused_and_resumed(filled: Any) -> None:
    """The status shows every job, and what was done to it."""
    stub = filled.stub
    assert stub.PauseJob(pb.PauseJobRequest(job_name="compact"), timeout=30).success
    status = stub.GetSchedulerStatus(pb.GetSchedulerStatusRequest(), timeout=30)
    assert status.scheduler_running
    jobs = {job.job_name: job for job in status.jobs}
    assert list(jobs) == [*JOBS, "compact"]
    assert jobs["compact"].is_paused
    assert jobs["compact"].next_run_ms == 0
    assert jobs["rollup-day"].run_count >= 1
    assert jobs["rollup-day"].cron_expr == "5 0 * * *"
    assert stub.ResumeJob(pb.ResumeJobRequest(job_name="compact"), timeout=30).success
    run = stub.RunJob(pb.RunJobRequest(job_name="compact"), timeout=60).job
    assert not run.is_paused
    assert run.next_run_ms > run.last_run_ms > 0


def test_rebuilding_gives_the_same_tree(filled: Any) -> None:
    """Thrown away and derived again, all nodes but their versions are as before."""
    before = descend(filled)
    told = list(filled.stub.RebuildToc(pb.RebuildTocRequest(), timeout=60))
    assert told[-1].finished
    assert told[-1].done == told[-1].total
    assert told[-1].nodes == len(before)
    after = descend(filled)
    for node in (*before, *after):
        node.version = 0
    assert after == before


def test_the_pump_follows_by_itself(filled: Any) -> None:
    """A single event is worked in soon, without being asked, and the lag tells the truth."""
    event = pb.Event(session_id="live", event_type=2, text="Now the cache key is wrong.")  # type: ignore[arg-type]
    filled.stub.IngestEvent(pb.IngestEventRequest(event=event), timeout=30)
    deadline = time.monotonic() + 30
    while filled.stub.GetStatus(pb.GetStatusRequest(), timeout=30).pump_lag_events:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    request = pb.SearchChildrenRequest(query="cache key", child_level=5)  # type: ignore[arg-type]
    (found,) = filled.stub.SearchChildren(request, timeout=30).results
    node = filled.stub.GetNode(pb.GetNodeRequest(node_id=found.node_id), timeout=30).node
    assert node.provisional
    assert list(node.session_ids) == ["live"]
