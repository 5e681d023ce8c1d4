"""Payloads and transcripts of every agent, written for these tests."""

from typing import Any

_CLAUDE: dict[str, Any] = {"session_id": "s-1", "cwd": "/home/ann/shop", "prompt_id": "p-9"}
_CODEX: dict[str, Any] = {"session_id": "s-1", "cwd": "/home/ann/shop", "turn_id": "t-1"}
_GEMINI: dict[str, Any] = {
    "session_id": "s-1",
    "cwd": "/home/ann/shop",
    "timestamp": "2026-03-01T10:00:00.250Z",
}
_COPILOT: dict[str, Any] = {
    "sessionId": "s-1",
    "timestamp": 1_772_359_200_250,
    "cwd": "/home/ann/shop",
}
_CURSOR: dict[str, Any] = {
    "conversation_id": "s-1",
    "generation_id": "g-1",
    "workspace_roots": ["/home/ann/shop"],
    "model": "m-1",
}
_OPENCODE: dict[str, Any] = {
    "sessionID": "s-1",
    "directory": "/home/ann/shop",
    "time": 1_772_359_200_250,
    "messageID": "msg-1",
}
_CALL: dict[str, Any] = {
    "tool_name": "Bash",
    "tool_input": {"command": "make"},
    "tool_use_id": "u1",
}

PAYLOADS: list[tuple[str, str, dict[str, Any]]] = [
    ("claude-code", "SessionStart", _CLAUDE | {"source": "startup", "model": "m-1"}),
    ("claude-code", "UserPromptSubmit", _CLAUDE | {"prompt": "Why is the cart empty?"}),
    (
        "claude-code",
        "PostToolUse",
        _CLAUDE
        | _CALL
        | {
            "tool_response": {"stdout": "ok", "stderr": "", "interrupted": False},
            "duration_ms": 12,
        },
    ),
    ("claude-code", "PostToolUseFailure", _CLAUDE | _CALL | {"error": "no rule"}),
    (
        "claude-code",
        "Notification",
        _CLAUDE | {"message": "may I?", "title": "Permission", "notification_type": "p"},
    ),
    ("claude-code", "SubagentStart", _CLAUDE | {"agent_id": "a1", "agent_type": "Explore"}),
    (
        "claude-code",
        "SubagentStop",
        _CLAUDE | {"agent_id": "a1", "agent_type": "Explore", "last_assistant_message": "Two."},
    ),
    (
        "claude-code",
        "Stop",
        _CLAUDE | {"last_assistant_message": "Fixed.", "stop_hook_active": False},
    ),
    ("claude-code", "StopFailure", _CLAUDE | {"error": "rate_limit", "error_details": "429"}),
    ("claude-code", "PostCompact", _CLAUDE | {"compact_summary": "So far: the cart."}),
    ("claude-code", "SessionEnd", _CLAUDE | {"reason": "logout"}),
    ("codex", "UserPromptSubmit", _CODEX | {"prompt": "Why is the cart empty?"}),
    ("codex", "PostToolUse", _CODEX | _CALL | {"tool_response": "ok"}),
    ("codex", "Stop", _CODEX | {"last_assistant_message": "Fixed."}),
    (
        "codex",
        "notify",
        {
            "type": "agent-turn-complete",
            "thread-id": "s-1",
            "turn-id": "t-1",
            "cwd": "/home/ann/shop",
            "input-messages": ["Why is the cart empty?"],
            "last-assistant-message": "Fixed.",
        },
    ),
    ("gemini", "SessionStart", _GEMINI | {"source": "startup"}),
    ("gemini", "BeforeAgent", _GEMINI | {"prompt": "Why is the cart empty?"}),
    ("gemini", "AfterAgent", _GEMINI | {"prompt": "Why?", "prompt_response": "Fixed."}),
    (
        "gemini",
        "AfterTool",
        _GEMINI
        | {
            "tool_name": "run_shell_command",
            "tool_input": {"command": "make"},
            "tool_response": {"llmContent": "ok", "returnDisplay": "ok", "error": None},
        },
    ),
    ("gemini", "Notification", _GEMINI | {"message": "may I?", "notification_type": "T"}),
    ("gemini", "SessionEnd", _GEMINI | {"reason": "exit"}),
    ("copilot", "sessionStart", _COPILOT | {"source": "new", "initialPrompt": "Why?"}),
    ("copilot", "userPromptSubmitted", _COPILOT | {"prompt": "Why is the cart empty?"}),
    (
        "copilot",
        "postToolUse",
        _COPILOT
        | {
            "toolName": "bash",
            "toolArgs": '{"command": "make"}',
            "toolResult": {"resultType": "success", "textResultForLlm": "ok"},
        },
    ),
    (
        "copilot",
        "postToolUseFailure",
        _COPILOT | {"toolName": "bash", "toolArgs": {"command": "make"}, "error": "no rule"},
    ),
    ("copilot", "subagentStop", _COPILOT | {"agentId": "a1", "agentName": "x", "response": "Two."}),
    ("copilot", "errorOccurred", _COPILOT | {"error": {"message": "gone", "name": "E"}}),
    ("copilot", "sessionEnd", _COPILOT | {"reason": "user_exit"}),
    ("cursor", "sessionStart", _CURSOR | {"session_id": "s-1"}),
    ("cursor", "beforeSubmitPrompt", _CURSOR | {"prompt": "Why is the cart empty?"}),
    ("cursor", "afterAgentResponse", _CURSOR | {"text": "Fixed."}),
    (
        "cursor",
        "postToolUse",
        _CURSOR
        | {
            "tool_name": "Shell",
            "tool_input": {"command": "make"},
            "tool_output": '{"exitCode": 0, "stdout": "ok"}',
            "tool_use_id": "u1",
            "duration": 7,
        },
    ),
    (
        "cursor",
        "postToolUseFailure",
        _CURSOR | {"tool_name": "Shell", "tool_input": {}, "error_message": "timeout"},
    ),
    ("cursor", "stop", _CURSOR | {"status": "aborted"}),
    ("cursor", "sessionEnd", _CURSOR | {"reason": "completed"}),
    ("opencode", "", _OPENCODE | {"event": "session.start", "title": "Cart"}),
    ("opencode", "", _OPENCODE | {"event": "chat.message", "text": "Why is the cart empty?"}),
    ("opencode", "", _OPENCODE | {"event": "message.completed", "text": "Fixed."}),
    (
        "opencode",
        "",
        _OPENCODE
        | {
            "event": "tool.execute.after",
            "tool": "bash",
            "callID": "u1",
            "args": {"command": "make"},
            "output": "ok",
        },
    ),
    ("opencode", "", _OPENCODE | {"event": "session.compacted", "summary": "So far: the cart."}),
    ("opencode", "", _OPENCODE | {"event": "session.error", "error": "gone"}),
    ("opencode", "", _OPENCODE | {"event": "session.end", "reason": "exit"}),
]


def claude(number: int, kind: str, content: Any, **more: Any) -> dict[str, Any]:
    """A record of a Claude Code transcript, at second ``number``."""
    return {
        "type": kind,
        "uuid": f"u-{number}",
        "timestamp": f"2026-03-01T10:00:{number:02}.000Z",
        "sessionId": "s-1",
        "cwd": "/home/ann/shop",
        "gitBranch": "main",
        "message": {"id": f"m-{number}", "role": kind, "content": content},
    } | more


def codex(number: int, kind: str, **payload: Any) -> dict[str, Any]:
    """A line of a Codex rollout, at second ``number``."""
    return {"timestamp": f"2026-03-01T10:00:{number:02}.000Z", "type": kind, "payload": payload}


def said(text: str, kind: str = "output_text") -> list[dict[str, str]]:
    """The content of an item of a Codex rollout."""
    return [{"type": kind, "text": text}]


_USE = {"type": "tool_use", "id": "u1", "name": "Bash", "input": {"command": "make"}}
_RESULT = {"type": "tool_result", "tool_use_id": "u1", "content": "ok", "is_error": False}

TRANSCRIPTS: dict[str, list[Any]] = {
    "claude-code": [
        {"type": "summary", "summary": "Cart", "leafUuid": "x"},
        claude(1, "user", "Why is the cart empty?"),
        claude(2, "assistant", [{"type": "thinking", "thinking": "hm"}]),
        claude(3, "assistant", [{"type": "text", "text": "I look."}]),
        claude(4, "assistant", [_USE]) | {"message": {"id": "m-3", "content": [_USE]}},
        claude(5, "user", [_RESULT], toolUseResult={"stdout": "ok"}),
        claude(6, "assistant", [{"type": "text", "text": "Fixed."}]),
        {"type": "system", "subtype": "compact_boundary", "uuid": "c"},
        claude(7, "user", "So far: the cart.", isCompactSummary=True),
    ],
    "codex": [
        codex(0, "session_meta", id="s-1", cwd="/home/ann/shop", git={"branch": "main"}),
        codex(1, "turn_context", cwd="/home/ann/shop", model="m-1", turn_id="t-1"),
        codex(
            1,
            "response_item",
            type="message",
            role="user",
            content=said("# AGENTS.md instructions for /home/ann/shop", "input_text"),
        ),
        codex(
            2,
            "response_item",
            type="message",
            role="user",
            content=said("Why is the cart empty?", "input_text"),
        ),
        codex(2, "event_msg", type="user_message", message="Why is the cart empty?"),
        codex(
            3,
            "response_item",
            type="function_call",
            name="shell",
            arguments='{"command": ["make"], "timeout_ms": 1000}',
            call_id="u1",
        ),
        codex(
            4,
            "response_item",
            type="function_call_output",
            call_id="u1",
            output="Exit code: 2\nWall time: 0.5 seconds\nOutput:\nno rule",
        ),
        codex(5, "event_msg", type="token_count", info=None),
        codex(6, "event_msg", type="agent_message", message="Fixed."),
        codex(6, "response_item", type="message", role="assistant", content=said("Fixed.")),
        codex(7, "compacted", message="So far: the cart."),
    ],
    "gemini": [
        {"sessionId": "s-1", "projectHash": "abc", "startTime": "2026-03-01T10:00:00Z"},
        {
            "id": "g1",
            "timestamp": "2026-03-01T10:00:01Z",
            "type": "user",
            "content": [{"text": "Why is the cart empty?"}],
        },
        {"$set": {"lastUpdated": "2026-03-01T10:00:01Z"}},
        {"id": "g2", "timestamp": "2026-03-01T10:00:02Z", "type": "gemini", "content": "I l"},
        {
            "id": "g2",
            "timestamp": "2026-03-01T10:00:02Z",
            "type": "gemini",
            "content": "I look.",
            "toolCalls": [
                {
                    "id": "u1",
                    "name": "run_shell_command",
                    "args": {"command": "make"},
                    "result": [{"functionResponse": {"response": {"output": "ok"}}}],
                    "status": "success",
                    "timestamp": "2026-03-01T10:00:03Z",
                }
            ],
        },
        {"id": "g3", "timestamp": "2026-03-01T10:00:04Z", "type": "user", "content": "No!"},
        {"id": "g4", "timestamp": "2026-03-01T10:00:05Z", "type": "gemini", "content": "Oh."},
        {"$rewindTo": "g3"},
        {"id": "g5", "timestamp": "2026-03-01T10:00:06Z", "type": "gemini", "content": "Fixed."},
        {"id": "g6", "timestamp": "2026-03-01T10:00:07Z", "type": "info", "content": "note"},
    ],
    "copilot": [
        {
            "type": "session.start",
            "id": "c1",
            "timestamp": "2026-03-01T10:00:00Z",
            "data": {"sessionId": "s-1", "context": {"cwd": "/home/ann/shop"}},
        },
        {
            "type": "user.message",
            "id": "c2",
            "timestamp": "2026-03-01T10:00:01Z",
            "data": {"content": "Why is the cart empty?", "interactionId": "i1"},
        },
        {
            "type": "assistant.message",
            "id": "c3",
            "timestamp": "2026-03-01T10:00:02Z",
            "data": {"content": "", "toolRequests": [{"toolCallId": "u1"}]},
        },
        {
            "type": "tool.execution_start",
            "id": "c4",
            "timestamp": "2026-03-01T10:00:03Z",
            "data": {"toolCallId": "u1", "toolName": "bash", "arguments": {"command": "make"}},
        },
        {
            "type": "tool.execution_complete",
            "id": "c5",
            "timestamp": "2026-03-01T10:00:04Z",
            "data": {"toolCallId": "u1", "success": True, "result": {"content": "ok"}},
        },
        {
            "type": "assistant.message",
            "id": "c6",
            "timestamp": "2026-03-01T10:00:05Z",
            "data": {"content": "Fixed."},
        },
        {
            "type": "session.compaction_complete",
            "id": "c7",
            "timestamp": "2026-03-01T10:00:06Z",
            "data": {"success": True, "summaryContent": "So far: the cart."},
        },
        {
            "type": "subagent.started",
            "id": "c8",
            "timestamp": "2026-03-01T10:00:07Z",
            "data": {"toolCallId": "u2", "agentName": "explore"},
        },
    ],
    "cursor": [
        {
            "role": "user",
            "message": {
                "content": [
                    {
                        "type": "text",
                        "text": "<user_query>\nWhy is the cart empty?\n</user_query>",
                    }
                ]
            },
        },
        {
            "role": "assistant",
            "message": {
                "content": [
                    {"type": "text", "text": "Fixed."},
                    {"type": "tool_use", "name": "Shell", "input": {"command": "make"}},
                ]
            },
        },
    ],
    "opencode": [
        {
            "table": "session",
            "row": {"id": "s-1", "directory": "/home/ann/shop", "title": "Cart", "time_created": 1},
        },
        {
            "table": "message",
            "row": {
                "id": "o1",
                "session_id": "s-1",
                "time_created": 2,
                "data": '{"role": "user", "time": {"created": 1772359201000}}',
            },
        },
        {
            "table": "part",
            "row": {"id": "o2", "data": {"type": "text", "text": "Why is the cart empty?"}},
        },
        {
            "table": "part",
            "row": {"id": "o3", "data": {"type": "text", "text": "x", "synthetic": True}},
        },
        {
            "table": "message",
            "row": {
                "id": "o4",
                "session_id": "s-1",
                "time_created": 3,
                "data": {"role": "assistant", "modelID": "m-1", "time": {"created": 3}},
            },
        },
        {"table": "part", "row": {"id": "o5", "data": {"type": "step-start"}}},
        {
            "table": "part",
            "row": {
                "id": "o6",
                "data": {
                    "type": "tool",
                    "tool": "bash",
                    "callID": "u1",
                    "state": {
                        "status": "completed",
                        "input": {"command": "make"},
                        "output": "ok",
                        "time": {"start": 5, "end": 9},
                    },
                },
            },
        },
        {"table": "part", "row": {"id": "o7", "data": {"type": "text", "text": "Fixed."}}},
        {
            "table": "session_message",
            "row": {
                "id": "o8",
                "session_id": "s-2",
                "type": "assistant",
                "time_created": 9,
                "data": {
                    "content": [
                        {"type": "reasoning", "text": "hm"},
                        {"type": "text", "text": "Two."},
                        {
                            "type": "tool",
                            "id": "u2",
                            "name": "shell",
                            "state": {
                                "status": "completed",
                                "input": {"command": "ls"},
                                "content": [{"type": "text", "text": "a"}],
                            },
                            "time": {"completed": 11},
                        },
                    ]
                },
            },
        },
        {
            "table": "session_message",
            "row": {"id": "o9", "session_id": "s-2", "type": "idle", "data": {}},
        },
    ],
}
