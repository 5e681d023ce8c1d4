"""What search finds: events, nodes, grips and notes, in the shape in which they are indexed. Derived.

A document is what an index needs to know of a thing; its text is looked at once, analysed, and
not kept. A `Head` is what the index gives back of a document without asking anybody else.
"""

from enum import IntEnum
from typing import Final, NamedTuple

from memoryd.domain.event import EventRole, Recorded
from memoryd.domain.note import Revision
from memoryd.domain.toc import Grip, Node

TEXT_LIMIT: Final = 512 * 1024  # characters of one document that are searched


class Kind(IntEnum):
    """What a document stands for."""

    EVENT = 1
    NODE = 2
    GRIP = 3
    NOTE = 4


ROLE_NAMES: Final = {role: role.name.lower() for role in EventRole}
KIND_NAMES: Final = {kind: kind.name.lower() for kind in Kind}
DERIVED: Final = frozenset((Kind.NODE, Kind.GRIP))  # they repeat in other words what events say


class Document(NamedTuple):
    """One thing to be found. The pair of kind and id names it; putting it again replaces it."""

    kind: Kind
    id: str
    text: str
    sequence: int  # the last event of the log that it stands for
    time_ms: int
    session: str = ""
    place: int = 0  # counts the documents of a session in the order in which they came
    agent: str = ""
    role: int = 0
    project: str = ""
    speaker: str = ""  # a person's name, where the source gives one
    path: tuple[str, ...] = ()  # the nodes that it lies in, from the year down
    scope: str = ""  # of a note
    number: int = 0  # of a note: the revision's in its store


class Head(NamedTuple):
    """What is known of a found document before anything is read from the log."""

    kind: int
    id: str
    sequence: int
    time_ms: int
    session: str
    place: int
    length: int  # of its text in characters
    role: int
    who: tuple[str, ...]  # the analysed names of who spoke
    sketch: tuple[int, ...]
    path: tuple[str, ...]  # the nodes that it lies in, from the year down
    scope: str = ""
    number: int = 0


def of_event(recorded: Recorded, place: int) -> Document:
    """The document of an event, the so-manieth of its session."""
    event = recorded.event
    return Document(
        kind=Kind.EVENT,
        id=event.event_id,
        text=event.text,
        sequence=recorded.sequence,
        time_ms=event.time_ms,
        session=event.session_id,
        place=place,
        agent=event.agent,
        role=event.role,
        project=event.project,
        speaker=event.metadata.get("speaker", ""),
    )


def of_node(node: Node, path: tuple[str, ...], projects: tuple[str, ...]) -> Document:
    """The document of a node. What several sessions, agents or projects share belongs to none."""
    return Document(
        kind=Kind.NODE,
        id=node.node_id,
        text=words_of_node(node),
        sequence=0,
        time_ms=node.start_ms,
        session=_only(node.session_ids),
        agent=_only(node.agents),
        project=_only(projects),
        path=path,
    )


def of_grip(grip: Grip, first: Recorded, path: tuple[str, ...]) -> Document:
    """The document of a grip, whose evidence begins with an event."""
    event = first.event
    return Document(
        kind=Kind.GRIP,
        id=grip.grip_id,
        text=grip.excerpt,
        sequence=first.sequence,
        time_ms=grip.time_ms,
        session=event.session_id,
        agent=event.agent,
        role=event.role,
        project=event.project,
        path=path,
    )


def of_note(revision: Revision, project: str) -> Document:
    """The document of a note; ``project`` is whose store it is in, where several share none."""
    note = revision.note
    return Document(
        kind=Kind.NOTE,
        id=revision.note_id,
        text=words_of_note(revision),
        sequence=revision.log_sequence,
        time_ms=note.changed_ms,
        session=note.session_id,
        agent=note.author,
        project="" if note.scope == "global" else note.project or project,
        scope=note.scope,
        number=revision.sequence,
    )


def words_of_node(node: Node) -> str:
    """What is searched of a node."""
    bullets = (bullet.text for bullet in node.bullets)
    parts = (node.title, node.summary, *bullets, ", ".join(node.keywords))
    return "\n".join(part for part in parts if part)


def words_of_note(revision: Revision) -> str:
    """What is searched of a note."""
    note = revision.note
    parts = (note.name, ", ".join((*note.aliases, *note.tags)), note.content)
    return "\n".join(part for part in parts if part)


def _only(items: tuple[str, ...]) -> str:
    return items[0] if len(items) == 1 else ""


def who_spoke(document: Document) -> str:
    """The words by which a question may name the speaker: a name, or the role and the agent."""
    if document.speaker or not document.role:
        return document.speaker
    return f"{ROLE_NAMES[EventRole(document.role)]} {document.agent}"
