import os
from collections.abc import Callable, Iterable

import pytest

from memoryd.domain import question, rank
from memoryd.domain.document import Document
from memoryd.index import files
from memoryd.index.reader import Filters, Reader
from memoryd.index.schema import State
from memoryd.index.writer import Writer


class Shelf:
    """An index with documents in it."""

    def __init__(self, path: str, documents: Iterable[Document]) -> None:
        self.path = path
        index = files.create(path)
        self.writer = Writer(index, State("store", {}, 0))
        self.reader = Reader(index)
        self.writer.put(documents, replacing=False)
        self.commit({"log": 1})

    def commit(self, cursors: dict[str, int]) -> None:
        """Commit, and look at what has been committed."""
        self.writer.commit(cursors)
        self.reader.reload()

    def find(self, text: str, filters: Filters = Filters()) -> list[str]:  # noqa: B008 - a tuple
        """The ids that a question finds, best first."""
        pool = self.reader.pool(question.read(text), filters)
        return [found.head.id for found in rank.rank(pool, rank.Wishes())]


@pytest.fixture
def shelve(tmp_path: os.PathLike[str]) -> Callable[[Iterable[Document]], Shelf]:
    """Make an index of documents."""
    return lambda documents: Shelf(f"{os.fspath(tmp_path)}/index", documents)
