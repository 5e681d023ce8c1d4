"""The notes of a project and its sessions, in the project's RocksDB. Truth.

Changes go through the committer's thread, so that they share its syncs with the events, and
stand in one order with them.
"""

from collections.abc import Callable
from typing import TypeVar

from memoryd.storage.committer import Committer
from memoryd.storage.notebook import Desk, NoteBook
from memoryd.storage.store import Store

_T = TypeVar("_T")


class ProjectNotes:
    """A `NoteStore` in an open store."""

    def __init__(self, store: Store, committer: Committer) -> None:
        self._store = store
        self._committer = committer
        self.book = NoteBook(store.db)

    def change(self, work: Callable[[Desk], _T]) -> _T:
        """Have ``work`` change notes at a desk; return when all of it is on the disk.

        Raises what ``work`` raises, ReadOnly or Stopping; then nothing is acknowledged.
        """

        def write() -> tuple[_T, bool]:
            store = self._store
            desk = Desk(store.db, store.log.tail.sequence)
            result = work(desk)
            if not desk.puts:
                return result, False
            batch = store.db.batch()
            for (family, key), value in desk.puts.items():
                if value is None:
                    batch.delete(key, store.db.handle(family))
                else:
                    batch.put(key, value, store.db.handle(family))
            store.db.write(batch)
            store.notes_tail = desk.tail
            return result, True

        return self._committer.write(write)
