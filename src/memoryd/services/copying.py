"""Copies and hashes files for backups: private, synced, and in pieces, so that one can stop."""

import hashlib
import json
import os
from collections.abc import Callable, Generator
from typing import Final

from memoryd.domain.errors import Cancelled
from memoryd.storage.highwater import sync_directory

__all__ = ("Alive", "copy", "hash_of", "pieces", "sync_directory", "write_json")

_CHUNK: Final = 1024 * 1024

Alive = Callable[[], bool]


def copy(source: str, target: str, alive: Alive) -> str:
    """Copy a file as `pieces` does, at once; return its SHA-256."""
    copying = pieces(source, target, alive)
    while True:
        try:
            next(copying)
        except StopIteration as end:
            digest: str = end.value
            return digest


def pieces(source: str, target: str, alive: Alive) -> Generator[int, None, str]:
    """Copy a file to a new one that only this user can read, synced; at the end, its SHA-256.

    Tells the size of each piece. Raises Cancelled when ``alive`` says no, and OSError.
    """
    digest = hashlib.sha256()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with open(source, "rb") as reading, os.fdopen(os.open(target, flags, 0o600), "wb") as writing:
        while chunk := reading.read(_CHUNK):
            _check(alive)
            digest.update(chunk)
            writing.write(chunk)
            yield len(chunk)
        writing.flush()
        os.fsync(writing.fileno())
    return digest.hexdigest()


def hash_of(path: str, alive: Alive) -> str:
    """The SHA-256 of a file. Raises Cancelled and OSError."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            _check(alive)
            digest.update(chunk)
    return digest.hexdigest()


def write_json(path: str, content: object) -> None:
    """Write a small file in one step, synced and private."""
    temporary = f"{path}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    with os.fdopen(os.open(temporary, flags, 0o600), "w", encoding="utf-8") as file:
        json.dump(content, file, indent=1)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    os.rename(temporary, path)
    sync_directory(os.path.dirname(path))


def _check(alive: Alive) -> None:
    if not alive():
        raise Cancelled("it was called off")
