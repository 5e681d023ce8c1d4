"""What the index follows beside the log: nodes with their grips, and the notes of two stores. Derived.

Each source gives what has changed since its cursor. What is gone goes from the index too; a table
of contents that is made anew takes everything with it that it had.
"""

from collections.abc import Callable, Iterator

from memoryd.domain.document import Document, Kind, of_grip, of_node, of_note
from memoryd.domain.errors import NotFound
from memoryd.domain.toc import Level, Node
from memoryd.services.feed import ALL, Change
from memoryd.services.whereabouts import Path, Whereabouts
from memoryd.storage.log import Log
from memoryd.storage.nodes import Nodes
from memoryd.storage.notebook import NoteBook


class NodeSource:
    """The nodes of the table of contents, and the grips that the segments among them stand on."""

    name = "nodes"
    replacing = True

    def __init__(self, nodes: Nodes, log: Log, whereabouts: Whereabouts) -> None:
        self._nodes = nodes
        self._log = log
        self._whereabouts = whereabouts

    def newest(self) -> int:
        """The number of the last change."""
        return self._nodes.changed

    def changes(self, cursor: int, _place: Callable[[str], int]) -> Iterator[Change]:
        """The latest state of every node that has changed, with its grips."""
        for number, node_id, node, lost in self._nodes.changes(cursor):
            if not node_id:
                yield Change(number, gone=((Kind.NODE, ALL), (Kind.GRIP, ALL)))
                continue
            gone = tuple((Kind.GRIP, grip_id) for grip_id in lost)
            if node is None:
                yield Change(number, gone=((Kind.NODE, node_id), *gone))
                continue
            path = self._whereabouts.of_node(node)
            made = of_node(node, path, self._projects(node))
            yield Change(number, (made, *self._grips(node, path)), gone)

    def _grips(self, node: Node, path: Path) -> Iterator[Document]:
        if node.level is not Level.SEGMENT:  # the grips of a period are its segments'
            return
        for grip_id in dict.fromkeys(g for bullet in node.bullets for g in bullet.grip_ids):
            try:
                grip = self._nodes.grip(grip_id)
            except NotFound:  # the node has changed meanwhile, and comes again
                continue
            yield of_grip(grip, self._log.get(grip.first_event_id), path)

    def _projects(self, node: Node) -> tuple[str, ...]:
        """The projects that a node's sessions speak of; they count where it is only one."""
        found: set[str] = set()
        for session_id in node.session_ids:
            stats = self._log.session(session_id)
            found.update(stats.projects if stats is not None else ("",))
            if len(found) > 1:
                break
        return tuple(found)


class NoteSource:
    """The notes of one store; ``there`` says whether it exists, for one that is made on demand."""

    replacing = True

    def __init__(
        self, name: str, book: NoteBook, project: str, there: Callable[[], bool] = lambda: True
    ) -> None:
        """``project``: whose notes they are, if the notes do not say."""
        self.name = name
        self._book = book
        self._project = project
        self._there = there

    def newest(self) -> int:
        """The number of the last revision."""
        return self._book.tail().sequence if self._there() else 0

    def changes(self, cursor: int, _place: Callable[[str], int]) -> Iterator[Change]:
        """Every revision behind a number: of a note that is forgotten, that it is gone."""
        if not self._there():
            return
        for revision in self._book.after(cursor):
            if revision.forgotten:
                yield Change(revision.sequence, gone=((Kind.NOTE, revision.note_id),))
            else:
                yield Change(revision.sequence, (of_note(revision, self._project),))
