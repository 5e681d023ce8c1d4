"""Takes the words of erased events out of what is truth: bodies, notes made of them, blocks given.

Everything that can only be found by the words themselves goes in one batch. So after a crash
either the words are still there to be read, or nothing is left that would have to be found by them.
"""

from collections.abc import Collection, Iterator, Mapping
from hashlib import sha256
from typing import Final, NamedTuple

from memoryd.domain.erasure import GONE, Entry, Needles, Receipt, entry_of
from memoryd.domain.event import Recorded
from memoryd.domain.keys import event_key, sequence_key
from memoryd.domain.note import Revision
from memoryd.storage import codec, notebook
from memoryd.storage.injections import Injection
from memoryd.storage.notebook import Desk
from memoryd.storage.store import Store

_ARCHIVE_HEAD: Final = 4  # lines of an archive before the summary
_BETWEEN: Final = ", "  # ids of one item of a block


class Words(NamedTuple):
    """What is known of the events only as long as their texts are there."""

    needles: Needles
    summaries: tuple[str, ...]  # texts of compactions


def entries(store: Store, found: Iterator[Recorded]) -> tuple[list[Entry], Words]:
    """What a receipt keeps of some events, and what is to be searched for; reads them once."""
    kept: list[Entry] = []
    summaries: list[str] = []

    def texts() -> Iterator[tuple[str, Mapping[str, str]]]:
        for recorded in found:
            event = recorded.event
            stored = store.db.get("events", event_key(event.time_ms, event.event_id))
            if stored is None or recorded.erased_ms:
                continue
            kept.append(entry_of(recorded, codec.split_event(stored)[0]))
            if event.metadata.get("compaction") == "true" and event.text.strip():
                summaries.append(event.text)
            yield event.text, event.metadata

    needles = Needles(texts())
    return kept, Words(needles, tuple(summaries))


def bodies_gone(store: Store, receipt: Receipt) -> bool:
    """Whether the batch of an erasure has been written: it holds all bodies or none."""
    last = receipt.entries[-1]
    value = store.db.get("events", event_key(last.time_ms, last.event_id))
    return value is not None and value[:1] == codec.ERASED


def erase(store: Store, receipt: Receipt, words: Words, now_ms: int) -> None:
    """Write the batch. For the committer's thread, which syncs it. Raises ReadOnly."""
    batch = store.db.batch()
    events = store.db.handle("events")
    for entry in receipt.entries:
        key = event_key(entry.time_ms, entry.event_id)
        value = store.db.get("events", key)
        if value is not None:
            batch.put(key, codec.stub_value(value, now_ms), events)
    desk = Desk(store.db, store.log.tail.sequence)
    names = _erase_notes(desk, {e.event_id for e in receipt.entries}, words.summaries)
    for (family, key), value in desk.puts.items():
        if value is None:
            batch.delete(key, store.db.handle(family))
        else:
            batch.put(key, value, store.db.handle(family))
    hashes = {entry.text_hash for entry in receipt.entries}
    ids = {entry.event_id for entry in receipt.entries} | names

    def told_of(given: Injection) -> bool:
        said = f"{given.query}\n{given.text}".encode()
        asked = sha256(given.query.encode()).digest() in hashes
        return asked or names_one(given, ids) or bool(words.needles.among(said))

    store.injections.erase(batch, told_of)
    store.db.write(batch)
    store.notes_tail = desk.tail


def names_one(given: Injection, ids: Collection[str]) -> bool:
    """Whether a block showed one of some things."""
    shown = (ref for _, _, included, _ in given.sections for ref in included)
    return any(part in ids for ref in shown for part in (ref, *ref.split(_BETWEEN)))


def _erase_notes(desk: Desk, ids: set[str], summaries: tuple[str, ...]) -> set[str]:
    """Empty archives made of erased events, and entries in daily logs; the names of both."""
    heads = [h for h in desk.book.heads() if h.note.kind in {"archive", "daily"}]
    archives = [h for h in heads if h.note.kind == "archive" and ids & {*h.note.provenance}]
    said = {text.strip("\n") for text in summaries}
    names = set()
    for head in archives:
        for revision in desk.book.history(head):
            body = revision.note.content.split("\n", _ARCHIVE_HEAD)[_ARCHIVE_HEAD:]
            said.update(part.strip("\n") for part in body)
            _empty(desk, revision)
        if not head.forgotten:
            desk.put(head.note._replace(content=""), "forget")
        names.add(head.note.name)
    said -= {"", GONE}
    for head in heads if said else ():
        if head.note.kind == "daily" and _erase_entries(desk, head, said):
            names.add(head.note.name)
    return names


def _erase_entries(desk: Desk, head: Revision, said: set[str]) -> bool:
    """Take summaries out of a daily log; its earlier revisions that hold one lose all they say."""
    latest = desk.book.whole(head).note
    found = False
    for revision in list(desk.book.history(head)):
        if any(text in revision.note.content for text in said):
            _empty(desk, revision)
            found = True
    content = latest.content
    for text in said:
        content = content.replace(text, GONE)
    if content != latest.content:
        desk.put(latest._replace(content=content), "erase")
    return found


def _empty(desk: Desk, revision: Revision) -> None:
    key = sequence_key(revision.sequence)
    stored = desk.get("notes", key)
    if stored is not None:
        desk.puts["notes", key] = notebook.erased(stored)
