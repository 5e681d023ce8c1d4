"""Copilot CLI: payloads of its hooks. Pure.

They name no event (the installed command does) and stamp with milliseconds. No hook carries the
reply: at the end of a turn the daemon reads it from the transcript. The first prompt comes by userPromptSubmitted as well as in
sessionStart's ``initialPrompt``; it is taken from the former.
"""

import json
from collections.abc import Callable, Mapping
from typing import Final

from memoryd.domain.capture import build, claude_code
from memoryd.domain.capture.build import Source, Used
from memoryd.domain.capture.render import Call
from memoryd.domain.capture.shape import Json, Received, number, required, sub, text, time_ms
from memoryd.domain.event import Event, EventType

_SUCCESS: Final = frozenset(("", "success"))


def from_hook(received: Received, event: str, payload: Json) -> list[Event]:
    """The events of a payload; none if it carries nothing to remember. Raises InvalidInput."""
    handler = _HANDLERS.get(event)
    if handler is None:
        return []
    agent_id = text(payload, "agentId")
    metadata = {
        "hook": event,
        "cwd": text(payload, "cwd") or received.cwd,
        "agent_id": agent_id,
        "subagent": text(payload, "agentType") or ("true" if agent_id else ""),
    }
    source = Source(
        agent=received.agent,
        session_id=required(payload, "sessionId"),
        time_ms=time_ms(payload, "timestamp", received.time_ms),
        metadata=metadata,
    )
    return handler(source, payload)


def arguments(value: object) -> object:
    """A tool's arguments, which come as an object or as JSON text."""
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _tool_used(source: Source, payload: Json) -> list[Event]:
    result = sub(payload, "toolResult")
    kind = text(result, "resultType")
    failed = kind not in _SUCCESS
    call = Call(
        required(payload, "toolName"),
        arguments(payload.get("toolArgs")),
        text(result, "textResultForLlm"),
        kind if failed else "",
    )
    return build.used(source, call, _used(payload, failed=failed))


def _tool_failed(source: Source, payload: Json) -> list[Event]:
    error = text(payload, "error")
    call = Call(required(payload, "toolName"), arguments(payload.get("toolArgs")), None, error)
    return build.used(source, call, _used(payload, failed=True))


def _used(payload: Json, *, failed: bool) -> Used:
    return Used(text(payload, "toolCallId"), number(payload, "durationMs"), failed)


def _subagent_started(source: Source, payload: Json) -> list[Event]:
    name = text(payload, "agentName") or text(payload, "agentType")
    words = f"Subagent {name} started" if name else "Subagent started"
    return build.said(source, EventType.SUBAGENT_START, words)


def _subagent_stopped(source: Source, payload: Json) -> list[Event]:
    name = text(payload, "agentName") or text(payload, "agentType")
    fallback = f"Subagent {name} ended" if name else "Subagent ended"
    return build.said(source, EventType.SUBAGENT_STOP, text(payload, "response") or fallback)


def _turn_ended(_source: Source, _payload: Json) -> list[Event]:
    """The end of a turn says nothing itself: the daemon takes it as a sign to read the replies."""
    return []


def _failed(source: Source, payload: Json) -> list[Event]:
    error = sub(payload, "error")
    words = text(error, "message") or "unknown error"
    metadata = {"error": text(error, "name") or "true"}
    return build.said(source, EventType.ASSISTANT_STOP, f"Turn failed: {words}", metadata)


_HANDLERS: Final[Mapping[str, Callable[[Source, Json], list[Event]]]] = {
    "sessionStart": claude_code.session_started,
    "userPromptSubmitted": claude_code.prompt,
    "postToolUse": _tool_used,
    "postToolUseFailure": _tool_failed,
    "subagentStart": _subagent_started,
    "subagentStop": _subagent_stopped,
    "agentStop": _turn_ended,
    "errorOccurred": _failed,
    "sessionEnd": claude_code.session_ended,
}
