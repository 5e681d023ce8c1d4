import os

import pytest
from rocksdict import Options, Rdict

from memoryd.domain.errors import FormatUnknown, StoreError
from memoryd.services.backup import keep_old_format
from memoryd.services.restore import Restored, choose, restore
from memoryd.storage import codec
from memoryd.storage.migrate import open_store
from memoryd.storage.store import Store
from tests.compat import format1
from tests.storage.checking import problems, verdict

NOW_MS = 1_790_000_000_000


@pytest.fixture
def data_dir(tmp_path: os.PathLike[str]) -> str:
    """A place for a store."""
    return f"{os.fspath(tmp_path)}/data"


def no_backup(_version: int) -> None:
    """Nothing may be kept where nothing changes."""
    pytest.fail("there was nothing to migrate")


@pytest.mark.parametrize("notes", [True, False])
def test_a_store_of_format_1_is_brought_up_to_date(data_dir: str, *, notes: bool) -> None:
    """It keeps its events and its id, takes notes, and is not migrated twice."""
    format1.write(data_dir, notes=notes)
    assert problems(data_dir) == []
    kept: list[int] = []
    store = open_store(data_dir, kept.append, NOW_MS)
    assert kept == [1]
    assert store.store_id == str(format1.STORE_ID)
    assert [recorded.event.text for recorded in store.log.after(0)] == list(format1.TEXTS)
    assert store.db.get("meta", b"format") == b"2"
    history = codec.read(store.db.get("meta", b"migrations") or b"", "migrations")
    assert history == [[1, 2, NOW_MS]]
    store.close()
    open_store(data_dir, no_backup, NOW_MS).close()
    assert verdict(data_dir)[:2] == (3, 3)
    assert problems(data_dir) == []


def test_a_migration_that_was_cut_off_is_done_again(data_dir: str) -> None:
    """The version comes last: a store with the new families and the old version is still old."""
    format1.write(data_dir)
    options = Options(raw_mode=True)
    options.create_missing_column_families(True)
    names = (*format1.FAMILIES, "gaps", "receipts")
    Rdict(f"{data_dir}/db", options, {n: Options(raw_mode=True) for n in names}).close()
    kept: list[int] = []
    open_store(data_dir, kept.append, NOW_MS).close()
    assert kept == [1]
    Store(data_dir).close()


def test_the_store_is_kept_before_it_changes(data_dir: str) -> None:
    """The backup holds format 1, file by file; it can be restored, and migrated again."""
    format1.write(data_dir)
    paths: list[str] = []

    def keep(version: int) -> None:
        paths.append(keep_old_format(data_dir, "p", version, NOW_MS))

    open_store(data_dir, keep, NOW_MS).close()
    backup = choose(paths[0])
    assert (backup.manifest["format"], backup.manifest["sequence"]) == (1, 3)
    *_, done = restore(backup, f"{data_dir}-again", f"{data_dir}-global", NOW_MS)
    assert isinstance(done, Restored)
    assert done.events == 3
    again = Rdict.list_cf(f"{data_dir}-again/db")
    assert "gaps" not in again
    open_store(f"{data_dir}-again", lambda _version: None, NOW_MS).close()


def test_without_a_backup_nothing_changes(data_dir: str) -> None:
    """If the old store cannot be kept, it stays as it is."""
    format1.write(data_dir)

    def fail(_version: int) -> None:
        raise StoreError("the disk is full")

    with pytest.raises(StoreError, match="disk is full"):
        open_store(data_dir, fail, NOW_MS)
    assert "gaps" not in Rdict.list_cf(f"{data_dir}/db")


def test_a_newer_format_is_refused(data_dir: str) -> None:
    """A store with a higher version, or with families of the future, is left alone."""
    Store(data_dir).close()
    options = Options(raw_mode=True)
    options.create_missing_column_families(True)
    names = [name for name in Rdict.list_cf(f"{data_dir}/db") if name != "default"]
    families = {name: Options(raw_mode=True) for name in (*names, "dreams")}
    Rdict(f"{data_dir}/db", options, families).close()
    with pytest.raises(FormatUnknown, match="holds dreams, which this memoryd does not know"):
        open_store(data_dir, no_backup, NOW_MS)
    with pytest.raises(FormatUnknown, match="a newer one wrote it"):
        Store(data_dir)
