"""Codex: payloads of its hooks, which copy Claude Code's, and of the older `notify`. Pure.

`notify` passes one object when a turn is over, with the prompts and the reply of that turn.
"""

from typing import Final

from memoryd.domain.capture import build, claude_code, harness
from memoryd.domain.capture.build import Source
from memoryd.domain.capture.shape import Json, Received, items, kind, required, text
from memoryd.domain.errors import InvalidInput
from memoryd.domain.event import Event, EventType

TURN_COMPLETE: Final = "agent-turn-complete"


def from_hook(received: Received, event: str, payload: Json) -> list[Event]:
    """The events of a payload; none if it carries nothing to remember. Raises InvalidInput."""
    if payload.get("type") == TURN_COMPLETE:
        return _turn(received, payload)
    return claude_code.from_hook(received, event, payload)


def _turn(received: Received, payload: Json) -> list[Event]:
    source = Source(
        agent=received.agent,
        session_id=required(payload, "thread-id"),
        time_ms=received.time_ms,
        turn_id=text(payload, "turn-id"),
        metadata={"hook": "notify", "cwd": text(payload, "cwd") or received.cwd},
    )
    events = []
    for message in items(payload, "input-messages"):
        if not isinstance(message, str):
            raise InvalidInput(f"input-messages holds {kind(message)}, not text")
        words = harness.words(message).text
        if words:
            events += build.said(source, EventType.USER_MESSAGE, words)
    reply = harness.strip_ours(text(payload, "last-assistant-message"))
    if reply.strip():
        events += build.said(source, EventType.ASSISTANT_MESSAGE, reply)
    return events
