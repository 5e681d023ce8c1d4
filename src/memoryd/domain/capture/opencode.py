"""OpenCode: what our own plugin sends. Pure.

OpenCode has no hooks that run a command; the plugin that memoryd installs calls
``memory-hook --agent opencode`` with one JSON object on stdin::

    {"event": "<name>", "sessionID": "ses_...", "directory": "/home/ann/shop", "time": 1790118339546,
     "model": "provider/model", "agent": "build", "parentID": "ses_... of a subagent's parent",
     ...fields of the event}

``event`` and ``sessionID`` are required, ``time`` (milliseconds) is when it happened if the plugin
knows, and everything else may be missing or null.

=====================  =============================================================
event                  fields of its own
=====================  =============================================================
session.start          title?
chat.message           text (the person's words, synthetic parts left out), messageID?
message.completed      text (the reply's text parts joined by a blank line), messageID?
tool.execute.after     tool, callID, args (object), output (text), title?, error?, duration?
session.compacted      summary (text of the summary message; without it nothing is stored)
session.error          error (text)
session.end            reason?
=====================  =============================================================

``messageID`` becomes the turn. A session with ``parentID`` is a subagent's: its events are marked.
Unknown events are passed over, so the plugin may send more than this.
"""

from collections.abc import Callable, Mapping
from typing import Final

from memoryd.domain.capture import build, harness
from memoryd.domain.capture.build import Source, Used
from memoryd.domain.capture.render import Call
from memoryd.domain.capture.shape import Json, Received, number, required, text, time_ms
from memoryd.domain.event import Event, EventType


def from_hook(received: Received, event: str, payload: Json) -> list[Event]:
    """The events of a payload; none if it carries nothing to remember. Raises InvalidInput."""
    handler = _HANDLERS.get(text(payload, "event") or event)
    if handler is None:
        return []
    parent = text(payload, "parentID")
    session_id = required(payload, "sessionID")
    metadata = {
        "hook": text(payload, "event") or event,
        "cwd": text(payload, "directory") or received.cwd,
        "model": text(payload, "model"),
        "mode": text(payload, "agent"),
        "subagent": "true" if parent else "",
        "agent_id": session_id if parent else "",
        "parent_session": parent,
    }
    source = Source(
        agent=received.agent,
        session_id=session_id,
        time_ms=time_ms(payload, "time", received.time_ms),
        turn_id=text(payload, "messageID"),
        metadata=metadata,
    )
    return handler(source, payload)


def _started(source: Source, payload: Json) -> list[Event]:
    title = text(payload, "title")
    child = bool(source.metadata["parent_session"])
    words = "Subagent started" if child else "Session started"
    type_ = EventType.SUBAGENT_START if child else EventType.SESSION_START
    return build.said(source, type_, f"{words}: {title}" if title else words)


def _prompted(source: Source, payload: Json) -> list[Event]:
    words = harness.words(text(payload, "text")).text
    return build.said(source, EventType.USER_MESSAGE, words) if words else []


def _replied(source: Source, payload: Json) -> list[Event]:
    words = harness.strip_ours(text(payload, "text"))
    return build.said(source, EventType.ASSISTANT_MESSAGE, words) if words.strip() else []


def _tool_used(source: Source, payload: Json) -> list[Event]:
    error = text(payload, "error")
    call = Call(required(payload, "tool"), payload.get("args"), payload.get("output"), error)
    use = Used(text(payload, "callID"), number(payload, "duration"), bool(error))
    return build.used(source, call, use)


def _compacted(source: Source, payload: Json) -> list[Event]:
    summary = text(payload, "summary")
    return build.compaction(source, summary) if summary.strip() else []


def _failed(source: Source, payload: Json) -> list[Event]:
    error = text(payload, "error") or "unknown error"
    return build.said(source, EventType.ASSISTANT_STOP, f"Turn failed: {error}", {"error": error})


def _ended(source: Source, payload: Json) -> list[Event]:
    why = text(payload, "reason")
    words = f"Session ended ({why})" if why else "Session ended"
    return build.said(source, EventType.SESSION_END, words, {"reason": why})


_HANDLERS: Final[Mapping[str, Callable[[Source, Json], list[Event]]]] = {
    "session.start": _started,
    "chat.message": _prompted,
    "message.completed": _replied,
    "tool.execute.after": _tool_used,
    "session.compacted": _compacted,
    "session.error": _failed,
    "session.end": _ended,
}
