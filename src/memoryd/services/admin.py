"""Looks after a store that no daemon has open: checks every byte of the log and the notes."""

import os
from collections.abc import Iterator
from typing import NamedTuple

from memoryd.domain.errors import StoreDamaged
from memoryd.storage.db import Database
from memoryd.storage.global_notes import GlobalNotes
from memoryd.storage.highwater import HighWater, Mark
from memoryd.storage.log import Log
from memoryd.storage.notebook import NoteBook, check_notes
from memoryd.storage.store import NOTES_MARK, check_range, notes_end_problems, store_id_of


class Verdict(NamedTuple):
    """What a full check found."""

    events: int
    revisions: int
    problems: list[str]


def verify(data_dir: str, *, accept: bool = False) -> Verdict:
    """Read the whole log and compare it with the running hash and the high-water mark.

    With ``accept``, a log that is whole in itself gets a new HIGHWATER, whatever the old one said.
    Raises StoreDamaged or StoreError if the database does not open at all.
    """
    db = Database(f"{data_dir}/db", create=False)
    try:
        log = Log(db, store_id_of(db))
        notes = NoteBook(db).tail()
        problems = list(_problems(check_range(db, log)))
        problems += _problems(check_notes(db))
        mark_path, notes_path = f"{data_dir}/HIGHWATER", f"{data_dir}/{NOTES_MARK}"
        if accept and not problems:
            HighWater.create(mark_path, Mark(log.tail.sequence, log.store_bytes, log.tail.chain))
            HighWater.create(notes_path, Mark(notes.sequence, log.store_bytes, notes.chain))
        else:
            problems.extend(_mark_problems(mark_path, log))
            if notes.sequence or os.path.exists(notes_path):
                problems.extend(_notes_mark_problems(notes_path, db))
        return Verdict(log.tail.sequence, notes.sequence, problems)
    finally:
        db.close()


def verify_global(directory: str) -> Verdict:
    """Read all global notes and compare them with their running hash; daemons may run."""
    store = GlobalNotes(directory)
    try:
        problems = list(_problems(check_notes(store)))
        return Verdict(0, 0 if problems else store.book.tail().sequence, problems)
    finally:
        store.close()


def _problems(check: Iterator[str]) -> Iterator[str]:
    try:
        yield from check
    except StoreDamaged as error:
        yield str(error)


def _mark_problems(path: str, log: Log) -> Iterator[str]:
    try:
        highwater = HighWater(path)
    except StoreDamaged as error:
        yield str(error)
        return
    mark = highwater.mark
    highwater.close()
    if mark.sequence > log.tail.sequence:
        yield f"events {log.tail.sequence + 1} to {mark.sequence} are lost: the log ends before them"
    if mark.store_id != log.store_bytes:
        yield "HIGHWATER belongs to another store"


def _notes_mark_problems(path: str, db: Database) -> Iterator[str]:
    try:
        highwater = HighWater(path)
        highwater.close()
        yield from notes_end_problems(db, highwater.mark)
    except StoreDamaged as error:
        yield str(error)
