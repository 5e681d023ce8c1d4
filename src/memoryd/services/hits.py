"""Finds the words of what the index has found, and its place in the table of contents.

The index holds no texts: they come from the log, the nodes and the notes as they are now. What is
gone by now, while the index does not know it yet, gives no hit.
"""

from typing import NamedTuple

from memoryd.domain import origin, rank
from memoryd.domain.document import Head, Kind, words_of_node, words_of_note
from memoryd.domain.errors import MemorydError, NotFound, StoreDamaged
from memoryd.domain.event import EventRole, Recorded
from memoryd.domain.keys import event_key
from memoryd.domain.note import Revision
from memoryd.domain.snippet import Snippet, snippet
from memoryd.services.whereabouts import Whereabouts, is_segment
from memoryd.storage.log import Log
from memoryd.storage.nodes import Nodes
from memoryd.storage.notebook import NoteBook


class Hit(NamedTuple):
    """A found document with its words."""

    head: Head
    score: float
    reasons: dict[str, float]
    snippet: Snippet
    recorded: Recorded | None = None  # an event or, of a grip, the first that it stands on
    path: tuple[str, ...] = ()  # the nodes it lies in, from the year down
    grip_ids: tuple[str, ...] = ()  # of an event: those that stand on it; of a segment: its own
    title: str = ""  # of a node; the name of a note
    keywords: tuple[str, ...] = ()
    agent: str = ""
    project: str = ""
    origin: str = ""  # who said it
    less_trusted: bool = False  # a tool did, or a part of it

    @property
    def segment_id(self) -> str:
        """The segment it lies in or is; empty if it is in none, or in several."""
        return self.path[-1] if self.path and is_segment(self.path[-1]) else ""


class Hits:
    """Makes hits. Safe to call from many threads."""

    def __init__(
        self,
        log: Log,
        nodes: Nodes,
        whereabouts: Whereabouts,
        own_notes: NoteBook,
        global_notes: NoteBook,
    ) -> None:
        self._log = log
        self._nodes = nodes
        self.whereabouts = whereabouts
        self._own_notes = own_notes
        self._global_notes = global_notes

    def of(self, found: rank.Ranked, wanted: frozenset[str]) -> Hit | None:
        """The words of a found document. Raises NotFound for an event that the log does not hold."""
        kind = found.head.kind
        if kind == Kind.EVENT:
            return self._event(found, wanted)
        try:
            if kind == Kind.NODE:
                return self._node(found, wanted)
            return self._grip(found, wanted) if kind == Kind.GRIP else self._note(found, wanted)
        except NotFound:
            return None

    def gist(self, node_id: str) -> tuple[str, frozenset[str]]:
        """The words of a node; it and the nodes above it. Raises NotFound."""
        node = self._nodes.get(node_id)
        return words_of_node(node), frozenset(self.whereabouts.of_node(node))

    def stands_on(self, head: Head) -> frozenset[str]:
        """The ids of the events that a grip stands on, its first and its last."""
        try:
            grip = self._nodes.grip(head.id)
        except NotFound:
            return frozenset()
        return frozenset((grip.first_event_id, grip.last_event_id))

    def _event(self, found: rank.Ranked, wanted: frozenset[str]) -> Hit | None:
        recorded = self._recorded(found.head)
        if recorded.erased_ms:  # the index does not know it yet
            return None
        event = recorded.event
        path = self.whereabouts.of_event(event.session_id, event.time_ms, event.event_id)
        return Hit(
            found.head,
            found.score,
            found.reasons,
            snippet(event.text, wanted),
            recorded,
            path,
            self.whereabouts.grips_on(event.event_id, path),
            agent=event.agent,
            project=event.project,
            origin=origin.of_event(event),
            less_trusted=event.role == EventRole.TOOL,
        )

    def _recorded(self, head: Head) -> Recorded:
        """The event of a head. Raises NotFound, or StoreDamaged if the log cannot be read."""
        try:
            return self._log.at_key(event_key(head.time_ms, head.id))
        except StoreDamaged:
            return self._log.get(head.id)  # says whether the log or the index is wrong

    def _node(self, found: rank.Ranked, wanted: frozenset[str]) -> Hit:
        node = self._nodes.get(found.head.id)
        grips = dict.fromkeys(grip for bullet in node.bullets for grip in bullet.grip_ids)
        return Hit(
            found.head,
            found.score,
            found.reasons,
            snippet(words_of_node(node), wanted),
            path=found.head.path,
            grip_ids=tuple(grips) if is_segment(node.node_id) else (),
            title=node.title,
            keywords=node.keywords,
            agent=node.agents[0] if len(node.agents) == 1 else "",
            origin=f"summary by {node.summarizer or 'memoryd'}",
            less_trusted=any(map(origin.from_tool, self._nodes.sources(list(grips)))),
        )

    def _grip(self, found: rank.Ranked, wanted: frozenset[str]) -> Hit:
        grip = self._nodes.grip(found.head.id)
        recorded = self._log.get(grip.first_event_id)
        return Hit(
            found.head,
            found.score,
            found.reasons,
            snippet(grip.excerpt, wanted),
            recorded,
            found.head.path,
            (grip.grip_id,),
            agent=recorded.event.agent,
            project=recorded.event.project,
            origin=grip.source,
            less_trusted=origin.from_tool(grip.source),
        )

    def _note(self, found: rank.Ranked, wanted: frozenset[str]) -> Hit | None:
        revision = self._revision(found.head)
        if revision is None:
            return None
        return Hit(
            found.head,
            found.score,
            found.reasons,
            snippet(words_of_note(revision), wanted),
            title=revision.note.name,
            agent=revision.note.author,
            project=revision.note.project,
            origin=f"note by {revision.note.author}" if revision.note.author else "note",
        )

    def _revision(self, head: Head) -> Revision | None:
        """The note that was found, as it is now; None if it is forgotten or cannot be read."""
        book = self._global_notes if head.scope == "global" else self._own_notes
        try:
            note = book.at(head.number).note
            latest = book.head(note.place, note.name)
            if latest is None or latest.forgotten or latest.note_id != head.id:
                return None
            return book.whole(latest)
        except MemorydError:
            return None
