from collections.abc import Callable
from functools import partial
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)

from memoryd.pb import note_pb2 as pb
from memoryd.pb.note_pb2_grpc import NoteServiceStub
from tests.rpc.conftest import Served

Code = grpc.StatusCode
KIB = 1024


@pytest.fixture(scope="module")
def notes(served: Served) -> NoteServiceStub:
    """The calls of a daemon."""
    return NoteServiceStub(served.channel)


@pytest.fixture(autouse=True)
def _clean(notes: NoteServiceStub) -> None:
    """Forget what the test before has left."""
    for note in notes.List(pb.ListNotesRequest(limit=1000)).notes:
        notes.Forget(pb.ForgetRequest(**where(note)))


def where(note: pb.Note) -> dict[str, Any]:
    """How to name a note."""
    return {"name": note.name, "scope": note.scope, "session_id": note.session_id}


def remember(notes: NoteServiceStub, name: str, content: str = "", **more: Any) -> pb.Note:
    """Write a note."""
    return notes.Remember(pb.RememberRequest(name=name, content=content, **more)).note


def get(notes: NoteServiceStub, name: str, **more: Any) -> pb.Note:
    """Read a note."""
    return notes.Get(pb.GetNoteRequest(name=name, **more)).note


def refused(call: Callable[[], object]) -> tuple[Code, str]:
    """How a call is refused, which it must be."""
    with pytest.raises(grpc.RpcError) as caught:
        call()
    error: Any = caught.value
    return error.code(), error.details()


def names(notes: NoteServiceStub, **more: Any) -> list[str]:
    """The names that List gives."""
    return [note.name for note in notes.List(pb.ListNotesRequest(**more)).notes]


def test_the_second_service_is_announced(served: Served) -> None:
    """Health and reflection know NoteService."""
    health: Any = health_pb2_grpc.HealthStub(served.channel)
    answer = health.Check(health_pb2.HealthCheckRequest(service="memory.NoteService"))
    assert answer.status == health_pb2.HealthCheckResponse.SERVING
    database = ProtoReflectionDescriptorDatabase(served.channel)
    assert "memory.NoteService" in database.get_services()


def test_a_note_is_remembered_with_all_its_fields(notes: NoteServiceStub) -> None:
    """What is written comes back, completed with id, times and revision."""
    answer = notes.Remember(
        pb.RememberRequest(
            name="deploy",
            content="Run `make ship`. Größe 大",
            aliases=["ship it"],
            category="recipes",
            tags=["ops"],
            author="claude-code",
            provenance=["01ABC"],
            pinned=True,
            session_id="s1",
        )
    )
    assert (answer.created, answer.changed, answer.dropped_lines) == (True, True, 0)
    found = get(notes, "deploy")
    assert found == answer.note
    assert (found.kind, found.scope, found.category) == ("note", "project", "recipes")
    assert (found.author, found.session_id, found.pinned) == ("claude-code", "s1", True)
    assert (list(found.aliases), list(found.tags)) == (["ship it"], ["ops"])
    assert found.created_ms == found.changed_ms > 1_700_000_000_000
    assert len(found.note_id) == 26
    assert get(notes, "ship it") == found


def test_appending_says_what_it_left_out(notes: NoteServiceStub) -> None:
    """Appending adds new lines only; if there are none, no revision is written."""
    first = remember(notes, "n", "- a\n- b", tags=["x"])
    answer = notes.Remember(pb.RememberRequest(name="n", content="-  a\n- c", tags=["y"]))
    assert (answer.created, answer.changed, answer.dropped_lines) == (False, True, 1)
    assert (answer.note.content, list(answer.note.tags)) == ("- a\n- b\n- c", ["x", "y"])
    assert answer.note.revision == first.revision + 1
    again = notes.Remember(pb.RememberRequest(name="n", content="- c"))
    assert (again.changed, again.dropped_lines) == (False, 1)
    assert again.note == answer.note


def test_overwriting_replaces(notes: NoteServiceStub) -> None:
    """Overwriting replaces the content and the lists that are given; other fields stay."""
    remember(notes, "n", "old", tags=["x"], aliases=["a"], pinned=True)
    note = remember(notes, "n", "new", tags=["y"], mode="overwrite")
    assert (note.content, list(note.tags), list(note.aliases)) == ("new", ["y"], ["a"])
    assert note.pinned
    assert not remember(notes, "n", "new", mode="overwrite", pinned=False).pinned


def test_revisions_are_checked_if_the_caller_asks(notes: NoteServiceStub) -> None:
    """A change on top of a revision that is no longer the latest is refused."""
    assert refused(lambda: remember(notes, "fresh", "x", expected_revision=3))[0] is Code.ABORTED
    first = remember(notes, "n", "a", expected_revision=0)
    code, said = refused(lambda: remember(notes, "n", "b", expected_revision=0))
    assert code is Code.ABORTED
    assert f"is at revision {first.revision}, not 0" in said
    remember(notes, "n", "b", expected_revision=first.revision)
    stale: dict[str, Any] = {"name": "n", "expected_revision": first.revision}
    for call in (
        lambda: notes.Edit(pb.EditNoteRequest(old="a", new="z", **stale)),
        lambda: notes.SetAliases(pb.SetAliasesRequest(aliases=["z"], **stale)),
        lambda: notes.Forget(pb.ForgetRequest(**stale)),
        lambda: notes.Restore(pb.RestoreNoteRequest(**stale)),
    ):
        assert refused(call)[0] is Code.ABORTED
    assert get(notes, "n").content == "a\nb"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"name": ""}, "name is empty"),
        ({"name": "n", "scope": "everywhere"}, "take one of session, project, global"),
        ({"name": "n", "scope": "session"}, "session_id is empty"),
        ({"name": "n", "kind": "memo"}, "take one of note, archive, scratchpad, daily"),
        ({"name": "n", "mode": "prepend"}, "take one of append, overwrite"),
        ({"name": "n", "content": "x" * (64 * KIB + 1)}, "over the limit of 64 KiB"),
        ({"name": "n", "project": "other-12345678"}, "this is the daemon of p"),
        ({"name": "n", "heading": "h"}, "only an entry in a daily log has one"),
    ],
)
def test_bad_notes_are_refused(notes: NoteServiceStub, fields: dict[str, Any], said: str) -> None:
    """Bad input is refused with the field and what is allowed, and changes nothing."""
    code, details = refused(lambda: notes.Remember(pb.RememberRequest(**fields)))
    assert code is Code.INVALID_ARGUMENT
    assert said in details
    assert names(notes) == []


def test_a_note_grows_beyond_one_write_up_to_its_limit(notes: NoteServiceStub) -> None:
    """Several writes of 64 KiB make a larger note, up to 1 MiB, and then a clear refusal."""
    for number in range(16):
        remember(notes, "big", f"{number:02}" + "x" * (64 * KIB - 3))
    code, said = refused(lambda: remember(notes, "big", "y" * 20))
    assert code is Code.INVALID_ARGUMENT
    assert "over the limit of 1024 KiB" in said


def test_the_kind_cannot_change(notes: NoteServiceStub) -> None:
    """A note keeps its kind, also when it is written again after it was forgotten."""
    remember(notes, "k", "x")
    assert refused(lambda: remember(notes, "k", "x", kind="archive"))[0] is Code.INVALID_ARGUMENT
    notes.Forget(pb.ForgetRequest(name="k"))
    assert refused(lambda: remember(notes, "k", "x", kind="daily"))[0] is Code.INVALID_ARGUMENT


def test_editing_replaces_one_place(notes: NoteServiceStub) -> None:
    """A text that occurs once is replaced; else the refusal says why, and nothing changes."""
    remember(notes, "n", "one two two", aliases=["m"])
    note = notes.Edit(pb.EditNoteRequest(name="m", old="one", new="1", author="me")).note
    assert (note.content, note.author, note.action) == ("1 two two", "me", "edit")
    for old, said in (("two", "more than once"), ("three", "does not occur")):
        request = pb.EditNoteRequest(name="n", old=old, new="x")
        code, details = refused(partial(notes.Edit, request))
        assert (code, said in details) == (Code.INVALID_ARGUMENT, True)
    huge = pb.EditNoteRequest(name="n", old="1", new="x" * (64 * KIB + 1))
    assert refused(lambda: notes.Edit(huge))[0] is Code.INVALID_ARGUMENT
    assert get(notes, "n") == note


def test_aliases_lead_to_one_note(notes: NoteServiceStub) -> None:
    """Aliases are set as a whole; one that is taken is refused."""
    remember(notes, "n", aliases=["a", "b"])
    remember(notes, "m")
    notes.SetAliases(pb.SetAliasesRequest(name="n", aliases=["c"]))
    assert get(notes, "c").name == "n"
    assert refused(lambda: get(notes, "a"))[0] is Code.NOT_FOUND
    taken = pb.SetAliasesRequest(name="m", aliases=["c"])
    code, said = refused(lambda: notes.SetAliases(taken))
    assert (code, said) == (
        Code.ALREADY_EXISTS,
        "alias 'c' belongs to the note 'n': take another",
    )
    assert remember(notes, "c", "through the alias").name == "n"
    notes.SetAliases(pb.SetAliasesRequest(name="n"))
    assert list(get(notes, "n").aliases) == []


def test_forgetting_and_coming_back(notes: NoteServiceStub) -> None:
    """A forgotten note is gone from all but its history, and any revision can be restored."""
    first = remember(notes, "n", "one", aliases=["a"])
    remember(notes, "n", "two", mode="overwrite")
    gone = notes.Forget(pb.ForgetRequest(name="a", author="me")).note
    assert (gone.forgotten, gone.action, gone.content) == (True, "forget", "")
    code, said = refused(lambda: get(notes, "n"))
    assert (code, "is forgotten" in said) == (Code.NOT_FOUND, True)
    assert refused(lambda: get(notes, "never"))[1] == "there is no note 'never'"
    assert refused(lambda: notes.Forget(pb.ForgetRequest(name="n")))[0] is Code.NOT_FOUND
    assert names(notes) == []
    assert list(notes.Recall(pb.RecallRequest(query="two")).notes) == []
    history = notes.History(pb.NoteHistoryRequest(name="n")).revisions
    assert [r.content for r in history[:3]] == ["", "two", "one"]
    assert get(notes, "n", revision=first.revision).content == "one"
    back = notes.Restore(pb.RestoreNoteRequest(name="n")).note
    assert (back.content, back.action, list(back.aliases)) == ("two", "restore", ["a"])
    assert back.revision == first.revision + 3
    older = notes.Restore(pb.RestoreNoteRequest(name="n", revision=first.revision)).note
    assert older.content == "one"
    missing = pb.RestoreNoteRequest(name="n", revision=999)
    assert refused(lambda: notes.Restore(missing))[0] is Code.NOT_FOUND
    assert refused(lambda: get(notes, "n", revision=999))[0] is Code.NOT_FOUND


def test_history_is_paged(notes: NoteServiceStub) -> None:
    """Pages of a history follow each other without a gap."""
    last = 0
    for number in range(7):
        last = remember(notes, "h", str(number), mode="overwrite").revision
    page = notes.History(pb.NoteHistoryRequest(name="h", limit=3))
    assert ([r.content for r in page.revisions], page.has_more) == (["6", "5", "4"], True)
    rest = notes.History(pb.NoteHistoryRequest(name="h", before_revision=last - 2, limit=4))
    assert [r.content for r in rest.revisions] == ["3", "2", "1", "0"]


def test_the_narrowest_scope_wins(notes: NoteServiceStub) -> None:
    """Without a scope, the note of the session comes before the project's and the global one."""
    for scope in ("global", "project", "session"):
        remember(notes, "n", scope, scope=scope, session_id="s" if scope == "session" else "")
    assert get(notes, "n", session_id="s").content == "session"
    assert get(notes, "n").content == "project"
    assert get(notes, "n", scope="global").content == "global"
    notes.Forget(pb.ForgetRequest(name="n"))
    assert get(notes, "n").content == "global"
    assert notes.Edit(pb.EditNoteRequest(name="n", old="glo", new="ver")).note.scope == "global"


def test_lists_are_filtered_counted_and_paged(notes: NoteServiceStub) -> None:
    """Every filter leaves out what does not fit, and pages cover everything once."""
    for number in range(12):
        remember(
            notes,
            f"n{number:02}",
            "text",
            scope=("project", "global", "session")[number % 3],
            session_id=f"s{number % 2}",
            category="odd" if number % 2 else "",
            tags=["t"] if number < 3 else [],
            kind="archive" if number == 4 else "",
        )
    assert names(notes, scope="global") == ["n01", "n04", "n07", "n10"]
    assert names(notes, session_id="s1", scope="session") == ["n05", "n11"]
    assert names(notes, tag="t") == ["n00", "n02", "n01"]
    assert names(notes, kind="archive") == ["n04"]
    assert len(names(notes, category="odd")) == 6
    some: list[dict[str, Any]] = [{}, {"scope": "session"}, {"category": "core"}]
    for fields in (*some, {"session_id": "s0"}):
        count = notes.Count(pb.CountNotesRequest(**fields)).count
        assert count == len(names(notes, **fields))
    found, token = [], ""
    while True:
        request = pb.ListNotesRequest(limit=5, continuation_token=token, without_content=True)
        page = notes.List(request)
        found += [note.name for note in page.notes]
        assert not any(note.content for note in page.notes)
        token = page.continuation_token
        if not page.has_more:
            break
    assert sorted(found) == [f"n{number:02}" for number in range(12)]
    other = pb.ListNotesRequest(scope="global", limit=1)
    token = notes.List(other).continuation_token
    assert refused(lambda: names(notes, continuation_token=token))[0] is Code.INVALID_ARGUMENT
    assert refused(lambda: names(notes, kind="memo"))[0] is Code.INVALID_ARGUMENT


def test_recall_ranks_what_fits(notes: NoteServiceStub) -> None:
    """Names and aliases weigh more than content; filters, beginnings and the limit apply."""

    def recall(query: str, **more: Any) -> list[str]:
        return [h.note.name for h in notes.Recall(pb.RecallRequest(query=query, **more)).notes]

    remember(notes, "deploy", "run make ship")
    remember(notes, "other", "how we deploy things to the place where they belong", scope="global")
    remember(notes, "third", "nothing", aliases=["deployment"], kind="archive")
    remember(notes, "mine", "deploy quickly", scope="session", session_id="s1")
    assert recall("deploy")[0] == "deploy"
    assert set(recall("deploy")) == {"deploy", "other", "mine"}
    assert set(recall("DEPLOY*")) == {"deploy", "other", "third", "mine"}
    assert recall("deploy*", kind="archive") == ["third"]
    assert recall("deploy", scope="global") == ["other"]
    assert "mine" not in recall("deploy", session_id="s2")
    assert "mine" in recall("deploy", session_id="s1")
    assert len(recall("deploy", limit=1)) == 1
    remember(notes, "deploy", "changed", mode="overwrite")
    assert recall("ship") == []
    assert recall("changed") == ["deploy"]
    for number in range(8):
        remember(notes, f"many {number}", "plenty")
    assert len(recall("plenty")) == 5
    assert refused(lambda: recall(" * "))[0] is Code.INVALID_ARGUMENT
    assert refused(lambda: recall("x", limit=-1))[0] is Code.INVALID_ARGUMENT


def test_daily_logs_and_scratchpads_need_no_name(notes: NoteServiceStub) -> None:
    """Entries of a day go under one heading each into one log; the scratchpad keeps a list."""
    first = remember(notes, "", "found it", kind="daily", heading="Bug")
    second = remember(notes, "", "found it", kind="daily")
    assert first.name == second.name
    assert second.content.startswith(f"# {first.name}\n\n## ")
    assert second.content.count("found it") == 2
    assert (second.category, second.kind) == ("daily", "daily")
    pad = remember(notes, "", "- [ ] one", kind="scratchpad")
    assert pad.name == "SCRATCHPAD"
    assert remember(notes, "", "- [ ] one\n- [ ] two", kind="scratchpad").content == (
        "- [ ] one\n- [ ] two"
    )


def test_a_session_is_archived_once(notes: NoteServiceStub) -> None:
    """A summary goes into an archive and the log of the day; the same again changes nothing."""
    request = pb.ArchiveSessionRequest(
        session_id="s1", content="We fixed it.", message_count=12, author="a", provenance=["e1"]
    )
    answer = notes.ArchiveSession(request)
    assert answer.created
    archive = answer.archive
    assert (archive.kind, archive.category, archive.scope) == ("archive", "conversation", "project")
    assert (archive.session_id, archive.author, list(archive.provenance)) == ("s1", "a", ["e1"])
    assert "compaction summary (12 msgs)" in archive.content
    (daily,) = notes.List(pb.ListNotesRequest(kind="daily")).notes
    assert "compaction summary (12 msgs)\n\nWe fixed it." in daily.content
    again = notes.ArchiveSession(request)
    assert (again.created, again.archive) == (False, archive)
    assert get(notes, daily.name) == daily
    assert names(notes, session_id="s1") == [archive.name]
    wrongs: list[dict[str, Any]] = [{"session_id": ""}, {"content": " "}, {"message_count": -1}]
    for bad in wrongs:
        fields: dict[str, Any] = {"session_id": "s", "content": "x"} | bad
        wrong = pb.ArchiveSessionRequest(**fields)
        assert refused(partial(notes.ArchiveSession, wrong))[0] is Code.INVALID_ARGUMENT


def test_import_is_all_or_nothing(notes: NoteServiceStub) -> None:
    """Revisions come in with all their fields; one that does not fit stops them all."""

    def note(name: str, content: str, revision: int = 0, **more: Any) -> pb.Note:
        return pb.Note(name=name, content=content, revision=revision, changed_ms=6, **more)

    def bring(*sent: pb.Note, dry_run: bool = False) -> list[tuple[int, bool]]:
        answer = notes.ImportNotes(pb.ImportNotesRequest(notes=sent, dry_run=dry_run))
        return [(r.revision, r.written) for r in answer.results]

    one = note("imported", "one", 1, created_ms=5, author="x", pinned=True)
    two = note("imported", "two", 2, created_ms=5)
    shared = note("imported global", "three", scope="global")
    assert bring(one, two, shared, dry_run=True) == [(1, True), (2, True), (1, True)]
    assert names(notes) == []
    assert bring(one, shared, two) == [(1, True), (1, True), (2, True)]
    found = get(notes, "imported")
    assert (found.content, found.created_ms, found.changed_ms) == ("two", 5, 6)
    assert get(notes, "imported", revision=1).author == "x"
    assert bring(one, two) == [(1, False), (2, False)]
    for code, bad in (
        (Code.ALREADY_EXISTS, note("imported", "other", 2, created_ms=5)),
        (Code.INVALID_ARGUMENT, note("imported", "later", 9)),
        (Code.INVALID_ARGUMENT, note("bad", "x", kind="memo")),
        (Code.INVALID_ARGUMENT, note("bad", "x", scope="global", action="invent")),
    ):
        assert refused(partial(bring, note("fresh", "x"), bad))[0] is code
        assert "fresh" not in names(notes)
    assert bring(note("imported", "", forgotten=True)) == [(3, True)]
    assert refused(lambda: get(notes, "imported"))[0] is Code.NOT_FOUND


def test_every_revision_is_listed_in_order(notes: NoteServiceStub) -> None:
    """All revisions of a store come in the order of writing, page by page."""
    for scope in ("project", "global"):
        end = last(notes, scope)
        for number in range(5):
            remember(notes, "r", str(number), scope=scope, mode="overwrite")
        request = pb.ListRevisionsRequest(scope=scope, after_sequence=end, limit=3)
        page = notes.ListRevisions(request)
        assert ([r.content for r in page.revisions], page.has_more) == (["0", "1", "2"], True)
        request.after_sequence = page.revisions[-1].sequence
        rest = notes.ListRevisions(request)
        assert ([r.content for r in rest.revisions], rest.has_more) == (["3", "4"], False)
    assert refused(lambda: notes.ListRevisions(pb.ListRevisionsRequest(scope="session")))[0] is (
        Code.INVALID_ARGUMENT
    )


def last(notes: NoteServiceStub, scope: str) -> int:
    """The last sequence number of a store."""
    end, more = 0, True
    while more:
        page = notes.ListRevisions(pb.ListRevisionsRequest(scope=scope, after_sequence=end))
        end, more = (page.revisions[-1].sequence if page.revisions else end), page.has_more
    return end
