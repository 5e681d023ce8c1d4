"""Claude Code: payloads of its hooks. Pure.

Codex copies these events; `codex` asks here for what they have in common.
"""

from collections.abc import Callable, Mapping
from typing import Final

from memoryd.domain.capture import build, harness
from memoryd.domain.capture.build import Source, Used
from memoryd.domain.capture.render import Call
from memoryd.domain.capture.shape import Json, Received, flag, number, required, text
from memoryd.domain.event import Event, EventRole, EventType

Handler = Callable[[Source, Json], list[Event]]


def from_hook(received: Received, event: str, payload: Json) -> list[Event]:
    """The events of a payload; none if it carries nothing to remember. Raises InvalidInput."""
    handler = HANDLERS.get(event)
    if handler is None:
        return []
    return handler(source_of(received, event, payload), payload)


def source_of(received: Received, event: str, payload: Json) -> Source:
    """Where a payload of this shape comes from."""
    agent_id = text(payload, "agent_id")
    metadata = {
        "hook": event,
        "cwd": text(payload, "cwd") or received.cwd,
        "model": text(payload, "model"),
        "agent_id": agent_id,
        "subagent": text(payload, "agent_type") or ("true" if agent_id else ""),
    }
    return Source(
        agent=received.agent,
        session_id=required(payload, "session_id"),
        time_ms=received.time_ms,
        turn_id=text(payload, "prompt_id") or text(payload, "turn_id"),
        metadata=metadata,
    )


def prompt(source: Source, payload: Json) -> list[Event]:
    """A person's words; none if a harness wrote the prompt."""
    raw = required(payload, "prompt")
    if harness.is_compaction(raw):
        return build.compaction(source, raw)
    words = harness.words(raw).text
    return build.said(source, EventType.USER_MESSAGE, words) if words else []


def tool_used(source: Source, payload: Json) -> list[Event]:
    """A call that came to its end."""
    output = payload.get("tool_response")
    call = Call(required(payload, "tool_name"), payload.get("tool_input"), output)
    failed = isinstance(output, dict) and output.get("is_error") is True
    return build.used(source, call, _used(payload, failed=failed))


def tool_failed(source: Source, payload: Json) -> list[Event]:
    """A call that failed."""
    call = Call(
        required(payload, "tool_name"), payload.get("tool_input"), None, text(payload, "error")
    )
    return build.used(source, call, _used(payload, failed=True))


def session_started(source: Source, payload: Json) -> list[Event]:
    """The begin of a session, or its going on."""
    how = text(payload, "source")
    words = {
        "resume": "Session resumed",
        "clear": "Session cleared",
        "compact": "Session compacted",
        "fork": "Session forked",
    }.get(how, "Session started")
    title = text(payload, "session_title")
    full = f"{words}: {title}" if title else words
    return build.said(source, EventType.SESSION_START, full, {"source": how})


def session_ended(source: Source, payload: Json) -> list[Event]:
    """The end of a session."""
    why = text(payload, "reason")
    words = f"Session ended ({why.replace('_', ' ')})" if why else "Session ended"
    return build.said(source, EventType.SESSION_END, words, {"reason": why})


def replied(source: Source, payload: Json) -> list[Event]:
    """The last words of a turn."""
    words = harness.strip_ours(text(payload, "last_assistant_message"))
    flag(payload, "stop_hook_active")
    return build.said(source, EventType.ASSISTANT_MESSAGE, words) if words.strip() else []


def _stop_failed(source: Source, payload: Json) -> list[Event]:
    error = text(payload, "error")
    parts = (error, text(payload, "error_details"), text(payload, "last_assistant_message"))
    words = ": ".join(part for part in parts if part) or "unknown error"
    return build.said(
        source, EventType.ASSISTANT_STOP, f"Turn failed: {words}", {"error": error or "true"}
    )


def subagent_started(source: Source, payload: Json) -> list[Event]:
    """A subagent at its begin."""
    required(payload, "agent_id")
    name = text(payload, "agent_type")
    words = f"Subagent {name} started" if name else "Subagent started"
    return build.said(source, EventType.SUBAGENT_START, words)


def subagent_stopped(source: Source, payload: Json) -> list[Event]:
    """A subagent at its end, with its last words."""
    required(payload, "agent_id")
    name = text(payload, "agent_type")
    words = harness.strip_ours(text(payload, "last_assistant_message")).strip()
    fallback = f"Subagent {name} ended" if name else "Subagent ended"
    return build.said(source, EventType.SUBAGENT_STOP, words or fallback)


def notified(source: Source, payload: Json) -> list[Event]:
    """A notice to the person at the keyboard."""
    title, message = text(payload, "title"), text(payload, "message")
    words = f"{title}: {message}" if title and message else title or message
    if not words:
        return []
    metadata = {"notification": text(payload, "notification_type") or "true"}
    return build.said(source, EventType.ASSISTANT_MESSAGE, words, metadata, role=EventRole.SYSTEM)


def _compacted(source: Source, payload: Json) -> list[Event]:
    summary = text(payload, "compact_summary")
    return build.compaction(source, summary) if summary.strip() else []


def _used(payload: Json, *, failed: bool) -> Used:
    return Used(text(payload, "tool_use_id"), number(payload, "duration_ms"), failed)


HANDLERS: Final[Mapping[str, Handler]] = {
    "SessionStart": session_started,
    "UserPromptSubmit": prompt,
    "PostToolUse": tool_used,
    "PostToolUseFailure": tool_failed,
    "Notification": notified,
    "SubagentStart": subagent_started,
    "SubagentStop": subagent_stopped,
    "Stop": replied,
    "StopFailure": _stop_failed,
    "PostCompact": _compacted,
    "SessionEnd": session_ended,
}
