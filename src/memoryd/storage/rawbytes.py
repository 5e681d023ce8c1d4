"""Searches the bytes of a data directory as they lie on the disk, also what is compressed.

Asks no engine: every file is read from its first byte to its last, and every ZSTD frame in it is
unpacked, wherever it stands. So what RocksDB no longer shows, but has not thrown away, is found too.
"""

import os
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import zstandard

_FRAME: Final = b"\x28\xb5\x2f\xfd"
_CHUNK: Final = 8 * 1024 * 1024
_OVERLAP: Final = 4096  # more than any piece that is searched for
_SLICE: Final = 32 * 1024
_BLOCK_LIMIT: Final = 64 * 1024 * 1024  # unpacked; the longest event has a quarter of that


class Searched(NamedTuple):
    """How much was read, and the files in which something was found, relative to the directory."""

    files: int
    bytes: int
    found: tuple[str, ...]


def search(
    directory: str, holds: Callable[[bytes], bool], alive: Callable[[], bool] = lambda: True
) -> Searched:
    """Read every file below a directory. Files that go meanwhile are not missed."""
    files = size = 0
    found = []
    for path in _files(directory):
        if not alive():
            break
        try:
            length, held = _search_file(path, holds)
        except FileNotFoundError:
            continue
        files += 1
        size += length
        if held and os.path.exists(path):
            found.append(os.path.relpath(path, directory))
    return Searched(files, size, tuple(found))


def _files(directory: str) -> Iterator[str]:
    for folder, _, names in os.walk(directory):
        for name in sorted(names):
            path = f"{folder}/{name}"
            if os.path.isfile(path) and not os.path.islink(path):
                yield path


def _search_file(path: str, holds: Callable[[bytes], bool]) -> tuple[int, bool]:
    size, kept = 0, b""
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            size += len(chunk)
            if holds(kept + chunk):
                return size, True
            kept = chunk[-_OVERLAP:]
        if not path.endswith(".sst"):
            return size, False
        file.seek(0)
        return size, any(holds(block) for block in _blocks(file.read()))


def _blocks(data: bytes) -> Iterator[bytes]:
    """What every ZSTD frame holds; bytes that only look like one give what can be made of them."""
    at = data.find(_FRAME)
    while at >= 0:
        yield _unpacked(data, at)
        at = data.find(_FRAME, at + len(_FRAME))


def _unpacked(data: bytes, at: int) -> bytes:
    frame = zstandard.ZstdDecompressor().decompressobj()
    parts, size = [], 0
    try:
        while not frame.eof and at < len(data) and size < _BLOCK_LIMIT:
            part = frame.decompress(data[at : at + _SLICE])
            parts.append(part)
            size += len(part)
            at += _SLICE
    except zstandard.ZstdError:  # what came before it was a frame, or a part of one
        return b"".join(parts)
    return b"".join(parts)
