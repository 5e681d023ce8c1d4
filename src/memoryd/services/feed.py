"""What the index follows, and the index that is being written. Derived.

A `Source` gives what has changed since a cursor; the log is one. `Sources` are all of them, read
in batches. A `Target` is an index on the disk with the worker that writes it, the cursors up to
which it has taken the sources in, and the places that turns have in their sessions.
"""

import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final, NamedTuple, Protocol

from memoryd.domain.document import Document, Kind, of_event
from memoryd.domain.errors import MemorydError
from memoryd.index import files
from memoryd.index.reader import Filters, Reader
from memoryd.index.schema import State
from memoryd.services.index_worker import IndexWorker
from memoryd.storage.committer import Committer
from memoryd.storage.log import Log

ALL: Final = ""  # in place of an id: all documents of a kind

_SESSIONS_KEPT: Final = 4_096
_CHARACTERS: Final = 2_000_000  # in the texts of one batch, and what one more change has
_FAR: Final = 2**63


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
        for recorded in self._log.after(cursor, synced):
            cursor = recorded.sequence
            said = recorded.event.text.strip()
            made = of_event(recorded, place(recorded.event.session_id)) if said else None
            yield Change(recorded.sequence, (made,) if made is not None else ())
        if cursor < synced:  # the log ends with events that are gone
            yield Change(synced)


class Target:
    """An index that is being written, and how far."""

    def __init__(self, path: str, state: State | None, store_id: str, lock: int) -> None:
        """Open the index at ``path``, or with no state make a new one there.

        ``lock`` is the open file that says that the directory is ours.
        """
        self.path = path
        self.reader = Reader(files.create(path) if state is None else files.open_existing(path))
        begin = state or State(store_id, {}, 0)
        self.writer = IndexWorker(path, begin, self.reader, bulk=state is None, kept=(lock,))
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


class Sources:
    """The log, and beside it what may be read or not. ``report`` is told of what cannot be."""

    def __init__(
        self, log: LogSource, beside: tuple[Source, ...], report: Callable[[str, str], object]
    ) -> None:
        self._log = log
        self._all: tuple[Source, ...] = (log, *beside)
        self._report = report
        self._silent: dict[str, str] = {}  # sources that cannot be read, and why

    def __iter__(self) -> Iterator[Source]:
        """The log first."""
        return iter(self._all)

    def newest(self, source: Source) -> int:
        """The cursor behind everything that a source has, as far as that can be said now."""
        try:
            return source.newest()
        except MemorydError:  # it is told of when it is read
            return _FAR

    def batch(self, source: Source, target: Target, most: int) -> list[Change]:
        """The next changes of a source, at most so many; none of one that cannot be read.

        Raises what the log raises.
        """
        changes: list[Change] = []
        size, cursor = 0, target.cursors.get(source.name, 0)
        try:
            for change in islice(source.changes(cursor, target.place), most):
                changes.append(change)
                size += sum(len(document.text) for document in change.documents)
                if size > _CHARACTERS:
                    break
        except MemorydError as error:
            if source is self._log:
                raise
            if self._silent.get(source.name) != str(error):
                self._report("index", str(error))
            self._silent[source.name] = str(error)
            return []
        self._silent.pop(source.name, None)
        return changes
