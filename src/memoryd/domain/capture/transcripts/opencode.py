"""OpenCode: rows of its database, of every version. Pure.

The records are ``{"table": ..., "row": {...}}``, as a reader of the database or of the older JSON
files gives them: sessions first, then each message, followed by its parts. Version 1 has
``session``, ``message`` and ``part``, version 2 has ``session_v2`` and ``session_message``.
"""

import json
from typing import ClassVar, Final

from memoryd.domain.capture import build, harness
from memoryd.domain.capture.build import Source, Used
from memoryd.domain.capture.render import Call, content_text, value_text
from memoryd.domain.capture.shape import Json, flag, items, obj, sub, text, time_ms
from memoryd.domain.capture.transcripts.ledger import Origin, Place, Reader
from memoryd.domain.errors import InvalidInput
from memoryd.domain.event import EventType

_ENDED: Final = ("completed", "error")


class OpenCode(Reader):
    """Reads the rows of OpenCode's sessions."""

    agent: ClassVar[str] = "opencode"

    def __init__(self, place: Place, seen: set[str] | None = None) -> None:
        super().__init__(place, seen)
        self._sessions: dict[str, tuple[str, str]] = {}  # id: directory, parent
        self._message: Json = {}
        self._opened: tuple[Origin, Source] | None = None
        self._parts: list[Origin] = []
        self._texts: list[str] = []

    def take(self, number: int, record: Json) -> bool:
        """Emit what is complete with this record; whether it tells something."""
        table = text(record, "table")
        row = obj(record.get("row"), "row")
        origin = Origin(number, text(row, "id") or f"line:{number}")
        if table in ("session", "session_v2"):
            self._flush()
            return self._session(origin, row)
        if table == "message":
            self._flush()
            return self._open(origin, row)
        if table == "part":
            return self._part(origin, row)
        if table == "session_message":
            self._flush()
            return self._second(origin, row)
        return self.skip(number, f"table {table}" if table else "record without a table")

    def finish(self) -> None:
        """The last message."""
        self._flush()

    def _session(self, origin: Origin, row: Json) -> bool:
        session_id = text(row, "id")
        parent = text(row, "parent_id")
        self._sessions[session_id] = (text(row, "directory") or self.place.cwd, parent)
        at = time_ms(row, "time_created", self.place.changed_ms)
        source = self._source([origin], session_id, at)
        title = text(row, "title")
        words = "Subagent started" if parent else "Session started"
        type_ = EventType.SUBAGENT_START if parent else EventType.SESSION_START
        event_id = self.event_id(at, session_id, "start")
        full = f"{words}: {title}" if title else words
        return self.emit([origin], lambda: build.said(source, type_, full, event_id=event_id))

    # --- version 1: messages and parts

    def _open(self, origin: Origin, row: Json) -> bool:
        data = _data(row)
        at = time_ms(sub(data, "time"), "created", time_ms(row, "time_created", 0))
        session_id = text(row, "session_id") or text(data, "sessionID")
        model = text(data, "modelID") or text(sub(data, "model"), "modelID")
        source = self._source([], session_id, at or self.place.changed_ms, model)
        text(data, "role")  # a message that cannot be read takes nothing with it
        self._message = data
        self._opened = (origin, source._replace(turn_id=text(data, "parentID") or origin.id))
        self._parts, self._texts = [], []
        return True

    def _part(self, origin: Origin, row: Json) -> bool:
        data = _data(row)
        kind = text(data, "type")
        if self._opened is None:
            return self.skip(origin.number, "part without a message")
        message, source = self._opened
        if kind == "text" and not flag(data, "synthetic") and not flag(data, "ignored"):
            words = text(data, "text")
            if not words.strip():
                return self.skip(origin.number, "no words")
            self._texts.append(words)
            self._parts.append(origin)
            return True
        if kind == "tool":
            state = sub(data, "state")
            at = time_ms(sub(state, "time"), "end", source.time_ms)
            use_id = text(data, "callID")
            return self._call(
                [message, origin],
                source._replace(time_ms=at),
                (text(data, "tool"), use_id),
                state,
            )
        return self.skip(origin.number, f"part: {kind}" if kind != "text" else "synthetic text")

    def _flush(self) -> bool:
        opened, self._opened = self._opened, None
        if opened is None:
            return False
        message, source = opened
        raw = "\n\n".join(self._texts)
        return self._said([message, *self._parts], source, text(self._message, "role"), raw)

    def _said(self, origins: list[Origin], source: Source, role: str, raw: str) -> bool:
        found = harness.words(raw) if role == "user" else harness.Words(harness.strip_ours(raw), "")
        if not found.text.strip():
            for origin in origins:
                self.skip(origin.number, found.reason or "no words")
            return False
        source = self.marked(source, origins)
        event_id = self.event_id(source.time_ms, source.session_id, origins[0].id)
        if self._message.get("summary") is True or harness.is_compaction(raw):
            return self.emit(origins, lambda: build.compaction(source, raw, event_id))
        type_ = EventType.USER_MESSAGE if role == "user" else EventType.ASSISTANT_MESSAGE
        return self.emit(origins, lambda: build.said(source, type_, found.text, event_id=event_id))

    # --- version 2: messages that hold everything

    def _second(self, origin: Origin, row: Json) -> bool:
        data, kind = _data(row), text(row, "type")
        self._message = {}
        at = time_ms(sub(data, "time"), "created", time_ms(row, "time_created", 0))
        model = text(sub(data, "model"), "id")
        at = at or self.place.changed_ms
        source = self._source([origin], text(row, "session_id"), at, model)
        if kind == "user":
            return self._said([origin], source, "user", text(data, "text"))
        if kind == "assistant":
            return self._reply(origin, source, data)
        if kind == "shell":
            state = {
                "status": "completed",
                "input": {"command": data.get("command")},
                "output": sub(data, "output").get("output"),
            }
            return self._call([origin], source, ("shell", text(data, "shellID")), state)
        if kind == "compaction" and text(data, "summary").strip():
            event_id = self.event_id(at, source.session_id, origin.id)
            summary = text(data, "summary")
            return self.emit([origin], lambda: build.compaction(source, summary, event_id))
        return self.skip(origin.number, f"message of type {kind}" if kind else "no type")

    def _reply(self, origin: Origin, source: Source, data: Json) -> bool:
        told, texts = False, []
        for entry in items(data, "content"):
            block = obj(entry, "content block")
            if block.get("type") == "tool":
                state = sub(block, "state")
                at = time_ms(sub(block, "time"), "completed", source.time_ms)
                call = (text(block, "name"), text(block, "id"))
                told |= self._call([origin], source._replace(time_ms=at), call, state)
            elif block.get("type") != "reasoning":
                texts.append(content_text([block]))
        raw = "\n\n".join(filter(None, texts))
        if not raw and told:
            return True
        return self._said([origin], source, "assistant", raw) or told

    # --- both

    def _call(
        self, origins: list[Origin], source: Source, called: tuple[str, str], state: Json
    ) -> bool:
        status = text(state, "status")
        if status not in _ENDED:
            return self.skip(origins[-1].number, "tool call without a result")
        said = content_text(state.get("output", state.get("content")))
        error = value_text(state.get("error")).strip() if status == "error" else ""
        call = Call(called[0] or "tool", state.get("input"), said, error)
        span = sub(state, "time")
        took = time_ms(span, "end") - time_ms(span, "start") if "end" in span else None
        source = self.marked(source, origins)
        event_id = self.event_id(source.time_ms, source.session_id, origins[-1].id)
        use = Used(called[1], took, status == "error")
        return self.emit(origins, lambda: build.used(source, call, use, event_id))

    def _source(self, origins: list[Origin], session_id: str, at: int, model: str = "") -> Source:
        directory, parent = self._sessions.get(session_id, (self.place.cwd, ""))
        metadata = {
            "cwd": directory,
            "model": model,
            "subagent": "true" if parent else "",
            "agent_id": session_id if parent else "",
            "parent_session": parent,
            **(self.marks(origins) if origins else {}),
        }
        return Source(self.agent, session_id or self.place.name, at, metadata=metadata)


def _data(row: Json) -> Json:
    """The JSON of a row, which a database keeps as text."""
    data = row.get("data")
    if isinstance(data, str):
        try:
            data = json.loads(data)
        except (ValueError, RecursionError):
            raise InvalidInput("data is not JSON") from None
    return {} if data is None else obj(data, "data")
