"""Which of the two stores a note is in, and which note a caller means.

Project notes and session notes are in the project's store, global notes in one of their own.
"""

from typing import NamedTuple

from memoryd.domain.errors import InvalidInput, NotFound
from memoryd.domain.note import SCOPES, Place, Revision, check_name, check_word, place_of
from memoryd.storage.notebook import NoteBook, NoteStore


class Address(NamedTuple):
    """A note as a caller names it; without a scope, the narrowest that has it is meant."""

    name: str
    scope: str = ""
    session_id: str = ""
    project: str = ""


class Stores:
    """The two stores of notes, and which place is in which. ``project`` is empty if unified."""

    def __init__(self, own: NoteStore, shared: NoteStore, project: str) -> None:
        self.own = own
        self.shared = shared
        self._project = project

    def of(self, place: Place) -> NoteStore:
        """The store that a place is in."""
        return self.shared if place.scope == "global" else self.own

    def project(self, asked: str) -> str:
        """The project to mark notes with. Raises InvalidInput for one that is not served here."""
        if not self._project:
            return asked
        if asked not in {"", self._project}:
            msg = f"project {asked!r} is not served here: this is the daemon of {self._project}"
            raise InvalidInput(msg)
        return ""

    def places(self, address: Address) -> list[Place]:
        """Where to look for a note, in this order. Raises InvalidInput."""
        check_name("name", address.name)
        if address.scope:
            check_word("scope", address.scope, SCOPES)
        if address.scope == "session" and not address.session_id:
            raise InvalidInput("session_id is empty: a note of scope session belongs to a session")
        project = self.project(address.project)
        return [
            place_of(scope, project, address.session_id)
            for scope in ([address.scope] if address.scope else SCOPES)
            if scope != "session" or address.session_id
        ]

    def locate(self, address: Address, *, forgotten: bool = False) -> tuple[NoteBook, Revision]:
        """The note that is meant, without its content. Raises NotFound.

        With ``forgotten``, one that is no more counts too, after all that are.
        """
        gone: tuple[NoteBook, Revision] | None = None
        for place in self.places(address):
            book = self.of(place).book
            head = book.find(place, address.name)
            if head is not None and not head.forgotten:
                return book, head
            if head is not None and gone is None:
                gone = book, head
        if gone is not None and forgotten:
            return gone
        if gone is not None:
            msg = f"note {address.name!r} is forgotten: restore it, or look at its history"
            raise NotFound(msg)
        raise NotFound(f"there is no note {address.name!r}")
