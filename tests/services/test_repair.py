import os
import random
import re
import shutil
from functools import partial
from glob import glob

import pytest

from memoryd.domain.errors import InvalidInput, StoreError
from memoryd.domain.event import Event
from memoryd.domain.note import Note
from memoryd.services.repair import Repaired, repair
from memoryd.storage.committer import Committer
from memoryd.storage.db import Database
from memoryd.storage.log import Draft
from memoryd.storage.notebook import Desk
from memoryd.storage.notes import ProjectNotes
from memoryd.storage.store import Store
from tests.storage.checking import problems, verdict

NOW_MS = 1_790_000_000_000
COUNT = 1_500


def draft(number: int) -> Draft:
    """An event whose place in time is far from its place in the log, and hard to compress."""
    time_ms = 1_000_000 + (number * 7_919) % 100_003
    text = random.Random(number).randbytes(400).hex()
    event = Event(f"e{number:05}", f"s{number % 5}", time_ms, 2, 1, text, {}, "a", "p", "", "")
    return Draft(event, timed=True)


def _remember(note: Note, desk: Desk) -> None:
    desk.put(note, "remember")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store with tables, a write-ahead log and notes; only copies of it are damaged."""
    base = os.fspath(tmp_path_factory.mktemp("whole"))
    store = Store(f"{base}/open")
    committer = Committer(store, lambda: 1)
    committer.start()
    committer.append([draft(n) for n in range(COUNT - 100)])
    notes = ProjectNotes(store, committer)
    for number in range(20):
        note = Note(f"n{number % 7}", f"text {number}", aliases=(f"alias {number % 7}",))
        notes.change(partial(_remember, note))
    store.db.flush()
    committer.append([draft(n) for n in range(COUNT - 100, COUNT)])
    shutil.copytree(f"{base}/open", f"{base}/store")  # as after a power cut: the log is open
    committer.stop()
    store.close()
    return f"{base}/store"


@pytest.fixture
def damaged(whole: str, tmp_path: os.PathLike[str]) -> str:
    """A copy to be damaged."""
    shutil.copytree(whole, f"{os.fspath(tmp_path)}/store")
    return f"{os.fspath(tmp_path)}/store"


def table_of(data_dir: str, family: str) -> str:
    """The largest table of a family."""
    with Database(f"{data_dir}/db", read_only=True) as db:
        listed = db._families[family].property_value("rocksdb.sstables") or ""
    tables = [
        (int(size), name) for name, size in re.findall(r"^ (\d+):(\d+)\[", listed, re.MULTILINE)
    ]
    return f"{data_dir}/db/{int(max(tables)[1]):06}.sst"


def spoil(path: str, offset: int, count: int = 1) -> None:
    """Flip some bytes of a file; a negative offset counts from its end."""
    with open(path, "r+b") as file:
        file.seek(offset, os.SEEK_SET if offset >= 0 else os.SEEK_END)
        at = file.tell()
        data = file.read(count)
        file.seek(at)
        file.write(bytes(byte ^ 0xFF for byte in data))


def run(data_dir: str) -> Repaired:
    """Repair a store."""
    *_, done = repair(data_dir, NOW_MS)
    assert isinstance(done, Repaired)
    return done


def gone_in(done: Repaired) -> set[int]:
    """The sequence numbers of the events that a repair found gone."""
    return {number for gap in done.gone for number in range(gap.first, gap.last + 1)}


def check_repaired(data_dir: str, done: Repaired) -> None:
    """What is left is whole, what is gone is written down, and the log goes on behind it."""
    gone = gone_in(done)
    found = verdict(data_dir)
    assert found.problems == ()
    assert found.event_gaps == done.gone
    assert (found.events, found.sequence) == (COUNT - len(gone), COUNT)
    store = Store(data_dir)
    kept = {recorded.sequence: recorded.event for recorded in store.log.after(0)}
    assert kept == {n + 1: draft(n).event for n in range(COUNT) if n + 1 not in gone}
    (fresh,) = store.log.append([draft(COUNT)], 1)
    assert fresh.sequence == COUNT + 1
    store.sync()
    store.close()
    assert problems(data_dir) == []
    Store(data_dir).close()
    assert os.path.isdir(f"{done.aside}/db")


def test_a_bad_block_costs_its_own_events(damaged: str) -> None:
    """A flipped byte in a table of events costs the events of one block, named exactly."""
    path = table_of(damaged, "events")
    spoil(path, os.path.getsize(path) // 2)
    said = [p for p in problems(damaged) if "gone" in p]
    done = run(damaged)
    assert 0 < len(gone_in(done)) < 60
    assert len(said) >= len(done.gone) > 0  # a scan cannot reach all that a repair can
    check_repaired(damaged, done)


def test_two_bad_blocks_cost_theirs(damaged: str) -> None:
    """What lies between two bad blocks is saved."""
    path = table_of(damaged, "events")
    spoil(path, os.path.getsize(path) // 3)
    spoil(path, os.path.getsize(path) * 2 // 3)
    done = run(damaged)
    assert 0 < len(gone_in(done)) < 120
    check_repaired(damaged, done)


def test_a_damaged_journal_costs_nothing(damaged: str) -> None:
    """The journal follows from the events: their running hash is made again, the same as before."""
    path = table_of(damaged, "journal")
    spoil(path, os.path.getsize(path) // 2)
    tail = verdict(damaged).sequence
    done = run(damaged)
    assert gone_in(done) == set()
    assert tail == COUNT
    check_repaired(damaged, done)


@pytest.mark.parametrize("name", ["CURRENT", "MANIFEST-*"])
def test_a_lost_list_of_tables_costs_nothing(damaged: str, name: str) -> None:
    """Without the files that list the tables everything is found in the tables themselves."""
    for path in glob(f"{damaged}/db/{name}"):
        os.unlink(path)
    done = run(damaged)
    assert gone_in(done) == set()
    check_repaired(damaged, done)


def test_a_lost_table_is_told_exactly(damaged: str) -> None:
    """Without the table of the events those in it are gone, and those in the WAL are saved."""
    os.unlink(table_of(damaged, "events"))
    done = run(damaged)
    assert gone_in(done) == set(range(1, COUNT - 100 + 1))
    check_repaired(damaged, done)


def test_a_table_that_cannot_be_entered_is_given_up(damaged: str) -> None:
    """A table with a damaged index block is lost; all others are saved."""
    spoil(table_of(damaged, "events"), -60, 60)
    done = run(damaged)
    assert gone_in(done) == set(range(1, COUNT - 100 + 1))
    check_repaired(damaged, done)


def test_a_lost_end_is_known_from_the_mark(damaged: str) -> None:
    """Events whose WAL is gone are known to be gone, and their numbers are not given again."""
    for path in glob(f"{damaged}/db/*.log"):
        os.unlink(path)
    done = run(damaged)
    assert gone_in(done) == set(range(COUNT - 100 + 1, COUNT + 1))
    check_repaired(damaged, done)


def test_damage_on_damage(damaged: str) -> None:
    """A second repair keeps what the first has written down."""
    for path in glob(f"{damaged}/db/*.log"):
        os.unlink(path)
    first = run(damaged)
    path = table_of(damaged, "events")
    spoil(path, os.path.getsize(path) // 2)
    *_, second = repair(damaged, NOW_MS + 1)
    assert isinstance(second, Repaired)
    assert second.gone
    found = verdict(damaged)
    assert found.problems == ()
    assert found.event_gaps == (*second.gone, *first.gone)


def test_notes_are_saved_one_by_one(damaged: str) -> None:
    """Without the table of notes they are known to be gone; new ones go on behind them."""
    os.unlink(table_of(damaged, "notes"))
    done = run(damaged)
    assert [(gap.first, gap.last) for gap in done.notes_gone] == [(1, 20)]
    assert gone_in(done) == set()
    store = Store(damaged)
    committer = Committer(store, lambda: 1)
    committer.start()
    revision = ProjectNotes(store, committer).change(lambda desk: desk.put(Note("m"), "remember"))
    assert (revision.sequence, revision.revision) == (21, 1)
    committer.stop()
    store.close()
    found = verdict(damaged)
    assert (found.problems, found.note_gaps) == ((), done.notes_gone)


def test_names_of_notes_are_made_again(damaged: str) -> None:
    """Names and aliases follow from the revisions."""
    os.unlink(table_of(damaged, "note_heads"))
    done = run(damaged)
    assert done.notes_gone == ()
    store = Store(damaged)
    notes = ProjectNotes(store, Committer(store, lambda: 1))
    place = Note("n").place
    found = notes.book.find(place, "alias 3")
    assert found is not None
    assert notes.book.whole(found).note.content == "text 17"
    store.close()


def test_an_event_that_was_changed_is_not_kept(damaged: str) -> None:
    """An event that is not what was written goes, and the running hash holds around it."""
    store = Store(damaged)
    key, value = next(iter(store.db.scan("events", reverse=True)))
    sequence = store.log.at_key(key).sequence
    batch = store.db.batch()
    batch.put(key, value[:-1] + b"X", store.db.handle("events"))
    store.db.write(batch)
    store.close()
    assert problems(damaged) == [f"event {sequence} does not match the running hash"]
    done = run(damaged)
    assert gone_in(done) == {sequence}
    check_repaired(damaged, done)


def test_a_whole_store_is_left_alone(damaged: str) -> None:
    """Where nothing is wrong nothing is repaired."""
    before = sorted(os.listdir(f"{damaged}/db"))
    with pytest.raises(InvalidInput, match="nothing to repair"):
        run(damaged)
    assert sorted(os.listdir(f"{damaged}/db")) == before


def test_nothing_to_save(tmp_path: os.PathLike[str]) -> None:
    """Without a database there is nothing to repair."""
    with pytest.raises(StoreError, match="no store"):
        run(os.fspath(tmp_path))


def test_a_bad_block_costs_no_events_of_other_tables(tmp_path: os.PathLike[str]) -> None:
    """Events of other tables in the range of a bad block are saved, and all behind it."""
    path = f"{os.fspath(tmp_path)}/data"
    store = Store(path)
    for first in range(0, 1_200, 400):
        store.log.append([draft(n) for n in range(first, first + 400)], 1)
        store.sync()
        store.db.flush()
    tables = store.db._families["events"].property_value("rocksdb.sstables") or ""
    store.close()
    names = re.findall(r"^ (\d+):", tables, re.MULTILINE)
    assert len(names) == 3
    middle = f"{path}/db/{sorted(map(int, names))[1]:06}.sst"
    spoil(middle, os.path.getsize(middle) // 2)
    gone = gone_in(run(path))
    assert 0 < len(gone) < 60
    assert gone <= set(range(401, 801))
    assert problems(path) == []
