"""HIGHWATER: the last synced sequence number, kept outside RocksDB.

If RocksDB loses its newest records without noticing (a deleted WAL file, a damaged MANIFEST),
the log ends before this mark, and the daemon refuses to start. Two slots are written in turn,
each with a checksum, so that a torn write leaves the other one.
"""

import os
import zlib
from struct import Struct
from typing import NamedTuple

from memoryd.domain.chain import GENESIS
from memoryd.domain.errors import StoreDamaged

_SLOT = Struct(">8sQ16s32sI")
_MAGIC = b"memoryd1"
_SPACING = 512


class Mark(NamedTuple):
    """How far the log had been synced, of which store, with which running hash."""

    sequence: int
    store_id: bytes
    chain: bytes


class HighWater:
    """The open file."""

    def __init__(self, path: str) -> None:
        """Open an existing file. Raises StoreDamaged if it is missing or unreadable."""
        self.path = path
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            raise StoreDamaged(
                f"{path} is missing, so nobody can tell whether the log is complete: restore it, or "
                "run `memoryd verify --accept` to check the log and write it anew"
            ) from None
        self._turn = 0
        self._mark = self._read()

    @staticmethod
    def create(path: str, mark: Mark) -> None:
        """Write a new file, synced, in one step."""
        slot = _pack(mark)
        temporary = path + ".tmp"
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, slot.ljust(_SPACING, b"\0") + slot)
            os.fsync(fd)
        finally:
            os.close(fd)
        os.rename(temporary, path)
        sync_directory(os.path.dirname(path))

    @property
    def mark(self) -> Mark:
        """The newest mark that was written whole."""
        return self._mark

    def advance(self, mark: Mark) -> None:
        """Move the mark; it need not be synced, an older one is still true."""
        turn = self._turn ^ 1
        os.pwrite(self._fd, _pack(mark), turn * _SPACING)
        self._turn, self._mark = turn, mark  # after a failed write, the same slot is tried again

    def close(self) -> None:
        """Sync and close."""
        os.fsync(self._fd)
        os.close(self._fd)

    def _read(self) -> Mark:
        best: Mark | None = None
        for turn in (0, 1):
            data = os.pread(self._fd, _SLOT.size, turn * _SPACING)
            mark = _unpack(data)
            if mark is not None and (best is None or mark.sequence > best.sequence):
                best, self._turn = mark, turn
        if best is None:
            raise StoreDamaged(
                f"{self.path} is damaged: run `memoryd verify --accept` to check the log and write "
                "it anew"
            )
        return best


def sync_directory(path: str) -> None:
    """Bring a directory's names to the disk."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _pack(mark: Mark) -> bytes:
    body = _SLOT.pack(_MAGIC, mark.sequence, mark.store_id, mark.chain or GENESIS, 0)[:-4]
    return body + zlib.crc32(body).to_bytes(4, "big")


def _unpack(data: bytes) -> Mark | None:
    if len(data) != _SLOT.size:
        return None
    magic, sequence, store_id, chain, checksum = _SLOT.unpack(data)
    if magic != _MAGIC or checksum != zlib.crc32(data[:-4]):
        return None
    return Mark(sequence, store_id, chain)
