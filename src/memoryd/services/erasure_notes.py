"""Marks the provenance of notes that names erased events, or grips that stood on them. Truth."""

from collections.abc import Collection, Iterable
from typing import Final

from memoryd.domain.event import ID_LIMIT
from memoryd.domain.note import Note, Revision
from memoryd.services.anew import Renewed
from memoryd.storage.notebook import Desk, NoteStore

MARK: Final = "erased:"


def rewrite_provenance(
    stores: Iterable[NoteStore], event_ids: Collection[str], renewed: Renewed
) -> int:
    """Give each note concerned a new revision that says what is erased; how many there were."""
    gone = {*event_ids, *renewed.gone_grips}
    return sum(_rewrite(store, gone) for store in stores)


def _rewrite(store: NoteStore, gone: set[str]) -> int:
    concerned = [head for head in store.book.heads() if not gone.isdisjoint(head.note.provenance)]
    concerned = [head for head in concerned if not head.forgotten]
    for head in concerned:
        store.change(lambda desk, head=head: _marked(desk, head, gone))  # type: ignore[misc]
    return len(concerned)


def _marked(desk: Desk, head: Revision, gone: Collection[str]) -> None:
    living = desk.living(head.note.place, head.note.name)
    if living is None:
        return
    note: Note = living.note
    provenance = tuple(_mark(name) if name in gone else name for name in note.provenance)
    if provenance != note.provenance:
        desk.put(note._replace(provenance=provenance), "erase")


def _mark(name: str) -> str:
    marked = f"{MARK}{name}"
    return marked if len(marked.encode()) <= ID_LIMIT else MARK
