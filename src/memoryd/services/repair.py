"""Saves what is left of a damaged store, and says exactly what is gone.

Works on a copy beside the data directory, makes a new store from what can be read of it, checks
that from end to end, and swaps it in. The damaged original is kept aside. Nodes, grips and search
index are left to the daemon, which derives them anew.
"""

import os
import shutil
from collections.abc import Generator, Iterator
from contextlib import suppress
from typing import Final, NamedTuple
from uuid import UUID, uuid4

from memoryd.domain.errors import InvalidInput, MemorydError, StoreDamaged, StoreError
from memoryd.project import private_dir
from memoryd.services.backup import stamp
from memoryd.services.restore import swap_in
from memoryd.services.verifier import verify_apart
from memoryd.services.verify import Place, Verdict, verify
from memoryd.storage.audit import Progress
from memoryd.storage.db import Database
from memoryd.storage.gaps import Gap
from memoryd.storage.highwater import HighWater, Mark
from memoryd.storage.renew import Renewal
from memoryd.storage.rescue import copy_database, open_readable, open_without
from memoryd.storage.store import FORMAT_VERSION, NOTES_MARK, store_id_of

_DERIVED: Final = frozenset({"index", "global notes"})


class Repaired(NamedTuple):
    """What was saved, what is gone, and where the damaged store is now."""

    data_dir: str
    aside: str
    events: int
    sequence: int
    revisions: int
    gone: tuple[Gap, ...]  # events that this repair found gone
    notes_gone: tuple[Gap, ...]
    told: tuple[str, ...]  # what it took


def repair(data_dir: str, now_ms: int) -> Iterator[Progress | Repaired]:
    """Repair the store in a data directory whose `Lock` the caller holds.

    Raises InvalidInput if nothing is wrong with it, StoreError if there is nothing to save.
    """
    if not os.path.isdir(f"{data_dir}/db"):
        raise StoreError(f"there is no store in {data_dir}: go back to a backup")
    yield from _check_need(data_dir)
    work = f"{data_dir}.repairing"
    shutil.rmtree(work, ignore_errors=True)
    private_dir(work)
    try:
        told: list[str] = []
        copy_database(f"{data_dir}/db", f"{work}/old")
        old = open_readable(f"{work}/old", told)
        try:
            renewal = yield from _renew(old, data_dir, f"{work}/new", now_ms, told)
        finally:
            old.close()
        yield from _check(f"{work}/new")
        aside = swap_in(f"{work}/new", data_dir, f"{data_dir}.damaged-{stamp(now_ms)}")
    finally:
        shutil.rmtree(work, ignore_errors=True)
    yield Repaired(
        data_dir,
        aside,
        renewal.events,
        renewal.tail.sequence,
        renewal.notes_tail.sequence - sum(gap.size for gap in renewal.note_gaps),
        tuple(gap for gap in renewal.gaps if gap.repaired_ms == now_ms),
        tuple(gap for gap in renewal.note_gaps if gap.repaired_ms == now_ms),
        tuple(told),
    )


def _check_need(data_dir: str) -> Iterator[Progress]:
    """Raise InvalidInput if the store is whole."""
    verdict: Verdict | None = None
    with suppress(StoreError):  # so damaged that even looking fails
        for told in verify_apart(Place(data_dir), lambda: True):
            if isinstance(told, Progress):
                yield told
            elif isinstance(told, Verdict):
                verdict = told
    if verdict and not any(problem.part not in _DERIVED for problem in verdict.problems):
        raise InvalidInput(f"the store in {data_dir} is whole: there is nothing to repair")


def _renew(
    old: Database, data_dir: str, target: str, now_ms: int, told: list[str]
) -> Generator[Progress, None, Renewal]:
    """Make a new store of an old one; what was found and what was not."""
    mark, notes_mark = _mark(f"{data_dir}/HIGHWATER"), _mark(f"{data_dir}/{NOTES_MARK}")
    store_id = _store_id(old, mark)
    private_dir(target)
    places: dict[str, None] = {}
    with Database(f"{target}/db", create=True) as new:
        renewal = Renewal(
            old,
            new,
            now_ms,
            lambda _last, why: places.setdefault(why),
            lambda: open_without(old.path, f"{target}-spare", places),
        )
        for done in renewal.run(store_id, mark, notes_mark, FORMAT_VERSION):
            yield Progress("events", done, 0)
    owner = UUID(store_id).bytes
    HighWater.create(f"{target}/HIGHWATER", Mark(renewal.tail[0], owner, renewal.tail[1]))
    notes = renewal.notes_tail
    HighWater.create(f"{target}/{NOTES_MARK}", Mark(notes[0], owner, notes[1]))
    told.extend(f"passed over what cannot be read: {reason}" for reason in places)
    return renewal


def _check(path: str) -> Iterator[Progress]:
    """Check what has been made. Raises StoreDamaged, which should not be."""
    for told in verify(Place(path)):
        if isinstance(told, Progress):
            yield told
        elif isinstance(told, Verdict) and told.problems:
            raise StoreDamaged(
                f"the repaired store is not whole ({told.problems[0].text}): nothing has been "
                "changed; go back to a backup"
            )


def _mark(path: str) -> Mark | None:
    try:
        highwater = HighWater(path)
    except StoreDamaged:
        return None
    highwater.close()
    return highwater.mark


def _store_id(old: Database, mark: Mark | None) -> str:
    """The store's id, from wherever it can still be read."""
    try:
        return str(UUID(store_id_of(old)))
    except (MemorydError, ValueError):
        return str(UUID(bytes=mark.store_id) if mark else uuid4())
