from collections.abc import Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memoryd.domain.event import ROLE_OF_TYPE, Event, EventType
from memoryd.domain.extract.extractive import Extractive
from memoryd.domain.summarize import Summarizer, Summary
from tests.unit import talks
from tests.unit.talks import ASSISTANT, TOOL, USER, event, said

EXTRACTIVE: Summarizer = Extractive()
TALKS = {
    "bug": talks.BUG,
    "decision": talks.DECISION,
    "chinese": talks.CHINESE,
    "japanese": talks.JAPANESE,
    "german": talks.GERMAN,
    "output": talks.OUTPUT,
}


def told(events: Sequence[Event], before: Sequence[Event] = ()) -> Summary:
    """The summary of a segment, after what holds for every summary."""
    summary = EXTRACTIVE.segment(events, before)
    assert len(summary.title) <= 80
    assert len(summary.summary) <= 800
    assert len(summary.points) <= 7
    assert len(summary.keywords) <= 96
    for point in summary.points:
        assert len(point.text) <= 240
        assert 0 <= point.weight <= 1
        assert point.evidence
        for first, last, excerpt in point.evidence:
            assert excerpt
            assert any(excerpt in e.text for e in events[first : last + 1])
    return summary


def lines(summary: Summary) -> str:
    """The bullets of a summary, one a line."""
    return "\n".join(point.text for point in summary.points)


@pytest.mark.parametrize("name", TALKS)
def test_every_bullet_stands_on_words_of_the_conversation(name: str) -> None:
    """Each bullet's excerpt is verbatim, and the words of a bullet are those of its excerpt."""
    for point in told(TALKS[name]).points:
        bare = point.text.removeprefix("Asked: ").removeprefix("User: ").removeprefix("Failed: ")
        if not point.text.startswith("Edited: "):
            assert bare.rstrip("…").lower() in point.evidence[0].excerpt.lower()


def test_a_bug_is_told_from_the_question_to_the_open_end() -> None:
    """Who asked what, what failed, why, how it was fixed, what was changed and what is left."""
    summary = told(talks.BUG)
    order = [
        "Asked: The nightly export crashes",
        "Failed: TypeError: fetch() missing",
        "The root cause is that `fetch()`",
        "I've fixed the crash",
        "Still open: the weekly report",
        "Edited: rows.py",
    ]
    assert [
        point.text[: len(begin)] for point, begin in zip(summary.points, order, strict=True)
    ] == order
    assert "fixed the crash" in summary.title.lower()
    assert {"fetch", "rows.py", "TypeError"} <= set(summary.keywords)


def test_what_only_announces_or_offers_is_left_out() -> None:
    """Boilerplate and code are in no bullet, in no summary and in no title."""
    summary = told(talks.BUG)
    words = f"{summary.title}\n{summary.summary}\n{lines(summary)}"
    for noise in ("help you", "Let me", "Would you like", "rows = fetch"):
        assert noise not in words


def test_a_decision_is_told_with_its_reason() -> None:
    """What was decided, by whom and why; the opener is cut away, the table is no bullet."""
    summary = told(talks.DECISION)
    assert "because session rows are rewritten" in lines(summary)
    assert "User: Agreed, we go with Redis instead of Postgres" in lines(summary)
    assert "Moved the session store to Redis" in lines(summary)
    assert "Great question" not in lines(summary)
    assert {"redis", "postgres"} <= set(summary.keywords)


def test_chinese_is_cut_into_sentences() -> None:
    """Marks of a script without spaces end sentences, and its cues are known."""
    summary = told(talks.CHINESE)
    assert "我把连接池从10改成了50，超时问题已经修复。" in lines(summary)
    assert "让我先看一下日志" not in lines(summary)
    assert "连接池" in summary.keywords


def test_japanese_is_cut_into_sentences() -> None:
    """Each statement is a bullet of its own; keywords are runs of one script."""
    summary = told(talks.JAPANESE)
    assert "原因はキャッシュの設定ミスでした。" in lines(summary).splitlines()
    assert {"キャッシュ", "ビルド"} <= set(summary.keywords)


def test_german_is_cut_at_its_sentences_and_not_at_its_abbreviations() -> None:
    """A date and "z.B." end no sentence."""
    found = lines(told(talks.GERMAN)).splitlines()
    assert any(line.startswith("Die Ursache") and line.endswith("gelesen.") for line in found)
    assert "Der Fehler ist behoben und alle Tests laufen durch." in found


def test_a_segment_of_tool_output_alone_says_what_was_called() -> None:
    """Without a word of anyone, the calls are quoted; code is not."""
    summary = told(talks.OUTPUT)
    assert len(summary.points) == 3
    assert all(point.text.startswith("Read: /repo/src/part") for point in summary.points)
    assert summary.title.startswith("Read: ")
    assert "part3.py" in summary.keywords


def test_repeated_output_is_told_once() -> None:
    """A failure that a tool repeats is one bullet."""
    again = [
        event(
            TOOL, "Bash: make\n\nerror: no rule to make target 'docs'", tool_name="Bash", error="2"
        )
    ] * 5
    texts = lines(told([*talks.DECISION, *again]))
    assert texts.count("no rule to make target") == 1


def test_events_without_words_give_a_summary_without_bullets() -> None:
    """Empty texts, and no events at all, are no error."""
    for events in ([], said((USER, ""), (ASSISTANT, "  \n"))):
        assert told(events) == Summary("Nothing was said", "", (), ())


def test_one_short_event_is_enough() -> None:
    """A segment of one event is titled and told by it."""
    summary = told(said((USER, "Please rename the flag to --dry-run.")))
    assert summary.title == "Rename the flag to --dry-run"
    assert lines(summary) == "Asked: Please rename the flag to --dry-run."
    assert "--dry-run" in summary.keywords


def test_what_was_said_before_counts_less() -> None:
    """A statement that only repeats the context gives way to a new one."""
    old = "The cache is keyed by the commit hash of the main branch."
    talk = said(
        (ASSISTANT, old), (ASSISTANT, "The worker pool drains its queue before the process exits.")
    )
    first = told(talk).points[0].weight
    assert first > 0
    fresh = EXTRACTIVE.segment(talk, said((ASSISTANT, old)))
    assert fresh.title.startswith("The worker pool")


def test_a_speaker_is_named() -> None:
    """Where events say who speaks, bullets do."""
    talk = [event(USER, "I adopted a dog from the shelter last week!", speaker="Mara")]
    assert lines(told(talk)) == "Mara: I adopted a dog from the shelter last week!"


def test_markdown_markup_is_not_shown() -> None:
    """Emphasis, links and list marks are cut from bullets, and stay in the evidence."""
    talk = said(
        (
            ASSISTANT,
            "1. **Fixed** the [parser](https://example.org/p) of the *old* format in `lex.py`.",
        )
    )
    point = told(talk).points[0]
    assert point.text == "Fixed the parser of the old format in `lex.py`."
    assert point.evidence[0].excerpt.startswith("**Fixed** the [parser]")


def test_markup_of_programs_is_no_prose() -> None:
    """What a harness puts into a message is not told as a person's words."""
    talk = said(
        (
            USER,
            "<system-reminder>Never mention the todo list.</system-reminder>Upgrade the linter to version 9.",
        )
    )
    assert lines(told(talk)) == "Asked: Upgrade the linter to version 9."


def test_control_characters_are_not_shown() -> None:
    """Colours of a terminal are in the evidence and not in the bullet."""
    talk = [
        event(
            TOOL,
            "Bash: build\n\n\x1b[31merror: cannot open lib/core.a\x1b[0m",
            tool_name="Bash",
            error="1",
        )
    ]
    assert "Failed: error: cannot open lib/core.a" in lines(told(talk)).splitlines()


def test_the_largest_event_is_read_at_both_ends_only() -> None:
    """16 MiB cost no more than a long message, and the last words are not lost."""
    middle = "The quick brown fox jumps over the lazy dog again. " * (16 * 1024 * 1024 // 52)
    text = (
        f"The migration failed because of a lock. {middle} We decided to retry it with a timeout."
    )
    summary = told(said((ASSISTANT, text[-16 * 1024 * 1024 :])))
    assert "We decided to retry it with a timeout." in lines(summary)


@pytest.mark.parametrize(
    "unit",
    [
        "-",
        ".",
        "# ",
        "? ",
        "*",
        "` ",
        ", ",
        "<a ",
        "[",
        "(",
        "a/",
        "Error",
        "e.g. ",
        "1. ",
        "> ",
        ";  ",
    ],
)
def test_monotonous_text_takes_no_longer_than_any_other(unit: str) -> None:
    """No pattern runs away on a text that nearly matches it, whoever says it."""
    text = unit * (32_000 // len(unit)) + "x"
    told(
        [event(USER, text), event(ASSISTANT, text), event(TOOL, text, tool_name="Bash", error="1")]
    )


@pytest.mark.parametrize("name", TALKS)
def test_the_same_events_give_the_same_words(name: str) -> None:
    """Also by another summarizer, after others have been summarized."""
    once = told(TALKS[name])
    told(talks.BUG)
    assert Extractive().segment(TALKS[name], ()) == once


SCRAPS = (
    "error: fixed because decided. `x` ** - | # ``` <b> \n\n \n 1. e.g. [a](b) ？ 修复。 ファイル，"
    ' \x1b[0m /a/b.py fooBar don\'t we Why? https://a.b/c {"k": 1} — … ไทย a.b_c 💥 \u200b ) ( ,'
)
TEXTS = st.one_of(
    st.text(max_size=300),
    st.lists(
        st.sampled_from(SCRAPS.split(" ")),
        max_size=60,
    ).map(" ".join),
)
EVENTS = st.lists(
    st.builds(
        lambda type_, text, metadata: Event(
            "", "s", 0, type_, ROLE_OF_TYPE[type_], text, metadata, "", "", "", ""
        ),
        st.sampled_from(EventType),
        TEXTS,
        st.dictionaries(
            st.sampled_from(
                ["tool_name", "error", "file_path", "compaction", "speaker", "subagent"]
            ),
            st.sampled_from(["", "Edit", "Bash", "Task", "/a/b.py", "x" * 300]),
        ),
    ),
    max_size=12,
)


@given(EVENTS, EVENTS)
@example(said((USER, "x" * 5000)), [])
@example(said((ASSISTANT, "。" * 3000)), [])
@example(said((ASSISTANT, "ไ" * 3000)), [])
@settings(deadline=None)
def test_any_events_give_bounded_and_supported_words(
    events: list[Event], before: list[Event]
) -> None:
    """Whatever is said, every bullet is supported, sizes are bounded and nothing changes on repeating."""
    assert told(events, before) == told(events, before)


def test_words_that_recur_in_output_are_keywords() -> None:
    """A plain word that tools show again and again can be found; one shown once cannot."""
    output = "Bash: cat notes\n\n" + "the emitter announces a switch\n" * 30 + "a single heron"
    summary = told([*talks.DECISION, event(TOOL, output, tool_name="Bash")])
    assert "emitter" in summary.keywords
    assert "heron" not in summary.keywords
