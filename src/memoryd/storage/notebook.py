"""Notes as bytes, and the rules of a store of notes, whatever engine keeps the bytes. Truth.

Three families, the same in RocksDB and in SQLite; docs/format.md specifies them::

    notes         sequence -> running hash, head, content     every revision, in order
                  (of an erased one, the hash of its content)
    note_heads    place, name -> head of the latest revision
    note_aliases  place, alias -> name

A `Desk` collects one change: it numbers revisions, links them into the running hash, and keeps
names and aliases unique. Nothing is written before the change is complete.
"""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, Protocol, TypeVar

import msgpack

from memoryd.domain.chain import GENESIS, HASH_BYTES, link, text_hash
from memoryd.domain.erasure import GONE
from memoryd.domain.errors import Conflict, InvalidInput, NotFound, StoreDamaged
from memoryd.domain.keys import sequence_key, split_sequence_key
from memoryd.domain.note import Note, Place, Revision, checked, note_id
from memoryd.storage.gaps import NOTES, Steps, gaps_of, last_gap

FAMILIES: Final = ("notes", "note_heads", "note_aliases")

_VERSION: Final = b"\x01"
_ERASED: Final = b"\x02"
_HASH_END: Final = 1 + HASH_BYTES
_LEADING: Final = 3  # name, content, aliases
_REMEDY: Final = "run `memory verify`, then `memory restore` or `memory repair`"
_T = TypeVar("_T")


class Shelf(Protocol):
    """An engine that keeps bytes in families."""

    def get(self, family: str, key: bytes) -> bytes | None:
        """The value of a key, or None."""

    def scan(
        self, family: str, start: bytes = b"", stop: bytes | None = None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Keys and values from ``start`` up to, not including, ``stop``."""


class NoteStore(Protocol):
    """A store of notes as the services see it. Safe to call from many threads."""

    @property
    def book(self) -> "NoteBook":
        """The reading side."""

    def change(self, work: "Callable[[Desk], _T]") -> _T:
        """Have ``work`` change notes at a desk; return when all of it is on the disk.

        Nobody else changes a note meanwhile. If ``work`` raises, nothing has changed.
        """


class Tail(NamedTuple):
    """The end of a store of notes."""

    sequence: int
    chain: bytes


class NoteBook:
    """The reading side of a store of notes."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    def tail(self) -> Tail:
        """The last sequence number and running hash."""
        tail = Tail(0, GENESIS)
        for key, value in self._shelf.scan("notes", reverse=True):
            tail = Tail(split_sequence_key(key), value[1:_HASH_END])
            break
        gap = last_gap(self._shelf, NOTES)
        return Tail(gap.last, gap.chain) if gap and gap.last > tail.sequence else tail

    def head(self, place: Place, name: str) -> Revision | None:
        """The latest revision under a name, forgotten or not, without its content."""
        stored = self._shelf.get("note_heads", name_key(place, name))
        return None if stored is None else read_head(stored[1:])

    def find(self, place: Place, name: str) -> Revision | None:
        """The latest revision under a name or an alias, without its content.

        A forgotten note is found by its name alone, and after any note that lives.
        """
        own = self.head(place, name)
        if own is not None and not own.forgotten:
            return own
        alias = self._shelf.get("note_aliases", name_key(place, name))
        return own if alias is None else self.head(place, alias[1:].decode())

    def whole(self, head: Revision) -> Revision:
        """The revision with its content."""
        return self.at(head.sequence)

    def at(self, sequence: int) -> Revision:
        """The revision with a sequence number. Raises StoreDamaged if it is gone."""
        stored = self._shelf.get("notes", sequence_key(sequence))
        if stored is None:
            raise StoreDamaged(f"revision {sequence} of the notes is gone: {_REMEDY}")
        return read_revision(stored)

    def heads(self, start: bytes = b"", stop: bytes | None = None) -> Iterator[Revision]:
        """The latest revision of every note, without its content, by place and name."""
        for _, stored in self._shelf.scan("note_heads", start, stop):
            yield read_head(stored[1:])

    def after(self, sequence: int) -> Iterator[Revision]:
        """Every revision behind a number, in the order of writing."""
        for _, stored in self._shelf.scan("notes", sequence_key(sequence + 1)):
            yield read_revision(stored)

    def history(self, head: Revision) -> Iterator[Revision]:
        """Every revision of a note, the newest first; none from before one that is gone."""
        sequence = head.sequence
        while sequence:
            if any(gap.first <= sequence <= gap.last for gap in gaps_of(self._shelf, NOTES)):
                return
            revision = self.at(sequence)
            yield revision
            sequence = revision.previous


class Desk:
    """Collects one change. ``log_sequence`` says after which event it is made."""

    def __init__(self, shelf: Shelf, log_sequence: int = 0) -> None:
        self._shelf = shelf
        self._log_sequence = log_sequence
        self.puts: dict[tuple[str, bytes], bytes | None] = {}  # None: the key goes
        self.tail = NoteBook(shelf).tail()
        self.book = NoteBook(self)

    def get(self, family: str, key: bytes) -> bytes | None:
        """The value of a key as the change leaves it."""
        if (family, key) in self.puts:
            return self.puts[family, key]
        return self._shelf.get(family, key)

    def scan(
        self, family: str, start: bytes = b"", stop: bytes | None = None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """What stood there before the change."""
        return self._shelf.scan(family, start, stop, reverse=reverse)

    def living(self, place: Place, name: str) -> Revision | None:
        """The note under a name or an alias, with its content; None if there is none."""
        head = self.book.find(place, name)
        return None if head is None or head.forgotten else self.book.whole(head)

    def put(self, note: Note, action: str) -> Revision:
        """Add a revision. Raises InvalidInput or Conflict if the note may not be so."""
        note = checked(note)
        before = self.book.head(note.place, note.name)
        if before is not None and before.note.kind != note.kind:
            raise InvalidInput(
                f"note {note.name!r} is of kind {before.note.kind}, which cannot change to {note.kind}"
            )
        if before is None and action == "forget":
            raise NotFound(f"there is no note {note.name!r}")
        revision = Revision(
            note,
            before.note_id if before else note_id(note),
            before.revision + 1 if before else 1,
            action,
            self.tail.sequence + 1,
            before.sequence if before else 0,
            self._log_sequence,
        )
        self._link_aliases(before, revision)
        self._write(revision)
        return revision

    def _link_aliases(self, before: Revision | None, after: Revision) -> None:
        note = after.note
        place = note.place
        old = () if before is None or before.forgotten else before.note.aliases
        new = () if after.forgotten else note.aliases
        for alias in old:
            self.puts["note_aliases", name_key(place, alias)] = None
        if not after.forgotten:
            owner = self.get("note_aliases", name_key(place, note.name))
            if owner is not None:
                taken = owner[1:].decode()
                raise Conflict(
                    f"name {note.name!r} is an alias of the note {taken!r}: take another"
                )
        for alias in new:
            key = name_key(place, alias)
            owner = self.get("note_aliases", key)
            namesake = self.book.head(place, alias)
            if owner is not None or (namesake is not None and not namesake.forgotten):
                taken = owner[1:].decode() if owner is not None else alias
                raise Conflict(f"alias {alias!r} belongs to the note {taken!r}: take another")
            self.puts["note_aliases", key] = _VERSION + note.name.encode()

    def _write(self, revision: Revision) -> None:
        note = revision.note
        head = head_bytes(revision)
        chain = link(self.tail.chain, head, text_hash(note.content))
        body: bytes = msgpack.packb((head, note.content))
        self.puts["notes", sequence_key(revision.sequence)] = _VERSION + chain + body
        self.puts["note_heads", name_key(note.place, note.name)] = _VERSION + head
        self.tail = Tail(revision.sequence, chain)


def name_key(place: Place, name: str) -> bytes:
    """Orders notes by place, then by name. The texts are printable, so that NUL parts them."""
    return b"%c" % place.scope.encode()[0] + "\0".join((*place[1:], name)).encode()


def head_bytes(revision: Revision) -> bytes:
    """Everything of a revision but its content."""
    name, _, *rest = revision.note
    head: bytes = msgpack.packb((name, *rest, *revision[1:]))
    return head


def read_head(head: bytes) -> Revision:
    """The revision in a head, without its content. Raises StoreDamaged if it makes no sense."""
    try:
        name, aliases, *rest = msgpack.unpackb(head, use_list=False)
        own = len(Note._fields) - _LEADING
        return Revision(Note(name, "", aliases, *rest[:own]), *rest[own:])
    except (ValueError, TypeError, msgpack.exceptions.UnpackException) as error:
        raise StoreDamaged(f"the bytes of a stored note make no sense: {_REMEDY}") from error


def read_revision(stored: bytes) -> Revision:
    """The revision in its stored bytes. Raises StoreDamaged if they make no sense."""
    _, head, content = _split(stored)
    revision = read_head(head)
    said = content if isinstance(content, str) else GONE
    return revision._replace(note=revision.note._replace(content=said))


def seal(stored: bytes) -> tuple[bytes, bytes, bytes]:
    """Running hash, head, and the hash of the content, which an erased revision has no more."""
    chain, head, content = _split(stored)
    return chain, head, text_hash(content) if isinstance(content, str) else content


def erased(stored: bytes) -> bytes:
    """The stored bytes of a revision without its content; the running hash still holds."""
    chain, head, content = _split(stored)
    if not isinstance(content, str):
        return stored
    body: bytes = msgpack.packb((head, text_hash(content)))
    return _ERASED + chain + body


def _split(stored: bytes) -> tuple[bytes, bytes, str | bytes]:
    """Running hash, head, and content or, of an erased revision, its hash. Raises StoreDamaged."""
    try:
        head, content = msgpack.unpackb(stored[_HASH_END:])
        kind = {_VERSION: str, _ERASED: bytes}[stored[:1]]
        if not isinstance(content, kind):
            raise TypeError(stored[:1])  # noqa: TRY301 - one answer to every kind of nonsense
        return stored[1:_HASH_END], head, content
    except (LookupError, ValueError, TypeError, msgpack.exceptions.UnpackException) as error:
        raise StoreDamaged(f"the bytes of a stored note make no sense: {_REMEDY}") from error


def check_notes(shelf: Shelf, first: int = 1) -> Iterator[str]:
    """Every fault in a store of notes from a sequence number on, in words.

    Checks that numbers are contiguous, the running hash holds, and each latest revision is found
    by its name and its aliases.
    """
    book, expected = NoteBook(shelf), first
    previous: bytes | None = GENESIS
    steps = Steps(gaps_of(shelf, NOTES))
    if first > 1:
        before = shelf.get("notes", sequence_key(first - 1))
        previous = before[1:_HASH_END] if before else None
    for key, stored in shelf.scan("notes", sequence_key(first)):
        sequence = split_sequence_key(key)
        expected, previous = steps.over(expected, previous)
        if sequence != expected:
            yield f"revisions {expected} to {sequence - 1} of the notes are missing"
        chain, head, hashed = seal(stored)
        if previous is not None and link(previous, head, hashed) != chain:
            yield f"revision {sequence} of the notes does not match the running hash"
        else:
            yield from _check_names(shelf, book, read_head(head))
        previous, expected = chain, sequence + 1


def _check_names(shelf: Shelf, book: NoteBook, revision: Revision) -> Iterator[str]:
    note = revision.note
    latest = book.head(note.place, note.name)
    if latest is None or latest.sequence < revision.sequence:
        yield f"revision {revision.sequence} of the notes is not found by its name"
    elif latest == revision and not revision.forgotten:
        for alias in note.aliases:
            if shelf.get("note_aliases", name_key(note.place, alias)) is None:
                yield f"revision {revision.sequence} of the notes is not found by an alias"
