import os
from collections.abc import Iterator

import pytest

from memoryd.domain.errors import Cancelled, InvalidInput, NotFound
from memoryd.domain.toc import Level
from memoryd.services.toc import Contents, Question, node_tokens
from tests.services.rig import DAY, HOUR, MINUTE, NOON, Rig, event


def alive() -> bool:
    """Answer for a caller that waits."""
    return True


@pytest.fixture
def rig(tmp_path: os.PathLike[str]) -> Iterator[Rig]:
    """Twelve weeks of two sessions a day with ten events each; every third day is about parsers."""
    rig = Rig(f"{os.fspath(tmp_path)}/data")
    number = 0
    events = []
    for day in range(84):
        for session in "ab":
            for place in range(10):
                subject = "parser" if day % 3 == 0 else "form"
                text = f"{subject} item{number} says {'more ' * place}"
                time = NOON + day * DAY + place * MINUTE + (session == "b") * HOUR
                events.append(event(number, time, f"{session}{day}", text))
                number += 1
    rig.append(events)
    rig.settle()
    yield rig
    rig.close()


@pytest.fixture
def contents(rig: Rig) -> Contents:
    """The reading side."""
    return Contents(rig.nodes, rig.store.log, rig.calendar)


def test_a_walk_reaches_every_segment(contents: Contents) -> None:
    """From the years down by children, every segment is met once, in order, and knows its parent."""
    met = []

    def walk(parent: str) -> None:
        token, more = "", True
        while more:
            page, token = contents.children(parent, 2, token)
            more = bool(token)
            for child in page:
                assert contents.parent_id(child) == parent
                if child.level is Level.SEGMENT:
                    met.append(child)
                else:
                    walk(child.node_id)

    walk("")
    assert len(met) == len({n.node_id for n in met}) == 168
    assert sum(n.event_count for n in met) == 1680
    assert met == sorted(met, key=lambda n: n.node_id)
    assert [n.node_id for n in contents.root()] == ["toc:year:2026"]


def test_a_token_belongs_to_its_question(contents: Contents) -> None:
    """A token of another parent is refused."""
    _, token = contents.children("toc:month:2026-06", 1, "")
    with pytest.raises(InvalidInput, match="continuation_token"):
        contents.children("toc:month:2026-07", 1, token)


@pytest.mark.parametrize(("before", "after"), [(0, 0), (2, 1), (1, 5), (1000, 1000)])
def test_a_grip_expands_within_its_session(
    contents: Contents, rig: Rig, before: int, after: int
) -> None:
    """As many events as asked for stand before and after, fewer only at the session's ends."""
    day = contents.node("toc:day:2026-06-10")
    grip_id = day.bullets[0].grip_ids[0]
    found = contents.expand(grip_id, before, after)
    place = found.evidence[0].event.time_ms
    session = [r for _, r in rig.store.log.by_session(found.session_id)]
    where = [r.event.time_ms for r in session].index(place)
    assert found.before == session[max(0, where - before) : where]
    assert found.evidence == session[where : where + 1]
    assert found.after == session[where + 1 : where + 1 + after]
    assert any(found.grip.excerpt in r.event.text for r in found.evidence)
    assert contents.node(found.grip.node_id).level is Level.SEGMENT


def test_a_grip_expands_by_three_unless_told(contents: Contents) -> None:
    """Three events before and three after are given if nothing was said."""
    middle = next(
        bullet.grip_ids[0] for bullet in contents.node("toc:year:2026").bullets if bullet.grip_ids
    )
    found = contents.expand(middle, None, None)
    assert len(found.before) == 3
    assert len(found.after) <= 3


def test_bad_questions_are_refused(contents: Contents) -> None:
    """What makes no sense is an error that names the field."""
    with pytest.raises(InvalidInput, match="events_before -1"):
        contents.expand("grip:1:x", -1, 0)
    with pytest.raises(InvalidInput, match="events_after 1001"):
        contents.expand("grip:1:x", 1, 1001)
    with pytest.raises(NotFound, match="no grip"):
        contents.expand("grip:1:x", 1, 1)
    with pytest.raises(InvalidInput, match="node_id is empty"):
        contents.node("")
    with pytest.raises(NotFound, match="no node toc:year:1999"):
        contents.node("toc:year:1999")
    with pytest.raises(NotFound, match="no version 7"):
        contents.node("toc:year:2026", 7)
    with pytest.raises(InvalidInput, match="query is empty"):
        contents.search_node("toc:year:2026", Question("  "))
    with pytest.raises(InvalidInput, match="token_budget"):
        contents.search_node("toc:year:2026", Question("x", token_budget=-1))
    with pytest.raises(InvalidInput, match="does not lie below"):
        contents.search_below("toc:day:2026-06-10", Level.WEEK, Question("x"), alive)
    with pytest.raises(InvalidInput, match="level 9"):
        contents.timeline(0, 0, 0, 9)
    with pytest.raises(InvalidInput, match="out of range"):
        contents.timeline(-1, 0, 0, 0)


def test_search_finds_the_day_by_its_words(contents: Contents) -> None:
    """Of the days of a month, the one that holds a rare word comes first."""
    found, more = contents.search_below("toc:month:2026-06", Level.DAY, Question("item199"), alive)
    assert [f.node.node_id for f in found] == ["toc:day:2026-06-10"]
    assert not more
    node, matches = contents.search_node("toc:day:2026-06-10", Question("item199"))
    assert node.level is Level.DAY
    assert any("item199" in match.text for match in matches)


def test_search_honours_limit_and_budget(contents: Contents) -> None:
    """No more nodes than asked for, no more words than fit, but at least one; more is said."""
    every, more = contents.search_below("", Level.DAY, Question("parser", limit=100), alive)
    assert len(every) == 28
    assert not more
    some, more = contents.search_below("", Level.DAY, Question("parser", limit=5), alive)
    assert some == every[:5]
    assert more
    few, more = contents.search_below(
        "", Level.DAY, Question("parser", limit=5, token_budget=1), alive
    )
    assert few == every[:1]
    assert more


def test_a_search_that_nobody_waits_for_ends(contents: Contents) -> None:
    """A caller that has gone ends the search."""
    with pytest.raises(Cancelled):
        contents.search_below("", Level.SEGMENT, Question("parser"), lambda: False)


def test_a_timeline_is_as_fine_as_its_budget(contents: Contents) -> None:
    """The more tokens, the finer the level; within the budget, and all of the span."""
    span = NOON, NOON + 20 * DAY
    levels = []
    for budget in (100_000, 2_500, 700, 300, 1):
        line = contents.timeline(*span, budget, 0)
        levels.append(line.level)
        assert line.tokens == sum(map(node_tokens, line.nodes))
        assert line.tokens <= budget or line.level is Level.YEAR
        assert all(n.end_ms >= span[0] and n.start_ms <= span[1] for n in line.nodes)
    assert levels == sorted(levels, reverse=True)
    assert levels[0] is Level.SEGMENT
    assert levels[-1] is Level.YEAR


def test_a_timeline_at_a_level(contents: Contents) -> None:
    """A level that is asked for is given whatever its length; both ends of the span count."""
    line = contents.timeline(NOON + 12 * HOUR, NOON + 36 * HOUR, 1, Level.DAY)
    assert [n.node_id[-10:] for n in line.nodes] == ["2026-06-02", "2026-06-03"]
    assert len(contents.timeline(0, 0, 0, Level.DAY).nodes) == 84
    assert contents.timeline(1, 2, 0, 0).nodes == []
