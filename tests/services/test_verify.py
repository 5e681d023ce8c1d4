import os
import shutil
import time
from collections.abc import Callable

import pytest

from memoryd.domain.event import Event
from memoryd.services.indexer import Indexer
from memoryd.services.verify import Problem
from memoryd.storage import codec
from memoryd.storage.db import Database
from memoryd.storage.gaps import EVENTS, Gap, gap_entry
from memoryd.storage.slots import Slots
from memoryd.storage.store import Store
from tests.services.rig import MINUTE, NOON, Rig
from tests.storage.checking import verdict

COUNT = 60


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store with events, nodes, grips and an index, closed; only copies of it are changed."""
    path = f"{os.fspath(tmp_path_factory.mktemp('whole'))}/data"
    rig = Rig(path)
    rig.append(
        Event(
            f"e{number:03}",
            f"s{number % 3}",
            NOON + (number * 37 % COUNT) * MINUTE,
            2,
            1 + number % 2,
            f"We decided on number {number} because it is faster." if number else " ",
            {},
            f"a{number % 2}",
            "p",
            "",
            "",
        )
        for number in range(COUNT)
    )
    rig.settle()
    indexer = Indexer(f"{path}/index", rig.store.log, rig.committer, lambda *_: None)
    indexer.start()
    deadline = time.monotonic() + 60
    while indexer.sequence() < COUNT and time.monotonic() < deadline:
        time.sleep(0.02)
    indexer.stop()
    rig.committer.stop()
    rig.store.close()
    return path


@pytest.fixture
def data_dir(whole: str, tmp_path: os.PathLike[str]) -> str:
    """A copy to be changed."""
    shutil.copytree(whole, f"{os.fspath(tmp_path)}/data")
    return f"{os.fspath(tmp_path)}/data"


def change(data_dir: str, family: str, work: Callable[[bytes, bytes], bytes | None]) -> None:
    """Change or remove the first entry of a family behind everybody's back."""
    with Database(f"{data_dir}/db") as db:
        key, value = next(iter(list(db.scan(family))))
        batch = db.batch()
        made = work(key, value)
        if made is None:
            batch.delete(key, db.handle(family))
        else:
            batch.put(key, made, db.handle(family))
        db.write(batch)


def gone(_key: bytes, _value: bytes) -> None:
    """The entry goes."""


def found_in(data_dir: str) -> list[Problem]:
    """What is wrong with a store and its index."""
    return list(verdict(data_dir, index=f"{data_dir}/index").problems)


def test_a_whole_store_is_counted(data_dir: str) -> None:
    """Everything is found whole and counted; an event without text is in no index."""
    found = verdict(data_dir, index=f"{data_dir}/index")
    assert found.problems == ()
    assert (found.events, found.sequence, found.indexed) == (COUNT, COUNT, COUNT - 1)
    assert min(found.nodes, found.grips) > 0


@pytest.mark.parametrize(
    ("family", "says", "remedy"),
    [
        ("events", "is gone", "memory repair"),
        ("journal", "event 1 is missing from the journal", "memory repair"),
        ("event_ids", "1 events are not found by their ids", "memory repair"),
        ("session_events", "19 events are found by it, 20 are its own", "memory repair"),
        ("sessions", "are listed for sessions that are not known", "memory repair"),
        ("agents", "what is told of 1 agents does not fit", "memory repair"),
        ("grips", "grips that are not there", "memory rebuild toc"),
        ("toc_nodes", "has no latest version", "memory rebuild toc"),
    ],
)
def test_a_lost_entry_is_named(data_dir: str, family: str, says: str, remedy: str) -> None:
    """What is missing from any table is said, with what to run."""
    change(data_dir, family, gone)
    found = found_in(data_dir)
    assert any(says in problem.text and remedy in problem.remedy for problem in found), found


def test_statistics_that_do_not_fit_are_said(data_dir: str) -> None:
    """A session that is told to have more events than it has is noticed."""

    def more(_key: bytes, value: bytes) -> bytes:
        stats = codec.read_session(value)
        return codec.value(stats._replace(events=stats.events + 1))

    change(data_dir, "sessions", more)
    texts = [problem.text for problem in found_in(data_dir)]
    assert texts == ["what is told of 1 sessions does not fit their events, 0 are missing"]


def test_an_excerpt_that_nobody_said_is_noticed(data_dir: str) -> None:
    """Every grip's excerpt must stand in the events that it names."""

    def misquote(key: bytes, value: bytes) -> bytes:
        grip = codec.read_grip(key.decode(), value)
        return codec.grip_value(grip._replace(excerpt="nobody said so"))

    change(data_dir, "grips", misquote)
    (problem,) = found_in(data_dir)
    assert problem.part == "grips"
    assert "does not stand in the events that it names" in problem.text


def test_a_damaged_index_is_noticed(data_dir: str) -> None:
    """A flipped bit in the index is found by its checksum; the remedy is to make it anew."""
    path = f"{data_dir}/index"
    name = next(n for n in sorted(os.listdir(path)) if n.endswith(".idx"))
    with open(f"{path}/{name}", "r+b") as file:
        byte = file.read(1)
        file.seek(0)
        file.write(bytes([byte[0] ^ 1]))
    (problem,) = found_in(data_dir)
    assert (problem.part, problem.remedy) == ("index", "run `memory reindex`")


def test_an_index_of_another_store_is_noticed(data_dir: str) -> None:
    """An index that was copied from elsewhere is said to be so."""
    Store(f"{data_dir}-other").close()
    (problem,) = verdict(f"{data_dir}-other", index=f"{data_dir}/index").problems
    assert problem.text == "the search index belongs to another store"


def test_a_recorded_gap_is_no_damage(data_dir: str) -> None:
    """Numbers that a repair has written down as gone are told, and not complained of."""
    with Database(f"{data_dir}/db") as db:
        entries = dict(db.scan("journal"))
        key = sorted(entries)[9]
        chain, named = codec.read_journal(entries[key])
        batch = db.batch()
        for family, name in (("journal", key), ("events", named), ("event_ids", named[8:])):
            batch.delete(name, db.handle(family))
        gap = Gap(10, 10, chain, 5)
        batch.put(*gap_entry(EVENTS, gap), db.handle("gaps"))
        db.write(batch)
    found = verdict(data_dir)
    assert found.event_gaps == (gap,)
    assert {problem.part for problem in found.problems} == {"session_events", "sessions", "agents"}


def test_a_table_of_slots_keeps_the_first(tmp_path: os.PathLike[str]) -> None:
    """A number that is out of range or taken is refused; one that is empty is not there."""
    slots = Slots(3, os.fspath(tmp_path))
    assert slots.put(3, b"d" * 32, b"key")
    assert not slots.put(3, b"e" * 32, b"key")
    assert not slots.put(4, b"d" * 32, b"key")
    assert not slots.put(0, b"d" * 32, b"key")
    assert slots.get(2) is None
    assert slots.get(9) is None
    found = slots.get(3)
    assert found is not None
    assert found[0] == b"d" * 32
    slots.close()
