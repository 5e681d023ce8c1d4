import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.domain.toc import Bullet
from memoryd.models import reply as reply_module
from memoryd.models.fence import inert
from memoryd.models.reply import Unusable, find_quote, read_digest, read_summary
from tests.models.words import bullet, node, reply, said

EVENTS = said(
    "Why does the refresh token race?",
    "Two workers   refresh at once;\nI take a lock in Redis.",
    "ok",
)


def test_a_supported_bullet_keeps_the_events_own_words() -> None:
    """Blanks may differ in a quote; what is kept stands verbatim in the event."""
    text = reply(bullet("Fixed by a lock", [2], "Two workers refresh at once; I take a lock"))
    summary = read_summary(text, EVENTS)
    (point,) = summary.points
    assert point.evidence == ((1, 1, "Two workers   refresh at once;\nI take a lock"),)
    assert point.evidence[0].excerpt in EVENTS[1].text
    assert (summary.title, summary.summary) == ("A title", "A summary.")
    assert summary.keywords == ("redis", "lock")
    assert summary.by == ""


@pytest.mark.parametrize(
    "bad",
    [
        bullet("Made up", [2], "We moved everything to Postgres"),
        bullet("Wrong event", [1], "I take a lock in Redis"),
        bullet("No such event", [0], "Two workers refresh"),
        bullet("No such event", [4], "Two workers refresh"),
        bullet("No numbers", [], "Two workers refresh"),
        bullet("A number as text", ["2"], "Two workers refresh"),
        bullet("Not a number", [True], "Why does the refresh"),
        bullet("Nothing quoted", [2], ""),
        bullet("Too short", [2], "a"),
        bullet("Blank", [2], " \n "),
        bullet("No text quoted", [2], ["Two workers refresh"]),
        bullet("", [2], "Two workers refresh"),
        bullet("Endless", [2], "Two workers refresh" * 1_000),
        "Two workers refresh",
        None,
    ],
)
def test_a_bullet_without_evidence_is_dropped(bad: object) -> None:
    """A bullet whose quote is not in an event that it names is not kept; alone it is a failure."""
    good = bullet("Good", [2], "I take a lock in Redis.")
    assert [p.text for p in read_summary(reply(bad, good), EVENTS).points] == ["Good"]
    with pytest.raises(Unusable, match="no bullet has evidence"):
        read_summary(reply(bad), EVENTS)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I cannot help with that.",
        "{}",
        "[1, 2]",
        '{"bullets": ',
        "{" * 5_000,
        '{"a":' * 20_000,
        json.dumps({"bullets": "none", "title": "t", "summary": "s"}),
        reply(bullet("x", [2], "I take a lock"), title=""),
        reply(bullet("x", [2], "I take a lock"), title=7),
        reply(bullet("x", [2], "I take a lock"), summary=None),
    ],
)
def test_what_is_not_the_object_asked_for_is_unusable(text: str) -> None:
    """A reply in another form is refused, with a reason that holds nothing of it."""
    with pytest.raises(Unusable) as caught:
        read_summary(text, EVENTS)
    assert "cannot" not in str(caught.value)


@pytest.mark.parametrize("around", ["%s", "```json\n%s\n```", "<think>{hm} {}</think>Here: %s ok"])
def test_words_around_the_object_do_no_harm(around: str) -> None:
    """Models like to wrap JSON; the object inside counts."""
    text = around % reply(bullet("Good", 2, '"I take a lock in Redis..."'))
    assert read_summary(text, EVENTS).points[0].text == "Good"


def test_bullets_stand_in_the_order_of_time_and_weigh_by_rank() -> None:
    """The most important comes first in a reply; in a node, what was first said."""
    text = reply(
        bullet("Second", [2], "I take a lock in Redis"), bullet("First", [1], "refresh token race")
    )
    points = read_summary(text, EVENTS).points
    assert [(p.text, p.weight) for p in points] == [("First", 0.9), ("Second", 1.0)]


def test_a_short_event_may_be_quoted_whole() -> None:
    """A quote that would be found anywhere counts only if it is all that was said."""
    assert find_quote("ok", "ok") == "ok"
    assert find_quote("ok", "look at the broken lock") == ""


def test_a_quote_of_what_looked_like_a_tag_is_found() -> None:
    """A model sees a stand-in for the bracket; the evidence has the bracket itself."""
    code = "List<Event> found = new ArrayList<Event>();"
    assert "<" not in inert(code)
    assert find_quote(inert(code), f"before\n{code}\nafter") == code


def test_a_reply_is_cleaned() -> None:
    """What a model writes is one line of printing letters, of bounded length."""
    long = reply(
        bullet("A\x1b[31m red\n\nbullet " + "word " * 200, [2], "I take a lock in Redis"),
        title="\u202e" + "t" * 500,
        summary="s\ud800" * 2_000,
        keywords=["one\ntwo", "one two", 3, "", *(f"k{n}" for n in range(99))],
    )
    summary = read_summary(long, EVENTS)
    assert len(summary.title) <= 100
    assert len(summary.summary) <= 1_000
    text = summary.points[0].text
    assert len(text) <= 240
    assert text.isprintable()
    assert text.endswith("\u2026")
    assert len(summary.keywords) == 30
    assert summary.keywords[:2] == ("one two", "k0")
    summary.summary.encode()


def test_a_period_inherits_grips() -> None:
    """A bullet of a period has the grips of those that it names, and needs at least one."""
    known = [b for n in (node("a", "one", "two"), node("b", "three")) for b in n.bullets]
    text = reply(
        {"text": "Both", "from": [3, 1, 3, 99]},
        {"text": "None", "from": [4]},
        {"text": "Nothing", "from": "1"},
        {"text": "Second", "from": 2},
    )
    digest = read_digest(text, known)
    assert digest.bullets == (
        Bullet("Both", ("grip:b:0", "grip:a:0"), 1.0),
        Bullet("Second", ("grip:a:1",), 0.7),
    )
    with pytest.raises(Unusable):
        read_digest(reply({"text": "None", "from": []}), known)


@given(st.text(), st.text(), st.text())
def test_a_quote_is_always_part_of_the_text(quote: str, head: str, tail: str) -> None:
    """Whatever is quoted, what is kept stands verbatim in the text; what stands there is found."""
    assert find_quote(quote, head + tail) in head + tail
    solid = f"solid words {quote.strip()} here"
    if len(solid) < reply_module.EXCERPT_LIMIT:
        assert find_quote(solid, head + solid + tail) in head + solid + tail


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(
                    ["title", "summary", "bullets", "text", "events", "quote", "from", "keywords"]
                ),
                inner,
            )
        ),
    )
)
def test_no_reply_breaks_the_reader(content: object) -> None:
    """Any JSON is either read, with evidence, or refused."""
    try:
        summary = read_summary(json.dumps(content), EVENTS)
    except Unusable:
        return
    assert all(p.evidence[0].excerpt in EVENTS[p.evidence[0].first].text for p in summary.points)
