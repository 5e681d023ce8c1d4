"""Keeps the search index in step with what it follows from: one thread, and its worker. Derived.

It takes what has changed from each `Source`, behind the cursor that the last commit carries, sends
it to the process that alone writes the index, and has it commit about once a second; under a heavy load more rarely, so that commits do not eat the time.
At start, and at any doubt, the index is compared with the log; one that cannot be trusted is made
anew beside the old one while everything else goes on. The log is never held up by any of this.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import Final, NamedTuple

from memoryd.domain.document import Kind
from memoryd.domain.errors import IndexDoubt, MemorydError
from memoryd.index import files
from memoryd.index.reader import Filters, Reader
from memoryd.index.schema import FORMAT, State
from memoryd.services.courtesy import Courtesy
from memoryd.services.feed import LogSource, Source, Sources, Target
from memoryd.storage.committer import Committer
from memoryd.storage.log import Log

_log = logging.getLogger(__name__)

_BATCH: Final = 500
_GAP_SECONDS: Final = 0.4  # between two commits
_BUSY_GAP_SECONDS: Final = 1.5  # where a lot comes in: a commit syncs, and so do the writers
_BUSY: Final = 200  # that is, so many documents since the last commit
_BULK_GAP_SECONDS: Final = 4.0  # while there is a lot to catch up with
_BULK: Final = 5_000  # that is, so many events
_REST_SECONDS: Final = 60.0  # without work, the worker is ended and its memory given back
_WAKE_SECONDS: Final = 0.5
_RETRY_SECONDS: Final = (1.0, 2.0, 5.0, 15.0, 60.0)
_TELL_SECONDS: Final = 0.2
_GATHER_SECONDS: Final = 0.05  # writers are few and quick: what they write is taken together
_LOCK_SECONDS: Final = 0.05
_GIVING_WAY_SECONDS: Final = 0.1
_PATIENCE_SECONDS: Final = 8.0  # for which events wait while many are being written


class IndexState(IntEnum):
    """What search can say of the index; the numbers are those on the wire."""

    READY = 1
    CATCHING_UP = 2
    REBUILDING = 3
    FAILED = 4


_AT_WORK: Final = (IndexState.REBUILDING, IndexState.FAILED)


class IndexStatus(NamedTuple):
    """How the index is doing."""

    state: IndexState
    sequence: int  # up to which events are searchable
    log_sequence: int
    documents: int
    bytes: int
    segments: int
    reason: str  # why it is made anew, or what fails
    rebuilds: int  # since the daemon started


class Indexer:
    """The thread. ``report`` is told of what goes wrong."""

    def __init__(
        self,
        path: str,
        log: Log,
        committer: Committer,
        report: Callable[[str, str], object],
        sources: tuple[Source, ...] = (),
    ) -> None:
        """``path``: the index directory. ``sources`` come beside the log."""
        self._path = path
        self._store_id = log.store_id
        self._committer = committer
        self._courtesy = Courtesy(committer, _PATIENCE_SECONDS)
        self._sources = Sources(LogSource(log, committer), sources, report)
        self._report = report
        self._wake = threading.Event()
        self._ended = threading.Event()
        self._stopping = False
        self._doubt: str | None = None
        self._reason = ""
        self._state = IndexState.CATCHING_UP
        self._rebuilds = 0
        self._lock: int | None = None
        self._target: Target | None = None
        self._lost = False  # whether only the disk can say how far the target is
        self._thread = threading.Thread(target=self._run, name="indexer", daemon=True)
        self._checker = threading.Thread(target=self._check, name="index-check", daemon=True)
        self.reader: Reader | None = None

    def start(self) -> None:
        """Begin to follow."""
        self._thread.start()

    def stop(self) -> None:
        """Commit what has been taken in, and end."""
        self._stopping = True
        self._wake.set()
        self._ended.set()
        for thread in (self._thread, self._checker):
            if thread.ident is not None:
                thread.join()

    def doubt(self, reason: str) -> None:
        """Have the index made anew: somebody has met an error in it."""
        self._reader_lost(reason)
        self._wake.set()

    def rebuilding(self, alive: Callable[[], bool]) -> Iterator[IndexStatus]:
        """Have the index made anew, and tell how it is doing until that is done.

        The old index answers meanwhile. One that is being made anew already is waited for.
        """
        before = self._rebuilds
        if self._state is IndexState.REBUILDING:
            before -= self._doubt is None
        else:
            self._state = IndexState.REBUILDING
            self._doubt = self._doubt or "it was asked for"
            self._wake.set()
        while alive():
            status = self.status()
            done = self._rebuilds > before and status.state not in _AT_WORK
            yield status
            if done:
                return
            self._ended.wait(_TELL_SECONDS)

    def state(self) -> IndexState:
        """What search has to say of the index."""
        return self._state

    def sequence(self) -> int:
        """Up to which event the log is searchable."""
        target = self._target
        return target.writer.state.cursors.get("log", 0) if target else 0

    def status(self) -> IndexStatus:
        """How the index is doing."""
        target, reader = self._target, self.reader
        documents = segments = 0
        try:
            if reader is not None:
                documents = reader.count() - 1
                segments = reader.segments()
        except IndexDoubt as error:
            self.doubt(str(error))
        return IndexStatus(
            state=self._state,
            sequence=self.sequence(),
            log_sequence=self._committer.synced,
            documents=max(0, documents),
            bytes=files.size(target.path if target else self._path),
            segments=segments,
            reason=self._reason,
            rebuilds=self._rebuilds,
        )

    # --- the thread

    def _run(self) -> None:
        failures = 0
        while not self._stopping:
            try:
                if self._holding():
                    self._follow()
            except MemorydError as error:
                self._failed(str(error))
            except Exception as error:  # noqa: BLE001 - a dead thread would leave search behind for ever
                self._failed(f"unexpected {type(error).__name__}")
            else:
                failures = 0
                continue
            pause = _RETRY_SECONDS[min(failures, len(_RETRY_SECONDS) - 1)]
            failures += 1
            self._wake.wait(pause)
            self._wake.clear()
        self._finish()

    def _holding(self) -> bool:
        """Take the lock on the directory, or wait a moment for the worker of a killed daemon."""
        if self._lock is None:
            self._lock = files.hold(self._path)
        if self._lock is None:
            self._ended.wait(_LOCK_SECONDS)
        return self._lock is not None

    def _follow(self) -> None:
        """Open the index or make it anew, then keep it in step until something is in doubt."""
        if self._doubt is not None:
            self._make_anew(self._doubt)
        elif self._target is None or self._lost:
            try:
                self._open()
            except IndexDoubt as error:
                self._make_anew(str(error))
        target = self._target
        if target is None:
            return
        while not self._stopping and self._doubt is None:
            self._take(target)
            if target.writer.idle(_REST_SECONDS):
                target.writer.rest()
            self._commit_if_due(target)
            self._pause(target)

    def _aim(self, path: str, state: State | None) -> Target:
        """Write to the index at a path from now on."""
        if self._lock is None:
            raise IndexDoubt("its directory is not ours")
        self._target = Target(path, state, self._store_id, self._lock)
        self._lost = False
        return self._target

    def _pause(self, target: Target) -> None:
        """Wait until there is something to take or to commit, and until some more has gathered."""
        position = target.cursors.get("log", 0)
        if self._committer.synced == position:
            due = target.committed_at + _GAP_SECONDS - time.monotonic()
            seconds = max(0.01, due) if target.writer.waiting else _WAKE_SECONDS
            self._committer.wait_beyond(position, min(seconds, _WAKE_SECONDS))
        if 0 < self._committer.synced - position < _BATCH:
            self._ended.wait(_GATHER_SECONDS)
        while self._courtesy.wait(position) and not self._stopping and self._doubt is None:
            self._ended.wait(_GIVING_WAY_SECONDS)

    def _take(self, target: Target) -> int:
        """Put in a batch from each source; return how many changes that were."""
        taken = 0
        for source in self._sources:
            changes = self._sources.batch(source, target, _BATCH)
            if changes:
                target.take(source, changes)
                taken += len(changes)
            if self._committer.synced - target.cursors.get("log", 0) > _BULK:
                break  # first what was said, then what follows from it
        return taken

    def _commit_if_due(self, target: Target) -> None:
        behind = self._committer.synced - target.cursors.get("log", 0)
        gap = _BUSY_GAP_SECONDS if target.writer.waiting > _BUSY else _GAP_SECONDS
        gap = _BULK_GAP_SECONDS if behind > _BULK else gap
        moved = target.cursors != target.writer.state.cursors
        if moved and time.monotonic() - target.committed_at >= gap:
            target.commit()
        if self._state is not IndexState.REBUILDING:
            late = behind > _BULK
            self._state = IndexState.CATCHING_UP if late else IndexState.READY
            self._reason = ""

    def _open(self) -> None:
        """Open what is there. Raises IndexDoubt if it cannot be trusted."""
        files.remove(f"{self._path}.new")
        reader = Reader(files.open_existing(self._path))
        state = reader.state()
        if state.format != FORMAT:
            raise IndexDoubt("it was made by another version of memoryd")
        if state.store_id != self._store_id:
            raise IndexDoubt("it belongs to another store")
        for source in self._sources:
            if state.cursors.get(source.name, 0) > self._sources.newest(source):
                raise IndexDoubt(f"it is ahead of what it follows: {source.name}")
        if reader.count(Filters(kinds=(Kind.EVENT,))) != state.events:
            raise IndexDoubt("it has lost documents")
        self.reader = self._aim(self._path, state).reader
        if self._checker.ident is None:
            self._checker.start()

    def _make_anew(self, reason: str) -> None:
        """Build an index beside the old one from nothing, and put it in its place."""
        self._doubt, self._reason, self._state = None, reason, IndexState.REBUILDING
        self._rebuilds += 1
        _log.info("the search index is made anew", extra={"reason": reason})
        if self._target is not None:
            self._target.writer.close()
        target = self._aim(f"{self._path}.new", None)
        if self.reader is None:
            self.reader = target.reader
        while self._take(target) and not self._stopping:
            self._commit_if_due(target)
        if self._stopping:
            return
        target.commit()
        target.writer.rest()
        files.swap(target.path, self._path)
        self.reader = self._aim(self._path, target.writer.state).reader
        if self._doubt is None:
            self._state, self._reason = IndexState.READY, ""

    def _finish(self) -> None:
        target = self._target
        if target is not None:
            try:
                moved = target.cursors != target.writer.state.cursors
                if moved and not self._lost and target.path == self._path:
                    target.commit()
            except IndexDoubt as error:
                self._report("index", str(error))
            target.writer.close()
        if self._lock is not None:
            os.close(self._lock)

    def _failed(self, reason: str) -> None:
        """Note an error, and go back to the last commit; what is damaged is made anew."""
        self._state, self._reason = IndexState.FAILED, reason
        self._report("index", reason)
        _log.error("indexing failed", extra={"reason": reason})
        target = self._target
        if target is None:
            return
        target.writer.close()
        self._lost = True
        if target.path != self._path:
            self._target = None
            self._doubt = self._doubt or reason

    def _reader_lost(self, reason: str) -> None:
        if self._doubt is None:
            self._doubt = reason
            self._report("index", reason)
            _log.error("the search index is in doubt", extra={"reason": reason})
        self._state, self._reason = IndexState.REBUILDING, reason
        self.reader = None

    def _check(self) -> None:
        """Compare all files with their checksums, once, beside everything else."""
        try:
            files.check_files(self._path, lambda: not self._stopping and self._doubt is None)
        except IndexDoubt as error:
            self.doubt(str(error))
        except OSError as error:
            _log.warning("the search index was not checked", extra={"reason": str(error.strerror)})
