from typing import Any

import pytest

from memoryd.domain.capture.transcripts import READERS, Place, Reader, from_transcript
from memoryd.domain.event import Event, EventRole, EventType
from tests.unit.capture.samples import TRANSCRIPTS, claude, codex, said

HERE = Place("file-name", "/t/file", "", 1_772_359_200_000)


def read(
    agent: str, records: list[Any], seen: set[str] | None = None
) -> tuple[Reader, list[Event]]:
    """A reader that has read, and the events that it gave."""
    reader = READERS[agent](HERE, seen)
    if reader.surveys:
        for record in records:
            if reader.survey(record):
                break
    return reader, list(from_transcript(reader, enumerate(records, 1)))


def told(events: list[Event]) -> list[tuple[str, str]]:
    """What the events tell, shortly."""
    return [(EventType(e.type).name.lower(), e.text) for e in events]


@pytest.mark.parametrize("agent", READERS)
def test_every_record_is_accounted_for(agent: str) -> None:
    """Each record went into an event or has a reason; reading again gives the same events."""
    reader, events = read(agent, TRANSCRIPTS[agent])
    assert reader.records == len(TRANSCRIPTS[agent])
    assert reader.unexplained == 0
    assert reader.used + sum(reader.skipped.values()) == reader.records
    assert reader.problems == []
    assert len({e.event_id for e in events}) == len(events)
    assert all(e.metadata["source_ids"] and e.metadata["source_file"] for e in events)
    assert read(agent, TRANSCRIPTS[agent])[1] == events


@pytest.mark.parametrize("agent", READERS)
def test_prompt_call_and_reply_are_told(agent: str) -> None:
    """Whatever the agent, the same conversation reads the same."""
    _, events = read(agent, TRANSCRIPTS[agent])
    words = told(events)
    assert ("user_message", "Why is the cart empty?") in words
    assert ("assistant_message", "Fixed.") in words
    (call,) = [e for e in events if e.type == EventType.TOOL_RESULT and e.session_id != "s-2"]
    assert call.text.splitlines()[0].endswith(": make")


def test_claude_code_groups_pairs_and_marks() -> None:
    """Thinking is left out, a call meets its result, a summary is the system's."""
    reader, events = read("claude-code", TRANSCRIPTS["claude-code"])
    assert told(events) == [
        ("user_message", "Why is the cart empty?"),
        ("tool_result", "Bash: make\n\nok"),
        ("assistant_message", "I look."),
        ("assistant_message", "Fixed."),
        ("assistant_message", "So far: the cart."),
    ]
    call, summary = events[1], events[-1]
    assert call.metadata["source_ids"] == "u-4,u-5"
    assert call.metadata["cwd"] == "/home/ann/shop"
    assert (summary.role, summary.metadata["compaction"]) == (EventRole.SYSTEM, "true")
    assert reader.skipped == {"summary": 1, "thinking": 1, "system: compact_boundary": 1}


def test_texts_of_one_message_are_one_event() -> None:
    """A message that spans lines, with calls between them, is one reply."""
    records = [
        claude(n, "assistant", [{"type": "text", "text": t}])
        | {"message": {"id": "m", "content": [{"type": "text", "text": t}]}}
        for n, t in enumerate(("One.", "Two."), 1)
    ]
    _, events = read("claude-code", records)
    assert told(events) == [("assistant_message", "One.\n\nTwo.")]
    assert events[0].metadata["source_ids"] == "u-1,u-2"


def test_a_subagents_words_are_marked() -> None:
    """What a sidechain was told starts the subagent; nothing in it is a person's."""
    side = {"isSidechain": True, "agentId": "a1"}
    records = [
        claude(1, "user", "Look for carts", **side),
        claude(2, "assistant", [{"type": "text", "text": "Two."}], **side),
    ]
    _, events = read("claude-code", records)
    assert told(events) == [("subagent_start", "Look for carts"), ("assistant_message", "Two.")]
    assert {e.metadata["agent_id"] for e in events} == {"a1"}


def test_a_replayed_record_counts_once() -> None:
    """A continued session's file repeats records; also across files."""
    seen: set[str] = set()
    record = claude(1, "user", "Once")
    first, _ = read("claude-code", [record, record], seen)
    second, events = read("claude-code", [record | {"sessionId": "s-2"}], seen)
    assert first.skipped == second.skipped == {"replayed record": 1}
    assert events == []


def test_a_call_has_one_id_in_every_session() -> None:
    """A long call id is unique by itself; a short one within its session."""

    def ids(use_id: str, session: str) -> str:
        use = {"type": "tool_use", "id": use_id, "name": "B", "input": {}}
        result = {"type": "tool_result", "tool_use_id": use_id, "content": "x"}
        records = [claude(1, "assistant", [use]), claude(2, "user", [result])]
        return read("claude-code", [r | {"sessionId": session} for r in records])[1][0].event_id

    assert ids("toolu_0123456789abcdefgh", "a") == ids("toolu_0123456789abcdefgh", "b")
    assert ids("1", "a") != ids("1", "b")


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (claude(1, "user", "x", isMeta=True), "meta"),
        (claude(1, "user", "<command-name>/x</command-name>"), "slash command"),
        (claude(1, "user", None), "no words"),
        (claude(1, "user", "x") | {"message": "x"}, "not readable"),
        (claude(1, "user", "x", timestamp="soon"), "not readable"),
        (claude(1, "assistant", [{"type": "tool_use", "id": "1"}]), "tool call without a result"),
        (
            claude(1, "assistant", "No.")
            | {"message": {"model": "<synthetic>", "content": [{"type": "text", "text": "x"}]}},
            "synthetic reply",
        ),
        ({"type": "attachment", "attachment": {"type": "todo"}}, "attachment: todo"),
        ({"type": "brand-new"}, "unknown type: brand-new"),
        ({"silly": 1}, "record without a type"),
        (42, "not readable"),
    ],
)
def test_what_tells_nothing_has_a_reason(record: Any, reason: str) -> None:
    """Records of Claude Code that give no event are counted by reason."""
    reader, events = read("claude-code", [record])
    assert (events, reader.skipped) == ([], {reason: 1})
    assert bool(reader.problems) == (reason == "not readable")


def test_queued_words_are_the_persons() -> None:
    """What was typed while the agent worked stands in an attachment."""
    record = claude(1, "attachment", "")
    record["attachment"] = {"type": "queued_command", "prompt": "And the tests?"}
    assert told(read("claude-code", [record])[1]) == [("user_message", "And the tests?")]


def test_our_own_block_does_not_come_back() -> None:
    """What memoryd injected is neither a person's words nor a tool's."""
    block = "<memoryd-context>old</memoryd-context>"
    use = {"type": "tool_use", "id": "1", "name": "B", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "1", "content": f"new{block}"}
    records = [
        claude(1, "user", f"{block}\nFix it"),
        claude(2, "assistant", [use]),
        claude(3, "user", [result]),
        claude(4, "assistant", [{"type": "text", "text": f"Done{block}"}]),
    ]
    texts = [e.text for e in read("claude-code", records)[1]]
    assert texts == ["Fix it", "B\n\nnew", "Done"]


def test_an_answer_precedes_what_follows_it() -> None:
    """Assistant records that were written again bear a late time; the next record bounds it."""
    late = claude(59, "assistant", [{"type": "text", "text": "Yes."}])
    _, events = read("claude-code", [late, claude(3, "user", "Good.")])
    assert [e.time_ms for e in events] == [1_772_359_203_000, 1_772_359_203_001]


def test_codex_tells_words_once() -> None:
    """An event and an item with the same words are one event that names both lines."""
    reader, events = read("codex", TRANSCRIPTS["codex"])
    assert (
        told(events)
        == [
            ("session_start", "Session started"),
            ("tool_result", "shell: make\n\nno rule\n\nerror: exit code 2"),
            ("user_message", "Why is the cart empty?"),
            ("assistant_message", "Fixed."),
            ("assistant_message", "So far: the cart."),
        ]
        or told(events)[1][0] == "user_message"
    )
    lines = {e.text: e.metadata["source_ids"] for e in events}
    assert lines["Why is the cart empty?"] == "line:4,line:5"
    assert lines["Fixed."] == "line:9,line:10"
    call = next(e for e in events if e.type == EventType.TOOL_RESULT)
    assert call.metadata["duration_ms"] == "500"
    assert call.metadata["error"] == "exit code 2"
    assert reader.skipped["AGENTS.md"] == 1


def test_codex_without_events_is_read_from_its_items() -> None:
    """An early rollout has only items."""
    records = [
        codex(0, "session_meta", id="s-1"),
        codex(1, "response_item", type="message", role="user", content=said("Hi", "input_text")),
        codex(2, "response_item", type="message", role="assistant", content=said("Ho")),
    ]
    assert told(read("codex", records)[1])[1:] == [
        ("user_message", "Hi"),
        ("assistant_message", "Ho"),
    ]


def test_codex_waiting_for_a_command_names_it() -> None:
    """A call that reads on from a running process tells of which command."""
    records = [
        codex(
            1,
            "response_item",
            type="function_call",
            name="exec_command",
            call_id="1",
            arguments='{"cmd": "make"}',
        ),
        codex(
            2,
            "response_item",
            type="function_call_output",
            call_id="1",
            output="Wall time: 1.0 seconds\nProcess running with session ID 77\nOutput:\n",
        ),
        codex(
            3,
            "response_item",
            type="function_call",
            name="write_stdin",
            call_id="2",
            arguments='{"session_id": 77, "chars": ""}',
        ),
        codex(
            4,
            "response_item",
            type="function_call_output",
            call_id="2",
            output="Wall time: 1.0 seconds\nOutput:\nbuilt",
        ),
    ]
    assert [e.text for e in read("codex", records)[1]] == [
        "exec_command: make",
        "write_stdin: make (continued)\n\nbuilt",
    ]


def test_gemini_replaces_and_takes_back() -> None:
    """The last version of a message stands; what was rewound is gone."""
    reader, events = read("gemini", TRANSCRIPTS["gemini"])
    assert told(events) == [
        ("user_message", "Why is the cart empty?"),
        ("assistant_message", "I look."),
        ("tool_result", "run_shell_command: make\n\nok"),
        ("assistant_message", "Fixed."),
    ]
    assert reader.skipped["replaced by a later version"] == 1
    assert reader.skipped["taken back"] == 2
    assert {e.session_id for e in events} == {"s-1"}


def test_opencode_reads_both_versions() -> None:
    """Messages with parts, and messages that hold everything."""
    _, events = read("opencode", TRANSCRIPTS["opencode"])
    assert told(events) == [
        ("session_start", "Session started: Cart"),
        ("user_message", "Why is the cart empty?"),
        ("tool_result", "bash: make\n\nok"),
        ("assistant_message", "Fixed."),
        ("tool_result", "shell: ls\n\na"),
        ("assistant_message", "Two."),
    ]
    assert events[2].metadata["duration_ms"] == "4"
    assert events[1].metadata["source_ids"] == "o1,o2"


def test_copilot_pairs_calls() -> None:
    """Begin and end of a call are one event; a compaction is the system's."""
    _, events = read("copilot", TRANSCRIPTS["copilot"])
    assert told(events)[2] == ("tool_result", "bash: make\n\nok")
    assert events[2].metadata["source_ids"] == "c4,c5"
    assert events[2].metadata["duration_ms"] == "1000"
    assert events[4].metadata["compaction"] == "true"


def test_cursor_is_known_by_its_lines() -> None:
    """Without ids and times an event has its line, and the file's name and time."""
    _, events = read("cursor", TRANSCRIPTS["cursor"])
    assert [(e.session_id, e.time_ms - HERE.changed_ms) for e in events] == [
        ("file-name", place) for place in range(3)
    ]
    assert [e.metadata["source_ids"] for e in events] == ["line:1", "line:2", "line:2"]


def test_a_message_that_cannot_be_read_takes_nothing_with_it() -> None:
    """Its parts have a reason of their own, and the next message is told."""
    records: list[Any] = [
        {"table": "message", "row": {"id": "o1", "session_id": "s-1", "data": {"role": 7}}},
        {"table": "part", "row": {"id": "o2", "data": {"type": "text", "text": "Lost"}}},
        *TRANSCRIPTS["opencode"],
    ]
    reader, events = read("opencode", records)
    assert reader.unexplained == 0
    assert reader.skipped["not readable"] == reader.skipped["part without a message"] == 1
    assert len(events) == len(read("opencode", TRANSCRIPTS["opencode"])[1])


def test_the_order_of_the_file_holds_within_a_millisecond() -> None:
    """Of events that share one each comes behind the one before it; their ids do not change."""
    same = [claude(3, "user", f"Words {n}.") | {"uuid": f"u{n}"} for n in range(6)]
    before = claude(2, "user", "Before.") | {"uuid": "before"}
    _, events = read("claude-code", [*same, before, claude(4, "user", "After.")])
    by_key = sorted(events, key=lambda e: (e.time_ms, e.event_id))
    assert [e.text for e in by_key] == ["Before.", *(f"Words {n}." for n in range(6)), "After."]
    assert [e.time_ms % 10_000 for e in by_key] == [2000, 3000, 3001, 3002, 3003, 3004, 3005, 4000]
    alone = {e.event_id for record in same for e in read("claude-code", [record])[1]}
    assert {e.event_id for e in by_key[1:-1]} == alone
