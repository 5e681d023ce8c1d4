import os
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from memoryd.domain.capture import build
from memoryd.domain.errors import InvalidInput, NotFound, StoreDamaged
from memoryd.domain.event import Event
from memoryd.domain.note import Note
from memoryd.domain.redact import Redactor
from memoryd.services.archivist import Archivist
from memoryd.services.note_query import Filter, NoteQuery
from memoryd.services.note_stores import Address, Stores
from memoryd.services.notes import Change, Imported, Notes, Remembered, Wish
from memoryd.services.status import ErrorBook
from memoryd.storage.committer import Committer
from memoryd.storage.global_notes import GlobalNotes
from memoryd.storage.notes import ProjectNotes
from memoryd.storage.store import Store


class Desk(NamedTuple):
    """The services of a daemon that serves all projects."""

    notes: Notes
    query: NoteQuery
    directory: str

    def say(self, name: str, text: str = "", **address: str) -> Remembered:
        """Remember something."""
        return self.notes.remember(Wish(Address(name, **address), text))


@pytest.fixture
def unified(tmp_path: os.PathLike[str]) -> Iterator[Desk]:
    """A unified store, at a time that stands still."""
    base = os.fspath(tmp_path)
    store = Store(f"{base}/data")
    committer = Committer(store, lambda: 1_000)
    committer.start()
    shared = GlobalNotes(f"{base}/global")
    stores = Stores(ProjectNotes(store, committer), shared, "")
    notes = Notes(stores, lambda: 1_000, lambda _: ("2026-11-18", "10:00"), Redactor())
    yield Desk(notes, NoteQuery(stores), f"{base}/global")
    committer.stop()
    store.close()
    shared.close()


def test_projects_in_one_store_do_not_meet(unified: Desk) -> None:
    """In a store of all projects each has names of its own; global notes belong to all."""
    for project in ("p", "q"):
        assert unified.say("n", project, project=project).created
    unified.say("g", "all", scope="global", project="p")
    assert unified.query.get(Address("n", project="q")).note.content == "q"
    assert unified.query.get(Address("g", project="q")).note.project == ""
    with pytest.raises(NotFound):
        unified.query.get(Address("n", project="r"))
    assert unified.query.count(Filter(project="p")) == 2
    assert unified.query.count(Filter()) == 3
    hits = unified.query.recall("p q all", 5, Filter(project="q"))
    assert {hit.revision.note.content for hit in hits} == {"q", "all"}


def test_a_damaged_global_store_leaves_the_project_alone(unified: Desk) -> None:
    """What concerns the project only works without the global notes."""
    os.makedirs(unified.directory)
    with open(f"{unified.directory}/notes.db", "wb") as file:
        file.write(b"no database at all" * 100)
    unified.say("n", "text")
    assert unified.query.get(Address("n")).note.content == "text"
    assert len(unified.query.recall("text", 5, Filter(scope="project"))) == 1
    assert unified.query.count(Filter(scope="project")) == 1
    with pytest.raises(StoreDamaged):
        unified.query.recall("text", 5, Filter())
    with pytest.raises(StoreDamaged):
        unified.say("g", "text", scope="global")


def test_an_import_into_two_stores_is_checked_in_both_first(unified: Desk) -> None:
    """If the part for one store is refused, the part for the other is not written either."""
    items = [Imported(Note("n", "x")), Imported(Note("g", "x", scope="global"), revision=7)]
    for part in (items, items[::-1]):
        with pytest.raises(InvalidInput, match="revision 7 does not follow 0"):
            unified.notes.take(part, dry_run=False)
    assert unified.query.count(Filter()) == 0
    assert unified.notes.take([], dry_run=False) == []


def test_secrets_do_not_enter_notes(unified: Desk) -> None:
    """Whatever way a text takes into a note, private words are out of it before it is stored."""
    secret = "a <private>word</private> b"
    unified.say("n", f"one {secret}")
    unified.notes.edit(Address("n"), "one", f"two {secret}", Change())
    unified.notes.remember(Wish(Address(""), secret, kind="daily", heading=secret))
    unified.notes.archive(Address("", session_id="s"), secret, 1, Note(""))
    unified.notes.take([Imported(Note("i", secret))], dry_run=False)
    found, _ = unified.query.page(Filter(), 0, "", without_content=False)
    assert len(found) == 4
    assert all("word" not in revision.note.content for revision in found)
    assert all("[redacted:private]" in revision.note.content for revision in found)


def test_times_are_completed_on_import(unified: Desk) -> None:
    """A note that comes without times gets the present."""
    unified.notes.take([Imported(Note("a")), Imported(Note("b", changed_ms=5))], dry_run=False)
    assert unified.query.get(Address("a")).note.created_ms == 1_000
    assert unified.query.get(Address("b")).note[8:10] == (5, 5)


def summary(text: str = "we did", event_id: str = "e1") -> Event:
    """The summary that an agent goes on with after a compaction, as the log has it."""
    source = build.Source("codex", "s", 500)
    (event,) = build.compaction(source, text, event_id)
    return event._replace(project="p")


def test_a_summary_in_the_log_is_archived_once(unified: Desk) -> None:
    """It becomes an archive and an entry of its day; again, or once forgotten, nothing happens."""
    assert unified.notes.archive_event(summary(), "p")
    assert not unified.notes.archive_event(summary(), "p")
    daily, archive = sorted(
        (r.note for r in unified.query.revisions("project", 0, 10)[0]), key=lambda note: note.kind
    )[::-1]
    assert (archive.kind, archive.author, archive.provenance) == ("archive", "codex", ("e1",))
    assert (archive.created_ms, archive.session_id, archive.project) == (500, "s", "p")
    assert archive.content == "# compaction summary\n\nsession s, 2026-11-18 10:00\n\nwe did\n"
    assert daily.content == "# 2026-11-18\n\n## 10:00 compaction summary\n\nwe did\n"
    unified.notes.forget(Address(archive.name, project="p"), Change())
    assert not unified.notes.archive_event(summary(), "p")
    assert unified.notes.archive_event(summary(event_id="e2"), "p")
    assert not unified.notes.archive_event(summary(" ", event_id="e3"), "p")


def test_what_cannot_be_archived_is_reported(unified: Desk) -> None:
    """A summary that makes no note stops nobody; the report has none of its words."""
    errors = ErrorBook(lambda: 1_000)
    archivist = Archivist(unified.notes, errors, unified=True)
    archivist.keep(summary("secret words " * 100_000))
    (error,) = errors.latest()
    assert "event e1 is not archived: content has" in error.message
    assert "secret" not in error.message
