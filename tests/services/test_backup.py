import json
import os
import shutil
import threading
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from memoryd.domain.errors import (
    Cancelled,
    InvalidInput,
    StoreDamaged,
    StoreError,
    TooBusy,
)
from memoryd.domain.event import Event
from memoryd.domain.note import Note
from memoryd.services.backup import MANIFEST, PARTIAL, Backup, Made, backups_in
from memoryd.services.care import Care, Compacting, Surroundings
from memoryd.services.restore import Restored, choose, restore
from memoryd.storage.committer import Committer
from memoryd.storage.global_notes import GlobalNotes
from memoryd.storage.log import Draft
from memoryd.storage.notes import ProjectNotes
from memoryd.storage.stage import clear_stages
from memoryd.storage.store import Store
from tests.storage.checking import problems, verdict


def always() -> bool:
    """Somebody listens."""
    return True


def draft(number: int) -> Draft:
    """An event of its own."""
    text = f"{number} " + os.urandom(200).hex()
    event = Event(f"e{number:06}", f"s{number % 3}", number + 1, 2, 1, text, {}, "a", "p", "", "")
    return Draft(event, timed=True)


class Kept(NamedTuple):
    """A store with a committer, and what looks after it."""

    store: Store
    committer: Committer
    care: Care
    base: str

    def add(self, first: int, count: int) -> None:
        """Write events."""
        self.committer.append([draft(n) for n in range(first, first + count)])

    def backup(self, keep: int = 0, name: str = "backups") -> Made:
        """Make a backup."""
        *_, made = self.care.backup(f"{self.base}/{name}", keep, always)
        assert isinstance(made, Made)
        return made


@pytest.fixture
def kept(tmp_path: os.PathLike[str]) -> Iterator[Kept]:
    """A store that can be backed up."""
    base = os.fspath(tmp_path)
    store = Store(f"{base}/data")
    committer = Committer(store, lambda: 1)
    committer.start()
    with open(f"{base}/config.toml", "w", encoding="utf-8") as file:
        file.write("log_level = 'info'\n")
    around = Surroundings("p", f"{base}/data/index", f"{base}/global", (f"{base}/config.toml",))
    ticks = iter(range(1_790_000_000_000, 1_800_000_000_000, 1_000))
    yield Kept(store, committer, Care(store, around, lambda: next(ticks)), base)
    committer.stop()
    store.close()


def put_back(backup: Backup, base: str, **flags: bool) -> Restored:
    """Restore a backup into a directory."""
    *_, done = restore(backup, f"{base}/again", f"{base}/global-again", 1, **flags)
    assert isinstance(done, Restored)
    return done


def test_a_backup_holds_everything(kept: Kept) -> None:
    """Events, notes, global notes and settings come back as they were."""
    kept.add(0, 50)
    note = Note("n", "text")
    ProjectNotes(kept.store, kept.committer).change(lambda desk: desk.put(note, "remember"))
    shared = GlobalNotes(f"{kept.base}/global")
    shared.change(lambda desk: desk.put(Note("g", "shared", scope="global"), "remember"))
    made = kept.backup()
    assert (made.sequence, made.removed) == (50, ())
    done = put_back(choose(f"{kept.base}/backups"), kept.base)
    assert (done.events, done.sequence, done.aside, done.global_notes) == (50, 50, "", "restored")
    again = Store(f"{kept.base}/again")
    assert list(again.log.after(0)) == list(kept.store.log.after(0))
    assert again.store_id == kept.store.store_id
    assert again.notes_tail == kept.store.notes_tail
    again.close()
    other = GlobalNotes(f"{kept.base}/global-again")
    assert list(other.book.after(0)) == list(shared.book.after(0))
    other.close()
    shared.close()
    with open(f"{made.path}/config/config.toml", encoding="utf-8") as file:
        assert file.read() == "log_level = 'info'\n"


def test_a_manifest_says_what_is_in_a_backup(kept: Kept) -> None:
    """It names the store, the end of the log and every file with its hash."""
    kept.add(0, 10)
    made = kept.backup()
    with open(f"{made.path}/{MANIFEST}", encoding="utf-8") as file:
        manifest = json.load(file)
    tail = kept.store.log.tail
    assert (manifest["store_id"], manifest["format"]) == (kept.store.store_id, 2)
    assert (manifest["sequence"], manifest["chain"]) == (tail.sequence, tail.chain.hex())
    there = {
        os.path.relpath(f"{folder}/{name}", made.path)
        for folder, _, names in os.walk(made.path)
        for name in names
    }
    assert there == {*manifest["files"], MANIFEST}


def test_only_its_owner_can_read_a_backup(kept: Kept) -> None:
    """Files are 0600 and directories 0700, whatever the umask."""
    before = os.umask(0)
    try:
        kept.add(0, 10)
        kept.backup()
    finally:
        os.umask(before)
    for folder, _, names in os.walk(f"{kept.base}/backups"):
        assert os.stat(folder).st_mode & 0o777 == 0o700
        assert {os.stat(f"{folder}/{name}").st_mode & 0o777 for name in names} <= {0o600}


def test_a_later_backup_shares_what_has_not_changed(kept: Kept) -> None:
    """Tables are linked, not copied; each backup stays whole when the other goes."""
    kept.add(0, 2_000)
    first = kept.backup()
    kept.add(2_000, 20)
    second = kept.backup()
    assert second.copied < first.copied / 2
    shutil.rmtree(first.path)
    assert put_back(choose(f"{kept.base}/backups"), kept.base).events == 2_020


def test_an_older_backup_can_be_restored(kept: Kept) -> None:
    """A backup is chosen by its name; what was there goes aside."""
    kept.add(0, 10)
    first = kept.backup()
    kept.add(10, 10)
    kept.backup()
    assert put_back(choose(f"{kept.base}/backups"), kept.base).events == 20
    backup = choose(f"{kept.base}/backups", os.path.basename(first.path))
    done = put_back(backup, kept.base)
    assert done.events == 10
    aside = Store(done.aside)
    assert aside.log.tail.sequence == 20
    aside.close()
    with pytest.raises(InvalidInput, match="there is no backup nonsense"):
        choose(f"{kept.base}/backups", "nonsense")


def test_a_table_that_rots_in_a_backup_is_not_shared(kept: Kept) -> None:
    """A file of an earlier backup that is not what it was is copied anew."""
    kept.add(0, 500)
    first = kept.backup()
    for name in os.listdir(f"{first.path}/db"):
        if name.endswith(".sst"):
            with open(f"{first.path}/db/{name}", "r+b") as file:
                file.write(b"rot")
    second = kept.backup()
    assert put_back(choose(second.path), kept.base).events == 500
    with pytest.raises(StoreDamaged, match="not what was written"):
        put_back(choose(first.path), kept.base)


@pytest.mark.parametrize("lost", ["db/CURRENT", "HIGHWATER"])
def test_a_damaged_backup_changes_nothing(kept: Kept, lost: str) -> None:
    """A backup that has lost a file is refused before anything is changed."""
    kept.add(0, 10)
    made = kept.backup()
    put_back(choose(made.path), kept.base)
    os.unlink(f"{made.path}/{lost}")
    with pytest.raises(StoreDamaged, match=f"{lost} is gone"):
        put_back(choose(made.path), kept.base)
    assert problems(f"{kept.base}/again") == []
    assert not os.path.exists(f"{kept.base}/again.restoring")


def test_a_backup_that_is_called_off_leaves_the_others(kept: Kept) -> None:
    """What was begun is removed, and what was finished before is as it was."""
    kept.add(0, 10)
    kept.backup()
    alive = iter([True, True, False])
    with pytest.raises(Cancelled):
        list(kept.care.backup(f"{kept.base}/backups", 0, lambda: next(alive)))
    assert len(backups_in(f"{kept.base}/backups")) == 1
    assert [n for n in os.listdir(f"{kept.base}/backups") if n.startswith(PARTIAL)] == []
    assert [n for n in os.listdir(f"{kept.base}/data") if n.startswith("stage")] == []


def test_what_was_cut_off_is_cleared(kept: Kept) -> None:
    """The next run removes what a killed one has left, and counts only what is finished."""
    kept.add(0, 10)
    kept.backup()
    os.makedirs(f"{kept.base}/backups/{PARTIAL}20200101T000000Z/db")
    kept.backup()
    names = os.listdir(f"{kept.base}/backups")
    assert [name for name in names if name.startswith(PARTIAL)] == []
    assert len(backups_in(f"{kept.base}/backups")) == 2


def test_what_a_killed_daemon_has_staged_is_removed(kept: Kept) -> None:
    """A copy that was left behind goes at the next start; nothing else does."""
    os.makedirs(f"{kept.base}/data/stage-1-1/db")
    before = sorted(os.listdir(f"{kept.base}/data"))
    clear_stages(f"{kept.base}/data")
    assert sorted(os.listdir(f"{kept.base}/data")) == [n for n in before if n != "stage-1-1"]
    clear_stages(f"{kept.base}/nowhere")


def test_only_the_newest_are_kept(kept: Kept) -> None:
    """With a number to keep, older backups go."""
    kept.add(0, 10)
    names = [os.path.basename(kept.backup(keep=2).path) for _ in range(4)]
    assert [backup.name for backup in backups_in(f"{kept.base}/backups")] == names[2:]
    assert put_back(choose(f"{kept.base}/backups"), kept.base).events == 10


def test_a_directory_with_something_else_is_refused(kept: Kept) -> None:
    """Neither files of others nor backups of another store are touched."""
    os.mkdir(f"{kept.base}/mine")
    with open(f"{kept.base}/mine/letter", "w", encoding="utf-8") as file:
        file.write("dear")
    with pytest.raises(InvalidInput, match="holds something else"):
        kept.backup(name="mine")
    assert os.listdir(f"{kept.base}/mine") == ["letter"]
    kept.backup()
    other = Store(f"{kept.base}/other")
    care = Care(other, Surroundings("q", "", "", ()), lambda: 1)
    with pytest.raises(InvalidInput, match="backups of another store"):
        list(care.backup(f"{kept.base}/backups", 0, always))
    other.close()
    with pytest.raises(InvalidInput, match="not an absolute path"):
        list(kept.care.backup("relative", 0, always))


def test_a_directory_that_cannot_be_written_is_an_error(kept: Kept) -> None:
    """An error of the system names the destination."""
    with open(f"{kept.base}/file", "w", encoding="utf-8"):
        pass
    with pytest.raises(StoreError, match=f"cannot back up to {kept.base}/file"):
        kept.backup(name="file/below")


def test_one_backup_at_a_time(kept: Kept) -> None:
    """A second one is refused while the first is under way."""
    kept.add(0, 10)
    first = kept.care.backup(f"{kept.base}/backups", 0, always)
    next(first)
    with pytest.raises(TooBusy, match="another backup"):
        kept.backup()
    *_, made = first
    assert isinstance(made, Made)


def test_another_store_is_not_overwritten(kept: Kept) -> None:
    """A directory with another store needs a word of consent."""
    kept.add(0, 10)
    kept.backup()
    Store(f"{kept.base}/again").close()
    backup = choose(f"{kept.base}/backups")
    with pytest.raises(InvalidInput, match="--other-store"):
        put_back(backup, kept.base)
    assert put_back(backup, kept.base, other_store=True).events == 10


def test_global_notes_are_left_alone_unless_asked_for(kept: Kept) -> None:
    """All projects share them, so that those that are there stay, or go aside."""
    shared = GlobalNotes(f"{kept.base}/global")
    shared.change(lambda desk: desk.put(Note("old", scope="global"), "remember"))
    shared.close()
    kept.backup()
    live = GlobalNotes(f"{kept.base}/global-again")
    live.change(lambda desk: desk.put(Note("new", scope="global"), "remember"))
    backup = choose(f"{kept.base}/backups")
    assert put_back(backup, kept.base).global_notes == "kept"
    assert [r.note.name for r in live.book.after(0)] == ["new"]
    assert put_back(backup, kept.base, global_notes=True).global_notes == "restored"
    assert [r.note.name for r in live.book.after(0)] == ["old"]
    live.close()
    aside = [n for n in os.listdir(f"{kept.base}/global-again") if ".replaced-" in n]
    assert len(aside) == 1


def test_backups_under_load_are_whole(kept: Kept) -> None:
    """Every backup that is made while events are written is whole, and has what was synced."""
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            kept.add(number, 50)
            number += 50

    writer = threading.Thread(target=write)
    writer.start()
    try:
        ends = []
        for _ in range(5):
            before = kept.committer.synced
            made = kept.backup()
            ends.append((before, made.sequence))
    finally:
        stop.set()
        writer.join()
    assert all(before <= end for before, end in ends)
    assert ends[0][1] < ends[-1][1]
    for backup, (_, end) in zip(backups_in(f"{kept.base}/backups"), ends, strict=True):
        done = put_back(backup, kept.base)
        assert (done.sequence, done.events) == (end, end)


def test_a_check_beside_the_writers(kept: Kept) -> None:
    """The store of a running daemon is checked by another process, and left as it was."""
    kept.add(0, 100)
    *_, found = kept.care.verify(always)
    assert found == verdict(f"{kept.base}/data")
    assert [n for n in os.listdir(f"{kept.base}/data") if n.startswith("stage")] == []
    with pytest.raises(Cancelled):
        list(kept.care.verify(lambda: False))


def test_compaction_tells_how_far_it_is(kept: Kept) -> None:
    """All tables are merged, and the sizes before and after are told."""
    kept.add(0, 100)
    kept.store.db.flush()
    *_, done = kept.care.compact(always)
    assert isinstance(done, Compacting)
    assert done.finished
    assert done.done == done.total
    assert min(done.before, done.after) > 0
