"""Kill -9 at every named step of deriving: after a restart the tree is that of an undisturbed run."""

import random

import pytest

from memoryd.pb import memory_pb2 as pb
from tests.faults.driver import House
from tests.soak import step
from tests.soak.outcome import Outcome


@pytest.fixture(scope="module")
def undisturbed() -> tuple[step.Tree, int]:
    """The tree of a run in which nothing happens, and how many documents its index has."""
    return step.undisturbed()


@pytest.mark.parametrize("point", step.POINTS)
def test_a_kill_at_a_named_step_leaves_no_trace(
    house: House, undisturbed: tuple[step.Tree, int], point: str
) -> None:
    """Killed there and started again, the daemon comes to the tree of an undisturbed run."""
    house.env["MEMORYD_FAILPOINT"] = point
    daemon = house.serve()
    assert step.provoke(daemon, point), f"{point} was not reached"
    assert daemon.process.returncode == -9
    del house.env["MEMORYD_FAILPOINT"]
    daemon = house.serve()
    step.fill(daemon.stub)
    assert step.tree(daemon) == undisturbed[0]
    assert len(undisturbed[0]) > 50


def test_kills_at_any_moment_leave_no_trace(undisturbed: tuple[step.Tree, int]) -> None:
    """Killed twice while it derives and indexes, the daemon comes to the same tree and index."""
    outcome = Outcome("step", 1, figures=dict.fromkeys(step.KINDS, 0))
    step.one_house(2, random.Random(4), undisturbed, outcome)
    print(outcome.line())
    assert outcome.problems == []


def test_a_pause_survives_a_kill(house: House) -> None:
    """A job that was paused is paused after kill -9 and a restart."""
    daemon = house.serve()
    daemon.stub.PauseJob(pb.PauseJobRequest(job_name="rollup-week"), timeout=30)
    daemon.kill()
    daemon = house.serve()
    status = daemon.stub.GetSchedulerStatus(pb.GetSchedulerStatusRequest(), timeout=30)
    assert [job.job_name for job in status.jobs if job.is_paused] == ["rollup-week"]
