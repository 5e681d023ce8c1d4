"""Backups of one store in a directory of their own. Each is complete and can stand alone.

::

    DEST/memoryd-backups.json      whose backups these are
    DEST/20261118T031500Z/         one backup, in the form of a data directory
        manifest.json              what it holds, written last
        db/ HIGHWATER HIGHWATER-NOTES ROOT
        global-notes/notes.db      as they were then; all projects share them
        config/                    files that the settings came from
    DEST/.partial-...              one that is being written, or was cut off

Tables never change once they are written, so a later backup takes those that it has in common
with an earlier one by hard link, after reading both.
"""

import fcntl
import json
import os
import shutil
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple
from uuid import UUID

from memoryd import __version__
from memoryd.domain.errors import InvalidInput, StoreError, TooBusy
from memoryd.project import private_dir
from memoryd.services.copying import Alive, hash_of, pieces, sync_directory, write_json
from memoryd.storage.highwater import HighWater
from memoryd.storage.store import NOTES_MARK

MANIFEST: Final = "manifest.json"
OWNER: Final = "memoryd-backups.json"
PARTIAL: Final = ".partial-"
VERSION: Final = 1
_LOCK: Final = "LOCK"


class Facts(NamedTuple):
    """What a backup says of the store that it is of."""

    project: str
    store_id: str
    format: int
    sequence: int
    chain: str
    notes_sequence: int
    notes_chain: str


class Backup(NamedTuple):
    """One finished backup."""

    path: str
    manifest: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Its name in the set."""
        return os.path.basename(self.path)


class Copying(NamedTuple):
    """How many bytes have been read, of how many."""

    done: int
    total: int


class Made(NamedTuple):
    """A backup that has been finished."""

    path: str
    sequence: int
    files: int
    size: int
    copied: int  # bytes that were not in an earlier backup
    removed: tuple[str, ...]  # older backups that had to go


class BackupSet:
    """A directory of backups, locked against others. Use as ``with opened(...)``."""

    def __init__(self, path: str) -> None:
        self.path = path

    def write(
        self,
        facts: Facts,
        sources: Mapping[str, str],
        now_ms: int,
        alive: Alive,
        keep: int = 0,
    ) -> Iterator[Copying | Made]:
        """Copy the files, given by their names in the backup; the manifest comes last.

        With ``keep``, only so many of the newest backups stay. Raises StoreError or Cancelled;
        then the backups that were there are as they were.
        """
        earlier = backups_in(self.path)
        name = _name(now_ms, {backup.name for backup in earlier})
        partial = private_dir(f"{self.path}/{PARTIAL}{name}")
        known = _known(earlier)
        total = sum(os.path.getsize(path) for path in sources.values())
        held: dict[str, Any] = {}
        done = copied = 0
        for relative, path in sources.items():
            yield Copying(done, total)
            target = f"{partial}/{relative}"
            private_dir(os.path.dirname(target))
            digest = _reuse(path, relative, target, known, alive)
            if digest is None:
                digest = yield from progress(pieces(path, target, alive), done, total)
                copied += os.path.getsize(target)
            held[relative] = {"size": os.path.getsize(target), "sha256": digest}
            done += held[relative]["size"]
        manifest = {
            "memoryd_backup": VERSION,
            "made_ms": now_ms,
            "memoryd": __version__,
            **facts._asdict(),
            "files": held,
        }
        for folder, _, _ in os.walk(partial):
            sync_directory(folder)
        write_json(f"{partial}/{MANIFEST}", manifest)
        os.rename(partial, f"{self.path}/{name}")
        sync_directory(self.path)
        yield Copying(done, done)
        removed = tuple(_retire(self.path, keep))
        yield Made(f"{self.path}/{name}", facts.sequence, len(held), done, copied, removed)


@contextmanager
def opened(path: str, facts: Facts) -> Iterator[BackupSet]:
    """The set of backups at a path, made if there is none, for one writer.

    What was cut off before is removed. Raises InvalidInput if the directory holds something else
    or the backups of another store, TooBusy if somebody writes to it, StoreError.
    """
    if not os.path.isabs(path):
        raise InvalidInput(f"destination {path!r} is not an absolute path")
    try:
        _claim(path, facts)
        fd = os.open(f"{path}/{_LOCK}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreError(f"cannot back up to {path}: {error.strerror or error}") from error
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        raise TooBusy(f"another backup to {path} is under way: wait for its end") from None
    try:
        _clear(path)
        yield BackupSet(path)
    except OSError as error:
        raise StoreError(f"the backup to {path} has failed: {error.strerror or error}") from error
    finally:
        _clear(path)
        os.close(fd)


def backups_in(path: str) -> list[Backup]:
    """The finished backups of a set, oldest first."""
    try:
        names = sorted(os.listdir(path))
    except (FileNotFoundError, NotADirectoryError):
        return []
    found = (read_backup(f"{path}/{name}") for name in names if not name.startswith("."))
    whole = [backup for backup in found if backup is not None]
    return sorted(whole, key=lambda backup: (backup.manifest["made_ms"], backup.name))


def read_backup(path: str) -> Backup | None:
    """The backup in a directory, or None if there is none."""
    try:
        with open(f"{path}/{MANIFEST}", "rb") as file:
            manifest = json.load(file)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise StoreError(f"{path}/{MANIFEST} cannot be read: {error}") from error
    if not isinstance(manifest, dict) or "memoryd_backup" not in manifest:
        return None
    if manifest["memoryd_backup"] != VERSION:
        raise StoreError(f"the backup at {path} was made by a newer memoryd: use that one")
    return Backup(path, manifest)


def progress(
    copying: Generator[int, None, str], done: int, total: int
) -> Generator[Copying, None, str]:
    """Turn the sizes of a file's pieces into how far all of it is; at the end, the file's hash."""
    while True:
        try:
            done += next(copying)
        except StopIteration as end:
            digest: str = end.value
            return digest
        yield Copying(done, total)


def tree(directory: str, under: str) -> dict[str, str]:
    """The files of a directory, by their names under another."""
    return {
        f"{under}/{name}": f"{directory}/{name}"
        for name in sorted(os.listdir(directory))
        if name != "LOCK" and os.path.isfile(f"{directory}/{name}")
    }


def keep_old_format(data_dir: str, project: str, version: int, now_ms: int) -> str:
    """Back up a store that nobody has open, file by file, before its format changes; say where.

    Raises StoreError.
    """
    highwater = HighWater(f"{data_dir}/HIGHWATER")
    highwater.close()
    mark = highwater.mark
    facts = Facts(project, str(UUID(bytes=mark.store_id)), version, mark[0], mark[2].hex(), 0, "")
    sources = tree(f"{data_dir}/db", "db")
    for name in ("HIGHWATER", NOTES_MARK, "ROOT"):
        if os.path.exists(f"{data_dir}/{name}"):
            sources[name] = f"{data_dir}/{name}"
    path = f"{data_dir}.format-{version}"
    with opened(path, facts) as backups:
        for told in backups.write(facts, sources, now_ms, lambda: True):
            if isinstance(told, Made):
                path = told.path
    return path


def _claim(path: str, facts: Facts) -> None:
    """Make the directory ours, or see that it is."""
    note = f"{path}/{OWNER}"
    if not os.path.exists(note):
        if os.path.isdir(path) and any(name != _LOCK for name in os.listdir(path)):
            raise InvalidInput(
                f"{path} holds something else than backups of memoryd: choose an empty or a new "
                "directory"
            )
        private_dir(path)
        owner = {"memoryd_backups": VERSION, "store_id": facts.store_id, "project": facts.project}
        write_json(note, owner)
        sync_directory(os.path.dirname(path))
        return
    private_dir(path)
    try:
        with open(note, "rb") as file:
            owner = json.load(file)
        theirs, version = owner["store_id"], owner["memoryd_backups"]
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{note} makes no sense: choose another directory") from error
    if version != VERSION or theirs != facts.store_id:
        raise InvalidInput(
            f"{path} holds backups of another store ({owner.get('project', '')}, {theirs}): choose "
            "another directory"
        )


def _clear(path: str) -> None:
    for name in os.listdir(path):
        if name.startswith(PARTIAL):
            shutil.rmtree(f"{path}/{name}", ignore_errors=True)


def _name(now_ms: int, taken: set[str]) -> str:
    name = stamp(now_ms)
    names = (name, *(f"{name}-{number}" for number in range(2, 10_000)))
    return next(name for name in names if name not in taken)


def stamp(now_ms: int) -> str:
    """A moment as it stands in the names of directories."""
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now_ms / 1000))


_Known = dict[tuple[str, int], list[tuple[str, str]]]


def _known(earlier: list[Backup]) -> _Known:
    """Tables of earlier backups by name and size: their hashes and paths, the newest first."""
    found: _Known = {}
    for backup in reversed(earlier):
        for relative, facts in backup.manifest["files"].items():
            if relative.endswith(".sst"):
                entry = (facts["sha256"], f"{backup.path}/{relative}")
                found.setdefault((relative, facts["size"]), []).append(entry)
    return found


def _reuse(path: str, relative: str, target: str, known: _Known, alive: Alive) -> str | None:
    """Take a file from an earlier backup if it is the same, byte for byte; its hash, or None."""
    candidates = known.get((relative, os.path.getsize(path)))
    if not candidates:
        return None
    own = hash_of(path, alive)
    for digest, there in candidates:
        try:
            if digest == own and hash_of(there, alive) == own:
                os.link(there, target)
                return own
        except OSError:  # gone, or a file system without hard links
            continue
    return None


def _retire(path: str, keep: int) -> Iterator[str]:
    """Remove all but the newest backups."""
    found = backups_in(path)
    for backup in found[: max(0, len(found) - keep)] if keep else ():
        # out of the set first: a removal that is cut off must not leave half a backup
        doomed = f"{path}/{PARTIAL}{backup.name}"
        os.rename(backup.path, doomed)
        shutil.rmtree(doomed, ignore_errors=True)
        yield backup.name
