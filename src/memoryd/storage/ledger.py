"""The ledger: what each model took on each day. Neither derived nor part of the conversation.

Every change reads, adds and writes under one lock, and is in the write-ahead log before the call
returns, so that it survives the end of the process at any moment.
"""

import threading
from collections.abc import Iterator
from typing import Final

from memoryd.domain.costs import DaySpent, Spent
from memoryd.storage import codec
from memoryd.storage.db import Database

_FAMILY: Final = "ledger"
_BREAK: Final = b"\0"


class Ledger:
    """The ledger in an open database. Safe to call from many threads."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._lock = threading.Lock()

    def add(self, day: str, model: str, more: Spent) -> None:
        """Add to what a model took on a day. Raises ReadOnly and adds nothing."""
        with self._lock:
            self._put(day, model, self._get(day, model).plus(more))

    def reserve(self, day: str, model: str, tokens: int, limit: int) -> bool:
        """Count a call and its tokens, unless the day's tokens would exceed ``limit``.

        Raises ReadOnly and counts nothing.
        """
        with self._lock:
            if sum(found.spent.tokens for found in self.days(day, day)) + tokens > limit:
                return False
            self._put(day, model, self._get(day, model).plus(Spent(calls=1, reserved=tokens)))
            return True

    def days(self, first: str, last: str) -> Iterator[DaySpent]:
        """What was spent from one day to another, both included, in order."""
        stop = last.encode() + b"\x01"
        for key, stored in self._db.scan(_FAMILY, first.encode() + _BREAK, stop):
            day, _, model = key.partition(_BREAK)
            yield DaySpent(day.decode(), model.decode(), Spent(*codec.read(stored, "ledger")))

    def _get(self, day: str, model: str) -> Spent:
        stored = self._db.get(_FAMILY, _key(day, model))
        return Spent() if stored is None else Spent(*codec.read(stored, "ledger"))

    def _put(self, day: str, model: str, spent: Spent) -> None:
        batch = self._db.batch()
        batch.put(_key(day, model), codec.value(spent), self._db.handle(_FAMILY))
        self._db.write(batch)


def _key(day: str, model: str) -> bytes:
    return day.encode() + _BREAK + model.encode()
