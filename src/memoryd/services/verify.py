"""Checks a store from end to end: log, tables, marks, notes, nodes, grips and index. Changes nothing.

The store is one that nobody writes to: that of a stopped daemon, or a checkpoint of a running
one. What is wrong comes with what to run against it.
"""

import os
from collections.abc import Iterator
from typing import Final, NamedTuple
from uuid import UUID

from memoryd.domain.errors import MemorydError, StoreDamaged
from memoryd.services.verify_derived import IndexLook, check_nodes, look_at_index
from memoryd.storage.audit import Audit, Fault, Progress
from memoryd.storage.db import Database
from memoryd.storage.gaps import NOTES, Gap, gaps_of
from memoryd.storage.global_notes import FILE, GlobalNotes
from memoryd.storage.highwater import HighWater, Mark
from memoryd.storage.notebook import NoteBook, Tail, check_notes
from memoryd.storage.salvage import scan_past
from memoryd.storage.store import NOTES_MARK, store_id_of

_RESCUE: Final = (
    "go back to a backup with `memory restore`, or save what is left with `memory repair`"
)
_REMEDIES: Final = {
    "grips": "run `memory rebuild toc`",
    "nodes": "run `memory rebuild toc`",
    "index": "run `memory reindex`",
    "HIGHWATER": "restore it, or run `memoryd verify --accept` to write it anew",
    "global notes": "restore them with `memory restore --global-notes`",
}
# read through for damage, and not compared with anything
_PLAIN: Final = (
    "outbox",
    "toc_changes",
    "toc_segments",
    "toc_dirty",
    "toc_open",
    "toc_unwritten",
    "checkpoints",
    "ledger",
    "injections",
    "receipts",
    "meta",
)


class Problem(NamedTuple):
    """Something that is wrong, with what, and what to do about it."""

    part: str
    text: str
    remedy: str


class Verdict(NamedTuple):
    """What a full check found."""

    events: int = 0
    sequence: int = 0
    revisions: int = 0
    nodes: int = 0
    grips: int = 0
    indexed: int = 0
    global_revisions: int = 0
    event_gaps: tuple[Gap, ...] = ()
    note_gaps: tuple[Gap, ...] = ()
    problems: tuple[Problem, ...] = ()


class Place(NamedTuple):
    """Where the parts of what is to be checked are; an empty path leaves a part out.

    ``moving``: a daemon goes on with the index, which may be ahead of the checkpoint.
    """

    data_dir: str
    index_dir: str = ""
    global_notes: str = ""
    moving: bool = False


def verify(place: Place, *, accept: bool = False) -> Iterator[Progress | Problem | Verdict]:
    """Check everything; tells how far it is and what is wrong, and at the end the `Verdict`.

    With ``accept``, a store that is whole in itself gets new high-water marks, whatever the old
    ones said. Raises FormatUnknown, or StoreError if there is nothing to check.
    """
    check = _Check(place)
    for told in check.run(accept=accept):
        if isinstance(told, Fault):
            problem = Problem(*told, _REMEDIES.get(told.part, _RESCUE))
            check.problems.append(problem)
            yield problem
        else:
            yield told
    yield check.verdict()


class _Check:
    """One run over one store."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._found = Verdict()
        self.problems: list[Problem] = []

    def verdict(self) -> Verdict:
        return self._found._replace(problems=tuple(self.problems))

    def run(self, *, accept: bool) -> Iterator[Fault | Progress]:
        place = self._place
        try:
            db = Database(f"{place.data_dir}/db", read_only=True)
        except StoreDamaged as error:
            yield Fault("db", _bare(error))
        else:
            try:
                yield from self._store(db, accept=accept)
            except StoreDamaged as error:  # what everything else is compared with is lost
                yield Fault("db", _bare(error))
            finally:
                db.close()
        if place.global_notes and os.path.exists(f"{place.global_notes}/{FILE}"):
            yield from self._global()

    def _store(self, db: Database, *, accept: bool) -> Iterator[Fault | Progress]:
        mark, missing = _mark(f"{self._place.data_dir}/HIGHWATER")
        notes_mark, notes_missing = _mark(f"{self._place.data_dir}/{NOTES_MARK}")
        look = look_at_index(self._place.index_dir, moving=self._place.moving)
        audit = Audit(db, mark.sequence if mark else 0, look.sequence, self._place.data_dir)
        try:
            yield from audit.run()
        finally:
            audit.close()
        notes = NoteBook(db).tail()
        self._found = self._found._replace(
            events=audit.events,
            sequence=audit.tail.sequence,
            revisions=notes.sequence,
            indexed=look.documents,
            event_gaps=tuple(audit.gaps),
            note_gaps=tuple(gaps_of(db, NOTES)),
        )
        yield from _faults("notes", check_notes(db))
        yield from self._plain(db)
        tail = Tail(*audit.tail)
        if accept and not self.problems:
            self._accept(db, tail, notes)
        else:
            yield from _mark_faults("HIGHWATER", mark, missing, tail, db)
            if notes.sequence or not notes_missing:
                yield from _mark_faults(NOTES_MARK, notes_mark, notes_missing, notes, db)
        yield from self._derived(db, look, audit)

    def _plain(self, db: Database) -> Iterator[Fault | Progress]:
        faults: list[Fault] = []
        for done, family in enumerate(_PLAIN, 1):

            def missed(_last: bytes, reason: str, family: str = family) -> None:
                faults.append(Fault(family, f"cannot read {family}: {reason}"))

            for _ in scan_past(db, family, missed):
                pass
            yield Progress("tables", done, len(_PLAIN))
        yield from faults

    def _derived(self, db: Database, look: IndexLook, audit: Audit) -> Iterator[Fault | Progress]:
        counts = yield from check_nodes(db, skip=bool(self.problems))
        self._found = self._found._replace(nodes=counts[0], grips=counts[1])
        ahead = look.sequence > audit.tail.sequence
        if look.fault:
            yield Fault("index", look.fault)
        elif look.store_id and look.store_id != store_id_of(db):
            yield Fault("index", "the search index belongs to another store")
        elif ahead and not self._place.moving:
            yield Fault("index", "the search index is ahead of the log")
        elif not ahead and look.store_id and look.documents != audit.indexable:
            text = f"the search index has {look.documents} events of {audit.indexable}"
            yield Fault("index", text)

    def _global(self) -> Iterator[Fault | Progress]:
        store = GlobalNotes(self._place.global_notes)
        try:
            yield from _faults("global notes", check_notes(store))
            if not any(problem.part == "global notes" for problem in self.problems):
                count = store.book.tail().sequence
                self._found = self._found._replace(global_revisions=count)
        finally:
            store.close()

    def _accept(self, db: Database, tail: Tail, notes: Tail) -> None:
        store_id = UUID(store_id_of(db)).bytes
        HighWater.create(f"{self._place.data_dir}/HIGHWATER", Mark(tail[0], store_id, tail[1]))
        HighWater.create(f"{self._place.data_dir}/{NOTES_MARK}", Mark(notes[0], store_id, notes[1]))


def _faults(part: str, check: Iterator[str]) -> Iterator[Fault]:
    try:
        for text in check:
            yield Fault(part, text)
    except MemorydError as error:
        yield Fault(part, _bare(error))


def _bare(error: MemorydError) -> str:
    """What an error says, without what to run: that comes with every problem."""
    return str(error).partition(": run `")[0].partition("; run `")[0]


def _mark(path: str) -> tuple[Mark | None, str]:
    """A high-water mark, or None and what is wrong with it."""
    try:
        highwater = HighWater(path)
    except StoreDamaged as error:
        return None, str(error).partition(": restore")[0].partition(": run")[0]
    highwater.close()
    return highwater.mark, ""


def _mark_faults(
    name: str, mark: Mark | None, missing: str, tail: Tail, db: Database
) -> Iterator[Fault]:
    """What a mark says against the end of the log, or of the notes."""
    if mark is None:
        yield Fault("HIGHWATER", missing)
        return
    part, noun, ends = ("events", "events", "log ends")
    if name == NOTES_MARK:
        part, noun, ends = ("notes", "revisions", "notes end")
    if mark.sequence > tail.sequence:
        lost = f"{noun} {tail.sequence + 1} to {mark.sequence} are lost: the {ends} before them"
        yield Fault(part, lost)
    if UUID(bytes=mark.store_id) != UUID(store_id_of(db)):
        yield Fault("HIGHWATER", f"{name} belongs to another store")
