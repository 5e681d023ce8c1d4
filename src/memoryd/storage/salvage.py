"""Reads what can be read of a damaged database, and says what cannot.

A scan of RocksDB ends at a damaged block. This one goes on behind it: it tries keys ever further
away until one can be read, and walks back from there to the first that can.
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

from rocksdict import RdictIter

from memoryd.storage.db import Database

_WIDTH: Final = 8  # bytes at the beginning of a key that are counted up to find another
_END: Final = 1 << 8 * _WIDTH
_TRIED: Final = 4096

Missed = Callable[[bytes, str], object]
_Cursors = Callable[[], RdictIter]


def scan_past(db: Database, family: str, missed: Missed) -> Iterator[tuple[bytes, bytes]]:
    """Every entry of a family that can be read, in the order of keys.

    ``missed`` is told, for each place that cannot be read, the last key before it, and why.
    """
    with db.cursors(family) as cursors:
        if cursors is None:
            return
        last = b""
        cursor: RdictIter | None = cursors()
        if cursor is not None:
            cursor.seek_to_first()
        while cursor is not None:
            while cursor.valid():
                last = cursor.key()
                yield last, cursor.value()
                cursor.next()
            reason = _failure(cursor)
            if not reason:
                return
            missed(last, reason)
            cursor = _land(cursors, last)


def blocked(db: Database, family: str) -> str:
    """Why nothing at all of a family can be read; empty if something can, or it is empty."""
    with db.cursors(family) as cursors:
        if cursors is None:
            return ""
        cursor = cursors()
        cursor.seek_to_first()
        reason = "" if cursor.valid() else _failure(cursor)
        return reason if reason and _land(cursors, b"") is None else ""


def _land(cursors: _Cursors, last: bytes) -> RdictIter | None:
    """An iterator on the first key behind ``last`` that can be read again, if there is one.

    One that has failed stays on the bad block even if it is sent elsewhere, so every try takes a
    new one.
    """
    number = int.from_bytes(last[:_WIDTH].ljust(_WIDTH, b"\0"), "big")
    step = 1
    while number + step < _END:
        cursor = _at(cursors, (number + step).to_bytes(_WIDTH, "big"))
        if cursor.valid():
            return _walk_back(cursors, cursor, last)
        if not _failure(cursor):
            break  # nothing is behind it; something may be before it
        step *= 2
    cursor = cursors()
    cursor.seek_to_last()
    return _walk_back(cursors, cursor, last) if cursor.valid() else None


def _walk_back(cursors: _Cursors, cursor: RdictIter, last: bytes) -> RdictIter | None:
    """Go back as long as keys behind ``last`` can be read; an iterator on the first of them.

    A key of another table right behind the bad block may be passed and still not be found: to
    find it, the engine looks into that block. Then the next one is tried.
    """
    landed = cursor.key()
    passed: deque[bytes] = deque(maxlen=_TRIED)
    while cursor.valid() and cursor.key() > last:
        passed.append(cursor.key())
        cursor.prev()
    for key in (*reversed(passed), landed):
        found = _at(cursors, key)
        if found.valid() and found.key() > last:
            return found
    return None


def _at(cursors: _Cursors, key: bytes) -> RdictIter:
    cursor = cursors()
    cursor.seek(key)
    return cursor


def _failure(cursor: RdictIter) -> str:
    """Why an iterator has stopped; empty at the end."""
    try:
        cursor.status()
    except Exception as error:  # noqa: BLE001 - the engine raises nothing more exact
        return str(error).splitlines()[0][:300] or type(error).__name__
    return ""
