"""The global notes: one SQLite file that the daemons of all projects share. Truth.

The families and the bytes are those of `notebook`; every family is a table of keys and values.
SQLite's locks let one process write at a time, and a commit is on the disk before it is
acknowledged. Nothing is cached, so that the changes of other daemons are seen at once.
"""

import fcntl
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from memoryd.domain.errors import (
    DiskFull,
    FormatUnknown,
    MemorydError,
    ReadOnly,
    StoreDamaged,
    TooBusy,
)
from memoryd.project import private_dir
from memoryd.storage.notebook import FAMILIES, Desk, NoteBook

FORMAT_VERSION: Final = 1
FILE: Final = "notes.db"

_WAIT_SECONDS: Final = 30.0
_T = TypeVar("_T")


class GlobalNotes:
    """A `NoteStore` in a directory of its own. Opened at the first use."""

    def __init__(self, directory: str) -> None:
        self.path = f"{directory}/{FILE}"
        self._directory = directory
        self._reader: sqlite3.Connection | None = None
        self._writer: sqlite3.Connection | None = None
        self._reading = threading.Lock()
        self._writing = threading.Lock()
        self.book = NoteBook(self)

    def get(self, family: str, key: bytes) -> bytes | None:
        """The value of a key, or None."""
        with self._reading, _translated(self.path):
            return _get(self._open_reader(), family, key)

    def scan(
        self, family: str, start: bytes = b"", stop: bytes | None = None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Keys and values from ``start`` up to, not including, ``stop``, in portions."""
        if family not in FAMILIES:  # what only a project's store has
            return iter(())
        return _scan(self._portion, family, (start, stop), reverse=reverse)

    def _portion(self, query: str, bounds: tuple[bytes, ...]) -> list[tuple[bytes, bytes]]:
        with self._reading, _translated(self.path):
            return self._open_reader().execute(query, bounds).fetchall()

    def change(self, work: Callable[[Desk], _T]) -> _T:
        """Have ``work`` change notes at a desk; return when all of it is on the disk.

        Raises what ``work`` raises, ReadOnly, or TooBusy if another process does not let go.
        """
        with self._writing, _translated(self.path):
            db = self._open_writer()
            db.execute("BEGIN IMMEDIATE")
            try:
                desk = Desk(_Inside(db))
                result = work(desk)
                for (family, key), value in desk.puts.items():
                    if value is None:
                        db.execute(f"DELETE FROM {family} WHERE key = ?", (key,))  # noqa: S608 - a name of ours
                    else:
                        db.execute(f"REPLACE INTO {family} VALUES (?, ?)", (key, value))  # noqa: S608 - a name of ours
                db.execute("COMMIT" if desk.puts else "ROLLBACK")
            finally:
                if db.in_transaction:
                    db.execute("ROLLBACK")
            return result

    def close(self) -> None:
        """Let go of the file. No call may be under way."""
        for connection in (self._reader, self._writer):
            if connection is not None:
                connection.close()
        self._reader = self._writer = None

    def _open_reader(self) -> sqlite3.Connection:
        if self._reader is None:
            self._reader = _connect(self._directory)
        return self._reader

    def _open_writer(self) -> sqlite3.Connection:
        if self._writer is None:
            self._writer = _connect(self._directory)
        return self._writer


class _Inside:
    """What a desk reads inside a transaction."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def get(self, family: str, key: bytes) -> bytes | None:
        return _get(self._db, family, key)

    def scan(
        self, family: str, start: bytes = b"", stop: bytes | None = None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        if family not in FAMILIES:
            return iter(())

        def portion(query: str, bounds: tuple[bytes, ...]) -> list[tuple[bytes, bytes]]:
            return self._db.execute(query, bounds).fetchall()

        return _scan(portion, family, (start, stop), reverse=reverse)


_PORTION: Final = 256
_Fetch = Callable[[str, tuple[bytes, ...]], list[tuple[bytes, bytes]]]


def _get(db: sqlite3.Connection, family: str, key: bytes) -> bytes | None:
    row = db.execute(f"SELECT value FROM {family} WHERE key = ?", (key,)).fetchone()  # noqa: S608 - a name of ours
    return None if row is None else row[0]


def _scan(
    fetch: _Fetch, family: str, bounds: tuple[bytes, bytes | None], *, reverse: bool
) -> Iterator[tuple[bytes, bytes]]:
    """Read in growing portions, so that the first entry alone costs little."""
    start, stop = bounds
    low, count = ">=", 1
    while True:
        where = [f"key {low} ?"] + ["key < ?"] * (stop is not None)
        query = (
            f"SELECT key, value FROM {family} WHERE {' AND '.join(where)} "  # noqa: S608 - a name of ours
            f"ORDER BY key {'DESC' if reverse else 'ASC'} LIMIT {count}"
        )
        rows = fetch(query, (start,) if stop is None else (start, stop))
        yield from rows
        if len(rows) < count:
            return
        if reverse:
            stop = rows[-1][0]
        else:
            low, start = ">", rows[-1][0]
        count = _PORTION


def _connect(directory: str) -> sqlite3.Connection:
    """Open the file, made if need be, with every commit synced. Raises FormatUnknown."""
    path = f"{private_dir(directory)}/{FILE}"
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    db = sqlite3.connect(path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False)
    # SQLite does not wait while another process turns the write-ahead log on, so we do
    fd = os.open(f"{directory}/LOCK", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        _prepare(db, path)
    except BaseException:
        db.close()
        raise
    finally:
        os.close(fd)
    return db


def _prepare(db: sqlite3.Connection, path: str) -> None:
    if _version(db) == 0:
        db.execute("BEGIN IMMEDIATE")
        if _version(db) == 0:  # no other process was faster
            for family in FAMILIES:
                db.execute(f"CREATE TABLE {family} (key BLOB PRIMARY KEY, value BLOB NOT NULL)")
            db.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
        db.execute("COMMIT")
    version = _version(db)
    if version != FORMAT_VERSION:
        raise FormatUnknown(
            f"the global notes at {path} have format {version}, this memoryd reads format "
            f"{FORMAT_VERSION}: use a newer memoryd"
        )


def _version(db: sqlite3.Connection) -> int:
    version: int = db.execute("PRAGMA user_version").fetchone()[0]
    return version


@contextmanager
def _translated(path: str) -> Iterator[None]:
    """Turn what SQLite and the system complain about into errors of ours."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise _meaning(path, error) from error


def _meaning(path: str, error: Exception) -> MemorydError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return TooBusy(f"another process holds the global notes at {path}: try again")
    if code == sqlite3.SQLITE_FULL:
        return DiskFull("the disk is full: free some space, then try again")
    if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
        return StoreDamaged(
            f"the global notes at {path} are damaged: move the file away, then run `memory restore --global-notes`"
        )
    return ReadOnly(f"the global notes at {path} cannot be used ({error})")
