"""Searches a data directory for the words of erased events, and removes payloads that hold them.

What is covered: every byte of every file below the data directory as it lies on the disk; tables
of RocksDB also unpacked, so that overwritten values would show; and every value that the engine
gives. What is not: words that events or notes say which were not to go (they are named), texts too
short to tell from others, backups and copies elsewhere, what the disk itself keeps of freed blocks.
The index holds no texts; it has been made anew, and holds no document of an erased event.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

from memoryd import arrivals, spool
from memoryd.domain.erasure import Entry, Needles, Outcome, Receipt
from memoryd.domain.errors import InvalidInput
from memoryd.domain.keys import event_key
from memoryd.storage import codec, rawbytes
from memoryd.storage.bodies import Words
from memoryd.storage.db import COLUMN_FAMILIES
from memoryd.storage.store import Store

_NAMED_MOST: Final = 1_000


def search(
    store: Store, receipt: Receipt, words: Words | None, alive: Callable[[], bool]
) -> Outcome:
    """Search everything. Without words, which a crash loses, only that the bodies are gone."""
    remains = [f"event {entry.sequence}" for entry in receipt.entries if not _gone(store, entry)]
    needles = words.needles if words else Needles(())
    elsewhere, left = _told_elsewhere(store, needles, alive)
    remains += [
        f"column family {family}"
        for family in COLUMN_FAMILIES
        if any(left.among(key + value) for key, value in store.db.scan(family))
    ]
    searched = rawbytes.search(store.data_dir, lambda data: bool(left.among(data)), alive)
    return Outcome(
        receipt=receipt.number,
        time_ms=0,
        texts=needles.texts,
        short=needles.short,
        files=searched.files,
        bytes=searched.bytes,
        elsewhere=elsewhere,
        remains=(*remains, *searched.found),
    )


def drop_set_aside(data_dir: str, receipt: Receipt, words: Words | None) -> int:
    """Delete payloads that were set aside and tell of the events; how many those were."""
    ids = {entry.event_id for entry in receipt.entries}
    count = 0
    for path, data in _set_aside(data_dir):
        known = bool(words and words.needles.among(data))
        if known or ids & _ids(os.path.basename(path), data):
            for name in (path, f"{path}{spool.REASON}"):
                with suppress(FileNotFoundError):
                    os.unlink(name)
            count += 1
    return count


def _gone(store: Store, entry: Entry) -> bool:
    value = store.db.get("events", event_key(entry.time_ms, entry.event_id))
    return value is not None and value[:1] == codec.ERASED


def _told_elsewhere(
    store: Store, needles: Needles, alive: Callable[[], bool]
) -> tuple[tuple[int, ...], Needles]:
    """The events that say the same and stay, and what is left to search for without their words."""
    events: list[int] = []
    known: set[int] = set()
    if not len(needles):
        return (), needles
    for _, value in store.db.scan("events"):
        found = needles.among(value)
        if found:
            known |= found
            events.append(codec.read_event(value).sequence)
        if not alive():
            break
    for _, value in store.db.scan("notes"):
        known |= needles.among(value)
    return tuple(sorted(events)[:_NAMED_MOST]), needles.without(known)


def _set_aside(data_dir: str) -> Iterator[tuple[str, bytes]]:
    folder = spool.aside(data_dir)
    with suppress(FileNotFoundError):
        for name in sorted(os.listdir(folder)):
            path = f"{folder}/{name}"
            if not name.endswith(spool.REASON) and os.path.isfile(path):
                with open(path, "rb") as file:
                    yield path, file.read(spool.FILE_LIMIT)


def _ids(name: str, data: bytes) -> set[str]:
    try:
        return {event.event_id for event in arrivals.events(spool.decode(data), name)}
    except (InvalidInput, spool.BadEnvelope):
        return set()
