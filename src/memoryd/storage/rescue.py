"""Makes a copy of a damaged database that can be opened and read, as far as that goes.

Whole tables are given up only where the engine cannot get past them at all; RocksDB's own repair,
which drops a table for one bad block, comes last. The original is never written to.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final

from rocksdict import Options, Rdict

from memoryd.domain.errors import MemorydError, StoreDamaged
from memoryd.project import private_dir
from memoryd.storage.db import Database
from memoryd.storage.salvage import blocked

TRUTH: Final = ("events", "journal", "notes")
_OPEN_SECONDS: Final = 120
_TABLE: Final = re.compile(r"(\d{6,}\.sst)")


def copy_database(source: str, target: str) -> None:
    """Copy a database that nobody has open. Tables, which nobody writes to, are linked."""
    private_dir(target)
    for name in sorted(os.listdir(source)):
        path = f"{source}/{name}"
        if name == "LOCK" or not os.path.isfile(path):
            continue
        try:
            if name.endswith(".sst"):
                os.link(path, f"{target}/{name}")
                continue
        except OSError:
            pass
        shutil.copyfile(path, f"{target}/{name}")


def open_readable(path: str, told: list[str]) -> Database:
    """Open a copy of a damaged database, whatever it takes; ``told`` gets what it took.

    Raises StoreDamaged if nothing helps.
    """
    if not _opens(path):
        _rebuild(path, told)
    for _ in range(len(os.listdir(path)) + 1):
        db = Database(path, tolerant=True)
        bad = set(_unreadable(db))
        if not bad:
            return db
        db.close()
        for name in bad:
            with suppress(FileNotFoundError):
                os.unlink(f"{path}/{name}")
            told.append(f"gave up the table {name}, which cannot be read at all")
        _rebuild(path, told)
    raise StoreDamaged(f"nothing can be read in the copy at {path}")


def open_without(source: str, target: str, reasons: Iterable[str]) -> Database | None:
    """Open another copy, without the tables that these reasons name; None if they name none.

    A bad block hides what other tables have in its range from every scan; here it does not.
    """
    names = {name for reason in reasons for name in _TABLE.findall(reason)}
    if not names:
        return None
    copy_database(source, target)
    for name in names:
        with suppress(FileNotFoundError):
            os.unlink(f"{target}/{name}")
    try:
        _rebuild(target, [])
        return Database(target, tolerant=True)
    except MemorydError:
        return None


def _unreadable(db: Database) -> Iterator[str]:
    """The tables that keep everything of a family from being read."""
    for family in TRUTH:
        found = _TABLE.search(blocked(db, family))
        if found:
            yield found.group(1)


def _opens(path: str) -> bool:
    """Whether a copy opens, found out by a process that may hang or crash over it."""
    if not os.path.exists(f"{path}/CURRENT"):
        return False
    try:
        done = subprocess.run(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-m", __name__, path],
            check=False,
            capture_output=True,
            timeout=_OPEN_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def _rebuild(path: str, told: list[str]) -> None:
    """Have RocksDB make the list of tables anew from the tables themselves."""
    for name in os.listdir(path):
        if name.startswith("MANIFEST-") or name == "CURRENT":
            os.unlink(f"{path}/{name}")
    try:
        Rdict.repair(path, Options(raw_mode=True))
    except Exception as error:
        reason = str(error).splitlines()[0][:300]
        raise StoreDamaged(f"RocksDB cannot repair the copy at {path}: {reason}") from error
    told.append("had RocksDB make its list of tables anew")


if __name__ == "__main__":
    Database(sys.argv[1], tolerant=True).close()
