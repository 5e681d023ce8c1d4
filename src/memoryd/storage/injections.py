"""The injection ledger: which block was given to which session, and when.

Append-only but for erasures, which empty the blocks that told of what is gone.
Neither derived nor part of the conversation: what a model was shown cannot be made again once
notes and nodes have changed. A record is in the write-ahead log before the call returns; the next
sync of the committer brings it to the disk.
"""

import threading
from collections.abc import Callable
from struct import Struct
from typing import Final, NamedTuple

from rocksdict import WriteBatch

from memoryd.storage import codec
from memoryd.storage.db import Database

_FAMILY: Final = "injections"
_SESSION: Final = b"s"
_AGENT: Final = b"a"
_BREAK: Final = b"\0"
_AFTER: Final = b"\1"
_NUMBER: Final = Struct(">Q")


class Injection(NamedTuple):
    """One block as it was given. ``sections`` has name, state, ids in it and ids left out."""

    session_id: str
    number: int  # counts the blocks of a session from 1
    time_ms: int
    agent: str
    query: str
    budget: int
    text: str
    sections: tuple[tuple[str, str, tuple[str, ...], tuple[str, ...]], ...]


class Injections:
    """The ledger in an open database. Safe to call from many threads."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._lock = threading.Lock()

    def add(self, given: Injection) -> Injection:
        """Keep a block under the next number of its session. Raises ReadOnly and keeps nothing."""
        with self._lock:
            number = self.count(given.session_id) + 1
            key = _start(_SESSION, given.session_id) + _NUMBER.pack(number)
            mark = _start(_AGENT, given.agent) + _NUMBER.pack(given.time_ms)
            batch, handle = self._db.batch(), self._db.handle(_FAMILY)
            batch.put(key, codec.value(given[2:]), handle)
            batch.put(mark, codec.value([given.session_id, number]), handle)
            self._db.write(batch)
            return given._replace(number=number)

    def erase(self, batch: WriteBatch, told_of: Callable[[Injection], bool]) -> int:
        """Have a batch take block and question out of some records; how many those are."""
        count = 0
        for key, stored in self._db.scan(_FAMILY, _SESSION, _SESSION + b"\xff"):
            session, number = key[1 : -_NUMBER.size - 1].decode(), _NUMBER.unpack(key[-8:])[0]
            given = _read(session, number, stored)
            if (given.text or given.query) and told_of(given):
                emptied = given._replace(text="", query="")
                batch.put(key, codec.value(emptied[2:]), self._db.handle(_FAMILY))
                count += 1
        return count

    def count(self, session_id: str) -> int:
        """How many blocks a session was given."""
        key = self._last(_SESSION, session_id)
        return _NUMBER.unpack(key[-_NUMBER.size :])[0] if key else 0

    def get(self, session_id: str, number: int) -> Injection | None:
        """One block that a session was given."""
        stored = self._db.get(_FAMILY, _start(_SESSION, session_id) + _NUMBER.pack(number))
        return None if stored is None else _read(session_id, number, stored)

    def last_ms(self, agent: str) -> int:
        """When an agent was last given a block; 0 if never."""
        key = self._last(_AGENT, agent)
        return _NUMBER.unpack(key[-_NUMBER.size :])[0] if key else 0

    def _last(self, kind: bytes, name: str) -> bytes:
        start = _start(kind, name)
        stop = start[:-1] + _AFTER
        scan = self._db.scan(_FAMILY, start, stop, reverse=True)
        return next((key for key, _ in scan), b"")


def _read(session_id: str, number: int, stored: bytes) -> Injection:
    time_ms, agent, query, budget, text, sections = codec.read(stored, "injection")
    told = tuple((n, state, tuple(i), tuple(o)) for n, state, i, o in sections)
    return Injection(session_id, number, time_ms, agent, query, budget, text, told)


def _start(kind: bytes, name: str) -> bytes:
    return kind + name.encode() + _BREAK
