"""Plain dicts on the one side, messages of the wire contract on the other. Pure.

Owns how a client spells the contract: the field names are the contract's, all fields are
present, numbers are ints, enums are short lower-case words ("user", "tool_result"). It may not
import pb before the first message is made, and may not decide what the daemon decides: it
refuses only what cannot be put on the wire. The errors that a client can meet:

::

    ClientError         exit_code
    ├── NotRunning      3   nobody listens at the project's socket
    ├── Unavailable     3   the daemon is stopping, slow, or at one of its limits
    ├── Refused         1   the daemon does not take the request as it is
    │   └── Missing     1   ... because there is no such thing
    ├── NotAllowed      4   the token is missing or wrong, or the socket is somebody else's
    ├── BadAddress      2   the address is not one that a client may use
    └── Failed          5   something went wrong inside the daemon
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor
    from google.protobuf.message import Message

    from memoryd.pb import memory_pb2 as pb

TYPES: Final = (
    "session_start",
    "user_message",
    "assistant_message",
    "tool_result",
    "assistant_stop",
    "subagent_start",
    "subagent_stop",
    "session_end",
)
ROLES: Final = ("user", "assistant", "system", "tool")
KEYWORDS_SHOWN: Final = 24  # of a node to whoever reads it, the weightiest; all serve to find it
LEVELS: Final = ("year", "month", "week", "day", "segment")
ID_KINDS: Final = ("event", "session", "node", "grip", "note")
KINDS: Final = ("toc_node", "grip", "event", "note")  # what a search finds

# the daemon takes 16 MiB of text and 64 KiB of metadata; a longer event would break its batch
EVENT_LIMIT: Final = 17 * 1024 * 1024

_INVALID_ARGUMENT: Final = 3
_INT64: Final = 2**63
_WORDS: Final = {
    "event_type": ("unspecified", *TYPES),
    "role": ("unspecified", *ROLES),
    "kind": ("unspecified", *KINDS),
}
_DOC_TYPES: Final = (0, 1, 2, 300, 301)  # the numbers of the kinds on the wire
_TEXTS: Final = frozenset(
    ("event_id", "session_id", "text", "agent", "project", "parent_id", "turn_id", "store_id")
)
_NUMBERS: Final = frozenset(("timestamp_ms", "arrival_ms", "sequence", "erased_ms"))


class ClientError(Exception):
    """Base of what a client raises; ``exit_code`` is what a program ends with."""

    exit_code: ClassVar[int] = 5


class NotRunning(ClientError):
    """Nobody listens at the project's socket."""

    exit_code = 3


class Unavailable(ClientError):
    """The daemon is stopping, slow, or at one of its limits."""

    exit_code = 3


class Refused(ClientError):
    """The daemon does not take the request as it is."""

    exit_code = 1


class Missing(Refused):
    """There is no such thing."""


class NotAllowed(ClientError):
    """The token is missing or wrong, or the socket is somebody else's."""

    exit_code = 4


class BadAddress(ClientError):
    """The address is not one that a client may use."""

    exit_code = 2


class Failed(ClientError):
    """Something went wrong inside the daemon."""


# every status code that is not here is a failure inside the daemon
_ERRORS: Final[Mapping[str, type[ClientError]]] = {
    "INVALID_ARGUMENT": Refused,
    "NOT_FOUND": Missing,
    "ALREADY_EXISTS": Refused,
    "FAILED_PRECONDITION": Refused,
    "OUT_OF_RANGE": Refused,
    "ABORTED": Refused,
    "UNAUTHENTICATED": NotAllowed,
    "PERMISSION_DENIED": NotAllowed,
    "UNAVAILABLE": Unavailable,
    "DEADLINE_EXCEEDED": Unavailable,
    "RESOURCE_EXHAUSTED": Unavailable,
}


_ENDS: Final = frozenset(("UNAVAILABLE", "CANCELLED", "UNKNOWN"))


class Filter(NamedTuple):
    """Which events to read; an empty field lets all pass."""

    session_id: str = ""
    agent: str = ""
    roles: tuple[str, ...] = ()
    event_types: tuple[str, ...] = ()
    project: str = ""

    def on_the_wire(self) -> dict[str, Any]:
        """The fields as a request takes them. Raises Refused for a word that is not known."""
        try:
            roles = [enum_number("role", word) for word in self.roles]
            types = [enum_number("event_type", word) for word in self.event_types]
        except ValueError as error:
            raise Refused(str(error)) from None
        return self._asdict() | {"roles": roles, "event_types": types}


ALL: Final = Filter()


class Search(NamedTuple):
    """Which results of a search are wanted; an empty field lets all pass."""

    kinds: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    agent: str = ""
    session_id: str = ""
    project: str = ""
    node_id: str = ""
    scope: str = ""
    since_ms: int = 0
    until_ms: int = 0
    limit: int = 0
    offset: int = 0
    explain: bool = False
    now_ms: int = 0
    utc_offset_minutes: int = 0

    def on_the_wire(self) -> dict[str, Any]:
        """The fields as a request takes them. Raises Refused for a word that is not known."""
        try:
            roles = [enum_number("role", word) for word in self.roles]
            kinds = [enum_number("kind", word) for word in self.kinds]
        except ValueError as error:
            raise Refused(str(error)) from None
        return {
            "doc_types": [_DOC_TYPES[number] for number in kinds],
            "roles": roles,
            "agent_filter": self.agent or None,
            "session_id": self.session_id,
            "project": self.project,
            "node_id": self.node_id,
            "scope": self.scope,
            "from_timestamp_ms": self.since_ms,
            "to_timestamp_ms": self.until_ms,
            "limit": self.limit,
            "offset": self.offset,
            "explain": self.explain,
            "now_ms": self.now_ms,
            "utc_offset_minutes": self.utc_offset_minutes,
        }


EVERYTHING: Final = Search()


class Page(NamedTuple):
    """One answer of many; ``token`` asks for the next if ``has_more``."""

    events: list[dict[str, Any]]
    has_more: bool
    token: str


def error_kind(code: str) -> type[ClientError]:
    """The error that a gRPC status code, by its name, stands for."""
    return _ERRORS.get(code, Failed)


def is_end(code: str, details: str) -> bool:
    """Whether a stream that nobody here has cancelled ended so because the daemon has stopped.

    How gRPC puts it depends on what comes first: the last words of the server, the cancelled
    call, or the closed socket ("Stream removed", UNKNOWN if there is no better word for it). The
    daemon itself never answers UNKNOWN, and INTERNAL only with the number of an error.
    """
    return code in _ENDS or (code == "INTERNAL" and "RST_STREAM" in details)


def event_message(event: Mapping[str, Any]) -> "pb.Event":
    """The event as a message. Raises ValueError, which names the field, if it cannot be one."""
    from memoryd.pb import memory_pb2 as pb

    fields: dict[str, Any] = {}
    for field, value in event.items():
        if value is None:
            continue
        if field in _TEXTS:
            fields[field] = _text(field, value)
        elif field in _NUMBERS:
            fields[field] = _integer(field, value)
        elif field in _WORDS:
            fields[field] = enum_number(field, value)
        elif field == "metadata":
            fields[field] = _metadata(value)
        else:
            msg = f"{field!r} is not a field of an event"
            raise ValueError(msg)
    message = pb.Event(**fields)
    if message.ByteSize() > EVENT_LIMIT:
        msg = f"the event has {message.ByteSize()} bytes, over the limit: split it into several"
        raise ValueError(msg)
    return message


def refusal(event: Mapping[str, Any], reason: str) -> dict[str, Any]:
    """The result of an event that was refused before it was sent, as the daemon spells it."""
    event_id = event.get("event_id")
    return {
        "event_id": event_id if isinstance(event_id, str) else "",
        "created": False,
        "sequence": 0,
        "error": reason,
        "error_code": _INVALID_ARGUMENT,
    }


def enum_number(field: str, value: object) -> int:
    """The number of "user", "EVENT_ROLE_USER" or 1. Raises ValueError if it is not known."""
    words = _WORDS[field]
    if isinstance(value, str):
        prefix = "event_type_" if field == "event_type" else "event_role_"
        word = value.lower().removeprefix(prefix)
        if word in words:
            return words.index(word)
    elif isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(words):
        return value
    msg = f"{field} {value!r} is not known: take one of {', '.join(words[1:])}"
    raise ValueError(msg)


def plain(message: "Message") -> dict[str, Any]:
    """The message as a dict of all its fields."""
    return {name: convert(getattr(message, name)) for name, convert in _plan(message.DESCRIPTOR)}


@cache
def _plan(descriptor: "Descriptor") -> tuple[tuple[str, Callable[[Any], Any]], ...]:
    return tuple((field.name, _converter(field)) for field in descriptor.fields)


def _converter(field: "FieldDescriptor") -> Callable[[Any], Any]:
    if field.message_type is not None:
        if field.message_type.GetOptions().map_entry:
            return dict
        return _plain_list if field.is_repeated else plain
    if field.enum_type is not None:
        return _word_of(field)
    return list if field.is_repeated else _same


def _word_of(field: "FieldDescriptor") -> Callable[[int], str]:
    # the value 0 of every enum is called <PREFIX>_UNSPECIFIED
    values = field.enum_type.values_by_number  # type: ignore[union-attr]
    prefix = values[0].name.removesuffix("UNSPECIFIED")
    words = {number: value.name.removeprefix(prefix).lower() for number, value in values.items()}
    return lambda number: words.get(number, str(number))


def _plain_list(messages: "list[Message]") -> list[dict[str, Any]]:
    return [plain(message) for message in messages]


def _same(value: Any) -> Any:
    return value


def _text(field: str, value: object) -> str:
    if not isinstance(value, str):
        msg = f"{field} is not text"
        raise ValueError(msg)  # noqa: TRY004 - one kind of error for what cannot be sent
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            msg = f"{field} holds half of a surrogate pair, which UTF-8 cannot express"
            raise ValueError(msg) from None
    return value


def _integer(field: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not -_INT64 <= value < _INT64:
        msg = f"{field} is not a whole number of 64 bits"
        raise ValueError(msg)
    if value < 0 and field == "sequence":
        msg = "sequence is negative"
        raise ValueError(msg)
    return value


def _metadata(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        msg = "metadata is not an object of texts"
        raise ValueError(msg)  # noqa: TRY004 - one kind of error for what cannot be sent
    return {
        _text("a metadata key", key): _text(f"metadata {key!r}", text)
        for key, text in value.items()
    }
