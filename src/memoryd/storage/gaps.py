"""Gaps: the sequence numbers that a repair found gone, and how the running hash goes on. Truth.

A gap says since when its numbers are known to be gone, so that a check can tell what was lost and
said from what is lost now. Nothing but a repair writes one, and none is ever removed.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol

from memoryd.domain.keys import sequence_key, split_sequence_key
from memoryd.storage import codec

FAMILY: Final = "gaps"
EVENTS: Final = b"e"
NOTES: Final = b"n"


class Shelf(Protocol):
    """What gaps are read from."""

    def scan(
        self, family: str, start: bytes = b"", stop: bytes | None = None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Keys and values from ``start`` up to, not including, ``stop``."""


class Gap(NamedTuple):
    """Numbers that are gone, both included.

    ``chain`` is the running hash behind the last of them. Empty: nobody knows it, and the one of
    the next entry is taken as it stands.
    """

    first: int
    last: int
    chain: bytes
    repaired_ms: int

    @property
    def size(self) -> int:
        """How many numbers are gone."""
        return self.last - self.first + 1


def gaps_of(shelf: Shelf, kind: bytes) -> list[Gap]:
    """The gaps in the log or in the notes, in order."""
    return [_read(key, value) for key, value in shelf.scan(FAMILY, kind, _behind(kind))]


def last_gap(shelf: Shelf, kind: bytes) -> Gap | None:
    """The last gap, or None."""
    for key, value in shelf.scan(FAMILY, kind, _behind(kind), reverse=True):
        return _read(key, value)
    return None


def gap_entry(kind: bytes, gap: Gap) -> tuple[bytes, bytes]:
    """The key and the value that keep a gap."""
    return kind + sequence_key(gap.first), codec.value(gap[1:])


class Steps:
    """Walks along sequence numbers and knows which of them may be missing."""

    def __init__(self, gaps: list[Gap]) -> None:
        self._gaps = {gap.first: gap for gap in gaps}

    def over(self, expected: int, chain: bytes | None) -> tuple[int, bytes | None]:
        """The next number that must be there and the hash before it, None if nobody knows it."""
        while expected in self._gaps:
            gap = self._gaps[expected]
            expected, chain = gap.last + 1, gap.chain or None
        return expected, chain


def _read(key: bytes, value: bytes) -> Gap:
    last, chain, repaired_ms = codec.read(value, "gap")
    return Gap(split_sequence_key(key[1:]), last, chain, repaired_ms)


def _behind(kind: bytes) -> bytes:
    return bytes([kind[0] + 1])
