"""Puts a backup in the place of a store that nobody has open.

The backup is copied beside the data directory, each file compared with its hash, the copy checked
from end to end, and only then swapped in. What was there is kept aside. At any moment before the
swap nothing has changed; the swap itself, if it is cut off, leaves a store that does not open,
and everything on the disk.
"""

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Final, NamedTuple
from uuid import UUID

from memoryd.domain.errors import InvalidInput, MemorydError, StoreDamaged, StoreError
from memoryd.project import private_dir
from memoryd.services.backup import (
    MANIFEST,
    Backup,
    Copying,
    backups_in,
    progress,
    read_backup,
    stamp,
)
from memoryd.services.copying import copy, pieces, sync_directory
from memoryd.services.verify import Place, Problem, Verdict, verify
from memoryd.storage.audit import Progress
from memoryd.storage.db import Database, looks_used
from memoryd.storage.global_notes import FILE
from memoryd.storage.highwater import HighWater
from memoryd.storage.store import NOTES_MARK, store_id_of

GLOBAL: Final = "global-notes"
CONFIG: Final = "config"
_MARKS: Final = ("HIGHWATER", NOTES_MARK)
_ROOT: Final = "ROOT"


class Restored(NamedTuple):
    """What has been put in place, and where that is what was there before."""

    backup: str
    data_dir: str
    sequence: int
    events: int
    aside: str  # empty: there was nothing
    global_notes: str  # "restored", "kept" those that were there, or "none" in the backup


def choose(source: str, name: str = "") -> Backup:
    """The backup to restore: one by its name, else the newest of a set, or the directory itself.

    Raises InvalidInput.
    """
    own = read_backup(source)
    if own is not None and not name:
        return own
    found = backups_in(source)
    if not found:
        raise InvalidInput(f"there is no backup in {source}")
    if not name:
        return found[-1]
    for backup in found:
        if backup.name == name:
            return backup
    names = ", ".join(backup.name for backup in found)
    raise InvalidInput(f"there is no backup {name} in {source}: there are {names}")


def restore(
    backup: Backup,
    data_dir: str,
    global_dir: str,
    now_ms: int,
    *,
    other_store: bool = False,
    global_notes: bool = False,
) -> Iterator[Copying | Progress | Restored]:
    """Restore a backup into a data directory whose `Lock` the caller holds.

    Raises StoreDamaged if the backup is not what it was, InvalidInput if the directory has another
    store and ``other_store`` is not set.
    """
    if not other_store:
        _check_owner(backup, data_dir)
    beside = f"{data_dir}.restoring"
    shutil.rmtree(beside, ignore_errors=True)
    private_dir(beside)
    try:
        yield from _fetch(backup, beside)
        verdict = Verdict()
        for told in verify(Place(beside)):
            if isinstance(told, Progress):
                yield told
            elif isinstance(told, Verdict):
                verdict = told
        if verdict.problems:
            first: Problem = verdict.problems[0]
            raise StoreDamaged(
                f"the backup at {backup.path} is damaged ({first.text}): nothing has been changed; "
                "take another one"
            )
        aside = swap_in(beside, data_dir, f"{data_dir}.replaced-{stamp(now_ms)}")
        fate = _restore_global(beside, global_dir, now_ms, force=global_notes)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    yield Restored(backup.path, data_dir, verdict.sequence, verdict.events, aside, fate)


def swap_in(new: str, data_dir: str, aside: str) -> str:
    """Put database and marks of one directory in the place of another's, which go aside.

    The search index goes: it is made anew. Returns where the old parts are, or nothing.
    """
    kept = ""
    shutil.rmtree(f"{private_dir(data_dir)}/index", ignore_errors=True)
    if looks_used(f"{data_dir}/db") or os.path.exists(f"{data_dir}/{_MARKS[0]}"):
        kept = _fresh(aside)
        with suppress(FileNotFoundError):
            os.rename(f"{data_dir}/db", f"{kept}/db")
        # the marks stay until new ones take their place: without a database they refuse to open
        for name in (*_MARKS, _ROOT):
            with suppress(FileNotFoundError):
                shutil.copyfile(f"{data_dir}/{name}", f"{kept}/{name}")
        sync_directory(kept)
    with suppress(FileNotFoundError):
        shutil.rmtree(f"{data_dir}/db")
    os.rename(f"{new}/db", f"{data_dir}/db")
    for name in _MARKS:
        if os.path.exists(f"{new}/{name}"):
            os.rename(f"{new}/{name}", f"{data_dir}/{name}")
        else:
            with suppress(FileNotFoundError):
                os.unlink(f"{data_dir}/{name}")
    if not os.path.exists(f"{data_dir}/{_ROOT}") and os.path.exists(f"{new}/{_ROOT}"):
        os.rename(f"{new}/{_ROOT}", f"{data_dir}/{_ROOT}")
    sync_directory(data_dir)
    sync_directory(os.path.dirname(data_dir))
    return kept


def _fresh(path: str) -> str:
    """A new directory of that name, or of that name with a number."""
    names = (path, *(f"{path}-{number}" for number in range(2, 10_000)))
    return private_dir(next(name for name in names if not os.path.lexists(name)))


def _check_owner(backup: Backup, data_dir: str) -> None:
    theirs, ours = backup.manifest["store_id"], _store_at(data_dir)
    if ours and ours != theirs:
        raise InvalidInput(
            f"{data_dir} holds the store {ours}, the backup is of {theirs}: if that is meant, say "
            "--other-store"
        )


def _store_at(data_dir: str) -> str:
    """The id of the store in a directory; empty if there is none, or it is too damaged to tell."""
    try:
        highwater = HighWater(f"{data_dir}/HIGHWATER")
    except StoreDamaged:
        if not os.path.exists(f"{data_dir}/db/CURRENT"):
            return ""
        try:
            with Database(f"{data_dir}/db", read_only=True) as db:
                return store_id_of(db)
        except MemorydError:
            return ""
    highwater.close()
    return str(UUID(bytes=highwater.mark.store_id))


def _fetch(backup: Backup, target: str) -> Iterator[Copying]:
    """Copy every file of a backup, and compare it with the manifest."""
    files = backup.manifest["files"]
    total, done = sum(facts["size"] for facts in files.values()), 0
    for relative, facts in files.items():
        yield Copying(done, total)
        if os.path.isabs(relative) or ".." in relative.split("/"):
            raise StoreDamaged(f"{backup.path}/{MANIFEST} names a file outside: {relative}")
        private_dir(os.path.dirname(f"{target}/{relative}"))
        try:
            copying = pieces(f"{backup.path}/{relative}", f"{target}/{relative}", lambda: True)
            digest = yield from progress(copying, done, total)
        except FileNotFoundError:
            raise StoreDamaged(f"{backup.path}/{relative} is gone: take another backup") from None
        except OSError as error:
            raise StoreError(f"cannot copy {relative}: {error.strerror or error}") from error
        if digest != facts["sha256"]:
            raise StoreDamaged(
                f"{backup.path}/{relative} is not what was written: take another backup"
            )
        done += facts["size"]
    yield Copying(done, total)


def _restore_global(new: str, directory: str, now_ms: int, *, force: bool) -> str:
    """Put the global notes of a backup where there are none, or, if forced, in their place.

    Other daemons may have them open: SQLite's own copying lets them see the change.
    """
    source, target = f"{new}/{GLOBAL}/{FILE}", f"{directory}/{FILE}"
    if not os.path.exists(source):
        return "none"
    if os.path.exists(target) and not force:
        return "kept"
    private_dir(directory)
    if os.path.exists(target):
        copy(target, f"{target}.replaced-{stamp(now_ms)}", lambda: True)
    os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    try:
        with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as live:
            old.backup(live)
    except sqlite3.DatabaseError as error:
        raise StoreError(
            f"the store is restored, the global notes at {target} are not ({error}): move the file "
            "away and restore again"
        ) from error
    return "restored"
