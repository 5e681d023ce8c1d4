"""Codex: its rollouts. Pure.

Lines of ``{timestamp, type, payload}``. Words stand twice, as an event and as an item of the
model's context, in either order: the pair becomes one event that names both lines. A rollout
without such events (of an early version) is read from its items.
"""

import json
import re
from typing import ClassVar, Final, NamedTuple

from memoryd.domain.capture import build, harness
from memoryd.domain.capture.build import Source, Used
from memoryd.domain.capture.render import Call, content_text, value_text
from memoryd.domain.capture.shape import Json, sub, text, time_ms
from memoryd.domain.capture.transcripts.ledger import Origin, Place, Reader
from memoryd.domain.event import EventType

_SPOKEN: Final = {"user_message": "user", "agent_message": "assistant"}
_CALLS: Final = ("function_call", "custom_tool_call", "local_shell_call")
_RESULTS: Final = ("function_call_output", "custom_tool_call_output")
_DETAILS: Final = (
    "exec_command_end",
    "patch_apply_end",
    "mcp_tool_call_end",
    "web_search_end",
    "exec_command_begin",
    "patch_apply_begin",
    "mcp_tool_call_begin",
    "web_search_begin",
)
_PREAMBLE: Final = re.compile(
    r"\A(?:(?:Chunk ID|Wall time|Process exited with code|Process running with session ID|"
    r"Original token count|Exit code|Total output lines)[^\n]*\n)+Output:\n"
)
_RUNNING: Final = re.compile(r"^Process running with session ID (\d{1,20})$", re.MULTILINE)
_EXIT: Final = re.compile(r"^(?:Exit code:|Process exited with code) (-?\d{1,10})$", re.MULTILINE)
_WALL: Final = re.compile(r"^Wall time: (\d{1,7}(?:\.\d{1,9})?) seconds$", re.MULTILINE)


class _Held(NamedTuple):
    """Words that may come a second time."""

    role: str
    words: str
    origins: list[Origin]
    source: Source
    from_event: bool


class _Request(NamedTuple):
    origin: Origin
    name: str
    input: object


class Codex(Reader):
    """Reads a rollout of Codex."""

    agent: ClassVar[str] = "codex"
    surveys: ClassVar[bool] = True

    def __init__(self, place: Place, seen: set[str] | None = None) -> None:
        super().__init__(place, seen)
        self._session = ""
        self._cwd = self.place.cwd
        self._turn = self._model = self._subagent = self._branch = ""
        self._events_speak = False
        self._held: _Held | None = None
        self._requests: dict[str, _Request] = {}
        self._running: dict[str, str] = {}  # number of a process: its command
        self._last_ms = self.place.changed_ms

    def look(self, record: Json) -> bool:
        """Whether events carry the words, which the first of them tells."""
        if text(record, "type") == "event_msg":
            self._events_speak = text(sub(record, "payload"), "type") in _SPOKEN
        return self._events_speak

    def take(self, number: int, record: Json) -> bool:
        """Emit what is complete with this record; whether it tells something."""
        origin = Origin(number, f"line:{number}")
        self._last_ms = time_ms(record, "timestamp", self._last_ms)
        kind, payload = text(record, "type"), sub(record, "payload")
        if kind == "session_meta":
            return self._meta(origin, payload)
        if kind == "turn_context":
            self._cwd = text(payload, "cwd") or self._cwd
            self._model = text(payload, "model") or self._model
            self._turn = text(payload, "turn_id") or self._turn
            return self.skip(number, "turn_context")
        if kind == "response_item":
            return self._item(origin, payload)
        if kind == "event_msg":
            return self._event(origin, payload)
        if kind == "compacted":
            return self._compacted(origin, payload)
        return self.skip(number, f"unknown type: {kind}" if kind else "record without a type")

    def finish(self) -> None:
        """The last words; calls that never came to an end are left out."""
        for request in self._requests.values():
            self.skip(request.origin.number, "tool call without a result")
        self._release()

    # --- records

    def _meta(self, origin: Origin, payload: Json) -> bool:
        if self._session:
            return self.skip(origin.number, "session_meta of a replayed session")
        self._session = text(payload, "id")
        self._cwd = text(payload, "cwd") or self._cwd
        self._branch = text(sub(payload, "git"), "branch")
        origin_of = payload.get("source")
        if isinstance(origin_of, dict) and "subagent" in origin_of:
            kind = origin_of["subagent"]
            self._subagent = kind if isinstance(kind, str) else "true"
        started = time_ms(payload, "timestamp", self._last_ms)
        source = self._source([origin])._replace(time_ms=started)
        words = "Subagent started" if self._subagent else "Session started"
        type_ = EventType.SUBAGENT_START if self._subagent else EventType.SESSION_START
        event_id = self.event_id(started, self._session or self.place.name, "start")
        return self.emit([origin], lambda: build.said(source, type_, words, event_id=event_id))

    def _event(self, origin: Origin, payload: Json) -> bool:
        kind = text(payload, "type")
        if kind in _SPOKEN:
            return self._spoken(origin, _SPOKEN[kind], text(payload, "message"), from_event=True)
        if kind == "task_started":
            self._turn = text(payload, "turn_id") or self._turn
        if kind in _DETAILS:
            return self.skip(origin.number, f"{kind}: the call itself tells it")
        return self.skip(origin.number, kind or "event without a type")

    def _item(self, origin: Origin, payload: Json) -> bool:
        kind = text(payload, "type")
        if kind == "message":
            role = text(payload, "role")
            if role not in ("user", "assistant"):
                return self.skip(origin.number, f"message of the {role or 'model'}")
            words = content_text(payload.get("content"))
            return self._spoken(origin, role, words, from_event=False)
        if kind in _CALLS:
            given = payload.get("arguments", payload.get("input", payload.get("action")))
            request = _Request(origin, text(payload, "name") or "shell", _decoded(given))
            self._requests[text(payload, "call_id") or origin.id] = request
            return True
        if kind in _RESULTS:
            return self._result(origin, payload)
        if kind == "web_search_call":
            call = Call("web_search", _searched(payload), None)
            use = Used(text(payload, "call_id") or text(payload, "id"))
            return self._used([origin], call, use)
        return self.skip(origin.number, kind or "item without a type")

    def _compacted(self, origin: Origin, payload: Json) -> bool:
        summary = text(payload, "message")
        if not summary.strip():
            return self.skip(origin.number, "compaction without a summary")
        source = self._source([origin])
        event_id = self.event_id(source.time_ms, source.session_id, origin.id)
        self._release()
        return self.emit([origin], lambda: build.compaction(source, summary, event_id))

    # --- words

    def _spoken(self, origin: Origin, role: str, raw: str, *, from_event: bool) -> bool:
        if role == "user" and harness.is_compaction(raw):
            return self.skip(origin.number, "summary for the model")
        found = harness.words(raw) if role == "user" else harness.Words(harness.strip_ours(raw), "")
        if not found.text.strip():
            return self.skip(origin.number, found.reason or "no words")
        held = self._held
        if (
            held is not None
            and held.role == role
            and held.from_event != from_event
            and _same(held.words, found.text)
        ):
            held.origins.append(origin)
            self._held = held._replace(from_event=True)
            return self._release()
        self._release()
        source = self._source([])
        self._held = _Held(role, found.text, [origin], source, from_event)
        return True

    def _release(self) -> bool:
        held, self._held = self._held, None
        if held is None:
            return False
        if self._events_speak and not held.from_event:
            reason = "context for the model" if held.role == "user" else "repeats an event"
            return self.skip(held.origins[0].number, reason)
        origins = sorted(held.origins)
        source = self.marked(held.source, origins)
        type_ = EventType.USER_MESSAGE if held.role == "user" else EventType.ASSISTANT_MESSAGE
        event_id = self.event_id(source.time_ms, source.session_id, held.role, held.origins[0].id)
        return self.emit(origins, lambda: build.said(source, type_, held.words, event_id=event_id))

    # --- calls

    def _result(self, origin: Origin, payload: Json) -> bool:
        call_id = text(payload, "call_id")
        request = self._requests.get(call_id)
        said, failed, took = _outcome(payload.get("output"))
        name, given = (request.name, request.input) if request else ("tool", None)
        name, given = self._continued(name, given, payload.get("output"))
        call = Call(name, given, None if failed and not said else said, failed)
        origins = [request.origin, origin] if request else [origin]
        self._requests.pop(call_id, None)
        return self._used(origins, call, Used(call_id, took, bool(failed)))

    def _continued(self, name: str, given: object, output: object) -> tuple[str, object]:
        """A call that waits for an earlier command, in terms of that command."""
        if not isinstance(given, dict):
            return name, given
        if name == "write_stdin" and (command := self._running.get(str(given.get("session_id")))):
            rest = {key: value for key, value in given.items() if key != "session_id"}
            return name, {"command": f"{command} (continued)", **rest}
        command = given.get("cmd", given.get("command"))
        running = _RUNNING.search(output[:500]) if isinstance(output, str) else None
        if running and isinstance(command, str):
            self._running[running[1]] = command
        shown = {k: v for k, v in given.items() if k != "workdir" or v != self._cwd}
        return name, shown

    def _used(self, origins: list[Origin], call: Call, use: Used) -> bool:
        source = self._source(origins)
        event_id = self.event_id(source.time_ms, source.session_id, origins[0].id)
        return self.emit(origins, lambda: build.used(source, call, use, event_id))

    def _source(self, origins: list[Origin]) -> Source:
        metadata = {
            "cwd": self._cwd,
            "git_branch": self._branch,
            "model": self._model,
            "subagent": self._subagent,
            **(self.marks(origins) if origins else {}),
        }
        return Source(
            agent=self.agent,
            session_id=self._session or self.place.name,
            time_ms=self._last_ms,
            turn_id=self._turn,
            metadata=metadata,
        )


def _same(one: str, other: str) -> bool:
    return " ".join(one.split()) == " ".join(other.split())


def _decoded(value: object) -> object:
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _searched(payload: Json) -> object:
    action = payload.get("action")
    if isinstance(action, dict):
        return {key: value for key, value in action.items() if key != "type"}
    return payload.get("query")


def _outcome(value: object) -> tuple[str, str, int | None]:
    """What a call said, its error, and how long it took in milliseconds."""
    value = _decoded(value)
    code: object = None
    seconds: object = None
    if isinstance(value, dict):
        about = value.get("metadata")
        if isinstance(about, dict):
            code, seconds = about.get("exit_code"), about.get("duration_seconds")
        value = value.get("output", value.get("content", value))
    said = value_text(value)
    preamble = _PREAMBLE.match(said)
    if preamble:
        found, wall = _EXIT.search(preamble[0]), _WALL.search(preamble[0])
        code = int(found[1]) if found else code
        seconds = float(wall[1]) if wall else seconds
        said = said[preamble.end() :]
    failed = f"exit code {code}" if isinstance(code, int) and code else ""
    took = (
        int(seconds * 1000) if isinstance(seconds, int | float) and 0 <= seconds < 10**9 else None
    )
    return said, failed, took
