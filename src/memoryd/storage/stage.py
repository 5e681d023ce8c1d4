"""A consistent copy of an open store, made in a moment by hard links, for who needs one in peace.

It has the form of a data directory: database and high-water marks that fit it. It shares its
files with the store, so it costs no space at first and is no backup; it is removed after use.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from typing import Final, NamedTuple

from memoryd.project import private_dir
from memoryd.storage.db import Database
from memoryd.storage.highwater import HighWater, Mark
from memoryd.storage.log import Log
from memoryd.storage.notebook import NoteBook, Tail
from memoryd.storage.store import FORMAT_VERSION, NOTES_MARK, Store

_PREFIX: Final = "stage-"
_numbers = count(1)


class Staged(NamedTuple):
    """The copy, and where its log and its notes end."""

    path: str
    store_id: str
    format: int
    log: Tail
    notes: Tail


@contextmanager
def staged(store: Store) -> Iterator[Staged]:
    """A copy of the store as it is now; writers go on meanwhile. Raises ReadOnly."""
    path = private_dir(f"{store.data_dir}/{_PREFIX}{os.getpid()}-{next(_numbers)}")
    try:
        store.db.checkpoint(f"{path}/db")
        yield _mark(store, path)
    finally:
        shutil.rmtree(path, ignore_errors=True)


def clear_stages(data_dir: str) -> None:
    """Remove what a daemon that was killed has left: it holds on to space, and to erased text."""
    with suppress(FileNotFoundError):
        for name in os.listdir(data_dir):
            if name.startswith(_PREFIX):
                shutil.rmtree(f"{data_dir}/{name}", ignore_errors=True)


def _mark(store: Store, path: str) -> Staged:
    """Write the marks that fit the copy: it may end behind what the store had synced."""
    with Database(f"{path}/db", read_only=True, trusted=True) as db:
        log, notes = Log(db, store.store_id).tail, NoteBook(db).tail()
    owner = store.log.store_bytes
    HighWater.create(f"{path}/HIGHWATER", Mark(log.sequence, owner, log.chain))
    HighWater.create(f"{path}/{NOTES_MARK}", Mark(notes.sequence, owner, notes.chain))
    return Staged(path, store.store_id, FORMAT_VERSION, Tail(*log), notes)
