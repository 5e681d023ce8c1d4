import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from memoryd.domain.document import Kind
from memoryd.domain.errors import InvalidInput, NotFound
from memoryd.domain.note import Note
from memoryd.domain.question import read
from memoryd.domain.toc import Level
from memoryd.index.reader import Filters
from memoryd.services.feeds import NodeSource, NoteSource
from memoryd.services.hits import Hit, Hits
from memoryd.services.indexer import Indexer, IndexState
from memoryd.services.search import Search, SearchQuery
from memoryd.services.whereabouts import Whereabouts
from memoryd.storage.global_notes import GlobalNotes
from memoryd.storage.notebook import NoteStore
from memoryd.storage.notes import ProjectNotes
from tests.services.rig import DAY, HOUR, NOON, Rig, event

WAIT_SECONDS = 60.0


class Place:
    """A store with its pump and its notes, and an index that follows all of them."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.rig = Rig(f"{directory}/data")
        self.notes = ProjectNotes(self.rig.store, self.rig.committer)
        self.shared = GlobalNotes(f"{directory}/global")
        self.reports: list[str] = []
        self.start()

    def start(self) -> None:
        """Begin to follow."""
        store = self.rig.store
        where = Whereabouts(store.nodes, store.log, self.rig.calendar)
        self.indexer = Indexer(
            f"{self.directory}/index",
            store.log,
            self.rig.committer,
            lambda _what, reason: self.reports.append(reason),
            (
                NodeSource(store.nodes, store.log, where),
                NoteSource("notes", self.notes.book, "p"),
                NoteSource(
                    "global-notes", self.shared.book, "", lambda: os.path.exists(self.shared.path)
                ),
            ),
        )
        hits = Hits(store.log, store.nodes, where, self.notes.book, self.shared.book)
        self.search = Search(store.log, self.indexer, hits, lambda: NOON)
        self.indexer.start()

    def restart(self) -> None:
        """Stop following, and begin again."""
        self.indexer.stop()
        self.start()

    def close(self) -> None:
        """End everything."""
        self.indexer.stop()
        self.shared.close()
        self.rig.close()

    def talk(self) -> None:
        """Two sessions on one day, and a third a month later, worked in."""
        self.rig.append(
            [
                event(1, NOON, "s", "the pool was closed before the retry"),
                event(2, NOON + 1_000, "s", "a lake is no pool"),
                event(3, NOON + 2_000, "t", "the river has a pool of its own"),
                event(4, NOON + 31 * DAY, "u", "again the pool"),
            ]
        )
        self.rig.settle()

    def remember(self, store: NoteStore, name: str, content: str, **more: Any) -> None:
        """Write a note."""
        note = Note(name, content, created_ms=NOON, changed_ms=NOON, **more)
        store.change(lambda desk: desk.put(note, "remember"))

    def forget(self, store: NoteStore, name: str, scope: str) -> None:
        """Forget a note."""
        note = Note(name, scope=scope, created_ms=NOON, changed_ms=NOON)
        store.change(lambda desk: desk.put(note, "forget"))

    def expected(self) -> dict[Kind, set[str]]:
        """What the index must hold beside events."""
        living = [*self.notes.book.heads(), *self.shared.book.heads()]
        return {
            Kind.NODE: set(self.rig.tree()),
            Kind.GRIP: {
                grip
                for node in self.rig.level(Level.SEGMENT)
                for bullet in node.bullets
                for grip in bullet.grip_ids
            },
            Kind.NOTE: {head.note_id for head in living if not head.forgotten},
        }

    def held(self) -> dict[Kind, set[str]]:
        """What the index holds beside events."""
        reader = self.indexer.reader
        if reader is None:
            return {}
        found = {}
        for kind in (Kind.NODE, Kind.GRIP, Kind.NOTE):
            heads = reader.newest(read(""), Filters(kinds=(kind,)), 1_000)
            assert len(heads) == len({head.id for head in heads})
            found[kind] = {head.id for head in heads}
        return found

    def settle(self) -> None:
        """Wait until the index equals what it follows."""
        until(
            lambda: (
                self.indexer.state() is IndexState.READY
                and self.indexer.sequence() == self.rig.committer.synced
                and self.held() == self.expected()
            )
        )

    def hits(self, text: str, *kinds: Kind, **more: Any) -> list[Hit]:
        """What a question finds."""
        query = SearchQuery(text, kinds=frozenset(kinds), limit=100, **more)
        return self.search.teleport(query).hits

    def ids(self, text: str, *kinds: Kind, **more: Any) -> set[str]:
        """The ids of what a question finds."""
        return {hit.head.id for hit in self.hits(text, *kinds, **more)}


def until(true: Callable[[], bool]) -> None:
    """Wait for something to come true."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not true():
        assert time.monotonic() < deadline, "it does not come true"
        time.sleep(0.01)


@pytest.fixture
def place(tmp_path: os.PathLike[str]) -> Iterator[Place]:
    """An empty store with its index."""
    made = Place(os.fspath(tmp_path))
    yield made
    made.close()


def test_the_index_follows_nodes_grips_and_notes(place: Place) -> None:
    """What comes is found, what changes is replaced, what is forgotten goes; restarts lose nothing."""
    place.talk()
    place.remember(place.notes, "pools", "ask before closing")
    place.remember(place.shared, "lakes", "are cold", scope="global")
    place.settle()
    assert place.expected()[Kind.GRIP]
    place.rig.append([event(5, NOON + 1_500, "s", "one more word, in between")])
    place.rig.settle()
    place.remember(place.notes, "pools", "leave them alone")
    place.forget(place.shared, "lakes", "global")
    place.restart()
    place.settle()
    assert place.ids("closing", Kind.NOTE) == set()
    assert [hit.title for hit in place.hits("leave alone", Kind.NOTE)] == ["pools"]
    assert place.ids("cold", Kind.NOTE) == set()
    assert place.indexer.status().rebuilds == 0


def test_rebuilds_converge(place: Place) -> None:
    """A table of contents made anew, and an index made anew, end at the same documents."""
    place.talk()
    place.remember(place.notes, "pools", "ask before closing")
    place.settle()
    before = place.held()
    place.rig.pump.start_over()
    place.rig.settle()
    place.settle()
    assert place.held() == before
    list(place.indexer.rebuilding(lambda: True))
    place.settle()
    assert place.held() == before


def test_an_index_ahead_of_the_notes_is_made_anew(place: Place) -> None:
    """Global notes that were put back to an earlier state leave nothing in the index."""
    place.remember(place.shared, "lakes", "are cold", scope="global")
    place.settle()
    place.indexer.stop()
    place.shared.close()
    for name in os.listdir(f"{place.directory}/global"):
        os.unlink(f"{place.directory}/global/{name}")
    place.start()
    until(lambda: place.indexer.status().rebuilds == 1)
    until(lambda: place.indexer.state() is IndexState.READY)
    assert place.held()[Kind.NOTE] == set()
    assert not os.path.exists(place.shared.path)


def test_notes_that_cannot_be_read_do_not_hold_up_events(place: Place) -> None:
    """A damaged store of global notes is reported once, and events are indexed all the same."""
    with open(f"{place.directory}/broken", "wb") as file:
        file.write(b"no database" * 1_000)
    os.makedirs(f"{place.directory}/global", 0o700)
    os.rename(f"{place.directory}/broken", place.shared.path)
    place.talk()
    until(lambda: place.ids("river", Kind.EVENT) == {"e000003"})
    until(lambda: bool(place.reports))
    until(lambda: place.indexer.state() is IndexState.READY)
    assert len(place.reports) == 1


def test_a_hit_tells_its_place(place: Place) -> None:
    """Events, nodes and grips come with the nodes above them, events with the grips on them."""
    place.talk()
    place.settle()
    event_hit = next(h for h in place.hits("river", Kind.EVENT))
    segment = next(n for n in place.rig.level(Level.SEGMENT) if n.session_ids == ("t",))
    above = ("toc:year:2026", "toc:month:2026-06", "toc:week:2026-W23", "toc:day:2026-06-01")
    assert event_hit.path == (*above, segment.node_id)
    assert event_hit.segment_id == segment.node_id
    assert event_hit.grip_ids
    node_hit = next(h for h in place.hits("river", Kind.NODE) if h.segment_id)
    assert (node_hit.head.id, node_hit.path) == (segment.node_id, event_hit.path)
    assert node_hit.title == segment.title
    grip_hit = next(h for h in place.hits("river", Kind.GRIP))
    assert grip_hit.grip_ids[0] in event_hit.grip_ids
    assert grip_hit.path == event_hit.path
    assert grip_hit.recorded is not None
    assert grip_hit.recorded.event.event_id == "e000003"
    assert "river" in grip_hit.snippet.text


def test_what_is_like_a_node_lies_outside_it(place: Place) -> None:
    """The words of a node find what was said elsewhere, not the node, what is in it or above it."""
    place.talk()
    place.settle()

    def like(node_id: str, *kinds: Kind) -> set[str]:
        query = SearchQuery("", kinds=frozenset(kinds), limit=100)
        return {hit.head.id for hit in place.search.related("", node_id, query).hits}

    river = next(n for n in place.rig.level(Level.SEGMENT) if n.session_ids == ("t",))
    assert like(river.node_id) == {"e000001", "e000002", "e000004"}
    assert like("toc:day:2026-06-01") == {"e000004"}
    nodes = like("toc:day:2026-06-01", Kind.NODE)
    assert "toc:day:2026-07-02" in nodes
    assert not nodes & {"toc:day:2026-06-01", "toc:year:2026", river.node_id}
    assert like("toc:year:2026", *Kind) == set()


def test_the_subtree_filter_never_leaks(place: Place) -> None:
    """Below a node only what lies in it is found, of every kind."""
    place.talk()
    place.remember(place.notes, "pool", "the pool of the day")
    place.settle()
    for node_id, node in place.rig.tree().items():
        found = place.hits("pool", *Kind, node_id=node_id)
        assert any(hit.head.kind == Kind.EVENT for hit in found)
        for hit in found:
            if hit.head.kind == Kind.NOTE:
                assert node.start_ms <= hit.head.time_ms <= node.end_ms
            else:
                assert node_id in hit.path
    july = place.ids("pool", Kind.EVENT, node_id="toc:month:2026-07")
    assert july == {"e000004"}
    assert place.ids("pool", Kind.EVENT, node_id="toc:day:2026-06-01", to_ms=NOON) == {"e000001"}
    with pytest.raises(NotFound):
        place.hits("pool", node_id="toc:year:1999")


def test_filters_of_session_and_scope_never_leak(place: Place) -> None:
    """A node that several sessions share is in none of them; a scope is asked of notes alone."""
    place.talk()
    place.remember(place.notes, "own", "the pool is ours")
    place.remember(place.notes, "mine", "the pool is mine", scope="session", session_id="s")
    place.remember(place.shared, "all", "the pool is for all", scope="global")
    place.settle()
    for hit in place.hits("pool", *Kind, session_id="s"):
        assert hit.head.session == "s"
    names = {
        scope: {hit.title for hit in place.hits("pool", scope=scope)}
        for scope in ("session", "project", "global")
    }
    assert names == {"session": {"mine"}, "project": {"own"}, "global": {"all"}}
    assert {hit.title for hit in place.hits("pool scope:global")} == {"all"}
    assert all(hit.head.kind == Kind.GRIP for hit in place.hits("pool", Kind.GRIP))
    with pytest.raises(InvalidInput, match="scope"):
        place.hits("pool", scope="everywhere")


def test_what_only_repeats_an_event_is_folded_into_it(place: Place) -> None:
    """Without a kind, events and notes answer; of the others only what stands on none of them."""
    place.talk()
    place.remember(place.notes, "own", "the pool is ours")
    place.settle()
    found = place.hits("pool")
    assert {hit.head.kind for hit in found} == {Kind.EVENT, Kind.NOTE}
    assert all(hit.grip_ids for hit in found if hit.head.kind == Kind.EVENT)
    unsaid = place.hits("pool", from_ms=NOON - HOUR, to_ms=NOON - 1)
    assert unsaid == []
