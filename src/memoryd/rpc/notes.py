"""NoteService: each method turns a request into one call of a service."""

from typing import Literal, Protocol

import grpc

from memoryd.domain.note import Note, Revision
from memoryd.pb import note_pb2 as pb
from memoryd.pb import note_pb2_grpc as pb_grpc
from memoryd.services.note_query import Filter, NoteQuery
from memoryd.services.note_stores import Address
from memoryd.services.notes import Change, Imported, Notes, Wish


class _Names(Protocol):
    """A request that names a note."""

    name: str
    scope: str
    session_id: str
    project: str


class _Filters(Protocol):
    """A request that says which notes are wanted."""

    scope: str
    kind: str
    category: str
    tag: str
    session_id: str
    project: str


class _Changes(Protocol):
    """A request that changes a note."""

    author: str
    expected_revision: int

    def HasField(self, field_name: Literal["expected_revision"]) -> bool:
        """Whether an optional field is given."""


def address(message: _Names) -> Address:
    """The note that a request names."""
    return Address(message.name, message.scope, message.session_id, message.project)


def filter_of(message: _Filters) -> Filter:
    """The notes that a request wants."""
    return Filter(
        message.scope,
        message.kind,
        message.category,
        message.tag,
        message.session_id,
        message.project,
    )


def expected(message: _Changes) -> int | None:
    """The revision that the caller has seen, if it says so."""
    return message.expected_revision if message.HasField("expected_revision") else None


def change(message: _Changes) -> Change:
    """Who changes a note, and what they have seen."""
    return Change(message.author, expected(message))


def to_note(message: pb.Note) -> Note:
    """The note in a request."""
    return Note(
        message.name,
        message.content,
        tuple(message.aliases),
        message.kind or "note",
        message.category,
        message.scope or "project",
        message.session_id,
        tuple(message.tags),
        message.created_ms,
        message.changed_ms,
        message.author,
        tuple(message.provenance),
        message.pinned,
        message.project,
    )


def from_revision(revision: Revision) -> pb.Note:
    """A revision as a message."""
    return pb.Note(
        **revision.note._asdict(),
        note_id=revision.note_id,
        revision=revision.revision,
        forgotten=revision.forgotten,
        action=revision.action,
        sequence=revision.sequence,
        log_sequence=revision.log_sequence,
    )


class NoteServicer(pb_grpc.NoteServiceServicer):
    """The service. Errors go up to the interceptor, which answers them."""

    def __init__(self, notes: Notes, query: NoteQuery) -> None:
        self._notes = notes
        self._query = query

    def Remember(
        self, request: pb.RememberRequest, context: grpc.ServicerContext
    ) -> pb.RememberResponse:
        """Write a note, or add to it."""
        wish = Wish(
            address(request),
            content=request.content,
            aliases=tuple(request.aliases),
            kind=request.kind,
            category=request.category,
            tags=tuple(request.tags),
            mode=request.mode,
            author=request.author,
            provenance=tuple(request.provenance),
            pinned=request.pinned if request.HasField("pinned") else None,
            expected=expected(request),
            heading=request.heading,
        )
        done = self._notes.remember(wish)
        return pb.RememberResponse(
            note=from_revision(done.revision),
            created=done.created,
            changed=done.changed,
            dropped_lines=done.dropped,
        )

    def Edit(
        self, request: pb.EditNoteRequest, context: grpc.ServicerContext
    ) -> pb.EditNoteResponse:
        """Replace a text that occurs once."""
        done = self._notes.edit(address(request), request.old, request.new, change(request))
        return pb.EditNoteResponse(note=from_revision(done))

    def SetAliases(
        self, request: pb.SetAliasesRequest, context: grpc.ServicerContext
    ) -> pb.SetAliasesResponse:
        """Give a note exactly these aliases."""
        done = self._notes.set_aliases(address(request), tuple(request.aliases), change(request))
        return pb.SetAliasesResponse(note=from_revision(done))

    def Forget(self, request: pb.ForgetRequest, context: grpc.ServicerContext) -> pb.ForgetResponse:
        """Let a note go."""
        done = self._notes.forget(address(request), change(request))
        return pb.ForgetResponse(note=from_revision(done))

    def Get(self, request: pb.GetNoteRequest, context: grpc.ServicerContext) -> pb.GetNoteResponse:
        """One note."""
        found = self._query.get(address(request), request.revision)
        return pb.GetNoteResponse(note=from_revision(found))

    def List(
        self, request: pb.ListNotesRequest, context: grpc.ServicerContext
    ) -> pb.ListNotesResponse:
        """A page of notes."""
        found, token = self._query.page(
            filter_of(request),
            request.limit,
            request.continuation_token,
            without_content=request.without_content,
        )
        return pb.ListNotesResponse(
            notes=map(from_revision, found), has_more=bool(token), continuation_token=token
        )

    def Count(
        self, request: pb.CountNotesRequest, context: grpc.ServicerContext
    ) -> pb.CountNotesResponse:
        """How many notes there are."""
        return pb.CountNotesResponse(count=self._query.count(filter_of(request)))

    def Recall(self, request: pb.RecallRequest, context: grpc.ServicerContext) -> pb.RecallResponse:
        """The notes that fit some words."""
        hits = self._query.recall(request.query, request.limit, filter_of(request))
        return pb.RecallResponse(
            notes=[pb.RecalledNote(note=from_revision(r), score=score) for r, score in hits]
        )

    def History(
        self, request: pb.NoteHistoryRequest, context: grpc.ServicerContext
    ) -> pb.NoteHistoryResponse:
        """The revisions of a note."""
        found, more = self._query.history(address(request), request.limit, request.before_revision)
        return pb.NoteHistoryResponse(revisions=map(from_revision, found), has_more=more)

    def Restore(
        self, request: pb.RestoreNoteRequest, context: grpc.ServicerContext
    ) -> pb.RestoreNoteResponse:
        """Bring a revision back."""
        done = self._notes.restore(address(request), request.revision, change(request))
        return pb.RestoreNoteResponse(note=from_revision(done))

    def ArchiveSession(
        self, request: pb.ArchiveSessionRequest, context: grpc.ServicerContext
    ) -> pb.ArchiveSessionResponse:
        """Keep the summary of a session."""
        where = Address("", "project", request.session_id, request.project)
        signed = Note("", author=request.author, provenance=tuple(request.provenance))
        done, created = self._notes.archive(where, request.content, request.message_count, signed)
        return pb.ArchiveSessionResponse(archive=from_revision(done), created=created)

    def ImportNotes(
        self, request: pb.ImportNotesRequest, context: grpc.ServicerContext
    ) -> pb.ImportNotesResponse:
        """Write revisions as a copy holds them."""
        items = [
            Imported(to_note(n), n.revision, "forget" if n.forgotten else n.action or "import")
            for n in request.notes
        ]
        results = self._notes.take(items, dry_run=request.dry_run)
        return pb.ImportNotesResponse(
            results=[pb.ImportedNote(revision=r, written=written) for r, written in results]
        )

    def ListRevisions(
        self, request: pb.ListRevisionsRequest, context: grpc.ServicerContext
    ) -> pb.ListRevisionsResponse:
        """Every revision in a store."""
        found, more = self._query.revisions(request.scope, request.after_sequence, request.limit)
        return pb.ListRevisionsResponse(revisions=map(from_revision, found), has_more=more)
