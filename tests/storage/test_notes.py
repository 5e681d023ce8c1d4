import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator

import pytest

from memoryd.domain.errors import (
    Conflict,
    FormatUnknown,
    InvalidInput,
    NotFound,
    ReadOnly,
    StoreDamaged,
    TooBusy,
)
from memoryd.domain.note import Note, Place, Revision
from memoryd.storage import global_notes
from memoryd.storage.committer import Committer
from memoryd.storage.global_notes import GlobalNotes
from memoryd.storage.log import Draft
from memoryd.storage.notebook import Desk, NoteStore, check_notes
from memoryd.storage.notes import ProjectNotes
from memoryd.storage.store import NOTES_MARK, Store
from tests.storage.checking import problems, verdict
from tests.storage.test_committer import draft

PLACES = {"project": Place("project"), "global": Place("global")}


@pytest.fixture(params=["project", "global"])
def scope(request: pytest.FixtureRequest) -> str:
    """Which of the two kinds of stores."""
    return str(request.param)


@pytest.fixture
def notes(scope: str, store: Store, committer: Committer, data_dir: str) -> Iterator[NoteStore]:
    """An empty store of notes."""
    if scope == "project":
        yield ProjectNotes(store, committer)
        return
    made = GlobalNotes(f"{data_dir}-global")
    yield made
    made.close()


def put(notes: NoteStore, note: Note, action: str = "remember") -> Revision:
    """Write one revision."""
    return notes.change(lambda desk: desk.put(note, action))


def test_revisions_follow_each_other(notes: NoteStore, scope: str) -> None:
    """A note has revisions 1, 2, 3; the latest is found by its name, all of them in its history."""
    place = PLACES[scope]
    for number in range(1, 4):
        put(notes, Note("n", f"text {number}", scope=scope, created_ms=1, changed_ms=number))
        put(notes, Note(f"other {number}", scope=scope))
    head = notes.book.find(place, "n")
    assert head is not None
    assert (head.revision, head.note.content) == (3, "")
    assert notes.book.whole(head).note.content == "text 3"
    history = list(notes.book.history(head))
    assert [(r.revision, r.note.content) for r in history] == [
        (3, "text 3"),
        (2, "text 2"),
        (1, "text 1"),
    ]
    assert len({r.note_id for r in history}) == 1
    assert [r.sequence for r in notes.book.after(0)] == [1, 2, 3, 4, 5, 6]
    assert [r.note.name for r in notes.book.after(4)] == ["n", "other 3"]
    assert [r.note.name for r in notes.book.heads()] == ["n", "other 1", "other 2", "other 3"]
    assert notes.book.tail().sequence == 6


def test_forgetting_is_a_revision(notes: NoteStore, scope: str) -> None:
    """A forgotten note keeps its number and history, loses its aliases, and may come back."""
    place = PLACES[scope]
    first = put(notes, Note("n", "text", scope=scope, aliases=("a",)))
    gone = put(notes, first.note._replace(content=""), "forget")
    assert (gone.revision, gone.forgotten) == (2, True)
    assert notes.book.find(place, "a") is None
    assert notes.change(lambda desk: desk.living(place, "n")) is None
    put(notes, Note("other", scope=scope, aliases=("a", "n")))
    found = notes.book.find(place, "n")
    assert found is not None
    assert found.note.name == "other"
    with pytest.raises(Conflict, match="name 'n' is an alias of the note 'other'"):
        put(notes, first.note, "restore")
    put(notes, Note("other", scope=scope))
    assert put(notes, first.note, "restore").revision == 3


def test_names_and_aliases_are_unique_in_a_place(notes: NoteStore, scope: str) -> None:
    """An alias leads to one note, and is neither another's alias nor another's name."""
    put(notes, Note("n", scope=scope, aliases=("a", "b")))
    put(notes, Note("m", scope=scope))
    for name, aliases in (("m", ("a",)), ("m", ("n",)), ("x", ("m",)), ("a", ())):
        with pytest.raises(Conflict):
            put(notes, Note(name, scope=scope, aliases=aliases))
    put(notes, Note("n", scope=scope, aliases=("b", "c")))
    put(notes, Note("m", scope=scope, aliases=("a",)))
    names = {a: notes.book.find(PLACES[scope], a) for a in "abc"}
    assert {a: r.note.name for a, r in names.items() if r} == {"a": "m", "b": "n", "c": "n"}


def test_a_refusal_changes_nothing(notes: NoteStore, scope: str) -> None:
    """If one part of a change is refused, no part of it is written."""

    def work(desk: Desk) -> None:
        desk.put(Note("a", scope=scope, aliases=("x",)), "remember")
        desk.put(Note("b", scope=scope, aliases=("x",)), "remember")

    with pytest.raises(Conflict):
        notes.change(work)
    assert list(notes.book.after(0)) == []
    for note, error in (
        (Note("", scope=scope), InvalidInput),
        (Note("n", "\ud800", scope=scope), InvalidInput),
    ):
        with pytest.raises(error):
            put(notes, note)
    with pytest.raises(NotFound):
        put(notes, Note("n", scope=scope), "forget")
    put(notes, Note("n", scope=scope))
    with pytest.raises(InvalidInput, match="is of kind note, which cannot change to daily"):
        put(notes, Note("n", scope=scope, kind="daily"))
    with pytest.raises(ZeroDivisionError):
        notes.change(lambda _: 1 // 0)
    assert notes.book.tail().sequence == 1


def test_a_change_sees_itself(notes: NoteStore, scope: str) -> None:
    """Several revisions of a note in one change follow each other."""

    def work(desk: Desk) -> list[int]:
        return [
            desk.put(Note("n", str(i), scope=scope, aliases=("a",)), "import").revision
            for i in range(3)
        ]

    assert notes.change(work) == [1, 2, 3]
    assert [r.note.content for r in notes.book.after(0)] == ["0", "1", "2"]


def test_sessions_have_names_of_their_own(store: Store, committer: Committer) -> None:
    """The same name in two sessions and in the project is three notes."""
    notes = ProjectNotes(store, committer)
    for session in ("", "s", "t"):
        scope = "session" if session else "project"
        put(notes, Note("n", session or "p", scope=scope, session_id=session))
    for place in (Place("project"), Place("session", "", "s"), Place("session", "", "t")):
        head = notes.book.head(place, "n")
        assert head is not None
        assert notes.book.whole(head).note.content == (place.session_id or "p")
    assert notes.book.find(Place("session", "", "u"), "n") is None
    assert notes.book.find(Place("project", "q"), "n") is None


def test_revisions_stand_in_order_with_events(store: Store, committer: Committer) -> None:
    """Each revision says after which event it was written."""
    notes = ProjectNotes(store, committer)
    first = put(notes, Note("n"))
    committer.append([draft("a"), draft("b")])
    second = put(notes, Note("n"))
    assert (first.log_sequence, second.log_sequence) == (0, 2)


def test_what_was_written_is_there_after_reopening(
    notes: NoteStore, scope: str, store: Store, committer: Committer, data_dir: str
) -> None:
    """Another look at the same files finds every revision, whole."""
    put(notes, Note("n", "text", scope=scope, aliases=("a",), tags=("t",), pinned=True))
    kept = list(notes.book.after(0))
    if scope == "global":
        other = GlobalNotes(f"{data_dir}-global")
        assert list(other.book.after(0)) == kept
        put(other, Note("m", scope="global"))
        other.close()
        assert notes.book.tail().sequence == 2
        assert os.stat(f"{data_dir}-global").st_mode & 0o777 == 0o700
        assert os.stat(f"{data_dir}-global/notes.db").st_mode & 0o777 == 0o600
        found = verdict(data_dir, global_notes=f"{data_dir}-global")
        assert (found.global_revisions, found.problems) == (2, ())
        return
    committer.stop()
    store.close()
    found = verdict(data_dir)
    assert (found.events, found.revisions, found.problems) == (0, 1, ())
    again = Store(data_dir)
    assert list(ProjectNotes(again, Committer(again, lambda: 1)).book.after(0)) == kept
    again.close()
    store.__init__(data_dir)  # type: ignore[misc]  # the fixture closes it


def test_notes_share_the_sync_of_events(store: Store, committer: Committer) -> None:
    """A change that writes nothing costs no sync, one that writes costs one."""
    notes = ProjectNotes(store, committer)
    assert notes.change(lambda _: 7) == 7
    assert committer.commits == 0
    put(notes, Note("n"))
    assert committer.commits == 1
    assert store.notes_mark.mark.sequence == 1
    assert committer.append([draft("e")])[0].sequence == 1


def test_a_fault_refuses_notes_and_heals(
    store: Store, committer: Committer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A note whose sync failed is not acknowledged; the next one follows in order."""
    notes = ProjectNotes(store, committer)

    def full() -> None:
        raise ReadOnly("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(store.db, "sync", full)
        with pytest.raises(ReadOnly):
            put(notes, Note("n"))
    put(notes, Note("n"))
    assert list(check_notes(store.db)) == []
    assert store.notes_mark.mark.sequence == store.notes_tail.sequence == notes.book.tail().sequence


def fill(data_dir: str, count: int) -> None:
    """A closed store with notes."""
    store = Store(data_dir)
    committer = Committer(store, lambda: 1)
    committer.start()
    notes = ProjectNotes(store, committer)
    for number in range(count):
        put(notes, Note(f"n{number}", f"text {number}", aliases=(f"a{number}",)))
    committer.append([Draft(draft("e").event, timed=True)])
    committer.stop()
    store.close()


def test_lost_notes_are_noticed(data_dir: str) -> None:
    """An older copy of the database under a newer mark is refused, and verify says what is lost."""
    fill(data_dir, 2)
    shutil.copytree(f"{data_dir}/db", f"{data_dir}-old")
    fill(data_dir, 3)
    shutil.rmtree(f"{data_dir}/db")
    os.rename(f"{data_dir}-old", f"{data_dir}/db")
    with pytest.raises(StoreDamaged, match="revisions 3 to 5 are lost"):
        Store(data_dir)
    assert any("revisions 3 to 5 are lost" in p for p in problems(data_dir))
    problems(data_dir, accept=True)
    Store(data_dir).close()


@pytest.mark.parametrize(
    ("family", "problem"),
    [
        ("notes", "does not match the running hash"),
        ("note_heads", "is not found by its name"),
        ("note_aliases", "is not found by an alias"),
    ],
)
def test_changed_notes_are_noticed(data_dir: str, family: str, problem: str) -> None:
    """What was changed or removed behind the store's back is refused at open."""
    fill(data_dir, 3)
    store = Store(data_dir)
    key, value = next(iter(store.db.scan(family)))
    batch = store.db.batch()
    if family == "notes":
        batch.put(key, value.replace(b"text", b"test"), store.db.handle(family))
    else:
        batch.delete(key, store.db.handle(family))
    store.db.write(batch)
    store.close()
    with pytest.raises(StoreDamaged, match=problem):
        Store(data_dir)
    assert any(problem in p for p in problems(data_dir))


def test_a_lost_mark_is_damage_only_if_there_were_notes(data_dir: str) -> None:
    """An empty store opens without a mark of its notes; one with notes does not."""
    Store(data_dir).close()
    os.unlink(f"{data_dir}/{NOTES_MARK}")
    fill(data_dir, 1)
    os.unlink(f"{data_dir}/{NOTES_MARK}")
    with pytest.raises(StoreDamaged, match=f"{NOTES_MARK} is missing"):
        Store(data_dir)


def test_global_notes_that_cannot_be_used(data_dir: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Damage, another format and a lock that is not let go are errors of ours."""
    directory = f"{data_dir}-global"
    notes = GlobalNotes(directory)
    put(notes, Note("n", scope="global"))
    holder = sqlite3.connect(notes.path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    monkeypatch.setattr(global_notes, "_WAIT_SECONDS", 0.05)
    impatient = GlobalNotes(directory)
    with pytest.raises(TooBusy, match="another process holds"):
        put(impatient, Note("m", scope="global"))
    assert impatient.book.tail().sequence == 1
    holder.execute("ROLLBACK")
    holder.execute("UPDATE notes SET value = zeroblob(50)")
    with pytest.raises(StoreDamaged, match="make no sense"):
        list(check_notes(notes))
    holder.execute("PRAGMA user_version = 9")
    holder.close()
    with pytest.raises(FormatUnknown, match="have format 9"):
        GlobalNotes(directory).book.tail()
    for store in (notes, impatient):
        store.close()
    with open(notes.path, "wb") as file:
        file.write(b"no database at all" * 100)
    with pytest.raises(StoreDamaged, match="are damaged"):
        GlobalNotes(directory).book.tail()


def test_processes_share_global_notes(data_dir: str) -> None:
    """Two processes that write at once lose nothing and share one unbroken order."""
    code = (
        "import sys; from memoryd.storage.global_notes import GlobalNotes\n"
        "from memoryd.domain.note import Note\n"
        "notes = GlobalNotes(sys.argv[1])\n"
        "for n in range(100):\n"
        "    note = Note(f'{sys.argv[2]} {n}', scope='global')\n"
        "    notes.change(lambda desk: desk.put(note, 'remember'))\n"
    )
    directory = f"{data_dir}-global"
    running = [subprocess.Popen([sys.executable, "-c", code, directory, name]) for name in "ab"]
    assert [process.wait(120) for process in running] == [0, 0]
    notes = GlobalNotes(directory)
    names = {r.note.name for r in notes.book.after(0)}
    assert names == {f"{name} {n}" for name in "ab" for n in range(100)}
    assert list(check_notes(notes)) == []
    assert notes.book.tail().sequence == 200
    notes.close()
