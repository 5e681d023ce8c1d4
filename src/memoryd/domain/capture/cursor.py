"""Cursor: payloads of its hooks. Pure.

A conversation is the session and a generation is the turn. Tool outputs come as JSON text.
"""

from collections.abc import Callable, Mapping
from typing import Final

from memoryd.domain.capture import build, claude_code, harness
from memoryd.domain.capture.build import Source, Used
from memoryd.domain.capture.copilot import arguments
from memoryd.domain.capture.render import Call
from memoryd.domain.capture.shape import Json, Received, items, number, required, text
from memoryd.domain.event import Event, EventType


def from_hook(received: Received, event: str, payload: Json) -> list[Event]:
    """The events of a payload; none if it carries nothing to remember. Raises InvalidInput."""
    handler = _HANDLERS.get(event)
    if handler is None:
        return []
    roots = [root for root in items(payload, "workspace_roots") if isinstance(root, str)]
    metadata = {
        "hook": event,
        "cwd": text(payload, "cwd") or (roots[0] if roots else received.cwd),
        "model": text(payload, "model"),
        "subagent": text(payload, "subagent_type"),
        "agent_id": text(payload, "subagent_id"),
    }
    source = Source(
        agent=received.agent,
        session_id=required(payload, "conversation_id"),
        time_ms=received.time_ms,
        turn_id=text(payload, "generation_id"),
        metadata=metadata,
    )
    return handler(source, payload)


def _replied(source: Source, payload: Json) -> list[Event]:
    words = harness.strip_ours(text(payload, "text"))
    return build.said(source, EventType.ASSISTANT_MESSAGE, words) if words.strip() else []


def _tool_used(source: Source, payload: Json) -> list[Event]:
    output = arguments(payload.get("tool_output"))
    call = Call(required(payload, "tool_name"), payload.get("tool_input"), output)
    code = output.get("exitCode") if isinstance(output, dict) else None
    return build.used(source, call, _used(payload, failed=isinstance(code, int) and code != 0))


def _tool_failed(source: Source, payload: Json) -> list[Event]:
    error = text(payload, "error_message") or text(payload, "failure_type")
    call = Call(required(payload, "tool_name"), payload.get("tool_input"), None, error)
    return build.used(source, call, _used(payload, failed=True))


def _used(payload: Json, *, failed: bool) -> Used:
    return Used(text(payload, "tool_use_id"), number(payload, "duration"), failed)


def _subagent_started(source: Source, payload: Json) -> list[Event]:
    words = text(payload, "task") or "Subagent started"
    return build.said(source, EventType.SUBAGENT_START, words)


def _subagent_stopped(source: Source, payload: Json) -> list[Event]:
    words = text(payload, "summary") or text(payload, "result") or "Subagent ended"
    return build.said(source, EventType.SUBAGENT_STOP, words)


def _stopped(source: Source, payload: Json) -> list[Event]:
    status = text(payload, "status")
    if status in ("", "completed"):
        return []
    words = text(payload, "error_message") or text(payload, "error") or status
    return build.said(
        source, EventType.ASSISTANT_STOP, f"Turn ended early: {words}", {"error": status}
    )


_HANDLERS: Final[Mapping[str, Callable[[Source, Json], list[Event]]]] = {
    "sessionStart": claude_code.session_started,
    "beforeSubmitPrompt": claude_code.prompt,
    "afterAgentResponse": _replied,
    "postToolUse": _tool_used,
    "postToolUseFailure": _tool_failed,
    "subagentStart": _subagent_started,
    "subagentStop": _subagent_stopped,
    "stop": _stopped,
    "sessionEnd": claude_code.session_ended,
}
