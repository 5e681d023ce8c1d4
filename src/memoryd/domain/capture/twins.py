"""Which events tell of the same thing, once by a hook and once by a transcript. Pure.

A tool call has one id by both ways. Words have not: a hook stamps the moment of its call, a
transcript the moment of its record, and they share no id. The rule is:

- Two events are of one kind if both are a person's words, both an agent's words (a reply, the end
  of a turn, the last words of a subagent), both the begin of the same subagent, both the begin or
  both the end of a session, both a summary at a compaction, or both a call of the same tool with
  the same arguments (for agents whose hooks give no id of the call).
- They are twins if they are of one kind and one session, their words are the same but for white
  space (and for what was redacted in one of them), and they lie within `WINDOW_MS` of each other.
- One of them must come from a hook and the other from a transcript: what one source tells twice
  happened twice.

`memory import` reads a session's events and pairs them in order (`Pairing`): each event of the
log has at most one twin. The drain, which sees one hook event at a time, asks `find_twin`.
A turn that Codex' `notify` reports is stamped at its end: its prompt may be any time later than
the transcript's.
"""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from hashlib import blake2b
from typing import Final, NamedTuple

from memoryd.domain.event import Event, EventRole, EventType

WINDOW_MS: Final = 15_000
REDACTED: Final = "[redacted:"

_SPOKEN: Final[Mapping[int, str]] = {
    EventType.USER_MESSAGE: "user",
    EventType.ASSISTANT_MESSAGE: "agent",
    EventType.ASSISTANT_STOP: "agent",
    EventType.SUBAGENT_STOP: "agent",
}


class _Live(NamedTuple):
    """What is kept of an event that a hook told."""

    time_ms: int
    event_id: str
    late: bool
    words: str


def from_a_hook(event: Event) -> bool:
    """Whether a hook told of the event."""
    return "hook" in event.metadata


def imported(event: Event) -> bool:
    """Whether the event comes from a transcript."""
    return "source_ids" in event.metadata


def find_twin(event: Event, nearby: Iterable[Event]) -> str:
    """The id of the imported event among ``nearby`` that tells what a hook's ``event`` tells, or "".

    ``nearby`` are events of any session within `WINDOW_MS` of the hook's.
    """
    kind, words = _kind(event), _words(event)
    best, distance = "", WINDOW_MS + 1
    for other in nearby:
        apart = abs(other.time_ms - event.time_ms)
        if (
            apart < distance
            and imported(other)
            and other.session_id == event.session_id
            and _kind(other) == kind
            and _same(words, _words(other))
        ):
            best, distance = other.event_id, apart
    return best


class Told(IntEnum):
    """Who told of an event."""

    OTHERWISE = 0
    HOOK = 1
    HOOK_LATE = 2  # some time after it had happened
    TRANSCRIPT = 3


def trace(event: Event) -> tuple[bytes, Told]:
    """What stands for an event's kind and words, and who told of it."""
    told = Told.TRANSCRIPT if imported(event) else Told.OTHERWISE
    if from_a_hook(event):
        told = Told.HOOK_LATE if _late(event) else Told.HOOK
    return _digest(_kind(event), _words(event)), told


def may_be_one(known: tuple[int, int], sent: tuple[int, int]) -> bool:
    """Whether two tellers can mean one moment. Of each: who told, and the time."""
    for (hook, hook_ms), (transcript, ms) in ((known, sent), (sent, known)):
        if hook in _HOOKS and transcript == Told.TRANSCRIPT:
            after = hook_ms - ms
            return after >= -WINDOW_MS and (hook == Told.HOOK_LATE or after <= WINDOW_MS)
    return False


class Pairing:
    """Pairs the events of one session's transcript with those that hooks told."""

    def __init__(self, known: Iterable[Event]) -> None:
        """``known`` are the session's events in the log, in the order of time."""
        self.ids: set[str] = set()
        self._live: dict[bytes, list[_Live]] = {}
        self._redacted: dict[str, list[_Live]] = {}
        for event in known:
            self.ids.add(event.event_id)
            if from_a_hook(event):
                self._keep(event)

    def take(self, event: Event) -> bool:
        """Whether the log holds the event or its twin; a twin is taken once."""
        if event.event_id in self.ids:
            return True
        kind, words = _kind(event), _words(event)
        if _take(self._live.get(_digest(kind, words), []), event.time_ms, words):
            return True
        return _take(self._redacted.get(kind, []), event.time_ms, words)

    def _keep(self, event: Event) -> None:
        kind, words = _kind(event), _words(event)
        late = _late(event)
        if REDACTED in words:
            live = _Live(event.time_ms, event.event_id, late, words)
            self._redacted.setdefault(kind, []).append(live)
        else:
            live = _Live(event.time_ms, event.event_id, late, "")
            self._live.setdefault(_digest(kind, words), []).append(live)


_HOOKS: Final = (Told.HOOK, Told.HOOK_LATE)


def _late(event: Event) -> bool:
    return event.metadata.get("hook") == "notify"


def _take(waiting: list[_Live], time_ms: int, words: str) -> bool:
    """Remove the first of those that wait that can be the twin."""
    for place, live in enumerate(waiting):
        after = live.time_ms - time_ms
        near = after >= -WINDOW_MS and (live.late or after <= WINDOW_MS)
        if near and (not live.words or _same(live.words, words)):
            del waiting[place]
            return True
    return False


def _kind(event: Event) -> str:
    metadata = event.metadata
    if metadata.get("compaction") == "true":
        return "compaction"
    if event.type == EventType.TOOL_RESULT:
        return f"tool {metadata.get('tool_name', '')}"
    if event.type == EventType.SUBAGENT_START:
        return f"subagent {metadata.get('agent_id', '')}"
    if event.role == EventRole.SYSTEM and event.type == EventType.ASSISTANT_MESSAGE:
        return "notice"
    spoken = _SPOKEN.get(event.type)
    part = metadata.get("part", "")
    return f"{spoken} {part}" if spoken else f"type {int(event.type)}"


def _words(event: Event) -> str:
    """What has to be the same: the words, a call's first line, nothing where there are no words."""
    if event.type == EventType.TOOL_RESULT:
        return " ".join(event.text.partition("\n")[0].split())
    if event.type in (EventType.SUBAGENT_START, EventType.SESSION_START, EventType.SESSION_END):
        return ""
    return " ".join(event.text.split())


def _same(one: str, other: str) -> bool:
    if one == other:
        return True
    if REDACTED in one:
        return _fits(one, other)
    return REDACTED in other and _fits(other, one)


def _fits(redacted: str, full: str) -> bool:
    """Whether a text can be what another was before it was redacted."""
    first, *others = redacted.split(REDACTED)
    pieces = [first, *(piece.partition("]")[2] for piece in others)]
    if not full.startswith(first) or not full.endswith(pieces[-1]):
        return False
    position = len(first)
    for piece in pieces[1:]:
        position = full.find(piece, position)
        if position < 0:
            return False
        position += len(piece)
    return True


def _digest(kind: str, words: str) -> bytes:
    data = f"{kind}\0{words}".encode("utf-8", "surrogatepass")
    return blake2b(data, digest_size=16).digest()
