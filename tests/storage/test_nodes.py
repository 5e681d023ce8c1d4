import os
from collections.abc import Iterator

import pytest

from memoryd.domain.toc import Level
from tests.services.rig import DAY, HOUR, LATER, NOON, Rig, event


@pytest.fixture
def rig(tmp_path: os.PathLike[str]) -> Iterator[Rig]:
    """A store with a pump."""
    rig = Rig(f"{os.fspath(tmp_path)}/data")
    yield rig
    rig.close()


class Follower:
    """Keeps a copy of the nodes and of the segments' grips by following their changes."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.number = 0
        self.nodes: dict[str, object] = {}
        self.grips: set[str] = set()

    def follow(self) -> int:
        """Take over what has changed since the last time; how much that was."""
        count = 0
        for number, node_id, node, gone in self.rig.nodes.changes(self.number):
            assert number > self.number
            self.number, count = number, count + 1
            self.grips -= set(gone)
            if not node_id:
                self.nodes.clear()
                self.grips.clear()
            elif node is None:
                self.nodes.pop(node_id, None)
            else:
                self.nodes[node_id] = node._replace(version=0)
                if node.level is Level.SEGMENT:
                    self.grips |= {g for b in node.bullets for g in b.grip_ids}
        return count

    def check(self) -> None:
        """The copy must be what it was made from."""
        assert self.nodes == self.rig.tree()
        assert self.grips == {
            g for n in self.rig.level(Level.SEGMENT) for b in n.bullets for g in b.grip_ids
        }


def test_following_the_changes_gives_the_tree(rig: Rig) -> None:
    """Whoever takes the changes in order, now and then, has the latest nodes and grips."""
    often, seldom = Follower(rig), Follower(rig)
    times = [NOON, NOON + HOUR, NOON + DAY, NOON + 20 * 60_000, NOON + 40 * 60_000, NOON - DAY]
    for number, time in enumerate(times):
        rig.append([event(number, time, text=f"{number} " + "word " * number * 9)])
        rig.settle()
        often.follow()
        often.check()
    rig.pump.start_over()
    often.follow()
    often.check()
    rig.settle()
    for follower in (often, seldom):
        follower.follow()
        follower.check()
        assert follower.follow() == 0


def test_only_the_latest_change_of_a_node_is_kept(rig: Rig) -> None:
    """The list of changes grows with the nodes, not with their changes."""
    rig.now_ms = NOON + 1
    rig.feed([event(n, NOON + n)] for n in range(9))
    assert len(list(rig.nodes.changes(0))) == 1
    assert rig.nodes.changed == 9


def test_the_numbers_go_on_after_a_restart(tmp_path: os.PathLike[str]) -> None:
    """A number is never given twice."""
    for turn in range(3):
        rig = Rig(f"{os.fspath(tmp_path)}/data", now_ms=LATER)
        before = rig.nodes.changed
        assert (before > 0) == (turn > 0)
        rig.append([event(turn, NOON + turn)])
        rig.settle()
        assert rig.nodes.changed > before
        rig.close()


def test_closed_and_reopened_the_nodes_are_the_same(tmp_path: os.PathLike[str]) -> None:
    """What was derived is there again after a stop, and nothing is derived twice."""
    rig = Rig(f"{os.fspath(tmp_path)}/data")
    rig.append([event(n, NOON + n * HOUR) for n in range(50)])
    rig.settle()
    kept, changed = rig.tree(), rig.nodes.changed
    rig.close()
    rig = Rig(f"{os.fspath(tmp_path)}/data")
    rig.settle()
    assert (rig.tree(), rig.nodes.changed) == (kept, changed)
    rig.close()
