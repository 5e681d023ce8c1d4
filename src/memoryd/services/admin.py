"""Looks after a store that no daemon has open: checks every byte of the log."""

from collections.abc import Iterator
from typing import NamedTuple

from memoryd.domain.errors import StoreDamaged
from memoryd.storage.db import Database
from memoryd.storage.highwater import HighWater, Mark
from memoryd.storage.log import Log
from memoryd.storage.store import check_range, store_id_of


class Verdict(NamedTuple):
    """What a full check found."""

    events: int
    problems: list[str]


def verify(data_dir: str, *, accept: bool = False) -> Verdict:
    """Read the whole log and compare it with the running hash and the high-water mark.

    With ``accept``, a log that is whole in itself gets a new HIGHWATER, whatever the old one said.
    Raises StoreDamaged or StoreError if the database does not open at all.
    """
    db = Database(f"{data_dir}/db", create=False)
    try:
        log = Log(db, store_id_of(db))
        problems = list(_problems(db, log))
        mark_path = f"{data_dir}/HIGHWATER"
        if accept and not problems:
            HighWater.create(mark_path, Mark(log.tail.sequence, log.store_bytes, log.tail.chain))
        else:
            problems.extend(_mark_problems(mark_path, log))
        return Verdict(log.tail.sequence, problems)
    finally:
        db.close()


def _problems(db: Database, log: Log) -> Iterator[str]:
    try:
        yield from check_range(db, log)
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
