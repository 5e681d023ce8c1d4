"""Whatever the order and the accidents of arrival, the same events give the same tree."""

import random
import tempfile
from collections.abc import Callable
from itertools import pairwise

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoryd.domain.calendar import PERIODS, Calendar, parse
from memoryd.domain.event import Event
from memoryd.domain.segment import Rules, cut
from memoryd.domain.toc import Level, Node
from tests.services.rig import DAY, HOUR, MINUTE, NOON, Crash, Rig, event

RULES = Rules(tokens=120, overlap_tokens=40)

HISTORIES = st.lists(
    st.tuples(
        st.one_of(
            st.integers(0, 3 * HOUR),
            st.integers(0, 40 * DAY),
            st.integers(0, 400).map(lambda n: n * MINUTE),
        ),
        st.sampled_from("stu"),
        st.sampled_from([3, 40, 200, 700]),
        st.sampled_from([2, 2, 2, 3, 4, 8, 1]),
    ),
    min_size=1,
    max_size=40,
).map(
    lambda rows: [
        event(n, NOON + time, session, f"{n} " + "word " * (size // 5), kind)
        for n, (time, session, size, kind) in enumerate(rows)
    ]
)
MANY = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))


def grown(events: list[Event], feed: Callable[[Rig], None]) -> tuple[dict[str, Node], set[str]]:
    """The tree and its grips after the events have come in some way."""
    with tempfile.TemporaryDirectory() as directory:
        rig = Rig(f"{directory}/data", rules=RULES)
        feed(rig)
        rig.settle()
        tree, grips = rig.tree(), rig.grips()
        assert rig.errors == []
        assert rig.store.log.pending() == (0, 0)
        assert [rig.nodes.dirty(level) for level in PERIODS] == [[]] * 4
        check(events, tree, rig.calendar)
        for grip in grips.values():
            said = rig.store.log.get(grip.first_event_id).event.text
            assert grip.excerpt in said
            assert grip.node_id in tree
        rig.close()
        return tree, {repr(grip) for grip in grips.values()}


def check(events: list[Event], tree: dict[str, Node], calendar: Calendar) -> None:
    """Segments partition the events; every period with events has a node that its children tile."""
    segments = {}
    for session in {e.session_id for e in events}:
        mine = sorted(
            (e for e in events if e.session_id == session), key=lambda e: (e.time_ms, e.event_id)
        )
        for segment in cut(mine, RULES, calendar):
            segments[segment.node_id] = len(segment.events)
    found = {n.node_id: n.event_count for n in tree.values() if n.level is Level.SEGMENT}
    assert found == segments
    for level in (Level.DAY, Level.WEEK, Level.MONTH, Level.YEAR):
        wanted = {calendar.period(e.time_ms, level).node_id for e in events}
        assert {n.node_id for n in tree.values() if n.level is level} == wanted
    for node in tree.values():
        assert all(bullet.grip_ids for bullet in node.bullets)
        assert not node.provisional
        if node.level is Level.SEGMENT:
            continue
        children = [tree[child] for child in node.child_ids]
        assert sum(child.event_count for child in children) == node.event_count
        assert all(node.start_ms <= c.start_ms <= c.end_ms <= node.end_ms for c in children)
        assert all(a.start_ms <= b.start_ms for a, b in pairwise(children))
        if node.level is not Level.DAY:
            tiles = {child.node_id for child in parse(node.node_id).children}
            assert set(node.child_ids) <= tiles


@MANY
@given(HISTORIES, st.randoms(use_true_random=False))
def test_every_way_of_arrival_gives_the_same_tree(
    events: list[Event], chance: random.Random
) -> None:
    """Bulk, live in order, shuffled one by one, and in random batches: one tree."""
    ordered = sorted(events, key=lambda e: (e.time_ms, e.event_id))
    shuffled = chance.sample(events, len(events))
    cuts = sorted(chance.sample(range(len(events) + 1), min(3, len(events))))
    batches = [shuffled[a:b] for a, b in pairwise([0, *cuts, len(events)]) if a < b]
    bulk = grown(events, lambda rig: rig.append(ordered))
    assert grown(events, lambda rig: rig.feed([e] for e in ordered)) == bulk
    assert grown(events, lambda rig: rig.feed([e] for e in shuffled)) == bulk
    assert grown(events, lambda rig: rig.feed(batches)) == bulk


@MANY
@given(HISTORIES, st.integers(1, 6), st.randoms(use_true_random=False))
def test_interrupted_steps_leave_no_trace(
    events: list[Event], period: int, chance: random.Random
) -> None:
    """A process that ends at any named step, again and again, comes to the same tree."""
    shuffled = chance.sample(events, len(events))
    undisturbed = grown(events, lambda rig: rig.feed([e] for e in shuffled))
    hits = 0

    def reach(_name: str) -> None:
        nonlocal hits
        hits += 1
        if hits % period == 0 and hits < 60:
            raise Crash

    with tempfile.TemporaryDirectory() as directory:
        rig = Rig(f"{directory}/data", rules=RULES)
        rig.append(shuffled)
        rig.close()
        while True:
            rig = Rig(f"{directory}/data", rules=RULES, reach=reach)
            try:
                rig.settle()
            except Crash:
                rig.close()
                continue
            break
        assert (rig.tree(), {repr(g) for g in rig.grips().values()}) == undisturbed
        rig.close()


@MANY
@given(HISTORIES, st.randoms(use_true_random=False))
def test_deriving_everything_again_changes_nothing(
    events: list[Event], chance: random.Random
) -> None:
    """Thrown away and derived from the log, nodes and grips are what they were."""
    shuffled = chance.sample(events, len(events))
    with tempfile.TemporaryDirectory() as directory:
        rig = Rig(f"{directory}/data", rules=RULES)
        rig.feed([e] for e in shuffled)
        rig.settle()
        before = rig.tree(), rig.grips()
        assert rig.pump.start_over() == len(events)
        assert rig.tree() == {}
        rig.settle()
        assert (rig.tree(), rig.grips()) == before
        rig.close()
