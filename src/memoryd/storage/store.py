"""The data directory: who owns it, what is in it, and whether it is whole. Truth.

::

    LOCK              held by the process that has the store open; names its pid
    ROOT              the directory of the project
    HIGHWATER         the last synced sequence number
    HIGHWATER-NOTES   the same for the notes
    db/               RocksDB

Opening checks the format version, the end of the log against HIGHWATER, and the newest events
against the running hash. A store that fails is not opened.
"""

import fcntl
import os
import time
import uuid
from collections.abc import Iterator
from typing import Final

from memoryd.domain.chain import GENESIS, link_digest
from memoryd.domain.errors import FormatOld, FormatUnknown, StoreDamaged, StoreLocked
from memoryd.domain.keys import sequence_key, session_prefix, split_sequence_key
from memoryd.project import private_dir
from memoryd.storage import codec
from memoryd.storage.checkpoints import Checkpoints
from memoryd.storage.db import Database, looks_used
from memoryd.storage.engine import REMEDY
from memoryd.storage.gaps import EVENTS, Steps, gaps_of
from memoryd.storage.highwater import HighWater, Mark
from memoryd.storage.injections import Injections
from memoryd.storage.ledger import Ledger
from memoryd.storage.log import Log
from memoryd.storage.nodes import Nodes
from memoryd.storage.notebook import NoteBook, check_notes, seal
from memoryd.storage.receipts import Receipts

FORMAT_VERSION: Final = 2
NOTES_MARK: Final = "HIGHWATER-NOTES"
_CHECKED_AT_OPEN: Final = 64


class Lock:
    """The flock on a data directory. Held until `release` or the end of the process."""

    def __init__(self, data_dir: str) -> None:
        """Take the lock. Raises StoreLocked, naming the owner, if another process has it."""
        private_dir(data_dir)
        self.path = f"{data_dir}/LOCK"
        self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = os.pread(self._fd, 32, 0).decode("ascii", "replace").strip()
            os.close(self._fd)
            raise StoreLocked(
                f"the data directory {data_dir} is in use by process {owner or 'unknown'}: "
                "stop it with `memoryd stop`, or use that one"
            ) from error
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, b"%d\n" % os.getpid(), 0)

    def release(self) -> None:
        """Let the next process in."""
        os.ftruncate(self._fd, 0)
        os.close(self._fd)


def owner(data_dir: str) -> int | None:
    """The process that has the store open, or None."""
    try:
        fd = os.open(f"{data_dir}/LOCK", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        pid = os.pread(fd, 32, 0).decode("ascii", "replace").strip()
        return int(pid) if pid.isdigit() else 0
    else:
        return None
    finally:
        os.close(fd)


class Store:
    """An open store: database, log, nodes and high-water mark. The caller holds the `Lock`."""

    def __init__(self, data_dir: str) -> None:
        """Open the store, or make a new one in an empty directory.

        Raises StoreDamaged, FormatUnknown or StoreError.
        """
        self.data_dir = private_dir(data_dir)
        mark_path = f"{data_dir}/HIGHWATER"
        new = _is_new(data_dir, mark_path)
        if new:
            store_id = uuid.uuid4()
            HighWater.create(mark_path, Mark(0, store_id.bytes, GENESIS))
        self.highwater = HighWater(mark_path)
        self.db = Database(f"{data_dir}/db", create=new)
        try:
            self.store_id = self._identify(new=new)
            self.log = Log(self.db, self.store_id)
            self.nodes = Nodes(self.db, self.log)
            self.checkpoints = Checkpoints(self.db)
            self.ledger = Ledger(self.db)
            self.injections = Injections(self.db)
            self.receipts = Receipts(self.db)
            check_end(self.db, self.log, self.highwater.mark)
            self.notes_tail = NoteBook(self.db).tail()  # moved by who writes notes
            self.notes_mark = self._open_notes_mark(new=new or not self.highwater.mark.sequence)
        except BaseException:
            self.db.close()
            raise

    def sync(self) -> None:
        """Bring everything written to the disk, then move the high-water mark."""
        tail = self.log.tail
        self.db.sync()
        self.highwater.advance(Mark(tail.sequence, self.log.store_bytes, tail.chain))
        notes = self.notes_tail
        if notes.sequence != self.notes_mark.mark.sequence:
            self.notes_mark.advance(Mark(notes.sequence, self.log.store_bytes, notes.chain))

    def reload(self) -> None:
        """Read the end of log and notes again, after a write whose fate is not known."""
        self.log.reload()
        self.notes_tail = NoteBook(self.db).tail()

    def close(self) -> None:
        """Flush and close. No call may be under way."""
        self.db.close()
        self.highwater.close()
        self.notes_mark.close()

    def _open_notes_mark(self, *, new: bool) -> HighWater:
        path = f"{self.data_dir}/{NOTES_MARK}"
        if new and not self.notes_tail.sequence and not os.path.exists(path):
            HighWater.create(path, Mark(0, self.log.store_bytes, GENESIS))
        opened = HighWater(path)
        for problem in notes_end_problems(self.db, opened.mark):
            raise StoreDamaged(f"{problem}: {REMEDY}")
        return opened

    def _identify(self, *, new: bool) -> str:
        stored = self.db.get("meta", b"format")
        if stored is None:
            if not new and self.highwater.mark.sequence:
                raise StoreDamaged(
                    f"the store at {self.data_dir} has lost its format record: {REMEDY}"
                )
            self._initialise()
            stored = self.db.get("meta", b"format")
        check_format(self.data_dir, stored)
        store_id = store_id_of(self.db)
        if uuid.UUID(bytes=self.highwater.mark.store_id) != uuid.UUID(store_id):
            raise StoreDamaged(
                f"HIGHWATER and db in {self.data_dir} belong to different stores: one of them was "
                "copied without the other; restore both from the same copy"
            )
        return store_id

    def _initialise(self) -> None:
        batch, meta = self.db.batch(), self.db.handle("meta")
        store_id = str(uuid.UUID(bytes=self.highwater.mark.store_id))
        batch.put(b"format", b"%d" % FORMAT_VERSION, meta)
        batch.put(b"store_id", store_id.encode(), meta)
        batch.put(b"created_ms", b"%d" % (time.time_ns() // 1_000_000), meta)
        self.db.write(batch)
        self.db.sync()


def check_format(data_dir: str, stored: bytes | None) -> None:
    """Raise FormatUnknown unless a store's format is the one that is read and written here."""
    version = int(stored or b"0")
    if version != FORMAT_VERSION:
        kind = FormatOld if 0 < version < FORMAT_VERSION else FormatUnknown
        raise kind(
            f"the store at {data_dir} has format {version}, this memoryd reads format "
            f"{FORMAT_VERSION}: use the memoryd that wrote it, or a newer one"
        )


def store_id_of(db: Database) -> str:
    """The id of the store. Raises StoreDamaged if it has none."""
    stored = db.get("meta", b"store_id")
    if stored is None:
        raise StoreDamaged(f"the store at {db.path} has lost its id: {REMEDY}")
    return stored.decode()


def _is_new(data_dir: str, mark_path: str) -> bool:
    """Whether there is no store yet. Raises StoreDamaged if there are remains of one."""
    path = f"{data_dir}/db"
    used, marked = looks_used(path), os.path.exists(mark_path)
    if used and not os.path.exists(f"{path}/CURRENT"):
        if marked and HighWater(mark_path).mark.sequence == 0:
            return True  # the first start was cut off
        raise StoreDamaged(f"{path} holds files but no CURRENT: the database is damaged: {REMEDY}")
    if marked and not used and HighWater(mark_path).mark.sequence:
        raise StoreDamaged(
            f"{path} is gone, but {mark_path} says there were events: go back to a backup with "
            "`memory restore`"
        )
    return not used


def check_end(db: Database, log: Log, mark: Mark) -> None:
    """Raise StoreDamaged if the log ends early or its newest events are not what was written."""
    tail = log.tail
    if tail.sequence < mark.sequence:
        raise StoreDamaged(
            f"the log ends at event {tail.sequence}, but {mark.sequence} had been written: events "
            f"{tail.sequence + 1} to {mark.sequence} are lost; {REMEDY}"
        )
    if mark.sequence and mark != (tail.sequence, mark.store_id, tail.chain):
        stored = db.get("journal", sequence_key(mark.sequence))
        if stored is None or codec.read_journal(stored)[0] != mark.chain:
            raise StoreDamaged(f"event {mark.sequence} is not the one that was written: {REMEDY}")
    for problem in check_range(db, log, max(1, tail.sequence - _CHECKED_AT_OPEN + 1)):
        raise StoreDamaged(f"{problem}: {REMEDY}")


def notes_end_problems(db: Database, mark: Mark) -> Iterator[str]:
    """What is wrong with the end of the notes: cut off, or not what was written."""
    tail = NoteBook(db).tail()
    if tail.sequence < mark.sequence:
        yield (
            f"the notes end at revision {tail.sequence}, but {mark.sequence} had been written: "
            f"revisions {tail.sequence + 1} to {mark.sequence} are lost"
        )
        return
    if mark.sequence and mark != (tail.sequence, mark.store_id, tail.chain):
        stored = db.get("notes", sequence_key(mark.sequence))
        if stored is None or seal(stored)[0] != mark.chain:
            yield f"revision {mark.sequence} of the notes is not the one that was written"
    yield from check_notes(db, max(1, tail.sequence - _CHECKED_AT_OPEN + 1))


def check_range(db: Database, log: Log, first: int = 1) -> Iterator[str]:
    """Every fault in the log from a sequence number on, in words.

    Checks that numbers are contiguous, every event is there under its id and its session, and
    the running hash holds.
    """
    previous: bytes | None = GENESIS
    gaps = gaps_of(db, EVENTS)
    if first > 1:
        before = db.get("journal", sequence_key(first - 1))
        gap = next((gap for gap in gaps if gap.first < first <= gap.last + 1), None)
        if before is not None:
            previous = codec.read_journal(before)[0]
        elif gap is not None:
            first, previous = gap.last + 1, gap.chain or None
        else:
            yield f"event {first - 1} is missing from the journal"
    expected, steps = first, Steps(gaps)
    erased = Receipts(db).digests()
    for key, stored in db.scan("journal", sequence_key(first)):
        sequence = split_sequence_key(key)
        expected, previous = steps.over(expected, previous)
        if sequence != expected:
            yield f"events {expected} to {sequence - 1} are missing from the journal"
        chain, event_key = codec.read_journal(stored)
        whole = _check_hash(db, sequence, event_key, (previous, chain), erased)
        if whole:
            yield whole
        else:
            yield from _check_event(db, log, sequence, event_key)
        previous, expected = chain, sequence + 1


def _check_hash(
    db: Database,
    sequence: int,
    key: bytes,
    chains: tuple[bytes | None, bytes],
    erased: dict[str, tuple[int, bytes]],
) -> str:
    """What is wrong with an event's bytes, or ""; an erased one must be on a receipt."""
    value = db.get("events", key)
    if value is None:
        return f"event {sequence} is gone"
    found = codec.seal(value)
    if found.erased and erased.get(key[8:].decode()) != (sequence, found.digest):
        return f"event {sequence} is erased, and no receipt says so"
    if chains[0] is not None and link_digest(chains[0], found.digest) != chains[1]:
        return f"event {sequence} does not match the running hash"
    return ""


def _check_event(db: Database, log: Log, sequence: int, key: bytes) -> Iterator[str]:
    event = log.at_key(key).event
    if db.get("event_ids", key[8:]) != codec.place_value(event.time_ms, sequence):
        yield f"event {sequence} is not found by its id"
    stats = log.session(event.session_id)
    if stats is None or db.get("session_events", session_prefix(stats.number) + key) is None:
        yield f"event {sequence} is not found by its session"
