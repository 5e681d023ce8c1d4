"""Copilot CLI: the events of its sessions. Pure.

Lines of ``{type, id, parentId, timestamp, data}``. A call's begin and end make one event; an
assistant's message may hold words, requests for tools, or both.
"""

from typing import ClassVar, Final, NamedTuple

from memoryd.domain.capture import build, harness
from memoryd.domain.capture.build import Source, Used
from memoryd.domain.capture.copilot import arguments
from memoryd.domain.capture.render import Call, value_text
from memoryd.domain.capture.shape import Json, sub, text, time_ms
from memoryd.domain.capture.transcripts.ledger import Origin, Place, Reader
from memoryd.domain.event import EventType

_NOTICES: Final = {
    "session.start": ("Session started", EventType.SESSION_START),
    "session.resume": ("Session resumed", EventType.SESSION_START),
    "session.shutdown": ("Session ended", EventType.SESSION_END),
    "session.error": ("Turn failed", EventType.ASSISTANT_STOP),
    "subagent.started": ("Subagent{} started", EventType.SUBAGENT_START),
    "subagent.completed": ("Subagent{} ended", EventType.SUBAGENT_STOP),
    "subagent.failed": ("Subagent{} failed", EventType.SUBAGENT_STOP),
}


class _Request(NamedTuple):
    origin: Origin
    name: str
    input: object
    time_ms: int


class Copilot(Reader):
    """Reads the events.jsonl of a session of Copilot CLI."""

    agent: ClassVar[str] = "copilot"

    def __init__(self, place: Place, seen: set[str] | None = None) -> None:
        super().__init__(place, seen)
        self._session = self.place.name
        self._cwd = self.place.cwd
        self._last_ms = self.place.changed_ms
        self._requests: dict[str, _Request] = {}

    def take(self, number: int, record: Json) -> bool:
        """Emit what is complete with this record; whether it tells something."""
        origin = Origin(number, text(record, "id") or f"line:{number}")
        if text(record, "id"):
            if origin.id in self.seen:
                return self.skip(number, "replayed record")
            self.seen.add(origin.id)
        self._last_ms = time_ms(record, "timestamp", self._last_ms)
        kind, data = text(record, "type"), sub(record, "data")
        if kind == "session.start":
            self._session = text(data, "sessionId") or self._session
            self._cwd = text(sub(data, "context"), "cwd") or self._cwd
        source = self._source(origin, data)
        if kind == "tool.execution_start":
            name = text(data, "toolName") or "tool"
            request = _Request(origin, name, arguments(data.get("arguments")), self._last_ms)
            self._requests[text(data, "toolCallId") or origin.id] = request
            return True
        if kind == "tool.execution_complete":
            return self._result(origin, source, data)
        return self._said(origin, source, kind, data)

    def finish(self) -> None:
        """Calls that never came to an end are left out."""
        for request in self._requests.values():
            self.skip(request.origin.number, "tool call without a result")

    def _said(self, origin: Origin, source: Source, kind: str, data: Json) -> bool:
        event_id = self.event_id(source.time_ms, source.session_id, origin.id)
        words, reason, type_ = _words(kind, data)
        if kind == "session.compaction_complete" and words.strip():
            return self.emit([origin], lambda: build.compaction(source, words, event_id))
        if type_ is None or not words.strip():
            return self.skip(origin.number, reason or kind or "record without a type")
        more = {"error": "true"} if type_ is EventType.ASSISTANT_STOP else {}
        if type_ in (EventType.SUBAGENT_START, EventType.SUBAGENT_STOP):
            more = {
                "subagent": text(data, "agentName") or "true",
                "agent_id": text(data, "toolCallId"),
            }
        return self.emit(
            [origin], lambda: build.said(source, type_, words, more, event_id=event_id)
        )

    def _result(self, origin: Origin, source: Source, data: Json) -> bool:
        call_id = text(data, "toolCallId")
        request = self._requests.get(call_id)
        failed = data.get("success") is False
        error = data.get("error")
        reason = text(error, "message") if isinstance(error, dict) else value_text(error)
        said = text(sub(data, "result"), "content")
        call = Call(
            request.name if request else text(data, "toolName") or "tool",
            request.input if request else None,
            said,
            reason if failed else "",
        )
        origins = [request.origin, origin] if request else [origin]
        took = self._last_ms - request.time_ms if request else None
        marked = self.marked(source, origins)
        event_id = self.event_id(source.time_ms, source.session_id, origin.id)
        self._requests.pop(call_id, None)
        return self.emit(
            origins, lambda: build.used(marked, call, Used(call_id, took, failed), event_id)
        )

    def _source(self, origin: Origin, data: Json) -> Source:
        parent = text(data, "parentToolCallId")
        metadata = {
            "cwd": self._cwd,
            "model": text(data, "model"),
            "subagent": "true" if parent else "",
            "agent_id": parent,
            **self.marks([origin]),
        }
        return Source(
            agent=self.agent,
            session_id=self._session,
            time_ms=self._last_ms,
            turn_id=text(data, "interactionId"),
            metadata=metadata,
        )


def _words(kind: str, data: Json) -> tuple[str, str, EventType | None]:
    """The words of a record, why there are none, and what kind of event they make."""
    if kind == "user.message":
        found = harness.words(text(data, "content"))
        return found.text, found.reason, EventType.USER_MESSAGE
    if kind == "assistant.message":
        reason = "request for tools, told by the calls" if data.get("toolRequests") else "no words"
        return harness.strip_ours(text(data, "content")), reason, EventType.ASSISTANT_MESSAGE
    if kind == "session.compaction_complete":
        return text(data, "summaryContent"), "compaction without a summary", None
    return _notice(kind, data)


def _notice(kind: str, data: Json) -> tuple[str, str, EventType | None]:
    """What the machinery says of a session, in words."""
    words, type_ = _NOTICES.get(kind, ("", None))
    name = text(data, "agentDisplayName") or text(data, "agentName")
    detail = text(data, "message") if kind == "session.error" else text(data, "error")
    full = words.format(f" {name}" if name else "")
    return f"{full}: {detail}" if full and detail else full, "", type_
