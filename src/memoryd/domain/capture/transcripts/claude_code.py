"""Claude Code: its transcripts. Pure.

One record per line. Texts of one ``message.id`` become one event, a call meets its result, and
what stands in a sidechain is marked as a subagent's. Continuation files replay records of other
files: a ``uuid`` counts once.
"""

from collections.abc import Callable, Mapping
from typing import ClassVar, Final, NamedTuple

from memoryd.domain.capture import build, harness
from memoryd.domain.capture.build import Source, Used
from memoryd.domain.capture.render import Call, content_text, unnumbered
from memoryd.domain.capture.shape import Json, flag, items, obj, sub, text, time_ms
from memoryd.domain.capture.transcripts.ledger import Origin, Place, Reader
from memoryd.domain.event import EventType

_KNOWN: Final = frozenset(
    (
        "summary",
        "file-history-snapshot",
        "queue-operation",
        "progress",
        "ai-title",
        "custom-title",
        "agent-name",
        "tag",
        "last-prompt",
        "mode",
        "permission-mode",
        "pr-link",
        "worktree-state",
        "content-replacement",
        "file-change",
        "bridge-session",
        "attribution-snapshot",
        "marble-origami-commit",
    )
)


class _Request(NamedTuple):
    """A call that waits for its result."""

    origin: Origin
    name: str
    input: object


class _Speech(NamedTuple):
    """The texts of one message so far."""

    message_id: str
    source: Source
    origins: list[Origin]
    texts: list[str]
    failed: bool
    time_ms: int


class ClaudeCode(Reader):
    """Reads a transcript of Claude Code, of a session or of a subagent."""

    agent: ClassVar[str] = "claude-code"

    def __init__(self, place: Place, seen: set[str] | None = None) -> None:
        super().__init__(place, seen)
        self._requests: dict[str, _Request] = {}
        self._speech: _Speech | None = None
        self._last_ms = self.place.changed_ms

    def take(self, number: int, record: Json) -> bool:
        """Emit what is complete with this record; whether it tells something."""
        kind = text(record, "type")
        speaks = self._SPEAKERS.get(kind)
        if speaks is None:
            return self.skip(number, _reason(kind, record))
        origin = Origin(number, text(record, "uuid") or f"line:{number}")
        if text(record, "uuid"):
            moment = f"{origin.id} {record.get('timestamp')}"
            if moment in self.seen:
                return self.skip(number, "replayed record")
            self.seen.add(moment)
        return speaks(self, origin, record)

    def finish(self) -> None:
        """The last message; calls that never came to an end are left out."""
        for request in self._requests.values():
            self.skip(request.origin.number, "tool call without a result")
        self._flush()

    # --- records

    def _assistant(self, origin: Origin, record: Json) -> bool:
        message = obj(record.get("message"), "message")
        source = self._source(record, text(message, "model"))
        blocks, texts, calls = _blocks(message), [], 0
        for block in blocks:
            kind = block.get("type")
            if kind == "tool_use":
                request = _Request(origin, text(block, "name") or "tool", block.get("input"))
                self._requests[text(block, "id") or f"{origin.id}:{calls}"] = request
                calls += 1
            elif kind not in ("thinking", "redacted_thinking"):
                texts.append(harness.strip_ours(content_text([block])))
        texts = [part for part in texts if part.strip()]
        if source.metadata["model"] == "<synthetic>" and not flag(record, "isApiErrorMessage"):
            return self.skip(origin.number, "synthetic reply")
        if not texts:
            return calls > 0 or self.skip(origin.number, "thinking" if blocks else "no words")
        message_id = text(message, "id") or origin.id
        speech = self._speech
        if speech is not None and speech.message_id == message_id:
            speech.origins.append(origin)
            speech.texts.extend(texts)
            return True
        failed = flag(record, "isApiErrorMessage")
        self._flush()
        self._speech = _Speech(message_id, source, [origin], texts, failed, source.time_ms)
        return True

    def _user(self, origin: Origin, record: Json) -> bool:
        message = obj(record.get("message"), "message")
        source = self._source(record)
        told, texts, results = False, [], 0
        for block in _blocks(message):
            if block.get("type") == "tool_result":
                told |= self._result(origin, source, block, record.get("toolUseResult"))
                results += 1
            else:
                texts.append(content_text([block]))
        if flag(record, "isMeta") and not results:
            return self.skip(origin.number, "meta")
        return self._prompt(origin, source, record, texts) or told

    def _prompt(self, origin: Origin, source: Source, record: Json, texts: list[str]) -> bool:
        whole = "\n\n".join(texts)
        event_id = self.event_id(source.time_ms, origin.id)
        marked = self.marked(source, [origin])
        if flag(record, "isCompactSummary") or harness.is_compaction(whole):
            make = lambda: build.compaction(marked, harness.strip_ours(whole), event_id)  # noqa: E731
            self._flush()
            return self.emit([origin], make)
        found = [harness.words(part) for part in texts]
        words = "\n\n".join(part.text for part in found if part.text)
        if not words:
            reasons = [part.reason for part in found if part.reason]
            return self.skip(origin.number, reasons[0] if reasons else "no words")
        type_ = EventType.SUBAGENT_START if source.metadata["subagent"] else EventType.USER_MESSAGE
        self._flush()
        return self.emit([origin], lambda: build.said(marked, type_, words, event_id=event_id))

    def _result(self, origin: Origin, source: Source, block: Json, detail: object) -> bool:
        use_id = text(block, "tool_use_id")
        request = self._requests.get(use_id)
        origins = [origin] if request is None else [request.origin, origin]
        failed = flag(block, "is_error")
        content = block.get("content")
        said = harness.strip_trailing(content_text(content)) or content_text(detail)
        name = request.name if request else "tool"
        if name == "Read":
            said = unnumbered(said)
        call = Call(
            name,
            request.input if request else None,
            None if failed else said,
            said if failed else "",
        )
        marked = self.marked(source, origins)
        event_id = self.event_id(source.time_ms, origin.id)
        use = Used(use_id, _duration(detail), failed)
        self._requests.pop(use_id, None)
        return self.emit(origins, lambda: build.used(marked, call, use, event_id))

    def _attachment(self, origin: Origin, record: Json) -> bool:
        """Words that a person typed while the agent was at work are kept as an attachment."""
        attachment = sub(record, "attachment")
        kind = text(attachment, "type")
        if kind != "queued_command":
            return self.skip(origin.number, f"attachment: {kind}" if kind else "attachment")
        source = self._source(record)
        return self._prompt(origin, source, record, [content_text(attachment.get("prompt"))])

    _SPEAKERS: ClassVar[Mapping[str, Callable[["ClaudeCode", Origin, Json], bool]]] = {
        "assistant": _assistant,
        "user": _user,
        "attachment": _attachment,
    }

    # --- parts

    def _flush(self) -> bool:
        speech, self._speech = self._speech, None
        if speech is None:
            return False
        source = speech.source
        event_id = self.event_id(source.time_ms, speech.origins[0].id)
        marked = self.marked(source, speech.origins)._replace(time_ms=speech.time_ms)
        words = "\n\n".join(speech.texts)
        type_ = EventType.ASSISTANT_STOP if speech.failed else EventType.ASSISTANT_MESSAGE
        more = {"error": "true"} if speech.failed else {}
        return self.emit(
            speech.origins, lambda: build.said(marked, type_, words, more, event_id=event_id)
        )

    def _source(self, record: Json, model: str = "") -> Source:
        self._last_ms = time_ms(record, "timestamp", self._last_ms)
        speech = self._speech
        if speech is not None and self._last_ms < speech.time_ms:
            # records that were written again later bear a late time: an answer precedes what follows
            self._speech = speech._replace(time_ms=self._last_ms)
        agent_id = text(record, "agentId")
        side = flag(record, "isSidechain") or bool(agent_id)
        metadata = {
            "cwd": text(record, "cwd") or self.place.cwd,
            "git_branch": text(record, "gitBranch"),
            "model": model,
            "subagent": "true" if side else "",
            "agent_id": agent_id,
        }
        return Source(
            agent=self.agent,
            session_id=text(record, "sessionId") or self.place.name,
            time_ms=self._last_ms,
            turn_id=text(record, "promptId"),
            metadata=metadata,
        )


def _reason(kind: str, record: Json) -> str:
    """Why a record of a kind that nobody speaks in is left out."""
    if kind == "system":
        subtype = text(record, "subtype")
        return f"system: {subtype}" if subtype else kind
    if kind in _KNOWN:
        return kind
    return f"unknown type: {kind}" if kind else "record without a type"


def _blocks(message: Json) -> list[Json]:
    content = message.get("content")
    if content is None:
        return []
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [obj(block, "content block") for block in items(message, "content")]


def _duration(detail: object) -> int | None:
    if isinstance(detail, dict):
        for field in ("durationMs", "totalDurationMs"):
            value = detail.get(field)
            if isinstance(value, int | float) and not isinstance(value, bool) and value == value:  # noqa: PLR0124 - not NaN
                return int(value) if abs(value) < 2**53 else None
    return None
