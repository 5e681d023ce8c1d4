import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from zoneinfo import ZoneInfo

import pytest

from memoryd.domain.calendar import PERIODS, Calendar
from memoryd.domain.errors import NotFound, ReadOnly
from memoryd.domain.event import Event
from memoryd.domain.segment import Rules
from memoryd.domain.summarize import Evidence, Point, Summary
from memoryd.domain.toc import Level
from memoryd.services import pump as pump_module
from memoryd.services.wording import NAMES_LIMIT
from memoryd.services.workshop import Workshop
from memoryd.storage.db import Database
from tests.services.rig import DAY, HOUR, LATER, MINUTE, NOON, ZONE, Crash, Rig, event
from tests.services.words import Plain

FACTORY = "tests.services.words:Plain"


@pytest.fixture
def made(tmp_path: os.PathLike[str]) -> Iterator[Callable[..., Rig]]:
    """Makes rigs on one store; the last of them ends with the test."""
    rigs: list[Rig] = []

    def make(**more: object) -> Rig:
        for rig in rigs:
            rig.close()
        rigs[:] = [Rig(f"{os.fspath(tmp_path)}/data", **more)]  # type: ignore[arg-type]
        return rigs[0]

    yield make
    for rig in rigs:
        rig.close()


def test_an_open_segment_is_there_and_closes_by_the_clock(made: Callable[..., Rig]) -> None:
    """The segment under way is a provisional node; the gap closes it, and midnight its day."""
    rig = made(now_ms=NOON + MINUTE)
    rig.append([event(1, NOON)])
    rig.settle()
    assert [n.provisional for n in rig.tree().values()] == [True] * 5
    rig.now_ms = NOON + 30 * MINUTE - 1
    rig.pump.catch_up()
    assert rig.level(Level.SEGMENT)[0].provisional
    rig.now_ms += 1
    rig.pump.catch_up()
    assert not rig.level(Level.SEGMENT)[0].provisional
    rig.settle()
    assert rig.level(Level.DAY)[0].provisional
    rig.now_ms = NOON + 12 * HOUR
    rig.settle()
    assert not rig.level(Level.DAY)[0].provisional
    assert rig.level(Level.WEEK)[0].provisional
    rig.now_ms = LATER
    rig.settle()
    assert not any(n.provisional for n in rig.tree().values())


def test_the_end_of_a_session_closes_its_segment_at_once(made: Callable[..., Rig]) -> None:
    """No gap is waited for when the session has said that it ends."""
    rig = made(now_ms=NOON + MINUTE)
    rig.append([event(1, NOON), event(2, NOON + 1, kind=8)])
    rig.pump.catch_up()
    assert [n.provisional for n in rig.level(Level.SEGMENT)] == [False]


def test_a_late_event_rebuilds_what_it_touches_and_nothing_else(made: Callable[..., Rig]) -> None:
    """One segment and the periods above it get a new version; the old stays readable."""
    rig = made()
    rig.append(event(10 * n + m, NOON + n * DAY + m * MINUTE) for n in range(30) for m in range(3))
    rig.settle()
    before = {n.node_id: n for n in rig.nodes.between("toc:", "toc:~")}
    rig.append([event(999, NOON + 5 * DAY + MINUTE, text="came late and is quite long " * 9)])
    rig.settle()
    after = {n.node_id: n for n in rig.nodes.between("toc:", "toc:~")}
    changed = sorted(i for i in after if after[i] != before[i])
    assert [i.partition(":")[2].partition(":")[0] for i in changed] == [
        "day",
        "month",
        "segment",
        "week",
        "year",
    ]
    for node_id in changed:
        assert after[node_id].version == 2
        assert rig.nodes.get(node_id, 1) == before[node_id]
        assert after[node_id].event_count == before[node_id].event_count + 1


def test_provisional_versions_give_way(made: Callable[..., Rig]) -> None:
    """Only the latest of the versions that a growing node went through is kept."""
    rig = made(now_ms=NOON + MINUTE)
    rig.feed([event(n, NOON + n)] for n in range(5))
    (segment,) = rig.nodes.between("toc:segment:", "toc:segment:~")
    assert segment.version == 5
    assert rig.nodes.versions(segment.node_id) == [5]
    with pytest.raises(NotFound, match="version 4"):
        rig.nodes.get(segment.node_id, 4)


def test_a_segment_that_is_no_more_leaves_the_tree(made: Callable[..., Rig]) -> None:
    """An event that bridges a gap joins two segments; the second can still be read by version."""
    rig = made()
    rig.append([event(1, NOON), event(2, NOON + 40 * MINUTE)])
    rig.settle()
    first, second = rig.level(Level.SEGMENT)
    rig.append([event(3, NOON + 20 * MINUTE)])
    rig.settle()
    (joined,) = rig.level(Level.SEGMENT)
    assert (joined.node_id, joined.event_count) == (first.node_id, 3)
    with pytest.raises(NotFound):
        rig.nodes.get(second.node_id)
    assert rig.nodes.get(second.node_id, 1).event_count == 1
    assert rig.level(Level.DAY)[0].child_ids == (joined.node_id,)


def test_a_segment_that_comes_back_counts_on(made: Callable[..., Rig]) -> None:
    """A segment that has gone and comes again gets the next version, not the first."""
    rules = Rules(tokens=12)
    rig = made(rules=rules)
    rig.append([event(n, NOON + n * 10, text="x" * 20) for n in (1, 2, 3, 4)])
    rig.settle()
    second = rig.level(Level.SEGMENT)[1].node_id
    rig.append([event(0, NOON, text="x" * 20)])
    rig.settle()
    assert second not in rig.tree()
    rig.append([event(5, NOON - 10, text="x" * 20)])
    rig.settle()
    assert rig.nodes.get(second).version == 2


def test_an_outbox_is_worked_off_in_parts(
    made: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch that is larger than a step is taken in parts, and the lag tells the truth."""
    monkeypatch.setattr(pump_module, "_STEP_EVENTS", 4)
    rig = made()
    rig.append([event(n, NOON + n) for n in range(10)])
    assert rig.store.log.pending()[0] == 10
    rig.pump._step()
    assert rig.store.log.pending()[0] == 6
    assert [e[:2] for e in rig.store.log.outbox()] == [(5, 10)]
    rig = made()
    assert rig.pump.done == 4
    rig.settle()
    assert rig.store.log.pending() == (0, 0)
    assert rig.level(Level.SEGMENT)[0].event_count == 10


def test_sessions_do_not_tear_each_other_apart(made: Callable[..., Rig]) -> None:
    """Two agents that work at once have a segment each."""
    rig = made()
    rig.append([event(n, NOON + n, session="st"[n % 2]) for n in range(20)])
    rig.settle()
    found = rig.level(Level.SEGMENT)
    assert [n.event_count for n in found] == [10, 10]
    day = rig.level(Level.DAY)[0]
    assert sorted(day.session_ids) == ["s", "t"]
    assert day.agents == ("a",)


def test_another_zone_derives_everything_again(made: Callable[..., Rig]) -> None:
    """With another time zone the days are cut anew, at once and without being asked."""
    rig = made()
    rig.append([event(n, NOON + n * HOUR) for n in range(24)])
    rig.settle()
    kept = rig.tree()
    rig = made(zone="Pacific/Auckland")
    assert rig.tree() == {}
    rig.settle()
    assert len(rig.level(Level.DAY)) == 2
    assert rig.tree() != kept
    rig = made(zone=ZONE)
    rig.settle()
    assert rig.tree() == kept


@pytest.mark.parametrize(
    ("zone", "day"),
    [
        ("America/Sao_Paulo", (2018, 11, 4)),
        ("Europe/Berlin", (2026, 10, 25)),
        (ZONE, (2026, 3, 29)),
    ],
)
def test_days_on_which_the_clock_is_set_close(
    made: Callable[..., Rig], zone: str, day: tuple[int, int, int]
) -> None:
    """A day of 23 or 25 hours is closed at its own end, not an hour off."""
    calendar = Calendar(ZoneInfo(zone))
    start = calendar.start_ms(date(*day))
    end = calendar.start_ms(date(day[0], day[1], day[2] + 1))
    rig = made(zone=zone, now_ms=end - 1)
    rig.append([event(1, start), event(2, end - 1)])
    rig.settle()
    (node,) = rig.level(Level.DAY)
    assert (node.start_ms, node.end_ms, node.provisional) == (start, end, True)
    assert node.event_count == 2
    rig.now_ms = end
    rig.settle()
    assert not rig.level(Level.DAY)[0].provisional


class Liar(Plain):
    """Makes evidence up, now and then."""

    name = "liar/1"

    def segment(self, events: Sequence[Event], before: Sequence[Event]) -> Summary:
        """One true point among false ones."""
        true = Evidence(0, 0, events[0].text[:6])
        false = (Evidence(0, 0, "never said"), Evidence(0, 99, "line"), Evidence(1, 0, "line"))
        points = [Point(f"p{n}", (e,), 1.0) for n, e in enumerate(false)]
        return Summary("t", "s", (*points, Point("true", (*false, true), 1.0)), ())


def test_what_nobody_said_is_dropped(made: Callable[..., Rig]) -> None:
    """A bullet without evidence in the events does not get into a node."""
    rig = made()
    rig.pump._workshop.summarizer = Liar()
    rig.append([event(1, NOON)])
    rig.pump.catch_up()
    (node,) = rig.level(Level.SEGMENT)
    assert [b.text for b in node.bullets] == ["true"]
    assert len(node.bullets[0].grip_ids) == 1
    assert node.summarizer == "liar/1"


class Broken(Plain):
    """Fails on some segments."""

    def segment(self, events: Sequence[Event], before: Sequence[Event]) -> Summary:
        """Fail if the first event says so."""
        if "fail" in events[0].text:
            raise ValueError(events[0].text)
        return super().segment(events, before)


def test_a_summarizer_that_fails_stops_nothing(made: Callable[..., Rig]) -> None:
    """A segment that cannot be put into words is there without words; the others are as usual."""
    rig = made()
    rig.pump._workshop.summarizer = Broken()
    rig.append([event(1, NOON, text="fail: secret"), event(2, NOON + HOUR)])
    rig.settle()
    wordless, whole = rig.level(Level.SEGMENT)
    assert (wordless.title, wordless.bullets, wordless.summarizer) == ("", (), "")
    assert whole.title == "line 2 of what was said"
    assert rig.errors == ["summarize: a segment has no words (ValueError)"]
    assert rig.level(Level.YEAR)[0].event_count == 2


def test_a_process_of_its_own_says_the_same(made: Callable[..., Rig]) -> None:
    """Summaries made by the worker process are those made in the thread, also after it was killed."""
    events = [event(n, NOON + n * 40 * MINUTE, text=f"{n} öß 大" * n) for n in range(1, 30)]
    rig = made()
    tasks = [((e,), tuple(events[:2])) for e in events]
    here = list(rig.pump._workshop.segments(tasks))
    shop = Workshop(Plain(), FACTORY, rig._note)
    assert list(shop.segments(tasks)) == here
    process = shop._child.process
    assert process is not None
    answers = shop.segments(tasks)
    first = [next(answers) for _ in range(3)]
    os.kill(process.pid, signal.SIGKILL)
    assert first + list(answers) == here
    assert list(shop.segments(tasks)) == here
    again = shop._child.process
    assert again is not None
    assert again.pid != process.pid
    shop.close()
    assert again.poll() is not None


def test_names_in_a_node_are_bounded(made: Callable[..., Rig]) -> None:
    """A day of very many sessions names only the first of them."""
    rig = made()
    rig.append([event(n, NOON + n, session=f"s{n}") for n in range(NAMES_LIMIT + 10)])
    rig.settle()
    day = rig.level(Level.DAY)[0]
    assert len(day.session_ids) == NAMES_LIMIT
    assert day.event_count == NAMES_LIMIT + 10


def test_a_paused_level_waits(made: Callable[..., Rig]) -> None:
    """Periods of a level that is held stay marked, and are derived when it is let go."""
    rig = made()
    rig.append([event(1, NOON)])
    rig.pump.catch_up()
    rig.pump.held = lambda level: level is Level.WEEK
    rig.pump._refresh_periods()
    assert [len(rig.level(level)) for level in PERIODS] == [1, 0, 0, 0]
    rig.pump.held = lambda _level: False
    rig.pump._refresh_periods()
    assert [len(rig.level(level)) for level in PERIODS] == [1, 1, 1, 1]


def test_the_thread_does_it_all_by_itself(made: Callable[..., Rig]) -> None:
    """Started, the pump works events in, does what it is asked, and ends when told to."""
    rig = made()
    rig.pump.start()
    rig.append([event(n, NOON + n) for n in range(300)])
    for level in PERIODS:
        rig.pump.ask(lambda level=level: rig.pump.roll_up(level)).result(30)  # type: ignore[misc]
    assert rig.level(Level.YEAR)[0].event_count == 300
    failing = rig.pump.ask(lambda: 1 / 0)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        failing.result(30)
    rig.pump.stop()


def test_the_thread_gets_on_beside_writers_that_never_pause(
    made: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gives way to writers, but what has waited for long enough is worked in beside them."""
    monkeypatch.setattr(pump_module, "_PATIENCE_SECONDS", 0.05)
    monkeypatch.setattr(pump_module, "_SETTLE_SECONDS", 60.0)
    monkeypatch.setattr(pump_module, "_REST_SECONDS", 60.0)
    monkeypatch.setattr(pump_module, "_GIVING_WAY", 1_000_000.0)
    rig = made()
    rig.pump.start()
    deadline = time.monotonic() + 30
    number = 0
    while rig.pump.done < 20 and time.monotonic() < deadline:
        number += 1
        rig.append([event(number, NOON + number)])
    assert rig.pump.done >= 20


def test_a_backlog_is_not_waited_for(
    made: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits at the start is worked in at once: nobody writes, so nobody is given way to."""
    monkeypatch.setattr(pump_module, "_STEP_EVENTS", 2)
    monkeypatch.setattr(pump_module, "_QUIET_SECONDS", 60.0)
    made().append(event(n, NOON + n) for n in range(1, 21))
    rig = made()
    rig.pump.start()
    rig.pump.ask(lambda: None).result(30)
    deadline = time.monotonic() + 30
    while rig.pump.done < 20 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert rig.pump.done == 20


def test_a_full_disk_only_delays(made: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that cannot be written changes nothing, and is done again when it can."""
    rig = made()
    rig.append([event(n, NOON + n) for n in range(5)])

    def refuse(*_: object) -> None:
        raise ReadOnly("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(Database, "write", refuse)
        with pytest.raises(ReadOnly):
            rig.pump.catch_up()
    assert rig.store.log.pending()[0] == 5
    assert rig.tree() == {}
    rig.settle()
    assert rig.level(Level.YEAR)[0].event_count == 5


@pytest.mark.parametrize("point", ["close.before_write", "close.after_write"])
def test_an_interrupted_closing_is_finished_later(made: Callable[..., Rig], point: str) -> None:
    """A process that ends while it closes a segment closes it at its next start."""

    def reach(name: str) -> None:
        if name == point:
            raise Crash

    rig = made(now_ms=NOON + MINUTE, reach=reach)
    rig.append([event(1, NOON)])
    rig.settle()
    rig.now_ms = LATER
    with pytest.raises(Crash):
        rig.pump.catch_up()
    rig = made(now_ms=LATER)
    rig.settle()
    assert len(rig.tree()) == 5
    assert not any(n.provisional for n in rig.tree().values())


def test_a_rollup_does_not_wait_for_writers_to_end(tmp_path: os.PathLike[str]) -> None:
    """While every step of the pump meets another event, a rollup works in what was there, and ends."""
    numbers = iter(range(1, 40))

    def write_on(name: str) -> None:
        if name == "pump.after_read":
            number = next(numbers)
            rig.append([event(number, NOON + number * MINUTE)])

    rig = Rig(f"{os.fspath(tmp_path)}/d", reach=write_on)
    rig.append([event(0, NOON)])
    rig.settle()
    assert next(numbers) < 10
    rig.close()
