from typing import Any

import pytest

from memoryd.domain.document import Head, Kind
from memoryd.domain.rank import DEFAULT, Candidate, Pool, Wishes, rank, rarity
from memoryd.domain.snippet import snippet
from memoryd.domain.when import Period

DAY = 86_400_000


def head(id_: str, **more: Any) -> Head:
    """A short turn of a user."""
    fields: dict[str, Any] = {
        "kind": Kind.EVENT,
        "id": id_,
        "sequence": 1,
        "time_ms": 1_000 * DAY,
        "session": "s",
        "place": 1,
        "length": 100,
        "role": 1,
        "who": (),
        "sketch": (),
        "path": (),
    }
    return Head(**(fields | more))


def pool(*candidates: tuple[Head, tuple[float, ...]], who: dict[str, float] | None = None) -> Pool:
    """What an index may give for the question "red pool"."""
    return Pool(
        [Candidate(h, fits) for h, fits in candidates], ("red", "pool"), (3.0, 3.0), who or {}, 100
    )


def order(given: Pool, wishes: Wishes = Wishes()) -> list[str]:  # noqa: B008 - a tuple
    """The ids, best first."""
    return [found.head.id for found in rank(given, wishes)]


def test_more_terms_beat_more_of_one() -> None:
    """Of two equal sums, the one with both terms comes first."""
    one, both = head("one", session="a"), head("both", session="b")
    assert order(pool((one, (6.0, 0.0)), (both, (3.0, 3.0)))) == ["both", "one"]


def test_a_short_turn_takes_from_its_neighbours() -> None:
    """A short answer without the words is found beside the question that has them."""
    asked, answer = head("asked", place=4), head("answer", place=5)
    far = head("far", place=50)
    assert order(pool((asked, (3.0, 3.0)), (answer, (0.0, 0.0)), (far, (0.0, 0.0)))) == [
        "asked",
        "answer",
    ]


def test_a_long_turn_takes_and_gives_nothing() -> None:
    """Long outputs do not drag in what stands beside them, nor are they dragged in."""
    long, short = head("long", place=4, length=5_000), head("short", place=5)
    assert order(pool((long, (3.0, 3.0)), (short, (0.0, 0.0)))) == ["long"]
    assert order(pool((long, (0.0, 0.0)), (short, (3.0, 3.0)))) == ["short"]


def test_who_spoke_counts() -> None:
    """A turn of the person that the question names comes before one that names the person."""
    by, about = head("by", session="a", who=("red",)), head("about", session="b")
    given = pool((about, (3.0, 3.0)), (by, (0.0, 3.0)), who={"red": 0.7})
    assert order(given) == ["by", "about"]


@pytest.mark.parametrize(
    "less", [{"role": 3}, {"role": 4}, {"length": 50_000}, {"kind": Kind.NODE}, {"kind": Kind.GRIP}]
)
def test_some_kinds_count_less(less: dict[str, Any]) -> None:
    """Of two that fit equally, harness text, tool output, long texts and derived ones come last."""
    plain, other = head("plain", session="a"), head("other", session="b", **less)
    assert order(pool((other, (3.0, 3.0)), (plain, (3.0, 3.0)))) == ["plain", "other"]


def test_a_named_period_lifts_and_drops_nothing() -> None:
    """What lies in the period comes first, what lies outside is still there."""
    then, later = head("then", session="a"), head("later", session="b", time_ms=1_100 * DAY)
    wishes = Wishes([Period(999 * DAY, 1_001 * DAY, "then")])
    assert order(pool((later, (3.5, 3.0)), (then, (3.0, 3.0)))) == ["later", "then"]
    assert order(pool((later, (3.5, 3.0)), (then, (3.0, 3.0))), wishes) == ["then", "later"]


def test_age_counts_if_wanted() -> None:
    """With a half-life, the newer of two comes first even if it fits a little less."""
    old, new = head("old", session="a"), head("new", session="b", time_ms=1_010 * DAY)
    given = pool((old, (3.5, 3.0)), (new, (3.0, 3.0)))
    assert order(given) == ["old", "new"]
    assert order(given, Wishes(half_life_ms=5 * DAY, now_ms=1_010 * DAY)) == ["new", "old"]


def test_near_duplicates_go_behind() -> None:
    """Nearly the same text again makes room for another."""
    numbers = tuple(range(8))
    first = head("first", session="a", sketch=numbers)
    again = head("again", session="b", sketch=(*numbers[1:], 9))
    other = head("other", session="c", sketch=tuple(range(20, 28)))
    given = pool((first, (3.0, 3.0)), (again, (3.0, 2.9)), (other, (3.0, 2.0)))
    assert order(given) == ["first", "other", "again"]
    assert rank(given, Wishes())[2].reasons["repeated"] == DEFAULT.repeated


def test_sessions_share_the_front_if_wanted() -> None:
    """With a number per session, the others of a session go behind, and none is lost."""
    turns = [head(f"a{n}", session="a", place=100 * n) for n in range(3)]
    other = head("b", session="b")
    given = pool(*((t, (3.0, 3.0)) for t in turns), (other, (3.0, 0.0)))
    assert order(given)[-1] == "b"
    assert order(given, Wishes(per_session=1))[1] == "b"
    assert len(order(given, Wishes(per_session=1))) == 4


def test_the_reasons_make_the_score() -> None:
    """What explain shows is what the score is made of."""
    found = rank(pool((head("a", role=4), (3.0, 1.0))), Wishes())[0]
    why = found.reasons
    assert found.score == pytest.approx((why["terms"] + why["around"]) * why["kind"] * why["time"])


def test_rare_terms_tell_more() -> None:
    """The fewer documents have a term, the more it counts."""
    assert rarity(1_000, 1) > rarity(1_000, 100) > rarity(1_000, 999) > 0


def test_a_snippet_shows_the_words() -> None:
    """The piece with the most of the words is cut out of a long text, the words marked."""
    text = "nothing here. " * 300 + "then the pool was verified in red " + "and so on. " * 300
    found = snippet(text, frozenset(("pool", "verifi", "red")))
    marked = [found.text[first:last] for first, last in found.highlights]
    assert marked == ["pool", "verified", "red"]
    assert text[found.offset :].startswith(found.text)


def test_a_snippet_folds_as_analysis_does() -> None:
    """Words that were found by their folded form are marked as they are written."""
    found = snippet("Über den Wolken", frozenset(("uber",)))
    assert [found.text[a:b] for a, b in found.highlights] == ["Über"]
    assert snippet("", frozenset(("pool",))).text == ""
