"""Notes: what an agent or a person chose to remember. Truth.

Owns the shape of a note, its limits, and the words for scope, kind and mode. A note is known by
its place (scope, and in a session the session) and its name. A `Revision` is one state of a
note in its store; forgetting is a revision too.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple, TypeVar

from memoryd.domain import ids
from memoryd.domain.errors import InvalidInput
from memoryd.domain.event import ID_LIMIT, TIME_LIMIT_MS, check_id

KINDS: Final = ("note", "archive", "scratchpad", "daily")
SCOPES: Final = ("session", "project", "global")  # from the narrowest to the widest
MODES: Final = ("append", "overwrite")
CATEGORIES: Final = ("core", "daily", "conversation")
ACTIONS: Final = ("remember", "edit", "aliases", "forget", "restore", "import", "erase")

WRITE_LIMIT: Final = 64 * 1024
CONTENT_LIMIT: Final = 1024 * 1024
WORD_LIMIT: Final = 64
LIST_LIMIT: Final = 64
SCRATCHPAD: Final = "SCRATCHPAD"
MEMORY: Final = "MEMORY"

_CATEGORY_OF_KIND: Final = {"daily": "daily", "archive": "conversation"}
_T = TypeVar("_T")


class Place(NamedTuple):
    """Where names are unique: a scope, and the project and session that it speaks of.

    ``project`` is empty but in a store that several projects share.
    """

    scope: str
    project: str = ""
    session_id: str = ""


class Note(NamedTuple):
    """One thing to remember. Make it with `checked`, which enforces the limits."""

    name: str
    content: str = ""
    aliases: tuple[str, ...] = ()
    kind: str = "note"
    category: str = ""
    scope: str = "project"
    session_id: str = ""
    tags: tuple[str, ...] = ()
    created_ms: int = 0
    changed_ms: int = 0
    author: str = ""
    provenance: tuple[str, ...] = ()
    pinned: bool = False
    project: str = ""

    @property
    def place(self) -> Place:
        """Where the note's name is unique."""
        return place_of(self.scope, self.project, self.session_id)


class Revision(NamedTuple):
    """One state of a note. ``previous`` is the sequence number of the state before, or 0."""

    note: Note
    note_id: str
    revision: int
    action: str
    sequence: int
    previous: int = 0
    log_sequence: int = 0

    @property
    def forgotten(self) -> bool:
        """Whether the note is gone with this revision."""
        return self.action == "forget"


def place_of(scope: str, project: str, session_id: str) -> Place:
    """The place of a scope: only what the scope speaks of counts."""
    if scope == "global":
        return Place(scope)
    return Place(scope, project, session_id if scope == "session" else "")


def note_id(note: Note) -> str:
    """The id of a note: from its place, its name and the time of its first revision."""
    return ids.from_content(note.created_ms, (*note.place, note.name))


def checked(note: Note) -> Note:
    """Return the note with its category completed; raise InvalidInput if it breaks a limit."""
    check_name("name", note.name)
    check_word("kind", note.kind, KINDS)
    check_word("scope", note.scope, SCOPES)
    check_id("session_id", note.session_id)
    check_id("project", note.project)
    if note.scope == "session" and not note.session_id:
        raise InvalidInput("session_id is empty: a note of scope session belongs to a session")
    check_id("author", note.author)
    check_text("content", note.content, CONTENT_LIMIT, "begin another note")
    for field, time_ms in (("created_ms", note.created_ms), ("changed_ms", note.changed_ms)):
        if not 0 <= time_ms <= TIME_LIMIT_MS:
            raise InvalidInput(f"{field} {time_ms} is out of range: it lies between 1970 and 2262")
    category = note.category or _CATEGORY_OF_KIND.get(note.kind, "core")
    _check_label("category", category)
    aliases = tuple(alias for alias in unique(note.aliases) if alias != note.name)
    return note._replace(
        category=category,
        aliases=_checked_list("aliases", aliases),
        tags=_checked_list("tags", unique(note.tags)),
        provenance=_checked_list("provenance", unique(note.provenance)),
    )


def check_name(field: str, name: str) -> None:
    """Raise InvalidInput unless ``name`` is printable text of 1 to 256 bytes without outer blanks."""
    if not name:
        raise InvalidInput(f"{field} is empty")
    check_id(field, name)
    if name != name.strip():
        raise InvalidInput(f"{field} {name!r} begins or ends with a space")


def check_word(field: str, word: str, known: Iterable[str]) -> None:
    """Raise InvalidInput unless ``word`` is one of the known ones."""
    if word not in known:
        msg = f"{field} {word[:ID_LIMIT]!r} is not known: take one of {', '.join(known)}"
        raise InvalidInput(msg)


def check_text(field: str, text: str, limit: int, remedy: str) -> None:
    """Raise InvalidInput unless ``text`` is Unicode of at most so many bytes."""
    try:
        size = len(text) if text.isascii() else len(text.encode())
    except UnicodeEncodeError:
        raise InvalidInput(f"{field} is not valid Unicode: it holds a lone surrogate") from None
    if size > limit:
        msg = f"{field} has {size} bytes, over the limit of {limit // 1024} KiB: {remedy}"
        raise InvalidInput(msg)


def unique(items: Iterable[_T]) -> tuple[_T, ...]:
    """The items in their order, each once."""
    return tuple(dict.fromkeys(items))


def _checked_list(field: str, items: tuple[str, ...]) -> tuple[str, ...]:
    if len(items) > LIST_LIMIT:
        raise InvalidInput(f"{field} has {len(items)} entries, over the limit of {LIST_LIMIT}")
    for item in items:
        if field == "tags":
            _check_label("a tag", item)
        else:
            check_name(f"an entry of {field}", item)
    return items


def _check_label(field: str, word: str) -> None:
    """Raise InvalidInput unless ``word`` is one word of at most 64 bytes."""
    check_name(field, word)
    if " " in word or len(word.encode()) > WORD_LIMIT:
        msg = f"{field} {word[:WORD_LIMIT]!r} is not one word of at most {WORD_LIMIT} bytes"
        raise InvalidInput(msg)
