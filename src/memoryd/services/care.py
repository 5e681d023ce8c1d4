"""Looks after the store of a running daemon: backs it up, checks it, compacts it.

Each works on a copy made in a moment, or in the engine's own threads, and so beside the writers.
"""

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from queue import Empty, SimpleQueue
from typing import Final, NamedTuple

from memoryd.domain.errors import StoreError, TooBusy
from memoryd.services.backup import Copying, Facts, Made, opened, tree
from memoryd.services.copying import Alive
from memoryd.services.restore import CONFIG, GLOBAL
from memoryd.services.status import disk_bytes
from memoryd.services.verifier import Told, verify_apart
from memoryd.services.verify import Place
from memoryd.storage.db import COLUMN_FAMILIES
from memoryd.storage.global_notes import FILE
from memoryd.storage.stage import Staged, staged
from memoryd.storage.store import NOTES_MARK, Store

_TELL_SECONDS: Final = 0.2


class Surroundings(NamedTuple):
    """What belongs to a store and lies elsewhere."""

    project: str
    index_dir: str
    global_notes: str  # a directory that may not be there
    config_files: tuple[str, ...]  # worth keeping with a backup, if they are there


class Compacting(NamedTuple):
    """Families done, of how many; and bytes of the database before and now."""

    done: int
    total: int
    before: int
    after: int
    finished: bool = False


class Care:
    """What can be done to a store beside its writers. Safe to call from many threads."""

    def __init__(self, store: Store, around: Surroundings, clock_ms: Callable[[], int]) -> None:
        self._store = store
        self._around = around
        self._clock_ms = clock_ms
        self._busy: set[str] = set()
        self._guard = threading.Lock()

    def backup(self, destination: str, keep: int, alive: Alive) -> Iterator[Copying | Made]:
        """Back the store up into a set of backups; with ``keep``, only so many stay.

        Raises InvalidInput, TooBusy, StoreError, ReadOnly or Cancelled.
        """
        with self._one("backup"), staged(self._store) as stage:
            facts = Facts(
                self._around.project,
                stage.store_id,
                stage.format,
                stage.log.sequence,
                stage.log.chain.hex(),
                stage.notes.sequence,
                stage.notes.chain.hex(),
            )
            with opened(destination, facts) as backups:
                sources = self._sources(stage)
                yield from backups.write(facts, sources, self._clock_ms(), alive, keep)

    def verify(self, alive: Alive) -> Iterator[Told]:
        """Check the store as it is now, in another process. Raises TooBusy, StoreError, Cancelled."""
        with self._one("verify"), staged(self._store) as stage:
            around = self._around
            place = Place(stage.path, around.index_dir, around.global_notes, moving=True)
            yield from verify_apart(place, alive)

    def compact(self, alive: Alive) -> Iterator[Compacting]:
        """Merge all tables; how far it is. Raises TooBusy, StoreDamaged."""
        path = self._store.db.path
        with self._one("compact"):
            before, total = disk_bytes(path), len(COLUMN_FAMILIES)
            told: SimpleQueue[str] = SimpleQueue()
            failed: list[BaseException] = []

            def work() -> None:
                try:
                    self._store.db.compact(alive, told.put)
                except BaseException as error:  # noqa: BLE001 - raised again by who waits
                    failed.append(error.with_traceback(None))

            thread = threading.Thread(target=work, name="compact", daemon=True)
            thread.start()
            done = 0
            while thread.is_alive():
                try:
                    told.get(timeout=_TELL_SECONDS)
                    done += 1
                except Empty:
                    pass
                yield Compacting(done, total, before, disk_bytes(path))
            for error in failed:
                raise error
            yield Compacting(total, total, before, disk_bytes(path), finished=True)

    def _sources(self, stage: Staged) -> dict[str, str]:
        """Everything that goes into a backup, by its name there."""
        files = tree(f"{stage.path}/db", "db")
        for name in ("HIGHWATER", NOTES_MARK):
            files[name] = f"{stage.path}/{name}"
        root = f"{self._store.data_dir}/ROOT"
        if os.path.exists(root):
            files["ROOT"] = root
        notes = f"{self._around.global_notes}/{FILE}"
        if os.path.exists(notes):
            files[f"{GLOBAL}/{FILE}"] = _copy_of(notes, f"{stage.path}/{FILE}")
        for path in self._around.config_files:
            if os.path.isfile(path):
                files[f"{CONFIG}/{os.path.basename(path)}"] = path
        return files

    @contextmanager
    def _one(self, name: str) -> Iterator[None]:
        """One of a kind at a time."""
        with self._guard:
            if name in self._busy:
                raise TooBusy(f"another {name} is under way: wait for its end")
            self._busy.add(name)
        try:
            yield
        finally:
            self._busy.discard(name)


def _copy_of(path: str, target: str) -> str:
    """A copy of a SQLite file as it is between two transactions."""
    try:
        with closing(sqlite3.connect(path)) as live, closing(sqlite3.connect(target)) as made:
            live.backup(made)
    except sqlite3.Error as error:
        raise StoreError(f"the global notes at {path} cannot be copied: {error}") from error
    return target
