"""The one writer of an index: puts documents in, and commits them with the state they make. Derived.

The engine's writer holds tens of megabytes, so it is opened with the first document and given
back when there is nothing to do. After any error it is dropped: tantivy goes on to report success
and to index nothing. What was not committed is then put in again from the sources.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

import tantivy

from memoryd.domain.document import KIND_NAMES, Document, Kind
from memoryd.index import schema
from memoryd.index.files import doubting

_HEAP: Final = 16_000_000  # the engine refuses less than 15 MB
_BULK_HEAP: Final = 48_000_000


class Writer:
    """Writes to one index. For one thread."""

    def __init__(self, index: tantivy.Index, state: schema.State, *, bulk: bool = False) -> None:
        """``state`` is what the index stands for now."""
        self._index = index
        self._schema = index.schema
        self._heap = _BULK_HEAP if bulk else _HEAP
        self._engine: tantivy.IndexWriter | None = None
        self._events = state.events
        self._words = state.words
        self.state = state
        self.waiting = 0  # documents that have been put in and not been committed

    def put(self, documents: Iterable[Document], *, replacing: bool) -> None:
        """Put documents in; with ``replacing``, each instead of the one of its kind and id.

        Raises IndexDoubt, and takes back everything since the last commit.
        """
        with self._dropping("a document cannot be indexed"):
            engine, usual = self._open(), self._state({}).usual
            for document in documents:
                if replacing:
                    engine.delete_documents_by_term(
                        "key", schema.key_of(document.kind, document.id)
                    )
                fields = schema.fields(document, usual)
                engine.add_document(tantivy.Document.from_dict(fields, self._schema))
                if document.kind == Kind.EVENT and not replacing:
                    self._events += 1
                    self._words += len(str(fields["text"]).split(" "))
                self.waiting += 1

    def remove(self, kind: Kind, ids: Iterable[str]) -> None:
        """Take documents out. Raises IndexDoubt, and takes back everything since the commit."""
        with self._dropping("a document cannot be removed"):
            engine = self._open()
            for id_ in ids:
                engine.delete_documents_by_term("key", schema.key_of(kind, id_))
                self._events -= kind == Kind.EVENT
                self.waiting += 1

    def remove_all(self, kind: Kind) -> None:
        """Take all documents of a kind out, of all but events. Raises IndexDoubt as `remove`."""
        with self._dropping("documents cannot be removed"):
            self._open().delete_documents_by_term("kind", KIND_NAMES[kind])
            self.waiting += 1

    def commit(self, cursors: dict[str, int]) -> None:
        """Bring everything to the disk, and how far the sources have been taken in with it.

        Raises IndexDoubt, and takes back everything since the last commit.
        """
        state = self._state(cursors)
        with self._dropping("the index cannot be committed"):
            engine = self._open()
            engine.delete_documents_by_term("key", schema.STATE_KEY)
            kept = {"key": schema.STATE_KEY, "head": state.encode()}
            engine.add_document(tantivy.Document.from_dict(kept, self._schema))
            engine.commit()
        self.state = state
        self.waiting = 0

    def rest(self) -> None:
        """Give the engine's memory back until the next document."""
        if self._engine is not None and not self.waiting:
            engine, self._engine = self._engine, None
            with suppress(Exception):
                engine.wait_merging_threads()

    def close(self) -> None:
        """End; what has not been committed is lost."""
        self._drop()

    def _state(self, cursors: dict[str, int]) -> schema.State:
        return self.state._replace(cursors=dict(cursors), events=self._events, words=self._words)

    def _open(self) -> tantivy.IndexWriter:
        if self._engine is None:
            self._engine = self._index.writer(self._heap, 1)
        return self._engine

    def _drop(self) -> None:
        engine, self._engine = self._engine, None
        self._events = self.state.events
        self._words = self.state.words
        self.waiting = 0
        if engine is not None:
            with suppress(Exception):
                engine.rollback()

    @contextmanager
    def _dropping(self, what: str) -> Iterator[None]:
        try:
            with doubting(what):
                yield
        except BaseException:
            self._drop()
            raise
