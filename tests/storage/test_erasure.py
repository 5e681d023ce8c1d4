import os
from collections.abc import Iterable

import pytest

from memoryd.domain.erasure import Outcome, Receipt, Who
from memoryd.domain.errors import NotFound, StoreDamaged
from memoryd.domain.event import Event
from memoryd.domain.keys import event_key
from memoryd.domain.note import Note
from memoryd.storage import bodies, codec, rawbytes
from memoryd.storage.committer import Committer
from memoryd.storage.injections import Injection
from memoryd.storage.log import Draft
from memoryd.storage.notebook import check_notes
from memoryd.storage.notes import ProjectNotes
from memoryd.storage.store import Store, check_range

SECRET = "the lighthouse keeper counts seven lanterns"


def event(number: int, text: str = "", **metadata: str) -> Event:
    """An event that its number names."""
    said = text or f"line {number} of an ordinary conversation"
    return Event(f"e{number}", "s", 1_000 + number, 2, 1, said, metadata, "a", "p", "", "")


def write(committer: Committer, events: Iterable[Event]) -> None:
    """Write events."""
    committer.append([Draft(e, timed=True) for e in events])


def erase(store: Store, committer: Committer, *ids: str, receipt: bool = True) -> Receipt:
    """Erase events, as far as storage does it."""
    entries, words = bodies.entries(store, (store.log.get(i) for i in ids))
    made = Receipt(store.receipts.next_number(), 5, Who(1, "me", "why"), tuple(entries))

    def work() -> tuple[None, bool]:
        if receipt:
            batch = store.db.batch()
            store.receipts.begin(batch, made)
            store.db.write(batch)
        bodies.erase(store, made, words, 9)
        return None, True

    committer.write(work)
    return made


def test_of_an_erased_event_the_place_stays(store: Store, committer: Committer) -> None:
    """Text and metadata go, everything else is as it was, and the running hash holds."""
    write(committer, [event(1), event(2, SECRET, command=SECRET), event(3)])
    before, tail = store.log.get("e2"), store.log.tail
    receipt = erase(store, committer, "e2")
    after = store.log.get("e2")
    assert after.event == before.event._replace(text="", metadata={})
    assert (after.sequence, after.arrival_ms, after.erased_ms) == (2, before.arrival_ms, 9)
    assert [r.event.event_id for r in store.log.after(0)] == ["e1", "e2", "e3"]
    assert store.log.read_tail() == tail
    assert list(check_range(store.db, store.log)) == []
    assert bodies.bodies_gone(store, receipt)
    write(committer, [event(4)])
    assert list(check_range(store.db, store.log)) == []


def test_an_erased_id_stays_taken(store: Store, committer: Committer) -> None:
    """The same event again, or another of its id, changes nothing and is no error."""
    write(committer, [event(1, SECRET)])
    erase(store, committer, "e1")
    for again in (event(1, SECRET), event(1, "something else", x="y")):
        (result,) = committer.append([Draft(again, timed=True)])
        assert (result.created, result.sequence, result.error, result.erased) == (
            False,
            1,
            None,
            True,
        )
    assert store.log.get("e1").event.text == ""


def test_an_erasure_without_a_receipt_is_damage(store: Store, committer: Committer) -> None:
    """Bytes that say that an event was erased are believed only if a receipt says so too."""
    write(committer, [event(1), event(2, SECRET)])
    erase(store, committer, "e2", receipt=False)
    assert list(check_range(store.db, store.log)) == ["event 2 is erased, and no receipt says so"]


def test_a_changed_digest_is_damage(store: Store, committer: Committer) -> None:
    """What is left of an erased event cannot be changed unseen."""
    write(committer, [event(1, SECRET)])
    erase(store, committer, "e1")
    key = event_key(1_001, "e1")
    stored = store.db.get("events", key) or b""
    stub = codec.read_stub(stored)
    changed = stored.replace(stub.digest, bytes(32))
    batch = store.db.batch()
    batch.put(key, changed, store.db.handle("events"))
    store.db.write(batch)
    assert list(check_range(store.db, store.log)) != []
    with pytest.raises(StoreDamaged):
        codec.read_event(stored[:20])


def test_a_store_with_erased_events_opens(data_dir: str) -> None:
    """After a restart the end of the log is checked, erased events among it."""
    store = Store(data_dir)
    committer = Committer(store, lambda: 1_000)
    committer.start()
    write(committer, [event(1), event(2, SECRET)])
    receipt = erase(store, committer, "e1", "e2")
    committer.stop()
    store.close()
    store = Store(data_dir)
    assert store.receipts.unfinished() == [receipt]
    assert store.log.get("e2").erased_ms == 9
    store.close()


def test_receipts_are_kept_in_order_and_hold_no_words(store: Store, committer: Committer) -> None:
    """A receipt is unfinished until its outcome is there; neither holds what was said."""
    write(committer, [event(1, SECRET), event(2, SECRET)])
    first, second = erase(store, committer, "e1"), erase(store, committer, "e2")
    assert store.receipts.unfinished() == [first, second]
    outcome = Outcome(first.number, 7, 1, 0, 3, 99, (4,), ())
    batch = store.db.batch()
    store.receipts.end(batch, outcome)
    store.db.write(batch)
    assert store.receipts.unfinished() == [second]
    assert store.receipts.get(first.number) == (first, outcome)
    with pytest.raises(NotFound):
        store.receipts.get(99)
    assert not any(b"lantern" in value for _, value in store.db.scan("receipts"))


def test_notes_made_of_a_summary_are_emptied(store: Store, committer: Committer) -> None:
    """An archive is forgotten, a daily log keeps its other entries, and the notes still verify."""
    notes = ProjectNotes(store, committer)
    write(committer, [event(1, f"Summary: {SECRET}", compaction="true")])
    day = Note("2026-01-31", "# 2026-01-31\n\n## 09:00\n\nother\n", kind="daily")
    notes.change(lambda desk: desk.put(day, "remember"))
    told = day._replace(content=f"{day.content}\n## 10:00\n\nSummary: {SECRET}\n")
    notes.change(lambda desk: desk.put(told, "remember"))
    archive = Note("archive s", f"# x\n\nsession s\n\nSummary: {SECRET}\n", kind="archive")
    notes.change(lambda desk: desk.put(archive._replace(provenance=("e1",)), "remember"))
    erase(store, committer, "e1")
    head = notes.book.head(day.place, day.name)
    assert head is not None
    assert notes.book.whole(head).note.content.count("other") == 1
    assert "[erased]" in notes.book.whole(head).note.content
    gone = notes.book.head(archive.place, archive.name)
    assert gone is not None
    assert gone.forgotten
    assert not any(b"lantern" in value for _, value in store.db.scan("notes"))
    assert list(check_notes(store.db)) == []


def test_blocks_that_told_of_it_are_emptied(store: Store, committer: Committer) -> None:
    """A block that showed the event, quoted it or was asked for by it loses its text."""
    write(committer, [event(1, SECRET), event(2)])
    shown = (("hits", "whole", ("grip:1:x, e1",), ()),)
    other = (("hits", "whole", ("e2",), ()),)
    add = store.injections.add
    add(Injection("s1", 0, 1, "a", "q", 9, "some block", shown))
    add(Injection("s2", 0, 2, "a", "q", 9, f"... {SECRET} ...", other))
    add(Injection("s3", 0, 3, "a", SECRET, 9, "found for it", other))
    add(Injection("s4", 0, 4, "a", "q", 9, "an innocent block", other))
    erase(store, committer, "e1")
    texts = [(g.text, g.query) for s in "1234" if (g := store.injections.get(f"s{s}", 1))]
    assert texts == [("", ""), ("", ""), ("", ""), ("an innocent block", "q")]


def test_the_search_sees_what_the_engine_hides(store: Store, committer: Committer) -> None:
    """An overwritten value is found in a compressed table until all tables are written anew."""
    write(committer, [event(n, f"{SECRET} {n} " * 20) for n in range(1, 40)])
    store.db.flush()
    raw = rawbytes.search(store.data_dir, lambda data: b"lanterns 7 " in data)
    assert len(raw.found) == 1
    assert raw.found[0].endswith(".sst")
    erase(store, committer, *(f"e{n}" for n in range(1, 40)))
    store.db.flush()
    assert rawbytes.search(store.data_dir, lambda data: b"lanterns 7 " in data).found
    store.db.compact(lambda: True, rewrite=True)
    assert rawbytes.search(store.data_dir, lambda data: b"lantern" in data).found == ()


def test_the_search_reads_across_portions(tmp_path: os.PathLike[str]) -> None:
    """Words that lie on the border of two portions are found."""
    path = f"{os.fspath(tmp_path)}/file"
    size = rawbytes._CHUNK
    with open(path, "wb") as file:
        file.write(b"x" * (size - 5) + SECRET.encode() + b"y" * 100)
    found = rawbytes.search(os.fspath(tmp_path), lambda data: SECRET.encode() in data)
    assert found == (1, size - 5 + len(SECRET) + 100, ("file",))
