"""Reads what can be read of a damaged database, and says what cannot.

A scan of RocksDB ends at a damaged block. This one goes on behind it: it tries keys ever further
away until one can be read, and walks back from there to the first that can.
"""

from collections.abc import Callable, Iterator
from typing import Final

from rocksdict import RdictIter

from memoryd.storage.db import Database

_WIDTH: Final = 8  # bytes at the beginning of a key that are counted up to find another
_END: Final = 1 << 8 * _WIDTH

Missed = Callable[[bytes, str], object]


def scan_past(db: Database, family: str, missed: Missed) -> Iterator[tuple[bytes, bytes]]:
    """Every entry of a family that can be read, in the order of keys.

    ``missed`` is told, for each place that cannot be read, the last key before it, and why.
    """
    with db.cursor(family) as cursor:
        if cursor is None:
            return
        last = b""
        cursor.seek_to_first()
        while True:
            while cursor.valid():
                last = cursor.key()
                yield last, cursor.value()
                cursor.next()
            reason = _failure(cursor)
            if not reason:
                return
            missed(last, reason)
            if not _land(cursor, last):
                return


def _land(cursor: RdictIter, last: bytes) -> bool:
    """Stand on the first key behind ``last`` that can be read again; say whether there is one."""
    number = int.from_bytes(last[:_WIDTH].ljust(_WIDTH, b"\0"), "big")
    step = 1
    while number + step < _END:
        cursor.seek((number + step).to_bytes(_WIDTH, "big"))
        if cursor.valid():
            return _walk_back(cursor, last)
        if not _failure(cursor):
            break  # nothing is behind it; something may be before it
        step *= 2
    cursor.seek_to_last()
    return cursor.valid() and _walk_back(cursor, last)


def _walk_back(cursor: RdictIter, last: bytes) -> bool:
    """Go back as long as keys behind ``last`` can be read, and stand on the first of them."""
    lowest = b""
    while cursor.valid() and cursor.key() > last:
        lowest = cursor.key()
        cursor.prev()
    if lowest:
        cursor.seek(lowest)
    return bool(lowest) and cursor.valid()


def _failure(cursor: RdictIter) -> str:
    """Why an iterator has stopped; empty at the end."""
    try:
        cursor.status()
    except Exception as error:  # noqa: BLE001 - the engine raises nothing more exact
        return str(error).splitlines()[0][:300] or type(error).__name__
    return ""


def blocked(db: Database, family: str) -> str:
    """Why nothing at all of a family can be read; empty if something can, or it is empty."""
    with db.cursor(family) as cursor:
        if cursor is None:
            return ""
        cursor.seek_to_first()
        reason = "" if cursor.valid() else _failure(cursor)
        return reason if reason and not _land(cursor, b"") else ""
