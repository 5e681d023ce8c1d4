"""Opens RocksDB, names its column families, commits batches, scans with a check.

Truth lives in what this module writes, so it never opens a damaged database quietly: WAL
damage refuses, scans check the iterator's status, and a directory that has lost its CURRENT
file is not taken for a new one.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from rocksdict import (
    AccessType,
    BottommostLevelCompaction,
    Cache,
    Checkpoint,
    ColumnFamily,
    CompactOptions,
    Rdict,
    RdictIter,
    WriteBatch,
)

from memoryd.domain.errors import FormatUnknown, StoreDamaged, StoreError
from memoryd.storage.engine import (
    MIB,
    db_options,
    family_options,
    guarded,
    open_error,
    read_error,
    write_error,
)

COLUMN_FAMILIES: Final = {
    "events": "time, id -> the event",
    "event_ids": "id -> time, sequence",
    "journal": "sequence -> running hash, event key",
    "session_events": "session number, time, id -> nothing",
    "sessions": "session id -> statistics",
    "agents": "agent -> statistics",
    "outbox": "first sequence -> last sequence, time",
    "toc_nodes": "node id, version -> the node",
    "toc_latest": "node id -> version, number of the change",
    "toc_changes": "number -> node id, grips that are no more: what has changed, in order",
    "toc_segments": "session number, key of the first event -> the segment's extent",
    "toc_dirty": "level, node id -> nothing: a period to derive again",
    "toc_open": "level, time, node id -> where: a provisional node that closes at that time",
    "grips": "grip id -> the grip",
    "toc_unwritten": "level, node id -> nothing: a finished node that a model is to write",
    "ledger": "local day, model -> what was spent",
    "injections": "session, number -> a block that was given; agent, time -> which",
    "checkpoints": "name -> what a job, or the pump, must remember",
    "notes": "sequence -> running hash, revision of a note",
    "note_heads": "place, name -> the latest revision without its content",
    "note_aliases": "place, alias -> name",
    "gaps": "kind, first sequence -> last sequence, running hash, time: what a repair found gone",
    "receipts": "number -> who erased which events, or how an erasure ended; append-only",
    "meta": "format version, store id, counters",
}


_T = TypeVar("_T")


class Database:
    """One open RocksDB. Close it only when nobody uses it any more."""

    def __init__(
        self,
        path: str,
        *,
        create: bool = False,
        read_only: bool = False,
        tolerant: bool = False,
        trusted: bool = False,
    ) -> None:
        """Open the database at ``path``.

        Creates one only if ``create``; with ``read_only`` changes nothing, not even the lock, and
        takes families that are missing for empty; ``tolerant`` is for a copy of a damaged one, and
        passes over what it can; ``trusted`` is for one that this process has just made, and does
        not watch whether RocksDB comes back. Raises StoreLocked, StoreDamaged, StoreError, or
        FormatUnknown if it has families that this memoryd does not know.
        """
        cache = Cache(8 * MIB)
        names = (
            list(COLUMN_FAMILIES) if create else _names(path, read_only=read_only, trusted=trusted)
        )
        families = {name: family_options(name, cache) for name in names}
        if tolerant:
            for options in families.values():
                options.set_disable_auto_compactions(True)  # one would stop at the damage for good
        access = AccessType.read_only() if read_only else AccessType.read_write()
        try:
            with guarded(trusted=trusted):
                self._db = Rdict(
                    path,
                    db_options(create=create, tolerant=tolerant),
                    column_families=families,
                    access_type=access,
                )
        except Exception as error:
            raise open_error(path, str(error)) from error
        self.path = path
        self._families: dict[str, Rdict] = {n: self._db.get_column_family(n) for n in families}
        self._handles: dict[str, ColumnFamily] = {
            n: self._db.get_column_family_handle(n) for n in families
        }
        self._scans = 0
        self._closing = False
        self._idle = threading.Condition()

    def handle(self, family: str) -> ColumnFamily:
        """What a batch needs to put into a column family."""
        return self._handles[family]

    def get(self, family: str, key: bytes) -> bytes | None:
        """The value of a key, or None. Raises StoreDamaged if it cannot be read."""
        if family not in self._families and not self._closing:
            return None
        try:
            found: bytes | None = self._families[family].get(key)
        except Exception as error:
            raise read_error(family, error) from error
        return found

    def get_many(self, family: str, keys: list[bytes]) -> list[bytes | None]:
        """The values of several keys. Raises StoreDamaged if one cannot be read."""
        try:
            found: Any = self._families[family].get([*keys])
        except Exception as error:
            raise read_error(family, error) from error
        return list(found)

    def scan(
        self,
        family: str,
        start: bytes = b"",
        stop: bytes | None = None,
        *,
        reverse: bool = False,
    ) -> Iterator[tuple[bytes, bytes]]:
        """Keys and values from ``start`` up to, not including, ``stop``; reversed from the end.

        Raises StoreDamaged where the iterator stops for another reason than the end.
        """
        return self.scan_as(bytes, family, start, stop, reverse=reverse)

    def scan_as(
        self,
        read: Callable[[bytes], _T],
        family: str,
        start: bytes = b"",
        stop: bytes | None = None,
        *,
        reverse: bool = False,
    ) -> Iterator[tuple[bytes, _T]]:
        """As `scan`, with what ``read`` makes of each value."""
        with self._idle:
            if self._closing:
                raise StoreError("the store is closing")
            if family not in self._families:
                return
            self._scans += 1
        try:
            cursor = self._families[family].iter()
            if reverse:
                yield from _backward(cursor, start, stop, read)
            else:
                yield from _forward(cursor, start, stop, read)
            try:
                cursor.status()
            except Exception as error:
                raise read_error(family, error) from error
        finally:
            del cursor
            with self._idle:
                self._scans -= 1
                self._idle.notify_all()

    @contextmanager
    def cursors(self, family: str) -> Iterator[Callable[[], RdictIter] | None]:
        """Makes the engine's own iterators, for who looks at their status; None: no such family."""
        with self._idle:
            if self._closing:
                raise StoreError("the store is closing")
            self._scans += 1
        try:
            yield self._families[family].iter if family in self._families else None
        finally:
            with self._idle:
                self._scans -= 1
                self._idle.notify_all()

    def names(self, family: str, prefix: str) -> Iterator[str]:
        """The keys that begin with some text, in a family whose keys are text."""
        start = prefix.encode()
        for key, _ in self.scan(family, start):
            if not key.startswith(start):
                return
            yield key.decode()

    def batch(self) -> WriteBatch:
        """An empty batch; `write` consumes it."""
        return WriteBatch(raw_mode=True)

    def write(self, batch: WriteBatch) -> None:
        """Apply a batch as a whole. Raises DiskFull or ReadOnly and applies nothing."""
        try:
            self._db.write(batch)
        except Exception as error:
            raise write_error(error) from error

    def sync(self) -> None:
        """Bring every applied batch to the disk; other threads run meanwhile."""
        try:
            self._db.flush_wal(True)
        except Exception as error:
            raise write_error(error) from error

    def background_errors(self) -> int:
        """How often a flush or compaction has failed since the database was opened."""
        return self._db.property_int_value("rocksdb.background-errors") or 0

    def flush(self) -> None:
        """Write the memory tables out, so that the next open has no WAL to replay.

        The journal comes last: if the end of this is lost, the log is seen to end early.
        """
        for name in sorted(self._families, key="journal".__eq__):
            self._families[name].flush(True)

    def checkpoint(self, path: str) -> None:
        """Make a consistent copy in a new directory of the same file system, by hard links.

        Other threads write meanwhile: flushing first leaves the engine little to do with the GIL
        in its hand. Raises ReadOnly or DiskFull.
        """
        try:
            self.flush()
            Checkpoint(self._db).create_checkpoint(path)
        except Exception as error:
            raise write_error(error) from error

    def compact(
        self,
        alive: Callable[[], bool],
        told: Callable[[str], object] = lambda _family: None,
        *,
        rewrite: bool = False,
    ) -> None:
        """Merge each family's tables, as long as it is wanted; other threads run meanwhile.

        ``told`` hears of each family that is done. With ``rewrite``, every table is written anew,
        so that nothing stays that was overwritten or deleted before. Raises StoreDamaged if
        something could not be read: RocksDB itself reports success.
        """
        failed = self.background_errors()
        options = CompactOptions()
        if rewrite:
            options.set_bottommost_level_compaction(BottommostLevelCompaction.force())
        for name, family in self._families.items():
            if alive():
                family.compact_range(None, None, options)
                told(name)
        if self.background_errors() > failed:
            raise StoreDamaged("compaction has failed: run `memory verify` to see what is affected")

    def close(self) -> None:
        """Wait for scans to end, flush, and release the lock."""
        with self._idle:
            self._closing = True
            self._idle.wait_for(lambda: not self._scans, timeout=5)
        self._handles.clear()
        for family in self._families.values():
            family.close()
        self._families.clear()
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _names(path: str, *, read_only: bool, trusted: bool) -> list[str]:
    """The families to open: those we know, or of a database that is only read, those it has.

    Raises FormatUnknown if it has others.
    """
    found = families_at(path, trusted=trusted)
    strange = sorted(found - set(COLUMN_FAMILIES))
    if strange:
        raise FormatUnknown(
            f"the store at {path} holds {', '.join(strange)}, which this memoryd does not know: a "
            "newer one wrote it; use that one, or one newer still"
        )
    return [name for name in COLUMN_FAMILIES if name in found or not read_only]


def families_at(path: str, *, trusted: bool = False) -> set[str]:
    """The families of a database that need not be open. Raises StoreDamaged."""
    try:
        with guarded(trusted=trusted):
            return set(Rdict.list_cf(path)) - {"default"}
    except Exception as error:
        raise open_error(path, str(error)) from error


def _forward(
    cursor: RdictIter, start: bytes, stop: bytes | None, read: Callable[[bytes], _T]
) -> Iterator[tuple[bytes, _T]]:
    key_at, value_at, step = cursor.key, cursor.value, cursor.next
    cursor.seek(start)
    while (key := key_at()) is not None:
        if stop is not None and key >= stop:
            return
        yield key, read(value_at())
        step()


def _backward(
    cursor: RdictIter, start: bytes, stop: bytes | None, read: Callable[[bytes], _T]
) -> Iterator[tuple[bytes, _T]]:
    if stop is None:
        cursor.seek_to_last()
    else:
        cursor.seek_for_prev(stop)
        if cursor.valid() and cursor.key() == stop:
            cursor.prev()
    key_at, value_at, step = cursor.key, cursor.value, cursor.prev
    while (key := key_at()) is not None:
        if key < start:
            return
        yield key, read(value_at())
        step()


def looks_used(path: str) -> bool:
    """Whether a directory holds a database, or what is left of one."""
    try:
        return bool(os.listdir(path))
    except FileNotFoundError:
        return False
