"""Cursor: transcripts of its agent. Pure.

Lines of ``{role, message: {content}}`` without ids and times, and without the results of calls:
an event is known by its line and stands at the time of the file.
"""

from typing import ClassVar

from memoryd.domain.capture import build, harness
from memoryd.domain.capture.build import Source, Used
from memoryd.domain.capture.render import Call, content_text
from memoryd.domain.capture.shape import Json, items, obj, sub, text, time_ms
from memoryd.domain.capture.transcripts.ledger import Origin, Reader
from memoryd.domain.event import EventType


class Cursor(Reader):
    """Reads a transcript of Cursor."""

    agent: ClassVar[str] = "cursor"

    def take(self, number: int, record: Json) -> bool:
        """Emit what is complete with this record; whether it tells something."""
        origin = Origin(number, f"line:{number}")
        role, message = text(record, "role"), sub(record, "message")
        if role not in ("user", "assistant"):
            return self.skip(number, f"message of the {role}" if role else "record without a role")
        source = Source(
            agent=self.agent,
            session_id=self.place.name,
            time_ms=time_ms(record, "timestamp", self.place.changed_ms),
            metadata={"cwd": self.place.cwd, **self.marks([origin])},
        )
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else None
        told, texts = False, []
        for place, entry in enumerate(blocks or items(message, "content")):
            block = obj(entry, "content block")
            if block.get("type") == "tool_use":
                told |= self._call(origin, source, block, place)
            else:
                texts.append(content_text([block]))
        return self._said(origin, source, role, "\n\n".join(filter(None, texts))) or told

    def _said(self, origin: Origin, source: Source, role: str, raw: str) -> bool:
        spoken = role == "assistant"
        found = harness.Words(harness.strip_ours(raw), "") if spoken else harness.words(raw)
        if not found.text.strip():
            return self.skip(origin.number, found.reason or "no words")
        type_ = EventType.ASSISTANT_MESSAGE if spoken else EventType.USER_MESSAGE
        event_id = self.event_id(0, source.session_id, origin.id)
        return self.emit([origin], lambda: build.said(source, type_, found.text, event_id=event_id))

    def _call(self, origin: Origin, source: Source, block: Json, place: int) -> bool:
        call = Call(text(block, "name") or "tool", block.get("input"), None)
        event_id = self.event_id(0, source.session_id, origin.id, str(place))
        use = Used(text(block, "id"))
        return self.emit([origin], lambda: build.used(source, call, use, event_id))
