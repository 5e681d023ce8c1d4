import os
from collections.abc import Callable, Iterator, Sequence

import pytest

from memoryd.domain.calendar import PERIODS
from memoryd.domain.event import Event
from memoryd.domain.summarize import Digest, Summary
from memoryd.domain.toc import Level, Node
from memoryd.services.rollup import Steps
from memoryd.services.scribe import Scribe
from tests.services.rig import DAY, MINUTE, NOON, Crash, Rig, event
from tests.services.words import Plain


class Slow(Plain):
    """A writer whose words differ from the pump's, and that can be made to fail."""

    name = "slow/1"

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.failing = False
        self.seconds = 0.0
        self.meanwhile: Callable[[], None] = lambda: None

    def segment(self, events: Sequence[Event], before: Sequence[Event]) -> Summary:
        """Plain words with another title."""
        self.asked.append(f"{events[0].event_id}-{events[-1].event_id} after {len(before)}")
        self.meanwhile()
        words = super().segment(events, before)
        return words._replace(by="plain/1+fallback") if self.failing else words._replace(title="!")

    def period(self, level: Level, children: Sequence[Node]) -> Digest:
        """Plain words with another title."""
        self.asked.append(f"{level.name} of {len(children)}")
        words = super().period(level, children)
        return words._replace(by="plain/1+fallback") if self.failing else words._replace(title="!")

    def pause(self) -> float:
        """How long it wants to be left alone."""
        return self.seconds


class Office(Rig):
    """A rig whose pump runs, with a scribe beside it."""

    def __init__(
        self,
        directory: str,
        levels: frozenset[Level],
        reach: Callable[[str], None] = lambda _name: None,
    ) -> None:
        super().__init__(directory, reach=reach)
        self.writer = Slow()
        self.nodes.to_write = levels
        self.scribe = Scribe(self.store, self.pump, self.calendar, self.writer, Steps())
        self.pump.start()

    def settle(self) -> None:
        """Work everything in, in the pump's thread."""
        for level in PERIODS:
            self.pump.ask(lambda level=level: self.pump.roll_up(level)).result()  # type: ignore[misc]

    def write_all(self) -> None:
        """Have everything written that waits, as pump and scribe do by turns."""
        while self.scribe.turn():
            self.settle()


@pytest.fixture
def office(tmp_path: os.PathLike[str]) -> Iterator[Office]:
    """An office where a model writes every level."""
    made = Office(f"{os.fspath(tmp_path)}/data", frozenset(Level))
    yield made
    made.close()


def _week(office: Office) -> None:
    """Two days with two segments each, all in the past."""
    for day in (0, 1):
        for part in (0, 1):
            first = day * 100 + part * 10
            start = NOON + day * DAY + part * 60 * MINUTE
            office.append([event(first + n, start + n * MINUTE) for n in range(3)])
    office.settle()


def test_finished_nodes_are_written_once_from_the_bottom_up(office: Office) -> None:
    """Each node is asked for once: segments newest first, and periods when all below is done."""
    _week(office)
    assert {n.summarizer for n in office.tree().values()} == {"plain/1"}
    office.write_all()
    assert office.writer.asked == [
        "e000110-e000112 after 0",
        "e000100-e000102 after 0",
        "e000010-e000012 after 0",
        "e000000-e000002 after 0",
        "DAY of 2",
        "DAY of 2",
        "WEEK of 2",
        "MONTH of 1",
        "YEAR of 1",
    ]
    for node in office.tree().values():
        assert (node.summarizer, node.title) == ("slow/1", "!")
        assert all(bullet.grip_ids for bullet in node.bullets)
    for grip in office.grips().values():
        assert grip.excerpt
    assert not office.scribe.turn()
    office.settle()
    assert not office.scribe.turn()


def test_an_open_segment_is_left_to_the_pump(office: Office) -> None:
    """What may still grow is never sent anywhere; when it closes, it is written."""
    office.now_ms = NOON + 2 * MINUTE
    office.append([event(n, NOON + n * MINUTE) for n in range(2)])
    office.settle()
    assert office.level(Level.SEGMENT)[0].provisional
    assert not office.scribe.turn()
    assert office.writer.asked == []
    office.now_ms = NOON + 60 * MINUTE
    office.settle()
    assert office.scribe.turn()
    assert office.level(Level.SEGMENT)[0].summarizer == "slow/1"
    assert not office.scribe.turn()  # the day goes on
    assert office.level(Level.DAY)[0].summarizer == "plain/1"


def test_only_the_levels_that_are_set_are_written(tmp_path: os.PathLike[str]) -> None:
    """Other levels keep the extractive words, and nothing waits for them."""
    office = Office(f"{os.fspath(tmp_path)}/data", frozenset({Level.DAY}))
    _week(office)
    office.write_all()
    assert office.writer.asked == ["DAY of 2", "DAY of 2"]
    written = {n.level for n in office.tree().values() if n.summarizer == "slow/1"}
    assert written == {Level.DAY}
    office.close()


def test_a_fallback_is_marked_and_not_tried_again(office: Office) -> None:
    """A node that the model could not write keeps its words, and its name says so."""
    _week(office)
    before = {i: n.bullets for i, n in office.tree().items() if n.level is Level.SEGMENT}
    office.writer.failing = True
    office.write_all()
    assert {n.summarizer for n in office.tree().values()} == {"plain/1+fallback"}
    assert {i: n.bullets for i, n in office.tree().items() if n.level is Level.SEGMENT} == before
    assert not office.scribe.turn()


def test_what_is_out_of_reach_waits(office: Office) -> None:
    """While the model wants to be left alone nodes keep waiting, and are written later."""
    _week(office)
    office.writer.failing, office.writer.seconds = True, 60.0
    assert office.scribe.turn()
    assert len(office.nodes.unwritten(Level.SEGMENT)) == 4
    assert {n.summarizer for n in office.tree().values()} == {"plain/1"}
    office.writer.failing, office.writer.seconds = False, 0.0
    office.write_all()
    assert {n.summarizer for n in office.tree().values()} == {"slow/1"}


def test_words_for_what_has_changed_meanwhile_are_dropped(office: Office) -> None:
    """An event that arrives during a request wins; the new node is written in its turn."""
    office.append([event(n, NOON + n * MINUTE) for n in range(3)])
    office.settle()

    def late() -> None:
        office.writer.meanwhile = lambda: None
        office.append([event(7, NOON + 4 * MINUTE)])
        office.settle()

    office.writer.meanwhile = late
    assert not office.scribe.turn()
    assert office.level(Level.SEGMENT)[0].summarizer == "plain/1"
    office.write_all()
    (segment,) = office.level(Level.SEGMENT)
    assert (segment.summarizer, segment.event_count) == ("slow/1", 4)
    assert office.writer.asked[:2] == ["e000000-e000002 after 0", "e000000-e000007 after 0"]


def test_a_late_event_has_its_periods_written_again(office: Office) -> None:
    """What a late event touches is derived and written anew; other segments are not."""
    _week(office)
    office.write_all()
    office.writer.asked.clear()
    office.append([event(500, NOON + 5 * MINUTE, text="something that was said late")])
    office.settle()
    office.write_all()
    assert office.writer.asked[0] == "e000000-e000500 after 0"
    assert office.writer.asked[1:] == ["DAY of 2", "WEEK of 2", "MONTH of 1", "YEAR of 1"]
    assert {n.summarizer for n in office.tree().values()} == {"slow/1"}


def test_marks_survive_a_restart_and_a_rebuild_makes_new_ones(
    tmp_path: os.PathLike[str],
) -> None:
    """What waits for the model still waits after a restart; a rebuild has all written again."""
    path = f"{os.fspath(tmp_path)}/data"
    office = Office(path, frozenset(Level))
    _week(office)
    office.close()
    office = Office(path, frozenset(Level))
    assert len(office.nodes.unwritten(Level.SEGMENT)) == 4
    office.write_all()
    assert office.nodes.unwritten(Level.SEGMENT) == []
    office.pump.ask(office.pump.start_over).result()
    office.settle()
    assert len(office.nodes.unwritten(Level.SEGMENT)) == 4
    office.close()


@pytest.mark.parametrize("point", ["rewrite.before_write", "rewrite.after_write"])
def test_a_crash_while_words_are_written_repeats_it_or_does_not(
    tmp_path: os.PathLike[str], point: str
) -> None:
    """Words and mark go together: after a crash a node is the model's, or still waits for it."""
    path = f"{os.fspath(tmp_path)}/data"

    def reach(reached: str) -> None:
        if reached == point:
            raise Crash

    office = Office(path, frozenset({Level.SEGMENT}), reach)
    office.append([event(n, NOON + n * MINUTE) for n in range(3)])
    office.settle()
    with pytest.raises(RuntimeError):
        office.scribe.turn()
    office.close()
    office = Office(path, frozenset({Level.SEGMENT}))
    (segment,) = office.level(Level.SEGMENT)
    done = point == "rewrite.after_write"
    assert segment.summarizer == ("slow/1" if done else "plain/1")
    assert office.scribe.turn() is not done
    (segment,) = office.level(Level.SEGMENT)
    assert segment.summarizer == "slow/1"
    office.close()


def test_the_thread_writes_by_itself_and_ends(office: Office) -> None:
    """From start to stop the scribe finds what waits."""
    import time

    office.scribe.start()
    _week(office)
    deadline = time.monotonic() + 60
    while {n.summarizer for n in office.level(Level.SEGMENT)} != {"slow/1"}:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    office.scribe.stop()
