from typing import Any

import pytest

from memoryd.domain.capture import AGENTS, Received, from_hook
from memoryd.domain.errors import InvalidInput
from memoryd.domain.event import Event, EventRole, EventType
from tests.unit.capture.samples import PAYLOADS

NOW = 1_790_000_000_000


def events(agent: str, event: str, payload: object) -> list[Event]:
    """The events of one payload."""
    return from_hook(Received(agent, event, NOW, "/received"), payload)


def find(agent: str, event: str) -> dict[str, Any]:
    """The sample of one event."""
    return next(
        payload
        for name, hook, payload in PAYLOADS
        if name == agent and event in (hook, payload.get("event"))
    )


@pytest.mark.parametrize(("agent", "event", "payload"), PAYLOADS)
def test_every_payload_becomes_events_of_its_session(
    agent: str, event: str, payload: dict[str, Any]
) -> None:
    """Whatever the agent, session, agent and working directory are the payload's."""
    made = events(agent, event, payload)
    assert made
    assert {(e.agent, e.session_id) for e in made} == {(agent, "s-1")}
    assert {e.metadata["cwd"] for e in made} == {"/home/ann/shop"}
    assert all(e.text for e in made)


@pytest.mark.parametrize(
    ("agent", "event"),
    [
        ("codex", "UserPromptSubmit"),
        ("gemini", "BeforeAgent"),
        ("copilot", "userPromptSubmitted"),
        ("cursor", "beforeSubmitPrompt"),
        ("opencode", "chat.message"),
    ],
)
def test_a_prompt_is_what_the_person_said(agent: str, event: str) -> None:
    """Every agent's prompt becomes the same event."""
    (made,) = events(agent, event, find(agent, event))
    assert (made.type, made.role) == (EventType.USER_MESSAGE, EventRole.USER)
    assert made.text == "Why is the cart empty?"


@pytest.mark.parametrize(
    ("agent", "event"),
    [
        ("codex", "Stop"),
        ("gemini", "AfterAgent"),
        ("cursor", "afterAgentResponse"),
        ("opencode", "message.completed"),
    ],
)
def test_a_reply_is_what_the_agent_said(agent: str, event: str) -> None:
    """Every agent's reply becomes the same event, and the prompt beside it no second one."""
    (made,) = events(agent, event, find(agent, event))
    assert (made.type, made.role) == (EventType.ASSISTANT_MESSAGE, EventRole.ASSISTANT)
    assert made.text == "Fixed."


@pytest.mark.parametrize(
    ("agent", "event", "name"),
    [
        ("codex", "PostToolUse", "Bash"),
        ("gemini", "AfterTool", "run_shell_command"),
        ("copilot", "postToolUse", "bash"),
        ("cursor", "postToolUse", "Shell"),
        ("opencode", "tool.execute.after", "bash"),
    ],
)
def test_a_call_is_told_with_its_result(agent: str, event: str, name: str) -> None:
    """Every agent's call becomes one event: name, argument, output."""
    (made,) = events(agent, event, find(agent, event))
    assert (made.type, made.role) == (EventType.TOOL_RESULT, EventRole.TOOL)
    assert made.text == f"{name}: make\n\nok"
    assert made.metadata["tool_name"] == name
    assert "error" not in made.metadata


@pytest.mark.parametrize(
    ("agent", "event", "type_", "text"),
    [
        ("codex", "notify", EventType.USER_MESSAGE, "Why is the cart empty?"),
        ("gemini", "SessionStart", EventType.SESSION_START, "Session started"),
        ("gemini", "Notification", EventType.ASSISTANT_MESSAGE, "may I?"),
        ("gemini", "SessionEnd", EventType.SESSION_END, "Session ended (exit)"),
        ("copilot", "sessionStart", EventType.SESSION_START, "Session started"),
        ("copilot", "subagentStop", EventType.SUBAGENT_STOP, "Two."),
        ("copilot", "errorOccurred", EventType.ASSISTANT_STOP, "Turn failed: gone"),
        ("copilot", "sessionEnd", EventType.SESSION_END, "Session ended (user exit)"),
        ("cursor", "stop", EventType.ASSISTANT_STOP, "Turn ended early: aborted"),
        ("cursor", "sessionEnd", EventType.SESSION_END, "Session ended (completed)"),
        ("opencode", "session.start", EventType.SESSION_START, "Session started: Cart"),
        ("opencode", "session.compacted", EventType.ASSISTANT_MESSAGE, "So far: the cart."),
        ("opencode", "session.error", EventType.ASSISTANT_STOP, "Turn failed: gone"),
        ("opencode", "session.end", EventType.SESSION_END, "Session ended (exit)"),
    ],
)
def test_what_else_happens_is_told_too(agent: str, event: str, type_: EventType, text: str) -> None:
    """Starts, ends, failures and notices become events of their kinds."""
    made = events(agent, event, find(agent, event))[0]
    assert (made.type, made.text) == (type_, text)


@pytest.mark.parametrize(
    ("agent", "event", "fields"),
    [
        ("copilot", "postToolUseFailure", {}),
        ("cursor", "postToolUseFailure", {}),
        ("copilot", "postToolUse", {"toolResult": {"resultType": "denied"}}),
        ("cursor", "postToolUse", {"tool_output": '{"exitCode": 1, "stderr": "x"}'}),
        ("gemini", "AfterTool", {"tool_response": {"error": {"message": "x"}}}),
        (
            "gemini",
            "AfterTool",
            {
                "tool_response": {
                    "llmContent": "Command: make\nDirectory: (root)\nOutput: Error: x\nError: (none)\nExit Code: 2\nSignal: 0"
                }
            },
        ),
        ("opencode", "tool.execute.after", {"error": "x"}),
    ],
)
def test_a_failed_call_is_marked(agent: str, event: str, fields: dict[str, Any]) -> None:
    """A call that failed has ``error`` in its metadata."""
    (made,) = events(agent, event, find(agent, event) | fields)
    assert made.metadata["error"]


def test_notify_tells_a_turn() -> None:
    """Codex' older notification gives the prompt and the reply of a turn."""
    made = events("codex", "", find("codex", "notify"))
    assert [(e.type, e.text, e.turn_id) for e in made] == [
        (EventType.USER_MESSAGE, "Why is the cart empty?", "t-1"),
        (EventType.ASSISTANT_MESSAGE, "Fixed.", "t-1"),
    ]


def test_times_are_the_sources_where_it_gives_them() -> None:
    """ISO text and milliseconds count; without a time the moment of receipt does."""
    assert events("gemini", "", find("gemini", "BeforeAgent") | {"hook_event_name": "BeforeAgent"})[
        0
    ].time_ms == (1_772_359_200_250)
    prompt = find("copilot", "userPromptSubmitted")
    assert events("copilot", "userPromptSubmitted", prompt)[0].time_ms == 1_772_359_200_250
    assert events("cursor", "afterAgentResponse", find("cursor", "afterAgentResponse"))[
        0
    ].time_ms == (NOW)


@pytest.mark.parametrize("agent", AGENTS)
def test_what_is_no_payload_is_refused(agent: str) -> None:
    """Everything that is not an object is refused with its reason."""
    values: list[object] = [None, 1, "x", [], True]
    for value in values:
        with pytest.raises(InvalidInput, match="payload is"):
            events(agent, "Stop", value)


def test_a_subagents_session_is_marked() -> None:
    """OpenCode gives subagents sessions of their own, which name their parent."""
    payload = find("opencode", "session.start") | {"parentID": "s-0"}
    (made,) = events("opencode", "", payload)
    assert made.type == EventType.SUBAGENT_START
    assert made.metadata["parent_session"] == "s-0"


@pytest.mark.parametrize(("agent", "event", "payload"), PAYLOADS)
def test_our_own_block_never_comes_back(agent: str, event: str, payload: dict[str, Any]) -> None:
    """What memoryd injected is not stored again, whichever field it stands in."""
    block = "<memoryd-context>old</memoryd-context>"

    def with_block(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: with_block(inner) for key, inner in value.items()}
        return f"{value}{block}" if value in ("Fixed.", "ok", "Two.", "gone", "may I?") else value

    plain = [made.text for made in events(agent, event, payload)]
    assert [made.text for made in events(agent, event, with_block(payload))] == plain
