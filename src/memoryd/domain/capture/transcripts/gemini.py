"""Gemini CLI: its chats. Pure.

A line of metadata, then messages; a message whose ``id`` comes again replaces the earlier one,
``$set`` changes metadata, ``$rewindTo`` takes back a message and all behind it. Which messages
stand in the end is found by a survey, so that a long chat need not be held in memory. Older
versions keep one JSON object with ``messages``: its reader feeds those as records.
"""

from typing import ClassVar, Final

from memoryd.domain.capture import build, harness
from memoryd.domain.capture.build import Source, Used
from memoryd.domain.capture.gemini import shell_output
from memoryd.domain.capture.render import Call, content_text, value_text
from memoryd.domain.capture.shape import Json, items, obj, sub, text, time_ms
from memoryd.domain.capture.transcripts.ledger import Origin, Place, Reader
from memoryd.domain.event import EventType

_ABOUT: Final = {
    "$set": "change of metadata",
    "$rewindTo": "rewind",
    "sessionId": "metadata of the session",
    "startTime": "metadata of the session",
}
_FAILED: Final = frozenset(("error", "cancelled", "failed"))


class Gemini(Reader):
    """Reads a chat of Gemini CLI."""

    agent: ClassVar[str] = "gemini"
    surveys: ClassVar[bool] = True

    def __init__(self, place: Place, seen: set[str] | None = None) -> None:
        super().__init__(place, seen)
        self._session = ""
        self._last_ms = self.place.changed_ms
        self._standing: dict[str, int] = {}  # id of a message: its last version
        self._looked = 0
        self._taken = 0

    def look(self, record: Json) -> bool:
        """Note which version of which message stands in the end."""
        rewind = text(record, "$rewindTo")
        if rewind in self._standing:
            ids = list(self._standing)
            for dropped in ids[ids.index(rewind) :]:
                del self._standing[dropped]
        elif text(record, "id"):
            self._looked += 1
            self._standing[text(record, "id")] = self._looked
        if text(record, "sessionId"):
            self._session = text(record, "sessionId")
        return False

    def take(self, number: int, record: Json) -> bool:
        """Emit what is complete with this record; whether it tells something."""
        message_id, kind = text(record, "id"), text(record, "type")
        if not message_id:
            reasons = (_ABOUT[field] for field in _ABOUT if field in record)
            return self.skip(number, next(reasons, "record without an id"))
        self._taken += 1
        if self._standing.get(message_id) != self._taken:
            replaced = message_id in self._standing
            return self.skip(number, "replaced by a later version" if replaced else "taken back")
        origin = Origin(number, message_id)
        self._last_ms = time_ms(record, "timestamp", self._last_ms)
        source = self._source(origin, text(record, "model"))
        if kind == "user":
            return self._prompt(origin, source, record)
        if kind in ("gemini", "model", "assistant"):
            return self._reply(origin, source, record)
        return self.skip(number, f"message of type {kind}" if kind else "message without a type")

    def _prompt(self, origin: Origin, source: Source, record: Json) -> bool:
        raw = content_text(record.get("content"))
        event_id = self.event_id(source.time_ms, source.session_id, origin.id)
        if harness.is_compaction(raw):
            return self.emit([origin], lambda: build.compaction(source, raw, event_id))
        found = harness.words(raw)
        if not found.text:
            return self.skip(origin.number, found.reason)
        return self.emit(
            [origin],
            lambda: build.said(source, EventType.USER_MESSAGE, found.text, event_id=event_id),
        )

    def _reply(self, origin: Origin, source: Source, record: Json) -> bool:
        words = harness.strip_ours(content_text(record.get("content")))
        event_id = self.event_id(source.time_ms, source.session_id, origin.id)
        told = False
        if words.strip():
            type_ = EventType.ASSISTANT_MESSAGE
            told = self.emit([origin], lambda: build.said(source, type_, words, event_id=event_id))
        for entry in items(record, "toolCalls"):
            told |= self._call(origin, source, obj(entry, "tool call"))
        if not told:
            self.skip(origin.number, "thoughts" if record.get("thoughts") else "no words")
        return told

    def _call(self, origin: Origin, source: Source, entry: Json) -> bool:
        status = text(entry, "status")
        said = _said(entry)
        said, code = shell_output(said)
        failed = status in _FAILED
        name = text(entry, "name") or "tool"
        call = Call(name, entry.get("args"), None if failed else said, said if failed else code)
        at = source._replace(time_ms=time_ms(entry, "timestamp", source.time_ms))
        use = Used(text(entry, "id"), None, failed or bool(code))
        event_id = self.event_id(at.time_ms, at.session_id, origin.id, name, said)
        return self.emit([origin], lambda: build.used(at, call, use, event_id))

    def _source(self, origin: Origin, model: str) -> Source:
        return Source(
            agent=self.agent,
            session_id=self._session or self.place.name,
            time_ms=self._last_ms,
            metadata={"cwd": self.place.cwd, "model": model, **self.marks([origin])},
        )


def _said(entry: Json) -> str:
    """What a call gave: the text for the model, or what was shown of it."""
    parts = []
    result = entry.get("result")
    for part in result if isinstance(result, list) else [result]:
        if not isinstance(part, dict):
            parts.append(value_text(part))
            continue
        response = sub(sub(part, "functionResponse"), "response")
        said = response.get("output", response.get("error", response or part.get("text")))
        parts.append(value_text(said))
    return "\n\n".join(part for part in parts if part) or value_text(entry.get("resultDisplay"))
