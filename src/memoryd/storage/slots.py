"""A table of what each sequence number stands for, for checks that read events in another order.

Forty bytes a number in a file without a name, mapped into memory: a hundred million events take
disk and no memory that the system could not take back. Nothing of a text is in it.
"""

import mmap
import os
import tempfile
from hashlib import blake2b
from struct import Struct
from typing import Final

_SLOT: Final = Struct("32s8s")
_EMPTY: Final = (bytes(32), bytes(8))


class Slots:
    """The table for the numbers from 1 to ``count``. Close it after use."""

    def __init__(self, count: int, directory: str) -> None:
        self.count = count
        with tempfile.TemporaryFile(dir=directory) as file:
            size = (count + 1) * _SLOT.size
            file.truncate(size)
            if hasattr(os, "posix_fallocate"):  # a full disk is an error now, and no crash later
                os.posix_fallocate(file.fileno(), 0, size)
            self._map = mmap.mmap(file.fileno(), 0)

    def put(self, number: int, digest: bytes, key: bytes) -> bool:
        """Say what a number stands for; False if it is out of range or taken."""
        if not 0 < number <= self.count or self.get(number) is not None:
            return False
        _SLOT.pack_into(self._map, number * _SLOT.size, digest, short(key))
        return True

    def get(self, number: int) -> tuple[bytes, bytes] | None:
        """The digest and the `short` of the key of a number, or None."""
        if not 0 < number <= self.count:
            return None
        found: tuple[bytes, bytes] = _SLOT.unpack_from(self._map, number * _SLOT.size)
        return None if found == _EMPTY else found

    def close(self) -> None:
        """Give the file back."""
        self._map.close()


def short(key: bytes) -> bytes:
    """Eight bytes that stand for a key."""
    return blake2b(key, digest_size=8).digest()
