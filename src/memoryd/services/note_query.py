"""Reads notes: one, many, how many, their history, and those that fit some words."""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from memoryd.domain.errors import NotFound
from memoryd.domain.note import KINDS, SCOPES, Note, Revision, check_word
from memoryd.services.note_stores import Address, Stores
from memoryd.services.paging import PAGE_DEFAULT, PAGE_LIMIT, bounded, make_token, read_token
from memoryd.services.query import BYTES_DEFAULT
from memoryd.services.recall import Hit, Recall
from memoryd.storage.notebook import name_key

_OWN: Final = b"0"
_SHARED: Final = b"1"
_OVERHEAD: Final = 300


class Filter(NamedTuple):
    """Which notes are wanted; an empty part asks for nothing in particular."""

    scope: str = ""
    kind: str = ""
    category: str = ""
    tag: str = ""
    session_id: str = ""
    project: str = ""

    def matches(self, head: Revision) -> bool:
        """Whether a note is wanted, whatever its session."""
        note = head.note
        return (
            not head.forgotten
            and (not self.scope or note.scope == self.scope)
            and (not self.kind or note.kind == self.kind)
            and (not self.category or note.category == self.category)
            and (not self.tag or self.tag in note.tags)
            and (not self.project or note.project == self.project or note.scope == "global")
        )

    def of_session(self, head: Revision) -> bool:
        """Whether a note is wanted, and belongs to the session or comes from it."""
        return (not self.session_id or head.note.session_id == self.session_id) and self.matches(
            head
        )

    def not_of_others(self, head: Revision) -> bool:
        """Whether a note is wanted, and is no session note of another session."""
        other = self.session_id and head.note.scope == "session"
        return not (other and head.note.session_id != self.session_id) and self.matches(head)


class NoteQuery:
    """The reading side. Safe to call from many threads."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._recall = Recall((stores.own.book, stores.shared.book))

    def get(self, address: Address, revision: int = 0) -> Revision:
        """One note, or an earlier revision of it. Raises NotFound."""
        book, head = self._stores.locate(address, forgotten=bool(revision))
        for earlier in book.history(head):
            if revision in {0, earlier.revision}:
                return earlier
        raise NotFound(f"note {head.note.name!r} has no revision {revision}")

    def page(
        self, wanted: Filter, limit: int, token: str, *, without_content: bool
    ) -> tuple[list[Revision], str]:
        """Notes by place and name, and the token for the rest."""
        wanted = self._checked(wanted)
        limit = bounded("limit", limit, PAGE_DEFAULT, PAGE_LIMIT)
        position = read_token(token, repr(wanted))
        found: list[Revision] = []
        size = 0
        last = position
        for key, head in self._scan(wanted, position):
            whole = head if without_content else self._stores.of(head.note.place).book.whole(head)
            size += _size(whole)
            if found and (len(found) == limit or size > BYTES_DEFAULT):
                return found, make_token(repr(wanted), last)
            found.append(whole)
            last = key
        return found, ""

    def heads(self, wanted: Filter) -> Iterator[Revision]:
        """Every note that is wanted, without its content."""
        for _, head in self._scan(self._checked(wanted), b""):
            yield head

    def whole(self, head: Revision) -> Note:
        """The note of a head, with its content."""
        return self._stores.of(head.note.place).book.whole(head).note

    def count(self, wanted: Filter) -> int:
        """How many notes there are."""
        return sum(1 for _ in self._scan(self._checked(wanted), b""))

    def recall(self, text: str, limit: int, wanted: Filter) -> list[Hit]:
        """The notes that fit some words best. Raises InvalidInput without a word."""
        wanted = self._checked(wanted)
        places = {"": (0, 1), "global": (1,)}.get(wanted.scope, (0,))
        fits = wanted.not_of_others if any(wanted) else None
        return self._recall.search(text, limit, fits, places)

    def history(self, address: Address, limit: int, before: int) -> tuple[list[Revision], bool]:
        """Revisions of a note, the newest first, and whether there are more."""
        book, head = self._stores.locate(address, forgotten=True)
        limit = bounded("limit", limit, PAGE_DEFAULT, PAGE_LIMIT)
        earlier = (r for r in book.history(head) if not before or r.revision < before)
        return _some(earlier, limit)

    def revisions(self, scope: str, after: int, limit: int) -> tuple[list[Revision], bool]:
        """Every revision in a store behind a number, and whether there are more."""
        check_word("scope", scope or "project", ("project", "global"))
        limit = bounded("limit", limit, PAGE_DEFAULT, PAGE_LIMIT)
        store = self._stores.shared if scope == "global" else self._stores.own
        return _some(store.book.after(after), limit)

    def _checked(self, wanted: Filter) -> Filter:
        if wanted.scope:
            check_word("scope", wanted.scope, SCOPES)
        if wanted.kind:
            check_word("kind", wanted.kind, KINDS)
        return wanted._replace(project=self._stores.project(wanted.project))

    def _scan(self, wanted: Filter, position: bytes) -> Iterator[tuple[bytes, Revision]]:
        """The notes that are wanted behind a position, with theirs."""
        for mark, store in ((_OWN, self._stores.own), (_SHARED, self._stores.shared)):
            if position[:1] > mark or (
                wanted.scope and (wanted.scope == "global") != (mark == _SHARED)
            ):
                continue
            start = position[1:] + b"\0" if position[:1] == mark else b""
            for head in store.book.heads(start):
                if wanted.of_session(head):
                    yield mark + name_key(head.note.place, head.note.name), head


def _some(revisions: Iterable[Revision], limit: int) -> tuple[list[Revision], bool]:
    """The first ones that fit into an answer, and whether there are more."""
    found: list[Revision] = []
    size = 0
    for revision in revisions:
        size += _size(revision)
        if found and (len(found) == limit or size > BYTES_DEFAULT):
            return found, True
        found.append(revision)
    return found, False


def _size(revision: Revision) -> int:
    content = revision.note.content
    return _OVERHEAD + (len(content) if content.isascii() else len(content.encode()))
