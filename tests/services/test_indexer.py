import os
import shutil
import time
from collections.abc import Callable, Iterator
from datetime import UTC
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoryd.domain.calendar import Calendar
from memoryd.domain.document import Document, Kind
from memoryd.domain.errors import InvalidInput, NotFound
from memoryd.domain.event import Event
from memoryd.domain.question import read
from memoryd.index.reader import Filters
from memoryd.services.feed import Change
from memoryd.services.hits import Hits
from memoryd.services.indexer import Indexer, IndexState
from memoryd.services.search import Search, SearchQuery
from memoryd.services.whereabouts import Whereabouts
from memoryd.storage.committer import Committer
from memoryd.storage.log import Draft
from memoryd.storage.notebook import NoteBook
from memoryd.storage.store import Store

WAIT_SECONDS = 60.0


def event(number: int, text: str, **more: Any) -> Event:
    """One turn of a conversation."""
    made = Event(f"e{number:04}", "s", 1_000 + number, 2, 1, text, {}, "codex", "p", "", "")
    return made._replace(**more)


class Room:
    """A store, and the index of it, which can be stopped and hurt."""

    def __init__(self, directory: str) -> None:
        self.path = f"{directory}/index"
        self.store = Store(f"{directory}/data")
        self.committer = Committer(self.store, lambda: 1)
        self.committer.start()
        self.reports: list[str] = []
        self.sources: tuple[Any, ...] = ()
        self.indexer = self._indexer()
        self.indexer.start()

    def _indexer(self) -> Indexer:
        return Indexer(
            self.path,
            self.store.log,
            self.committer,
            lambda _what, reason: self.reports.append(reason),
            self.sources,
        )

    @property
    def search(self) -> Search:
        """The service on the index of now."""
        log, nodes = self.store.log, self.store.nodes
        book = NoteBook(self.store.db)
        hits = Hits(log, nodes, Whereabouts(nodes, log, Calendar(UTC)), book, book)
        return Search(log, self.indexer, hits, lambda: 10_000)

    def write(self, *events: Event) -> None:
        """Write events to the log."""
        self.committer.append([Draft(e, timed=True) for e in events])

    def settle(self) -> None:
        """Wait until the index has everything that the log has."""
        self.until(
            lambda: (
                self.indexer.state() is IndexState.READY
                and self.indexer.sequence() == self.committer.synced
            )
        )

    @staticmethod
    def until(true: Callable[[], bool]) -> None:
        """Wait for something to come true."""
        deadline = time.monotonic() + WAIT_SECONDS
        while not true():
            assert time.monotonic() < deadline, "it does not come true"
            time.sleep(0.01)

    def find(self, text: str, **more: Any) -> list[str]:
        """The ids that a question finds."""
        answer = self.search.teleport(SearchQuery(text, **more))
        return [hit.head.id for hit in answer.hits]

    def restart(self, hurt: Callable[[str], None] = lambda _path: None) -> None:
        """Stop the index, do something to its directory, and start it again."""
        self.indexer.stop()
        hurt(self.path)
        self.indexer = self._indexer()
        self.indexer.start()

    def close(self) -> None:
        """End everything."""
        self.indexer.stop()
        self.committer.stop()
        self.store.close()


@pytest.fixture
def room(tmp_path: os.PathLike[str]) -> Iterator[Room]:
    """An empty store with its index."""
    made = Room(os.fspath(tmp_path))
    yield made
    made.close()


def indexed(room: Room) -> dict[str, int]:
    """Every event that the index knows, with its place in its session."""
    reader = room.indexer.reader
    assert reader is not None
    heads = reader.newest(read(""), Filters(kinds=(Kind.EVENT,)), 1_000)
    assert len(heads) == len({head.id for head in heads})
    return {head.id: head.place for head in heads}


def nodes_with(room: Room, words: str) -> list[str]:
    """The nodes in which words occur."""
    reader = room.indexer.reader
    if reader is None:
        return []
    found = reader.pool(read(words), Filters(kinds=(Kind.NODE,)))
    return [candidate.head.id for candidate in found.candidates]


def test_what_is_written_is_found(room: Room) -> None:
    """An event can be searched soon after it is written; one without text is passed over."""
    room.write(event(1, "the pool was closed"), event(2, ""), event(3, "nothing to see"))
    room.settle()
    assert room.find("pool")[0] == "e0001"
    assert indexed(room) == {"e0001": 1, "e0003": 2}
    status = room.indexer.status()
    assert (status.sequence, status.log_sequence, status.documents) == (3, 3, 2)


def test_it_goes_on_where_it_stopped(room: Room) -> None:
    """After a restart nothing is indexed twice and nothing is missing, and places count on."""
    room.write(event(1, "red"), event(2, "blue"))
    room.settle()
    room.restart()
    room.write(event(3, "green"))
    room.settle()
    assert indexed(room) == {"e0001": 1, "e0002": 2, "e0003": 3}
    assert room.indexer.status().rebuilds == 0


def _lose_meta(path: str) -> None:
    os.unlink(f"{path}/meta.json")


def _flip(path: str) -> None:
    name = next(n for n in sorted(os.listdir(path)) if n.endswith(".store"))
    with open(f"{path}/{name}", "r+b") as file:
        byte = file.read(1)[0]
        file.seek(0)
        file.write(bytes((byte ^ 4,)))


def _lose_file(path: str) -> None:
    os.unlink(f"{path}/{next(n for n in sorted(os.listdir(path)) if n.endswith('.term'))}")


def _lose_all(path: str) -> None:
    shutil.rmtree(path)


HURTS = {"meta": _lose_meta, "bit": _flip, "file": _lose_file, "all": _lose_all}


@pytest.mark.parametrize("hurt", HURTS)
def test_a_damaged_index_is_made_anew(room: Room, hurt: str) -> None:
    """Whatever is lost or changed in the index directory, it comes back from the log."""
    room.write(*(event(n, f"word{n} pool") for n in range(1, 30)))
    room.settle()
    room.restart(HURTS[hurt])
    room.until(lambda: room.indexer.status().rebuilds == 1)
    room.settle()
    assert len(indexed(room)) == 29
    assert room.find("word7")[0] == "e0007"


def test_an_index_of_another_store_is_made_anew(room: Room, tmp_path: os.PathLike[str]) -> None:
    """An index that was copied from elsewhere is not trusted."""
    other = Room(f"{os.fspath(tmp_path)}/other")
    other.write(event(9, "foreign words"))
    other.settle()
    other.indexer.stop()
    room.write(event(1, "own words"))
    room.settle()

    def replace(path: str) -> None:
        shutil.rmtree(path)
        shutil.copytree(other.path, path)

    room.restart(replace)
    room.settle()
    assert room.find("words") == ["e0001"]
    other.committer.stop()
    other.store.close()


def test_an_error_in_a_search_puts_the_index_in_doubt(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An index that fails a question is made anew; the answer is empty and says so."""
    room.write(event(1, "red pool"))
    room.settle()
    with monkeypatch.context() as patched:
        patched.setattr(
            "memoryd.index.reader._Asking.pool", lambda *_: (_ for _ in ()).throw(OSError("broken"))
        )
        answer = room.search.teleport(SearchQuery("pool"))
    assert answer.hits == []
    assert answer.state is IndexState.REBUILDING
    assert room.reports
    room.until(lambda: room.indexer.status().rebuilds > 0)
    room.settle()
    assert room.find("pool") == ["e0001"]


def test_the_index_is_made_anew_on_demand(room: Room) -> None:
    """Progress ends with an index that is ready and holds the same."""
    room.write(*(event(n, f"word{n}") for n in range(1, 50)))
    room.settle()
    told = list(room.indexer.rebuilding(lambda: True))
    assert told[-1].state is IndexState.READY
    assert told[-1].sequence == 49
    assert len(indexed(room)) == 49


def test_another_source_is_followed_by_its_cursor(tmp_path: os.PathLike[str]) -> None:
    """Nodes, grips and notes come in through a source of changes, replace and go."""

    class Nodes:
        name = "nodes"
        replacing = True

        def __init__(self) -> None:
            self.changed: list[Change] = []

        def newest(self) -> int:
            return self.changed[-1].cursor if self.changed else 0

        def changes(self, cursor: int, place: Callable[[str], int]) -> Iterator[Change]:
            return (change for change in list(self.changed) if change.cursor > cursor)

    room = Room(os.fspath(tmp_path))
    nodes = Nodes()
    room.sources = (nodes,)
    room.restart()
    day = Document(Kind.NODE, "day", "a red pool", 1, 1)
    nodes.changed.append(Change(1, (day,)))
    room.until(lambda: nodes_with(room, "pool") == ["day"])
    nodes.changed.append(Change(2, (day._replace(text="a blue lake"),)))
    room.until(lambda: nodes_with(room, "lake") == ["day"])
    assert nodes_with(room, "pool") == []
    nodes.changed.append(Change(3, gone=((Kind.NODE, "day"),)))
    room.until(lambda: nodes_with(room, "lake") == [])
    room.restart()
    room.settle()
    assert nodes_with(room, "lake pool") == []
    room.close()


@settings(
    max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(st.sampled_from(("write", "stop", "rebuild", *HURTS)), min_size=2, max_size=5),
    st.integers(0, 2**32),
)
def test_the_index_equals_the_log_whatever_happens(
    tmp_path: os.PathLike[str], steps: list[str], salt: int
) -> None:
    """After any order of writes, stops, damage and rebuilds the index has what the log has."""
    room = Room(f"{os.fspath(tmp_path)}/{salt}-{len(steps)}-{time.monotonic_ns()}")
    number = 0
    try:
        room.settle()
        for step in steps:
            if step == "write":
                room.write(*(event(number + n, f"word{number + n}") for n in range(1, 8)))
                number += 7
            elif step == "stop":
                room.restart()
            elif step == "rebuild":
                list(room.indexer.rebuilding(lambda: True))
            else:
                room.settle()
                room.restart(HURTS[step])
        room.settle()
        room.until(lambda: room.indexer.reader is not None)
        room.settle()
        assert indexed(room) == {f"e{n:04}": n for n in range(1, number + 1)}
    finally:
        room.close()


def test_sessions_are_found_with_their_best_turns(room: Room) -> None:
    """A session ranks by its turns, and shows the best of them."""
    room.write(
        event(1, "red pool", session_id="a"),
        event(2, "something else entirely, about the pool", session_id="a"),
        event(3, "blue lake", session_id="b"),
        event(4, "a pool among many other things that were said", session_id="c"),
    )
    room.settle()
    found, _, state = room.search.sessions(SearchQuery("red pool"), 1)
    assert state is IndexState.READY
    assert [hit.session_id for hit in found] == ["a", "c"]
    assert [hit.head.id for hit in found[0].hits] == ["e0001"]
    assert found[0].stats is not None
    assert found[0].stats.events == 2


def test_related_events_are_found(room: Room) -> None:
    """What is like an event comes without the event itself."""
    room.write(
        event(1, "the pool was closed before the retry", session_id="a"),
        event(2, "a retry after the pool was closed", session_id="b"),
        event(3, "lunch at noon", session_id="c"),
    )
    room.settle()
    answer = room.search.related("e0001", "", SearchQuery(""))
    assert [hit.head.id for hit in answer.hits] == ["e0002"]
    with pytest.raises(NotFound):
        room.search.related("nowhere", "", SearchQuery(""))
    with pytest.raises(NotFound):
        room.search.related("", "toc:day:1999-01-01", SearchQuery(""))
    for neither, both in (("", ""), ("e0001", "toc:day:1999-01-01")):
        with pytest.raises(InvalidInput, match="one of them"):
            room.search.related(neither, both, SearchQuery(""))


def test_filters_may_stand_in_the_question(room: Room) -> None:
    """A field in the question filters as the request does; a contradiction finds nothing."""
    room.write(
        event(1, "red pool"),
        event(2, "red pool", role=4, type=4),
        event(3, "red pool, said again", metadata={"speaker": "Anna Berg"}, session_id="t"),
    )
    room.settle()
    assert room.find("pool role:tool") == ["e0002"]
    assert room.find("pool role:tool", roles=frozenset({1})) == []
    assert room.find("pool session:t") == ["e0003"]
    assert room.find("pool speaker:anna") == ["e0003"]
    assert room.find("pool role:nobody") == []
    assert room.find("session:s") == ["e0002", "e0001"]
    assert room.find("") == []


def test_a_time_that_is_named_lifts(room: Room) -> None:
    """Yesterday, counted from the moment the caller gives, brings up what was said then."""
    day = 86_400_000
    room.write(
        event(1, "we spoke about the pool", time_ms=100 * day, session_id="a"),
        event(2, "the pool, the pool", time_ms=50 * day, session_id="b"),
    )
    room.settle()
    now = 101 * day + 1
    assert room.find("what about the pool yesterday?", now_ms=now)[0] == "e0001"


@pytest.mark.parametrize(
    "bad",
    [
        {"limit": -1},
        {"offset": -1},
        {"offset": 5_000},
        {"from_ms": -1},
        {"to_ms": 2**62},
        {"utc_offset_minutes": 5_000},
        {"session_id": "a\nb"},
    ],
)
def test_what_is_out_of_range_is_refused(room: Room, bad: dict[str, Any]) -> None:
    """A request that makes no sense names its field."""
    with pytest.raises(InvalidInput, match=next(iter(bad)).partition("_")[0]):
        room.find("pool", **bad)


@pytest.mark.parametrize("costly", [15_000, 0])
def test_pages_fit_together(room: Room, monkeypatch: pytest.MonkeyPatch, costly: int) -> None:
    """Two pages are what one page of both would be, also where terms are too common to weigh."""
    monkeypatch.setattr("memoryd.index.reader._COSTLY", costly)
    room.write(*(event(n, f"pool number {n}", session_id=f"s{n}") for n in range(1, 31)))
    room.settle()
    both = room.find("pool", limit=20)
    assert room.find("pool", limit=10) + room.find("pool", limit=10, offset=10) == both
    assert len(set(both)) == 20
    assert len(set(room.find("pool", limit=100))) == 30
