"""What the index follows, and the index that is being written. Derived.

A `Source` gives what has changed since a cursor; the log is one. A `Target` is an index on the
disk with its writer, the cursors up to which it has taken the sources in, and the places that
turns have in their sessions.
"""

import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final, NamedTuple, Protocol

from memoryd.domain.document import Document, Kind, of_event
from memoryd.index import files
from memoryd.index.reader import Filters, Reader
from memoryd.index.schema import State
from memoryd.index.writer import Writer
from memoryd.storage.committer import Committer
from memoryd.storage.log import Log

ALL: Final = ""  # in place of an id: all documents of a kind

_SESSIONS_KEPT: Final = 4_096


class Change(NamedTuple):
    """Documents to be taken out, then documents to be put in; and the cursor behind them."""

    cursor: int
    documents: tuple[Document, ...] = ()
    gone: tuple[tuple[Kind, str], ...] = ()


class Source(Protocol):
    """Something that the index follows: it gives what has changed since a cursor, in order."""

    name: str  # under which its cursor is kept
    replacing: bool  # whether its documents may have been given before

    def newest(self) -> int:
        """The cursor behind everything that there is."""

    def changes(self, cursor: int, place: Callable[[str], int]) -> Iterator[Change]:
        """What has changed behind a cursor; ``place`` counts up in a session."""


class LogSource:
    """The events of the log, in the order in which they were written."""

    name = "log"
    replacing = False

    def __init__(self, log: Log, committer: Committer) -> None:
        self._log = log
        self._committer = committer

    def newest(self) -> int:
        """The last synced event."""
        return self._committer.synced

    def changes(self, cursor: int, place: Callable[[str], int]) -> Iterator[Change]:
        """Every synced event behind a sequence number; one without text gives no document."""
        synced = self._committer.synced
        for recorded in islice(self._log.after(cursor), max(0, synced - cursor)):
            said = recorded.event.text.strip()
            made = of_event(recorded, place(recorded.event.session_id)) if said else None
            yield Change(recorded.sequence, (made,) if made is not None else ())


class Target:
    """An index that is being written, and how far."""

    def __init__(self, path: str, state: State | None, store_id: str) -> None:
        """Open the index at ``path``, or with no state make a new one there."""
        self.path = path
        index = files.create(path) if state is None else files.open_existing(path)
        self.reader = Reader(index)
        self.writer = Writer(index, state or State(store_id, {}, 0), bulk=state is None)
        self.cursors = dict(self.writer.state.cursors)
        self.committed_at = 0.0
        self._places: dict[str, int] = {}

    def place(self, session: str) -> int:
        """The next place in a session."""
        known = self._places.get(session)
        if known is None:
            known = self.reader.count(Filters(kinds=(Kind.EVENT,), session=session))
        self._places[session] = known + 1
        return known + 1

    def take(self, source: Source, changes: list[Change]) -> None:
        """Put in what a source has given, in its order."""
        if source.replacing:
            for change in changes:
                self._replace(change)
        else:
            made = [document for change in changes for document in change.documents]
            self.writer.put(made, replacing=False)
        self.cursors[source.name] = changes[-1].cursor

    def _replace(self, change: Change) -> None:
        for kind, id_ in change.gone:
            if id_ == ALL:
                self.writer.remove_all(kind)
            else:
                self.writer.remove(kind, (id_,))
        if change.documents:
            self.writer.put(change.documents, replacing=True)

    def commit(self) -> None:
        """Make everything that was put in searchable."""
        self.writer.commit(self.cursors)
        self.committed_at = time.monotonic()
        if len(self._places) > _SESSIONS_KEPT:
            self._places.clear()

    def back(self) -> None:
        """Return to the last commit, after an error."""
        self.cursors = dict(self.writer.state.cursors)
        self._places.clear()
