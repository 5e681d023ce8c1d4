"""Kill -9 at every named step of deriving: after a restart the tree is that of an undisturbed run."""

import time

import grpc
import pytest

from memoryd.pb import memory_pb2 as pb
from memoryd.pb.memory_pb2_grpc import MemoryServiceStub
from tests.faults.driver import Daemon, House

NOON = 1_780_308_000_000
MINUTE = 60_000
POINTS = (
    "pump.after_read",
    "pump.before_write",
    "pump.after_write",
    "rollup.before_write",
    "rollup.after_write:2",
    "rollup.after_write:4",
    "rebuild.before_write",
    "rebuild.after_write",
)
LEVELS = ("day", "week", "month", "year")


def fill(stub: MemoryServiceStub) -> None:
    """Write conversations of three sessions over some days, not in order, in three batches."""
    numbers = [(n * 37) % 90 for n in range(90)]
    for part in range(3):
        events = [
            pb.Event(
                event_id=f"e{n:03}",
                session_id=f"s{n % 3}",
                timestamp_ms=NOON + n * 47 * MINUTE // (1 + n % 4),
                event_type=2 + n % 3,  # type: ignore[arg-type]
                text=f"Number {n} was fixed because the lock {n * 7} was stale. Then it was tested.",
            )
            for n in numbers[part * 30 : part * 30 + 30]
        ]
        stub.IngestEvents(pb.IngestEventsRequest(events=events), timeout=30)


def tree(daemon: Daemon) -> dict[str, str]:
    """Every node but its version, and the grips under it, once everything has been derived."""
    for level in LEVELS:
        daemon.stub.RunJob(pb.RunJobRequest(job_name=f"rollup-{level}"), timeout=60)
    found: dict[str, str] = {}

    def walk(parent: str) -> None:
        request = pb.BrowseTocRequest(parent_id=parent, limit=1000)
        for node in daemon.stub.BrowseToc(request, timeout=30).children:
            node.version = 0
            found[node.node_id] = str(node)
            for grip_id in (g for b in node.bullets for g in b.grip_ids):
                grip = daemon.stub.ExpandGrip(pb.ExpandGripRequest(grip_id=grip_id), timeout=30)
                found[grip_id] = str(grip.grip)
            if node.level != pb.TOC_LEVEL_SEGMENT:
                walk(node.node_id)

    walk("")
    return found


def provoke(daemon: Daemon, point: str) -> None:
    """Have a daemon come to the point at which it is killed."""
    try:
        fill(daemon.stub)
        if point.startswith("rebuild"):
            list(daemon.stub.RebuildToc(pb.RebuildTocRequest(), timeout=60))
        for level in LEVELS:
            daemon.stub.RunJob(pb.RunJobRequest(job_name=f"rollup-{level}"), timeout=60)
    except grpc.RpcError:
        pass
    deadline = time.monotonic() + 30
    while daemon.process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    assert daemon.process.poll() == -9, f"{point} was not reached"


@pytest.fixture(scope="module")
def undisturbed() -> dict[str, str]:
    """The tree of a run in which nothing happens."""
    house = House()
    try:
        daemon = house.serve()
        fill(daemon.stub)
        return tree(daemon)
    finally:
        house.close()


@pytest.mark.parametrize("point", POINTS)
def test_a_kill_at_a_named_step_leaves_no_trace(
    house: House, undisturbed: dict[str, str], point: str
) -> None:
    """Killed there and started again, the daemon comes to the tree of an undisturbed run."""
    house.env["MEMORYD_FAILPOINT"] = point
    daemon = house.serve()
    provoke(daemon, point)
    daemon.kill()
    del house.env["MEMORYD_FAILPOINT"]
    daemon = house.serve()
    fill(daemon.stub)
    assert tree(daemon) == undisturbed
    assert len(undisturbed) > 50


def test_a_pause_survives_a_kill(house: House) -> None:
    """A job that was paused is paused after kill -9 and a restart."""
    daemon = house.serve()
    daemon.stub.PauseJob(pb.PauseJobRequest(job_name="rollup-week"), timeout=30)
    daemon.kill()
    daemon = house.serve()
    status = daemon.stub.GetSchedulerStatus(pb.GetSchedulerStatusRequest(), timeout=30)
    assert [job.job_name for job in status.jobs if job.is_paused] == ["rollup-week"]
