"""The index directory: makes it, opens it, checks it, puts a new one in its place. Derived.

tantivy takes a directory that has lost its meta.json for a new one, and a flipped bit for a
posting. So an existing index is only ever opened, never constructed, and its files are compared
with the checksums in their footers. Every doubt is an `IndexDoubt`, and its remedy is to make
the index anew.
"""

import fcntl
import json
import os
import shutil
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import tantivy

from memoryd.domain.errors import IndexDoubt
from memoryd.index import schema
from memoryd.project import private_dir

_FOOTER: Final = struct.Struct("<II")  # length of the footer, magic number
_MAGIC: Final = 1337
_CHUNK: Final = 1024 * 1024


@contextmanager
def doubting(what: str) -> Iterator[None]:
    """Turn whatever the engine throws into IndexDoubt; its panics are no Exceptions."""
    try:
        yield
    except (IndexDoubt, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        raise IndexDoubt(f"{what}: {_short(error)}") from error


def hold(path: str) -> int | None:
    """Take the lock on an index directory, as an open file; None while somebody else has it.

    Whoever gets a share of the open file holds the lock as well, and until all have closed it.
    """
    fd = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        return None
    return fd


def create(path: str) -> tantivy.Index:
    """An empty index in a directory of its own; what was there goes."""
    remove(path)
    private_dir(path)
    with doubting("the new index cannot be made"):
        index = tantivy.Index(schema.build(), path, reuse=False)
        index.config_reader("manual")
    return index


def open_existing(path: str) -> tantivy.Index:
    """The index that is there. Raises IndexDoubt if there is none, or none that can be used."""
    if not os.path.exists(f"{path}/meta.json"):
        raise IndexDoubt(
            "there is no index yet" if not os.path.exists(path) else "meta.json is gone"
        )
    with doubting("the index does not open"):
        index = tantivy.Index.open(path)
        index.config_reader("manual")
    return index


def check_files(path: str, alive: Callable[[], bool] = lambda: True) -> None:
    """Compare every file of the index with its checksum. Raises IndexDoubt.

    Ends early, without a word, when ``alive`` says no. Files that a merge takes away meanwhile
    are not missed.
    """
    for name in _listed(path):
        if not alive():
            return
        try:
            _check_file(f"{path}/{name}")
        except FileNotFoundError:
            if name in _listed(path):
                raise IndexDoubt(f"{name} is gone") from None


def swap(new: str, path: str) -> None:
    """Put a finished index in the place of the old one. Nobody may write to either."""
    old = f"{path}.old"
    remove(old)
    if os.path.lexists(path):
        os.rename(path, old)
    os.rename(new, path)
    remove(old)


def remove(path: str) -> None:
    """Delete a directory, if it is there."""
    shutil.rmtree(path, ignore_errors=True)


def size(path: str) -> int:
    """The bytes of all files of an index."""
    total = 0
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                total += entry.stat().st_size
    except OSError:  # a merge may take a file away under the look
        return total
    return total


def _listed(path: str) -> list[str]:
    """The files of the segments that meta.json names."""
    try:
        with open(f"{path}/meta.json", "rb") as file:
            meta = json.load(file)
        segments = {segment["segment_id"].replace("-", "") for segment in meta["segments"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise IndexDoubt(f"meta.json cannot be read: {_short(error)}") from error
    return sorted(name for name in os.listdir(path) if name.partition(".")[0] in segments)


def _check_file(path: str) -> None:
    with open(path, "rb") as file:
        end = file.seek(0, os.SEEK_END)
        if end < _FOOTER.size:
            raise IndexDoubt(f"{os.path.basename(path)} is cut off")
        file.seek(end - _FOOTER.size)
        length, magic = _FOOTER.unpack(file.read())
        body = end - _FOOTER.size - length
        if magic != _MAGIC or body < 0:
            raise IndexDoubt(f"{os.path.basename(path)} has no footer")
        file.seek(body)
        try:
            expected = int(json.loads(file.read(length))["crc"])
        except (ValueError, KeyError, TypeError):
            raise IndexDoubt(f"{os.path.basename(path)} has a damaged footer") from None
        file.seek(0)
        found, left = 0, body
        while left:
            chunk = file.read(min(_CHUNK, left))
            found, left = zlib.crc32(chunk, found), left - len(chunk)
            if not chunk:
                break
    if found != expected:
        raise IndexDoubt(f"{os.path.basename(path)} is not what was written")


def _short(error: BaseException) -> str:
    lines = str(error).splitlines()
    return lines[0][:200] if lines else type(error).__name__
