import os
import shutil
import subprocess
import sys
from glob import glob

import pytest

from memoryd.domain.errors import FormatUnknown, MemorydError, StoreDamaged, StoreLocked
from memoryd.domain.event import Event
from memoryd.storage.db import Database
from memoryd.storage.log import Draft
from memoryd.storage.store import Lock, Store, owner
from tests.storage.checking import problems


def fill(store: Store, count: int, *, text: str = "") -> None:
    """Append events and sync."""
    drafts = [
        Draft(Event(f"e{n:05}", "s", n + 1, 2, 1, text or f"t{n}", {}, "", "p", "", ""), timed=True)
        for n in range(count)
    ]
    store.log.append(drafts, 1)
    store.sync()


def test_reopening_gives_the_same(data_dir: str) -> None:
    """A closed store opens with the same id, end and events."""
    store = Store(data_dir)
    fill(store, 100)
    kept = (store.store_id, store.log.tail, list(store.log.after(0)))
    store.close()
    again = Store(data_dir)
    assert (again.store_id, again.log.tail, list(again.log.after(0))) == kept
    again.close()


@pytest.mark.parametrize("version", [b"0", b"1", b"3", b"99"])
def test_another_format_is_refused(data_dir: str, version: bytes) -> None:
    """A store of another format version is not opened."""
    store = Store(data_dir)
    batch = store.db.batch()
    batch.put(b"format", version, store.db.handle("meta"))
    store.db.write(batch)
    store.close()
    with pytest.raises(FormatUnknown, match=f"has format {version.decode()}"):
        Store(data_dir)


def test_parts_of_two_stores_are_refused(data_dir: str) -> None:
    """HIGHWATER of one store and the database of another do not open together."""
    for name in (data_dir, f"{data_dir}2"):
        store = Store(name)
        fill(store, 3)
        store.close()
    shutil.copy(f"{data_dir}2/HIGHWATER", f"{data_dir}/HIGHWATER")
    with pytest.raises(StoreDamaged, match="belong to different stores"):
        Store(data_dir)


def test_a_log_that_ends_before_the_mark_is_refused(data_dir: str) -> None:
    """An older copy of the database under a newer mark is refused, and verify says what is lost."""
    store = Store(data_dir)
    fill(store, 5)
    store.close()
    shutil.copytree(f"{data_dir}/db", f"{data_dir}/old")
    store = Store(data_dir)
    fill(store, 9)
    store.close()
    shutil.rmtree(f"{data_dir}/db")
    os.rename(f"{data_dir}/old", f"{data_dir}/db")
    with pytest.raises(StoreDamaged, match="events 6 to 9 are lost"):
        Store(data_dir)
    assert problems(data_dir) == ["events 6 to 9 are lost: the log ends before them"]
    assert problems(data_dir, accept=True) == []
    Store(data_dir).close()


def test_a_changed_event_is_noticed(data_dir: str) -> None:
    """An event whose text was changed behind the log's back does not pass the running hash."""
    store = Store(data_dir)
    fill(store, 10)
    key, value = next(iter(store.db.scan("events")))
    batch = store.db.batch()
    batch.put(key, value.replace(b"t0", b"tX"), store.db.handle("events"))
    store.db.write(batch)
    store.close()
    with pytest.raises(StoreDamaged, match="event 1 does not match the running hash"):
        Store(data_dir)


@pytest.mark.parametrize("missing", ["HIGHWATER", "db", "db/CURRENT"])
def test_missing_parts_are_not_taken_for_a_new_store(data_dir: str, missing: str) -> None:
    """A store that has lost a part is refused instead of begun anew."""
    store = Store(data_dir)
    fill(store, 3)
    store.close()
    path = f"{data_dir}/{missing}"
    if os.path.isdir(path):
        shutil.rmtree(path)
    else:
        os.unlink(path)
    with pytest.raises(StoreDamaged):
        Store(data_dir)


def test_a_scan_over_damage_raises(data_dir: str) -> None:
    """A scan that meets a damaged block raises, in both directions, and does not end early."""
    store = Store(data_dir)
    fill(store, 600, text=os.urandom(600).hex())
    drafts = [
        Draft(
            Event(f"r{n:05}", "s", n + 1, 2, 1, os.urandom(1_000).hex(), {}, "", "p", "", ""),
            timed=True,
        )
        for n in range(600)
    ]
    store.log.append(drafts, 1)
    store.sync()
    store.db.flush()
    store.close()
    largest = max(glob(f"{data_dir}/db/*.sst"), key=os.path.getsize)
    with open(largest, "r+b") as file:
        file.seek(os.path.getsize(largest) // 2)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 0xFF]))
    db = Database(f"{data_dir}/db", create=False)
    for reverse in (False, True):
        seen = 0
        with pytest.raises(StoreDamaged, match="cannot read events"):  # noqa: PT012
            for _ in db.scan("events", reverse=reverse):
                seen += 1
        assert 0 < seen < 1_200
    db.close()
    assert any("are gone" in problem for problem in problems(data_dir))


def test_a_second_owner_is_refused_by_name(data_dir: str) -> None:
    """A data directory in use is refused to other processes, which learn the owner's pid."""
    assert owner(data_dir) is None
    lock = Lock(data_dir)
    code = (
        "import sys; from memoryd.storage.store import Lock, owner; print(owner(sys.argv[1]))\n"
        "Lock(sys.argv[1])"
    )
    command = [sys.executable, "-c", code, data_dir]
    other = subprocess.run(command, capture_output=True, text=True, check=False)
    assert other.returncode == 1
    assert other.stdout.strip() == str(os.getpid())
    assert f"in use by process {os.getpid()}" in other.stderr
    with pytest.raises(StoreLocked):
        Lock(data_dir)
    lock.release()
    assert owner(data_dir) is None
    Lock(data_dir).release()


def test_a_database_in_use_is_refused(store: Store) -> None:
    """The database itself does not open twice either."""
    with pytest.raises(StoreLocked):
        Database(store.db.path, create=False)


def test_files_belong_to_their_owner_alone(store: Store) -> None:
    """The data directory can be entered by its owner only."""
    assert os.stat(store.data_dir).st_mode & 0o777 == 0o700


def test_a_scan_after_closing_is_refused(data_dir: str) -> None:
    """A closed database answers with an error of ours, not with a crash."""
    store = Store(data_dir)
    store.close()
    with pytest.raises(MemorydError, match="closing"):
        list(store.db.scan("events"))
