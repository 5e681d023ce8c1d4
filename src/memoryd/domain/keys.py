"""Keys: bytes whose order is the order of what they stand for.

RocksDB sorts keys as unsigned bytes, so numbers are big-endian and of fixed width, and an id,
the only part of variable width, comes last.
"""

from struct import Struct

_U64 = Struct(">Q")
_U32 = Struct(">I")
_MAX_TIME_MS = 2**63


def event_key(time_ms: int, event_id: str) -> bytes:
    """Orders events by time, then by id."""
    return _U64.pack(time_ms) + event_id.encode()


def split_event_key(key: bytes) -> tuple[int, str]:
    """The time and id in an event key."""
    return _U64.unpack_from(key)[0], key[8:].decode()


def time_floor(time_ms: int) -> bytes:
    """Sorts at or before every event key of this time, behind every earlier one."""
    return _U64.pack(min(max(time_ms, 0), _MAX_TIME_MS))


def sequence_key(sequence: int) -> bytes:
    """Orders by sequence number."""
    return _U64.pack(sequence)


def split_sequence_key(key: bytes) -> int:
    """The number in a sequence key."""
    number: int = _U64.unpack(key)[0]
    return number


def session_prefix(session_number: int) -> bytes:
    """Begins the key of every event of a session."""
    return _U32.pack(session_number)
