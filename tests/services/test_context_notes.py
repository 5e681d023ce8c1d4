import os
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from memoryd.domain import context
from memoryd.domain.redact import Redactor
from memoryd.services.context import Ask
from memoryd.services.context_notes import NoteSections
from memoryd.services.note_query import NoteQuery
from memoryd.services.note_stores import Address, Stores
from memoryd.services.notes import Change, Notes, Wish
from memoryd.storage.committer import Committer
from memoryd.storage.global_notes import GlobalNotes
from memoryd.storage.notes import ProjectNotes
from memoryd.storage.store import Store

TODAY = "2026-11-18"


class Desk(NamedTuple):
    """Notes, and the sections made of them."""

    notes: Notes
    sections: NoteSections
    clock: list[int]

    def say(self, name: str, text: str, scope: str = "", session: str = "", **more: object) -> None:
        """Remember something, a little later than the last."""
        self.clock[0] += 1
        address = Address(name, scope, session)
        self.notes.remember(Wish(address, text)._replace(**more))  # type: ignore[arg-type]

    def told(self, ask: Ask | None = None) -> dict[str, list[tuple[str, str]]]:
        """The items of each section: what opens them, and their text."""
        made = self.sections.gather(ask or Ask())
        return {s.name: [(i.ref, i.text) for i in s.items] for s in made}


@pytest.fixture
def desk(tmp_path: os.PathLike[str]) -> Iterator[Desk]:
    """Two empty stores of notes."""
    base = os.fspath(tmp_path)
    clock = [1_000]
    store = Store(f"{base}/data")
    committer = Committer(store, lambda: clock[0])
    committer.start()
    shared = GlobalNotes(f"{base}/global")
    stores = Stores(ProjectNotes(store, committer), shared, "p")
    notes = Notes(stores, lambda: clock[0], lambda _: (TODAY, "10:00"), Redactor())
    yield Desk(notes, NoteSections(NoteQuery(stores), lambda _: TODAY), clock)
    committer.stop()
    store.close()
    shared.close()


def test_without_notes_there_is_no_section(desk: Desk) -> None:
    """Nothing to say gives nothing."""
    assert desk.told() == {}


def test_only_open_items_are_told(desk: Desk) -> None:
    """Done entries and prose stay in the scratchpad."""
    desk.say("SCRATCHPAD", "- [ ] one\n- [x] two\nprose\n- [ ] three", kind="scratchpad")
    desk.say("done", "- [x] four", kind="scratchpad")
    assert desk.told() == {context.SCRATCHPAD: [("SCRATCHPAD", "- [ ] one\n- [ ] three")]}


def test_pinned_notes_come_first_then_the_latest_core_notes(desk: Desk) -> None:
    """Pinned notes of any category and core notes are told; others, and forgotten ones, are not."""
    desk.say("old", "first")
    desk.say("style", "Short words.", scope="global")
    desk.say("talk", "x", category="conversation")
    desk.say("z-pin", "y", category="talk", pinned=True)
    desk.say("a-pin", "z", pinned=True)
    desk.say("gone", "no")
    desk.notes.forget(Address("gone"), Change())
    names = [name for name, _ in desk.told()[context.NOTES]]
    assert names == ["a-pin", "z-pin", "style", "old"]


def test_session_notes_are_for_their_session(desk: Desk) -> None:
    """A note of scope session is told to that session alone."""
    desk.say("mine", "x", scope="session", session="s")
    assert desk.told(Ask("other")) == desk.told() == {}
    assert desk.told(Ask("s")) == {context.NOTES: [("mine", "x")]}


def test_the_log_of_today_and_the_latest_before_it(desk: Desk) -> None:
    """Today's log comes first if there is one; of the earlier ones, the latest."""
    for day in ("2026-11-10", "2026-11-16", "2026-11-19"):
        desk.say(day, day, kind="daily")
    assert [name for name, _ in desk.told()[context.DAILY]] == ["2026-11-16"]
    desk.say(TODAY, "now", kind="daily")
    assert [name for name, _ in desk.told()[context.DAILY]] == [TODAY, "2026-11-16"]
