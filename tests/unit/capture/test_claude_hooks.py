from typing import Any

import pytest

from memoryd.domain.capture import Received, from_hook
from memoryd.domain.errors import InvalidInput
from memoryd.domain.event import Event, EventRole, EventType

HERE = Received("claude-code", "", 1_790_000_000_000, "/received")
COMMON: dict[str, Any] = {"session_id": "s-1", "cwd": "/home/ann/shop", "prompt_id": "p-9"}


def hook(event: str, **fields: Any) -> list[Event]:
    """The events of one payload."""
    return from_hook(HERE, COMMON | {"hook_event_name": event} | fields)


@pytest.mark.parametrize(
    ("event", "fields", "type_", "role", "text", "metadata"),
    [
        (
            "SessionStart",
            {"source": "startup", "model": "m-1"},
            EventType.SESSION_START,
            EventRole.SYSTEM,
            "Session started",
            {"source": "startup", "model": "m-1"},
        ),
        (
            "SessionStart",
            {"source": "resume", "session_title": "Fix the cart"},
            EventType.SESSION_START,
            EventRole.SYSTEM,
            "Session resumed: Fix the cart",
            {},
        ),
        (
            "UserPromptSubmit",
            {"prompt": "Why?\nTell me."},
            EventType.USER_MESSAGE,
            EventRole.USER,
            "Why?\nTell me.",
            {"cwd": "/home/ann/shop", "hook": "UserPromptSubmit"},
        ),
        (
            "PostToolUse",
            {
                "tool_name": "Bash",
                "tool_input": {"command": "ls -a", "description": "List"},
                "tool_response": {"stdout": "a\nb\n", "stderr": "odd", "interrupted": False},
                "tool_use_id": "tu1",
                "duration_ms": 12,
            },
            EventType.TOOL_RESULT,
            EventRole.TOOL,
            "Bash: ls -a\ndescription: List\n\na\nb\nstderr: odd",
            {"tool_name": "Bash", "tool_use_id": "tu1", "duration_ms": "12"},
        ),
        (
            "PostToolUse",
            {
                "tool_name": "Edit",
                "tool_input": {"file_path": "/a.py", "old_string": "x\ny", "new_string": "z"},
                "tool_response": {"filePath": "/a.py", "originalFile": "x\ny", "oldString": "x"},
            },
            EventType.TOOL_RESULT,
            EventRole.TOOL,
            "Edit: /a.py\nold_string:\n  x\n  y\nnew_string: z\n\nfilePath: /a.py",
            {"file_path": "/a.py"},
        ),
        (
            "PostToolUse",
            {
                "tool_name": "mcp__plugin_memoryd_memoryd__search",
                "tool_input": {"query": "cart"},
                "tool_response": {"items": [{"id": "e1", "text": "Fix the cart"}]},
            },
            EventType.TOOL_RESULT,
            EventRole.TOOL,
            "mcp__plugin_memoryd_memoryd__search: cart",
            {"tool_name": "mcp__plugin_memoryd_memoryd__search"},
        ),
        (
            "PostToolUseFailure",
            {"tool_name": "Bash", "tool_input": {"command": "x"}, "error": "no x\nat all"},
            EventType.TOOL_RESULT,
            EventRole.TOOL,
            "Bash: x\n\nerror: no x\nat all",
            {"error": "no x"},
        ),
        (
            "Notification",
            {"message": "may I?", "title": "Permission", "notification_type": "permission"},
            EventType.ASSISTANT_MESSAGE,
            EventRole.SYSTEM,
            "Permission: may I?",
            {"notification": "permission"},
        ),
        (
            "SubagentStart",
            {"agent_id": "a1", "agent_type": "Explore"},
            EventType.SUBAGENT_START,
            EventRole.SYSTEM,
            "Subagent Explore started",
            {"agent_id": "a1", "subagent": "Explore"},
        ),
        (
            "SubagentStop",
            {"agent_id": "a1", "agent_type": "Explore", "last_assistant_message": "3 places."},
            EventType.SUBAGENT_STOP,
            EventRole.SYSTEM,
            "3 places.",
            {"agent_id": "a1"},
        ),
        (
            "Stop",
            {"last_assistant_message": "Done.", "stop_hook_active": False},
            EventType.ASSISTANT_MESSAGE,
            EventRole.ASSISTANT,
            "Done.",
            {},
        ),
        (
            "StopFailure",
            {"error": "rate_limit", "error_details": "429"},
            EventType.ASSISTANT_STOP,
            EventRole.ASSISTANT,
            "Turn failed: rate_limit: 429",
            {"error": "rate_limit"},
        ),
        (
            "PostCompact",
            {"trigger": "auto", "compact_summary": "We fixed it."},
            EventType.ASSISTANT_MESSAGE,
            EventRole.SYSTEM,
            "We fixed it.",
            {"compaction": "true"},
        ),
        (
            "SessionEnd",
            {"reason": "prompt_input_exit"},
            EventType.SESSION_END,
            EventRole.SYSTEM,
            "Session ended (prompt input exit)",
            {"reason": "prompt_input_exit"},
        ),
    ],
)
def test_each_event_says_what_happened(
    event: str,
    fields: dict[str, Any],
    type_: EventType,
    role: EventRole,
    text: str,
    metadata: dict[str, str],
) -> None:
    """A payload becomes one event of the right kind, with readable words and its metadata."""
    (made,) = hook(event, **fields)
    assert (made.type, made.role, made.text) == (type_, role, text)
    assert metadata.items() <= made.metadata.items()
    assert (made.agent, made.session_id, made.turn_id) == ("claude-code", "s-1", "p-9")
    assert made.time_ms == HERE.time_ms


@pytest.mark.parametrize(
    ("event", "fields"),
    [
        ("PreToolUse", {"tool_name": "Bash"}),
        ("PreCompact", {"trigger": "auto"}),
        ("PostCompact", {"trigger": "auto"}),
        ("Stop", {"last_assistant_message": ""}),
        ("UserPromptSubmit", {"prompt": "<system-reminder>x</system-reminder>"}),
        ("PermissionRequest", {"tool_name": 5}),
        ("", {}),
    ],
)
def test_nothing_to_remember_gives_no_event(event: str, fields: dict[str, Any]) -> None:
    """Events without words, and events that are not known, are passed over."""
    assert hook(event, **fields) == []


@pytest.mark.parametrize(
    ("payload", "named"),
    [
        (7, "payload is a number"),
        ([], "payload is an array"),
        (COMMON | {"hook_event_name": 5}, "hook_event_name is a number"),
        ({"hook_event_name": "Stop"}, "session_id is missing"),
        (COMMON | {"hook_event_name": "UserPromptSubmit"}, "prompt is missing"),
        (COMMON | {"hook_event_name": "UserPromptSubmit", "prompt": ["a"]}, "prompt is an array"),
        (COMMON | {"hook_event_name": "Stop", "session_id": "a\nb"}, "session_id holds"),
        (
            COMMON | {"hook_event_name": "PostToolUse", "tool_name": "B", "duration_ms": "soon"},
            "duration_ms is text",
        ),
    ],
)
def test_a_wrong_shape_is_refused_with_its_reason(payload: object, named: str) -> None:
    """A field of a wrong type is named."""
    if isinstance(payload, dict) and payload.get("hook_event_name") == "Stop":
        payload = payload | {"last_assistant_message": "x"}
    with pytest.raises(InvalidInput, match=named):
        from_hook(HERE, payload)


def test_an_unknown_agent_is_refused() -> None:
    """The error lists the agents that are known."""
    with pytest.raises(InvalidInput, match="claude-code"):
        from_hook(HERE._replace(agent="clippy"), {})


def test_the_event_may_come_from_the_command_line() -> None:
    """Where the payload does not name its event, the installed command does."""
    (made,) = from_hook(HERE._replace(event="UserPromptSubmit"), COMMON | {"prompt": "hi"})
    assert made.text == "hi"


def test_a_call_has_one_id_whenever_it_is_told() -> None:
    """The id of a call depends on agent, session and tool_use_id only."""
    call = {"tool_name": "Bash", "tool_use_id": "tu1", "tool_input": {"command": "ls"}}
    (one,) = hook("PostToolUse", **call, tool_response="a")
    (two,) = hook("PostToolUseFailure", **call, error="b")
    (other,) = hook("PostToolUse", **call | {"tool_use_id": "tu2"})
    assert one.event_id == two.event_id != other.event_id
