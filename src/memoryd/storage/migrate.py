"""Brings a store of an older format to the present one, step by step. Truth is kept before.

A step reads one format and leaves the next. What it does may be cut off at any moment and is
then done again, so a step must not mind its own traces; the format version is written last.
"""

import os
from collections.abc import Callable
from typing import Final, NamedTuple

from memoryd.domain.chain import GENESIS
from memoryd.domain.errors import FormatOld, FormatUnknown, StoreDamaged
from memoryd.storage import codec
from memoryd.storage.db import COLUMN_FAMILIES, Database, families_at
from memoryd.storage.highwater import HighWater, Mark
from memoryd.storage.notebook import NoteBook
from memoryd.storage.store import FORMAT_VERSION, NOTES_MARK, Store

_HISTORY: Final = b"migrations"


class Step(NamedTuple):
    """From one format to the next; ``run`` gets the data directory and the open database."""

    reads: int
    run: Callable[[str, Database], None]


def _to_2(data_dir: str, db: Database) -> None:
    """Format 2 has the families `gaps` and `receipts`, made by opening, and always a notes' mark."""
    path = f"{data_dir}/{NOTES_MARK}"
    if os.path.exists(path):
        return
    if NoteBook(db).tail().sequence:
        raise StoreDamaged(
            f"{path} is missing, and there are notes: restore it, or run `memoryd verify --accept` "
            "with the memoryd that wrote the store"
        )
    highwater = HighWater(f"{data_dir}/HIGHWATER")
    highwater.close()
    HighWater.create(path, Mark(0, highwater.mark.store_id, GENESIS))


STEPS: Final = (Step(1, _to_2),)


def open_store(data_dir: str, keep: Callable[[int], object], now_ms: int) -> Store:
    """Open a store, or make one; an older format is brought to the present one first.

    ``keep`` is called with the old format before anything is changed, and keeps a copy; if it
    raises, nothing is changed. Raises FormatUnknown, StoreDamaged or StoreError.
    """
    path = f"{data_dir}/db"
    if os.path.exists(f"{path}/CURRENT") and families_at(path) != set(COLUMN_FAMILIES):
        migrate(data_dir, keep, now_ms)
    try:
        return Store(data_dir)
    except FormatOld:
        migrate(data_dir, keep, now_ms)
        return Store(data_dir)


def migrate(data_dir: str, keep: Callable[[int], object], now_ms: int) -> None:
    """Run the steps that are missing, if any. The caller holds the lock."""
    with Database(f"{data_dir}/db", read_only=True) as db:
        version = int(db.get("meta", b"format") or b"0")
    if version == FORMAT_VERSION:
        return
    steps = [step for step in STEPS if step.reads >= version]
    if not version or not steps or steps[0].reads != version:
        if version:
            raise FormatUnknown(
                f"the store at {data_dir} has format {version}, this memoryd reads formats "
                f"{STEPS[0].reads} to {FORMAT_VERSION}: use the memoryd that wrote it, or a newer one"
            )
        return  # no format at all: opening says what is wrong
    keep(version)
    with Database(f"{data_dir}/db") as db:
        for step in steps:
            step.run(data_dir, db)
            _record(db, step.reads, now_ms)


def _record(db: Database, reads: int, now_ms: int) -> None:
    """Write the new version, and when it came, in one batch."""
    stored = db.get("meta", _HISTORY)
    history = codec.read(stored, "migrations") if stored else []
    batch, meta = db.batch(), db.handle("meta")
    batch.put(_HISTORY, codec.value([*history, (reads, reads + 1, now_ms)]), meta)
    batch.put(b"format", b"%d" % (reads + 1), meta)
    db.write(batch)
    db.sync()
