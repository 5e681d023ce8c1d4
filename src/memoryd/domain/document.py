"""What search finds: events, nodes, grips and notes, in the shape in which they are indexed. Derived.

A document is what an index needs to know of a thing; its text is looked at once, analysed, and
not kept. A `Head` is what the index gives back of a document without asking anybody else.
"""

from enum import IntEnum
from typing import Final, NamedTuple

from memoryd.domain.event import EventRole, Recorded

TEXT_LIMIT: Final = 512 * 1024  # characters of one document that are searched


class Kind(IntEnum):
    """What a document stands for."""

    EVENT = 1
    NODE = 2
    GRIP = 3
    NOTE = 4


ROLE_NAMES: Final = {role: role.name.lower() for role in EventRole}
KIND_NAMES: Final = {kind: kind.name.lower() for kind in Kind}


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


def who_spoke(document: Document) -> str:
    """The words by which a question may name the speaker: a name, or the role and the agent."""
    if document.speaker or not document.role:
        return document.speaker
    return f"{ROLE_NAMES[EventRole(document.role)]} {document.agent}"
