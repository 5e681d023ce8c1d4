"""Events: what happened in a conversation. Truth.

Owns the shape of an event, its limits, and what makes two events the same. An `Event` is what
a source said; a `Recorded` event is one that stands in the log.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final, NamedTuple

from memoryd.domain.errors import InvalidInput, MemorydError

TEXT_LIMIT: Final = 16 * 1024 * 1024
METADATA_LIMIT: Final = 64 * 1024
ID_LIMIT: Final = 256
TIME_LIMIT_MS: Final = 9_223_372_036_854  # 2262-04-11, where nanoseconds leave 64 bits


class EventType(IntEnum):
    """What kind of thing happened; the numbers are those on the wire."""

    SESSION_START = 1
    USER_MESSAGE = 2
    ASSISTANT_MESSAGE = 3
    TOOL_RESULT = 4
    ASSISTANT_STOP = 5
    SUBAGENT_START = 6
    SUBAGENT_STOP = 7
    SESSION_END = 8


class EventRole(IntEnum):
    """Who spoke; the numbers are those on the wire."""

    USER = 1
    ASSISTANT = 2
    SYSTEM = 3
    TOOL = 4


ROLE_OF_TYPE: Final[Mapping[int, EventRole]] = {
    EventType.SESSION_START: EventRole.SYSTEM,
    EventType.USER_MESSAGE: EventRole.USER,
    EventType.ASSISTANT_MESSAGE: EventRole.ASSISTANT,
    EventType.TOOL_RESULT: EventRole.TOOL,
    EventType.ASSISTANT_STOP: EventRole.ASSISTANT,
    EventType.SUBAGENT_START: EventRole.SYSTEM,
    EventType.SUBAGENT_STOP: EventRole.SYSTEM,
    EventType.SESSION_END: EventRole.SYSTEM,
}
TYPE_OF_ROLE: Final[Mapping[int, EventType]] = {
    EventRole.USER: EventType.USER_MESSAGE,
    EventRole.ASSISTANT: EventType.ASSISTANT_MESSAGE,
    EventRole.TOOL: EventType.TOOL_RESULT,
}


_ROLES: Final = frozenset(EventRole)


class Event(NamedTuple):
    """One thing that happened. Make it with `checked`, which enforces the limits.

    A tuple, because a log of millions makes and reads them by the thousand.
    """

    event_id: str
    session_id: str
    time_ms: int
    type: int
    role: int
    text: str
    metadata: dict[str, str]
    agent: str
    project: str
    parent_id: str
    turn_id: str


class Recorded(NamedTuple):
    """An event as it stands in the log; of an erased one text and metadata are empty."""

    event: Event
    sequence: int
    arrival_ms: int
    store_id: str
    erased_ms: int = 0


class Appended(NamedTuple):
    """What became of an event: its place in the log, or why it was refused."""

    event_id: str
    sequence: int
    created: bool
    error: MemorydError | None = None
    erased: bool = False  # the log knows it, and has erased it


def checked(event: Event) -> Event:
    """Return the event with type and role completed; raise InvalidInput if it breaks a limit.

    ``event_id`` may be empty and ``time_ms`` 0: the log fills them in.
    """
    event_id, session_id, time_ms, type_, role, text, metadata, agent, project, parent, turn = event
    if not session_id:
        raise InvalidInput("session_id is empty: every event belongs to a session")
    if not 0 <= time_ms <= TIME_LIMIT_MS:
        msg = f"timestamp_ms {time_ms} is out of range: it lies between 0 (1970) and {TIME_LIMIT_MS} (2262)"
        raise InvalidInput(msg)
    # ids of plain ASCII, the usual case, are settled by their joined length and one test
    ids = f"{event_id}{session_id}{agent}{project}{parent}{turn}"
    if len(ids) > ID_LIMIT or not (ids.isascii() and ids.isprintable()):
        check_id("event_id", event_id)
        check_id("session_id", session_id)
        check_id("agent", agent)
        check_id("project", project)
        check_id("parent_id", parent)
        check_id("turn_id", turn)
    if len(text) > TEXT_LIMIT // 4 and len(text.encode("utf-8", "surrogatepass")) > TEXT_LIMIT:
        msg = f"text is longer than {TEXT_LIMIT // 1024 // 1024} MiB of UTF-8: split it into several events"
        raise InvalidInput(msg)
    if metadata:
        check_metadata(metadata)
    if type_ and role:
        if type_ not in ROLE_OF_TYPE:
            raise InvalidInput(f"event_type {type_} is not known")
        if role not in _ROLES:
            raise InvalidInput(f"role {role} is not known")
        return event
    type_, role = complete(type_, role)
    return event._replace(type=type_, role=role)


def check_metadata(metadata: Mapping[str, str]) -> None:
    """Raise InvalidInput unless keys and values are Unicode of at most 64 KiB together."""
    try:
        size = sum(len(k.encode()) + len(v.encode()) for k, v in metadata.items())
    except UnicodeEncodeError:
        raise InvalidInput("metadata is not valid Unicode: it holds a lone surrogate") from None
    if size > METADATA_LIMIT:
        raise InvalidInput(f"metadata has {size} bytes, over the limit of {METADATA_LIMIT}")


def check_id(field: str, value: str) -> None:
    """Raise InvalidInput unless ``value`` is printable text of at most 256 bytes (or empty)."""
    if not value.isprintable():
        raise InvalidInput(f"{field} holds characters that cannot be printed")
    size = len(value.encode())
    if size > ID_LIMIT:
        raise InvalidInput(f"{field} has {size} bytes, over the limit of {ID_LIMIT}")


def complete(type_: int, role: int) -> tuple[int, int]:
    """Derive the one of type and role that is 0 from the other."""
    if not type_ and not role:
        raise InvalidInput("event_type and role are both unspecified: set at least one")
    if not role:
        if type_ not in ROLE_OF_TYPE:
            raise InvalidInput(f"event_type {type_} is not known")
        return type_, ROLE_OF_TYPE[type_]
    if not type_:
        if role not in TYPE_OF_ROLE:
            raise InvalidInput(f"event_type is unspecified and cannot be derived from role {role}")
        return TYPE_OF_ROLE[role], role
    return type_, role


def difference(known: Event, sent: Event, *, timed: bool) -> str | None:
    """The first field in which ``sent`` contradicts ``known``, or None.

    ``timed`` says whether the sender gave a time; one that the daemon gave contradicts nothing.
    """
    for field, old, new in zip(Event._fields, known, sent, strict=True):
        if old != new and (field != "time_ms" or timed):
            return {"time_ms": "timestamp_ms", "type": "event_type"}.get(field, field)
    return None
