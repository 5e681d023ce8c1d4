import os
from collections.abc import Iterator

import pytest

from memoryd.domain.erasure import Which, Who
from memoryd.domain.errors import InvalidInput, NotFound, Outdated
from memoryd.domain.toc import Level
from memoryd.services.erasure import Eraser, Parts, Progress
from memoryd.services.indexer import Indexer
from memoryd.storage.notes import ProjectNotes
from memoryd.storage.store import check_range
from tests.services.rig import DAY, MINUTE, NOON, Rig, event

SECRET = "a mahogany piano stands in the flooded cellar"


class Room:
    """A rig with an index and an eraser."""

    def __init__(self, directory: str) -> None:
        self.rig = Rig(directory, now_ms=NOON + 30 * DAY)
        store, committer = self.rig.store, self.rig.committer
        self.pump = self.rig.pump
        self.pump.start()
        self.indexer = Indexer(f"{directory}/index", store.log, committer, lambda _a, _b: None)
        self.indexer.start()
        notes = ProjectNotes(store, committer)
        parts = Parts(store, committer, self.pump, self.indexer, lambda: (notes,))
        self.eraser = Eraser(parts, lambda: self.rig.now_ms, lambda why: Who(7, "me", why))

    def settle(self) -> None:
        """Work everything in."""
        for level in (Level.DAY, Level.WEEK, Level.MONTH, Level.YEAR):
            self.pump.ask(lambda level=level: self.pump.roll_up(level)).result()  # type: ignore[misc]

    def erase(self, which: Which) -> Progress:
        """Plan and erase; the last that was told."""
        until = self.eraser.end()
        found = list(self.eraser.find(which, until, lambda: True))
        digest = self.eraser.digest((r.sequence, r.event.event_id) for r in found)
        receipt = self.eraser.begin(which, until, digest, "why")
        *_, last = self.eraser.progress(receipt.number, lambda: True)
        return last

    def words(self) -> str:
        """Everything that any version of any node, and any grip, says."""
        nodes = self.rig.nodes
        said = [f"{n.title} {n.summary} {n.bullets} {n.keywords}" for n in nodes.stored()]
        return "\n".join([*said, *(grip.excerpt for grip in nodes.grips())])

    def close(self) -> None:
        """End everything."""
        self.eraser.stop()
        self.indexer.stop()
        self.rig.close()


@pytest.fixture
def room(tmp_path: os.PathLike[str]) -> Iterator[Room]:
    """Two sessions; one tells a secret on each of two days, in nodes of several versions."""
    made = Room(os.fspath(tmp_path))
    for day in range(2):
        made.rig.append([event(100 * day + n, NOON + day * DAY + n * MINUTE) for n in range(4)])
        made.settle()
        late = NOON + day * DAY + 2 * MINUTE + 1
        made.rig.append([event(100 * day + 50, late, text=f"{SECRET}, day {day}")])
        made.settle()
        made.rig.append([event(100 * day + 60, late + 1), event(900 + day, late, "other")])
        made.settle()
    yield made
    made.close()


def test_no_version_of_a_node_keeps_the_words(room: Room) -> None:
    """Nodes and grips that stood on an event are derived again, and no earlier version stays."""
    assert "mahogany" in room.words()
    before = room.rig.tree()
    last = room.erase(Which(matching="MAHOGANY"))
    assert last.outcome is not None
    assert last.outcome.remains == ()
    assert last.outcome.texts == 2
    assert "mahogany" not in room.words()
    after = room.rig.tree()
    assert after.keys() == before.keys()
    assert {n: node.event_count for n, node in after.items()} == {
        n: node.event_count for n, node in before.items()
    }
    assert list(check_range(room.rig.store.db, room.rig.store.log)) == []
    held = {g for n in after.values() for b in n.bullets for g in b.grip_ids}
    assert held <= {grip.grip_id for grip in room.rig.nodes.grips()}


def test_what_did_not_stand_on_it_stays(room: Room) -> None:
    """A segment of another session keeps its version and its words."""
    other = [n for n in room.rig.level(Level.SEGMENT) if n.session_ids == ("other",)]
    versions = {n.node_id: room.rig.nodes.versions(n.node_id) for n in other}
    room.erase(Which(session_ids=frozenset(("s",)), matching="day 1"))
    assert {n: room.rig.nodes.versions(n) for n in versions} == versions
    assert "day 0" in room.words()
    assert "day 1" not in room.words()


def test_a_model_that_had_read_it_comes_too_late(room: Room) -> None:
    """Words that a model made of a version from before the erasure are not written."""
    (segment,) = [
        n
        for n in room.rig.nodes.between("toc:segment:", "toc:segment:~")
        if n.session_ids == ("s",) and "mahogany" in str(n.bullets) and n.start_ms < NOON + DAY
    ]
    slow = segment._replace(summary=f"A model says: {SECRET}")
    room.erase(Which(matching="mahogany"))
    assert not room.pump.ask(lambda: room.pump.rewrite(slow, (), segment.version)).result()
    assert "mahogany" not in room.words()


def test_a_plan_names_what_there_is(room: Room) -> None:
    """An id that the log does not hold is an error; what is erased is not planned again."""
    alive = lambda: True  # noqa: E731
    with pytest.raises(NotFound):
        list(room.eraser.find(Which(event_ids=frozenset(("nobody",))), 99, alive))
    with pytest.raises(InvalidInput):
        list(room.eraser.find(Which(), 99, alive))
    which = Which(event_ids=frozenset(("e000050",)))
    assert len(list(room.eraser.find(which, 99, alive))) == 1
    assert list(room.eraser.find(which, 1, alive)) == []
    room.erase(which)
    assert list(room.eraser.find(which, 99, alive)) == []
    with pytest.raises(Outdated):
        room.eraser.begin(which, 99, room.eraser.digest(iter(())), "")


def test_the_same_words_elsewhere_are_named(room: Room) -> None:
    """Events that say the same and were not to go are named by their numbers."""
    room.rig.append([event(500, NOON + 3 * DAY, "third", f"{SECRET}, day 0")])
    room.settle()
    last = room.erase(Which(event_ids=frozenset(("e000050",))))
    assert last.outcome is not None
    assert last.outcome.remains == ()
    assert room.rig.store.log.get("e000500").sequence in last.outcome.elsewhere
