"""Value bytes of every column family. docs/format.md specifies them.

Every value begins with a version byte. An event keeps its text apart from everything else, so
that a text can be erased and the running hash still be checked::

    event  = version, msgpack([head, text])
    erased = 02, msgpack([head without metadata, hash of the text, digest, time of erasure])
    head   = msgpack([id, session, time, type, role, metadata, agent, project, parent, turn,
                      sequence, arrival, store])
"""

from collections.abc import Callable
from struct import Struct
from typing import Any, NamedTuple

import msgpack

from memoryd.domain.chain import digest, text_hash
from memoryd.domain.errors import InvalidInput, StoreDamaged
from memoryd.domain.event import Event, Recorded
from memoryd.domain.session import AgentStats, SessionStats
from memoryd.domain.toc import Bullet, Grip, Level, Node

VERSION = b"\x01"
ERASED = b"\x02"

Pack = Callable[[Any], bytes]

_pack: Pack = msgpack.packb
_unpack = msgpack.unpackb
_new = tuple.__new__
_PLACE = Struct(">QQ")
_CHAIN_END = 33
_METADATA = 5  # its place in a head
_TEXT = 5  # the place of the text in an event
_SENSELESS = "make no sense: run `memory verify`"


def packer() -> Pack:
    """What packs like `msgpack.packb`, at half the price; for one thread and a short while.

    It keeps a buffer as large as the largest thing that it has packed.
    """
    pack: Pack = msgpack.Packer().pack
    return pack


def event_head(
    event: Event, sequence: int, arrival_ms: int, store_id: str, pack: Pack = _pack
) -> bytes:
    """Everything of a recorded event but its text. Raises InvalidInput if it is not Unicode."""
    event_id, session, time_ms, type_, role, _, metadata, agent, project, parent, turn = event
    if len(metadata) > 1:
        metadata = dict(sorted(metadata.items()))
    ours = (sequence, arrival_ms, store_id)
    try:
        return pack(
            (event_id, session, time_ms, type_, role, metadata, agent, project, parent, turn, *ours)
        )
    except UnicodeEncodeError as error:
        raise InvalidInput("metadata is not valid Unicode: it holds a lone surrogate") from error


def event_value(head: bytes, text: str, pack: Pack = _pack) -> bytes:
    """The stored bytes of an event."""
    return VERSION + pack((head, text))


def split_event(value: bytes) -> tuple[bytes, str]:
    """The head and the text in an event's stored bytes."""
    try:
        head, text = _open(value, "event")
    except (ValueError, TypeError) as error:
        raise StoreDamaged("an event's stored bytes make no sense: run `memory verify`") from error
    return head, text


class Stub(NamedTuple):
    """What stays of an erased event."""

    head: bytes  # without metadata
    text_hash: bytes
    digest: bytes  # of the head as it was, and the text hash
    erased_ms: int


def stub_value(value: bytes, erased_ms: int) -> bytes:
    """The stored bytes of an event without its text and metadata; erased ones stay as they are."""
    if value[:1] == ERASED:
        return value
    head, text = split_event(value)
    hash_of_text = text_hash(text)
    fields = _unpack(head)
    fields[_METADATA] = {}
    body: bytes = _pack((_pack(fields), hash_of_text, digest(head, hash_of_text), erased_ms))
    return ERASED + body


def read_stub(value: bytes) -> Stub:
    """What stays of an erased event. Raises StoreDamaged if the bytes make no sense."""
    try:
        return Stub(*_unpack(memoryview(value)[1:]))
    except (ValueError, TypeError, msgpack.exceptions.UnpackException) as error:
        raise StoreDamaged(f"an erased event's bytes {_SENSELESS}") from error


class Seal(NamedTuple):
    """What a check needs of an event: what stands for it in the running hash, and no text."""

    head: bytes
    digest: bytes
    speaks: bool  # whether there is a text to be searched
    erased: bool  # only a receipt can say that the head is right


def seal(value: bytes) -> Seal:
    """What a check needs of a stored event. Raises StoreDamaged if its bytes make no sense."""
    if value[:1] == ERASED:
        stub = read_stub(value)
        return Seal(stub.head, stub.digest, speaks=False, erased=True)
    head, text = split_event(value)
    made = digest(head, text_hash(text))
    return Seal(head, made, bool(text.strip()), erased=False)


def head_fields(head: bytes) -> list[Any]:
    """The fields in an event's head, in their order. Raises StoreDamaged if they make no sense."""
    try:
        fields: list[Any] = _unpack(head)
    except (ValueError, TypeError, msgpack.exceptions.UnpackException) as error:
        raise StoreDamaged("an event's stored bytes make no sense: run `memory verify`") from error
    return fields


def read_event(value: bytes) -> Recorded:
    """The event in its stored bytes. Raises StoreDamaged if they make no sense."""
    if value[:1] == ERASED:
        return _read_erased(value)
    if value[:1] != VERSION:
        split_event(value)  # says what is wrong
    try:
        head, text = _unpack(value[1:])
        (
            event_id,
            session,
            time_ms,
            type_,
            role,
            metadata,
            agent,
            project,
            parent,
            turn,
            sequence,
            arrival_ms,
            store_id,
        ) = _unpack(head)
    except (ValueError, TypeError, msgpack.exceptions.UnpackException) as error:
        raise StoreDamaged("an event's stored bytes make no sense: run `memory verify`") from error
    said = (event_id, session, time_ms, type_, role, text, metadata, agent, project, parent, turn)
    # as the classes themselves would, at half the price
    return _new(Recorded, (_new(Event, said), sequence, arrival_ms, store_id, 0))


def _read_erased(value: bytes) -> Recorded:
    head, _, _, erased_ms = read_stub(value)
    *said, sequence, arrival_ms, store_id = head_fields(head)
    said.insert(_TEXT, "")
    return Recorded(Event(*said), sequence, arrival_ms, store_id, erased_ms)


def place_value(time_ms: int, sequence: int) -> bytes:
    """Where the event of an id stands."""
    return VERSION + _PLACE.pack(time_ms, sequence)


def read_place(value: bytes) -> tuple[int, int]:
    """The time and sequence number of an event."""
    time_ms, sequence = _PLACE.unpack_from(value, 1)
    return time_ms, sequence


def journal_value(chain: bytes, key: bytes) -> bytes:
    """What stands at a sequence number: the running hash and the event's key."""
    return VERSION + chain + key


def read_journal(value: bytes) -> tuple[bytes, bytes]:
    """The running hash and the event key of a journal entry."""
    if len(value) <= _CHAIN_END or value[:1] != VERSION:
        raise StoreDamaged("a journal entry's bytes make no sense: run `memory verify`")
    return value[1:_CHAIN_END], value[_CHAIN_END:]


def value(content: Any) -> bytes:
    """The stored bytes of anything small that MessagePack can hold."""
    return VERSION + _pack(content)


def read_session(stored: bytes) -> SessionStats:
    """A session's stored statistics."""
    number, count, first_ms, last_ms, agents, projects = _open(stored, "session")
    return SessionStats(number, count, first_ms, last_ms, tuple(agents), tuple(projects))


def read_agent(stored: bytes) -> AgentStats:
    """An agent's stored statistics."""
    return AgentStats(*_open(stored, "agent"))


def read_redactions(stored: bytes) -> dict[str, int]:
    """The stored counts of redacted secrets."""
    counts: dict[str, int] = _open(stored, "redactions")
    return counts


def read_outbox(stored: bytes) -> tuple[int, int]:
    """The last sequence number of an outbox entry, and when it was written."""
    last, written_ms = _open(stored, "outbox")
    return last, written_ms


def node_value(node: Node) -> bytes:
    """The stored bytes of a node; its id and version are in the key."""
    return value(node[1:9] + node[10:])


def read_node(node_id: str, version: int, stored: bytes) -> Node:
    """The node in its stored bytes."""
    level, title, summary, bullets, keywords, children, start, end, *rest = _open(stored, "node")
    sessions, agents, count, summarizer, provisional = rest
    return Node(
        node_id,
        Level(level),
        title,
        summary,
        tuple(Bullet(text, tuple(grips), weight) for text, grips, weight in bullets),
        tuple(keywords),
        tuple(children),
        start,
        end,
        version,
        tuple(sessions),
        tuple(agents),
        count,
        summarizer,
        provisional,
    )


def grip_value(grip: Grip) -> bytes:
    """The stored bytes of a grip; its id is the key."""
    return value(grip[1:])


def read_grip(grip_id: str, stored: bytes) -> Grip:
    """The grip in its stored bytes."""
    return Grip(grip_id, *_open(stored, "grip"))


def read(stored: bytes, what: str) -> Any:
    """What `value` packed. Raises StoreDamaged, naming what it should have been."""
    return _open(stored, what)


def _open(stored: bytes, what: str) -> Any:
    if stored[:1] != VERSION:
        msg = f"the {what} value has version {stored[:1].hex()}, this memoryd reads {VERSION.hex()}"
        raise StoreDamaged(f"{msg}: run `memory verify`")
    try:
        return _unpack(memoryview(stored)[1:])
    except (ValueError, TypeError, msgpack.exceptions.UnpackException) as error:
        raise StoreDamaged(
            f"the bytes of a stored {what} make no sense: run `memory verify`"
        ) from error
