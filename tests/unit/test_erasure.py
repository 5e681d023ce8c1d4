import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.domain import erasure
from memoryd.domain.capture import twins
from memoryd.domain.erasure import Entry, Erased, Needles, Which
from memoryd.domain.errors import InvalidInput
from memoryd.domain.event import Event, Recorded

EVENT = Event("e1", "s", 5_000, 2, 1, "The harbour is closed today", {}, "a", "p", "", "")
HOOK = {"hook": "UserPromptSubmit"}
TRANSCRIPT = {"source_ids": "x"}


def entry(event: Event, sequence: int = 1) -> Entry:
    """What a receipt keeps of an event."""
    return erasure.entry_of(Recorded(event, sequence, 0, "store"), b"head")


def test_filters_narrow_each_other() -> None:
    """An event is meant if it fits every part that is given, and letter case does not count."""
    meta = EVENT._replace(metadata={"command": "open Harbour"}, text="")
    assert Which(matching="HARBOUR").matches(EVENT)
    assert Which(matching="HARBOUR").matches(meta)
    assert Which(frozenset("s"), frozenset(("e1",)), 5_000, 5_000, "closed").matches(EVENT)
    for other in (
        Which(frozenset("t"), matching="closed"),
        Which(frozenset("s"), frozenset(("e2",))),
        Which(frozenset("s"), from_ms=5_001),
        Which(frozenset("s"), to_ms=4_999),
        Which(frozenset("s"), matching="open"),
    ):
        assert not other.matches(EVENT)


@pytest.mark.parametrize(
    "which",
    [
        Which(),
        Which(matching="  "),
        Which(session_ids=frozenset(("",))),
        Which(event_ids=frozenset(("a\nb",))),
        Which(from_ms=-1),
        Which(from_ms=2, to_ms=1),
        Which(to_ms=2**63),
    ],
)
def test_what_means_everything_or_nothing_is_refused(which: Which) -> None:
    """A filter that is empty, blank or makes no sense erases nothing."""
    with pytest.raises(InvalidInput):
        erasure.checked(which)


@given(st.sets(st.tuples(st.integers(1, 99), st.text(min_size=1, max_size=5)), min_size=1))
def test_a_digest_stands_for_exactly_these_events(named: set[tuple[int, str]]) -> None:
    """The order does not matter; one event more, one less or another store does."""
    made = erasure.digest("store", named)
    assert made == erasure.digest("store", sorted(named, reverse=True))
    assert made != erasure.digest("other", named)
    assert made != erasure.digest("store", [*named, (100, "x")])
    assert made != erasure.digest("store", sorted(named)[1:])


@given(st.text(min_size=1, max_size=300), st.binary(max_size=50), st.binary(max_size=50))
def test_a_text_that_is_there_is_found(text: str, before: bytes, after: bytes) -> None:
    """Whatever has pieces to search for is found where it stands, and only there."""
    text = text.encode("utf-8", "replace").decode()
    needles = Needles([(text, {})])
    assert (len(needles) > 0) == bool(needles.texts)
    assert bool(needles.among(before + text.encode() + after)) == bool(needles.texts)
    assert not Needles([]).among(text.encode())


def test_metadata_is_searched_for_and_short_texts_are_counted() -> None:
    """Values of metadata give pieces too; a text of a word or two is only counted."""
    needles = Needles([("yes", {"command": "deploy --to the-old-harbour"}), ("", {})])
    assert (needles.texts, needles.short) == (0, 1)
    assert needles.among(b"... deploy --to the-old-harbour ...")
    found = needles.among(b"deploy --to the-old-harbour")
    assert not needles.without(found).among(b"deploy --to the-old-harbour")


def test_what_was_erased_is_known_from_another_source() -> None:
    """A transcript that tells what a hook told is known, at the same moment and in the same words."""
    erased = Erased()
    erased.add([entry(EVENT._replace(metadata=HOOK), 7)])
    told = EVENT._replace(event_id="other", metadata=TRANSCRIPT, time_ms=5_900)
    known = erased.find(told)
    assert known is not None
    assert known.sequence == 7
    for another in (
        told._replace(text="The harbour is open today"),
        told._replace(session_id="t"),
        told._replace(time_ms=5_000 + twins.WINDOW_MS + 1),
        told._replace(type=3, role=2),
        told._replace(metadata=HOOK),  # what one source tells twice happened twice
        told._replace(metadata={}),
    ):
        assert erased.find(another) is None


def test_what_was_told_late_is_known_too() -> None:
    """A hook that tells at the end of a turn may be long after what a transcript says."""
    erased = Erased()
    erased.add([entry(EVENT._replace(metadata=TRANSCRIPT))])
    late = EVENT._replace(event_id="n", metadata={"hook": "notify"}, time_ms=5_000_000)
    assert erased.find(late) is not None
    assert erased.find(late._replace(metadata=HOOK)) is None


def test_an_entry_holds_no_words() -> None:
    """A receipt names ids and hashes, nothing of what was said."""
    made = entry(EVENT._replace(metadata={"note": "a closed harbour"}))
    assert "harbour" not in repr(made)
    assert (made.event_id, made.session_id, made.time_ms, made.sequence) == ("e1", "s", 5_000, 1)


def test_a_reason_is_one_line() -> None:
    """A reason that is too long or has controls is refused."""
    assert erasure.check_reason("customer asked") == "customer asked"
    for bad in ("two\nlines", "x" * 1_001, "\x1b[2J"):
        with pytest.raises(InvalidInput):
            erasure.check_reason(bad)
