import os
import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from memoryd.domain import context
from memoryd.domain.context import Item, Section
from memoryd.domain.errors import InvalidInput, NotFound, StoreDamaged
from memoryd.domain.event import Event
from memoryd.services import hits
from memoryd.services.context import FIRST_LOOK_MS, Ask, ContextBlocks, Gatherer, Hits, Since
from memoryd.services.indexer import Indexer
from memoryd.services.search import Search, SearchQuery
from memoryd.services.toc import Contents
from memoryd.services.whereabouts import Whereabouts
from memoryd.storage.notebook import NoteBook
from tests.services.rig import DAY, HOUR, NOON, Rig, event

ASK = Ask(session_id="now", agent="claude-code")


class Fixed:
    """A gatherer that always says the same, or fails."""

    def __init__(self, name: str, *texts: str) -> None:
        self.names = (name,)
        self._texts = texts
        self.asked: list[Ask] = []

    def gather(self, ask: Ask) -> list[Section]:
        """A section of the texts."""
        self.asked.append(ask)
        if not self._texts:
            raise StoreDamaged("the disk is gone")
        items = tuple(Item(f"id-{text}", text) for text in self._texts)
        return [Section(self.names[0], self.names[0], items)]


class Room(NamedTuple):
    """A store with a day of talk, and what reads it."""

    rig: Rig
    contents: Contents

    def blocks(self, *gatherers: Gatherer) -> ContextBlocks:
        """The service over some gatherers."""
        rig = self.rig
        return ContextBlocks(
            gatherers,
            rig.store.injections,
            lambda: rig.now_ms,
            lambda what, why: rig.errors.append(f"{what}: {why}"),
        )

    def since(self) -> Since:
        """The section of what happened."""
        return Since(self.contents, self.rig.calendar)


def said(number: int, time_ms: int, text: str, session: str, *, tool: bool = False) -> Event:
    """An event of a session."""
    made = event(number, time_ms, session, text, 4 if tool else 2)
    return made._replace(role=4 if tool else 1)


def _ignored(what: str, why: str) -> None:
    """Take a report of the index."""


@pytest.fixture
def room(tmp_path: os.PathLike[str]) -> Iterator[Room]:
    """Two sessions on two days."""
    rig = Rig(os.fspath(tmp_path), now_ms=NOON + DAY + HOUR)
    rig.append(
        [
            said(1, NOON, "We decided to keep the retries in the gateway.", "old"),
            said(2, NOON + 1, "The gateway answers 503 under load.", "old", tool=True),
            said(3, NOON + DAY, "The deployment moved to Monday mornings.", "new"),
        ]
    )
    rig.settle()
    yield Room(rig, Contents(rig.nodes, rig.store.log, rig.calendar))
    rig.close()


def test_what_happened_is_told_newest_first_with_ids(room: Room) -> None:
    """Segments since the agent last looked come with the ids of node and grips."""
    given = room.blocks(room.since()).make(ASK, 0, 0, inject=False)
    assert given.text.index("Monday mornings") < given.text.index("retries in the gateway")
    assert given.sections[0].included[0].startswith("toc:segment:")
    assert "[grip:" in given.text
    assert given.number == 0
    assert room.rig.store.injections.count("now") == 0


def test_what_a_tool_said_is_marked(room: Room) -> None:
    """A line that stands on the words of a tool is less trusted than a person's."""
    text = room.blocks(room.since()).make(ASK, 0, 0, inject=False).text
    lines = {line.strip() for line in text.split("\n")}
    assert any(line.startswith("- (less trusted) The gateway answers 503") for line in lines)
    assert any(line.startswith("- We decided to keep the retries") for line in lines)


def test_an_agent_is_told_only_what_is_new_to_it(room: Room) -> None:
    """After a block was injected, the next tells what has happened since; others see it all."""
    blocks = room.blocks(room.since())
    assert blocks.make(ASK, 0, 0, inject=True).number == 1
    room.rig.now_ms += HOUR
    assert blocks.make(ASK, 0, 0, inject=True).text == ""
    assert blocks.make(Ask(agent="codex"), 0, 0, inject=False).text
    room.rig.append([said(9, room.rig.now_ms - 1, "A third thing happened here.", "third")])
    room.rig.settle()
    assert "A third thing" in blocks.make(ASK, 0, 0, inject=False).text
    assert blocks.make(ASK._replace(session_id="third"), 0, 0, inject=False).text == ""


def test_a_block_can_be_asked_for_in_part(room: Room) -> None:
    """Only the sections that are named are made."""
    notes = Fixed(context.NOTES, "kept")
    blocks = room.blocks(notes, room.since())
    given = blocks.make(ASK._replace(only=(context.SINCE,)), 0, 0, inject=False)
    assert [told.name for told in given.sections] == [context.SINCE]
    assert notes.asked == []


def test_a_first_look_reaches_back_a_week(room: Room) -> None:
    """An agent that has never looked is told of the last seven days."""
    fixed = Fixed(context.NOTES, "x")
    room.blocks(fixed).make(ASK, 0, 0, inject=False)
    assert fixed.asked[0].since_ms == room.rig.now_ms - FIRST_LOOK_MS


def test_what_was_given_comes_back_byte_for_byte(room: Room) -> None:
    """A block is reproduced as it was, whatever has changed since."""
    given = room.blocks(room.since(), Fixed(context.NOTES, "n\u00e9")).make(
        ASK, 900, 0, inject=True
    )
    later = room.blocks(Fixed(context.NOTES, "other"))
    assert later.make(ASK, 0, 0, inject=True).number == 2
    assert later.as_of("now", 1) == given
    assert "other" in later.as_of("now", 0).text
    with pytest.raises(NotFound, match="was given no block 3"):
        later.as_of("now", 3)
    with pytest.raises(NotFound, match="was given no block"):
        later.as_of("never", 0)


def test_an_empty_block_is_not_kept(room: Room) -> None:
    """Where there is nothing to say, nothing is recorded."""
    assert room.blocks().make(ASK, 0, 0, inject=True).number == 0
    assert room.rig.store.injections.count("now") == 0


def test_a_source_that_fails_costs_its_section_alone(room: Room) -> None:
    """The rest of the block is given, and the answer and the errors name what failed."""
    blocks = room.blocks(Fixed(context.NOTES), Fixed(context.DAILY, "kept"))
    given = blocks.make(ASK, 0, 0, inject=False)
    assert "kept" in given.text
    assert [(told.name, told.state) for told in given.sections] == [
        (context.DAILY, context.WHOLE),
        (context.NOTES, context.UNAVAILABLE),
    ]
    assert room.rig.errors == ["context: the disk is gone"]


def test_bad_questions_are_refused(room: Room) -> None:
    """An injection without a session, and what breaks a limit, changes nothing."""
    blocks = room.blocks(Fixed(context.NOTES, "x"))
    for ask, size in (
        (Ask(), 0),
        (Ask("s\n"), 0),
        (Ask("s", query="x" * 10_001), 0),
        (Ask("s", only=("all",)), 0),
        (ASK, -1),
    ):
        with pytest.raises(InvalidInput):
            blocks.make(ask, size, 0, inject=True)
    assert room.rig.store.injections.count("s") == 0


def test_hits_carry_the_grips_that_stand_on_them(room: Room, tmp_path: os.PathLike[str]) -> None:
    """A query finds turns of other sessions, each with its event and its grips."""
    rig = room.rig
    indexer = Indexer(f"{os.fspath(tmp_path)}/index", rig.store.log, rig.committer, _ignored)
    indexer.start()
    try:
        log, nodes, book = rig.store.log, rig.store.nodes, NoteBook(rig.store.db)
        words = hits.Hits(log, nodes, Whereabouts(nodes, log, rig.calendar), book, book)
        search = Search(log, indexer, words, lambda: rig.now_ms)
        deadline = time.monotonic() + 60
        while len(search.teleport(SearchQuery("gateway")).hits) < 2:
            assert time.monotonic() < deadline, "nothing was indexed"
            time.sleep(0.02)
        blocks = room.blocks(Hits(search, room.contents, rig.calendar))
        given = blocks.make(ASK._replace(query="gateway retries"), 0, 0, inject=False)
        assert "e000001] 01 Jun 2026 12:00, user: We decided" in given.text
        assert "[grip:" in given.text
        assert "e000002] (less trusted)" in given.text
        own = ASK._replace(query="gateway retries", session_id="old")
        assert blocks.make(own, 0, 0, inject=False).text == ""
        assert blocks.make(ASK, 0, 0, inject=False).text == ""
    finally:
        indexer.stop()
