"""The half of a full check that looks at what is derived: nodes, grips, search index."""

import time
from collections.abc import Generator, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from memoryd.domain.document import Kind
from memoryd.domain.errors import IndexDoubt, MemorydError, NotFound
from memoryd.domain.event import Recorded
from memoryd.domain.keys import event_key
from memoryd.domain.toc import Grip
from memoryd.index import files
from memoryd.index.reader import Filters, Reader
from memoryd.index.schema import FORMAT
from memoryd.storage.audit import Fault, Progress
from memoryd.storage.db import Database
from memoryd.storage.log import Log
from memoryd.storage.nodes import Nodes
from memoryd.storage.store import store_id_of

_TELL: Final = 1024
_SHOWN: Final = 20
_LOOKS: Final = 2
_PAUSE_SECONDS: Final = 1.0
_KEPT: Final = 256  # events that grips next to each other stand on


class IndexLook(NamedTuple):
    """What the search index says of itself, or what is wrong with it; all empty: there is none."""

    store_id: str = ""
    sequence: int = 0
    documents: int = 0
    fault: str = ""


def look_at_index(path: str, *, moving: bool = False) -> IndexLook:
    """Open the index, compare its files with their checksums, and count.

    ``moving``: a daemon may put another one in its place under the look; then look again.
    """
    found = _look(path)
    for _ in range(_LOOKS if moving else 0):
        if not found.fault:
            break
        time.sleep(_PAUSE_SECONDS)
        found = _look(path)
    return found


def _look(path: str) -> IndexLook:
    if not path:
        return IndexLook()
    try:
        reader = Reader(files.open_existing(path))
        state = reader.state()
        documents = reader.count(Filters(kinds=(Kind.EVENT,)))
        files.check_files(path)
    except IndexDoubt as error:
        absent = str(error) == "there is no index yet"
        return IndexLook() if absent else IndexLook(fault=f"the search index: {error}")
    if state.format != FORMAT:
        return IndexLook(fault="the search index was made by another version of memoryd")
    if documents != state.events:
        return IndexLook(fault=f"the search index has {documents} of its {state.events} events")
    return IndexLook(state.store_id, state.cursors.get("log", 0), documents)


def check_nodes(db: Database, *, skip: bool) -> Generator[Fault | Progress, None, tuple[int, int]]:
    """Check every node and grip; at the end, how many there are.

    ``skip``: the log is damaged, so that nothing can be said of what follows from it.
    """
    if skip:
        return 0, 0
    try:
        log = Log(db, store_id_of(db))
        nodes = Nodes(db, log)
        grips = yield from _grips(nodes, _Evidence(log))
        count = yield from _nodes(db, nodes)
    except MemorydError as error:
        yield Fault("nodes", str(error).partition(": run `")[0].partition("; run `")[0])
        return 0, 0
    return count, grips


def _grips(nodes: Nodes, evidence: "_Evidence") -> Generator[Fault | Progress, None, int]:
    done = wrong = 0
    for grip in nodes.grips():
        done += 1
        if not evidence.holds(grip):
            wrong += 1
            if wrong <= _SHOWN:
                yield Fault("grips", f"{grip.grip_id} does not stand in the events that it names")
        if not done % _TELL:
            yield Progress("grips", done, 0)
    if wrong > _SHOWN:
        yield Fault("grips", f"and {wrong - _SHOWN} more do not")
    yield Progress("grips", done, done)
    return done


def _nodes(db: Database, nodes: Nodes) -> Generator[Fault | Progress, None, int]:
    done = 0
    for key, _ in db.scan("toc_latest"):
        done += 1
        node = nodes.find(key.decode())
        if node is None:
            yield Fault("nodes", f"{key.decode()} has no latest version")
            continue
        lost = sum(1 for b in node.bullets for grip in b.grip_ids if not _is_there(db, grip))
        if lost:
            yield Fault("nodes", f"{node.node_id} names {lost} grips that are not there")
        if not done % _TELL:
            yield Progress("nodes", done, 0)
    yield Progress("nodes", done, done)
    return done


def _is_there(db: Database, grip_id: str) -> bool:
    return db.get("grips", grip_id.encode()) is not None


class _Evidence:
    """Reads the events that grips stand on; those of neighbours are read once."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._get = lru_cache(_KEPT)(log.get)

    def holds(self, grip: Grip) -> bool:
        """Whether a grip's excerpt stands in one of the events from its first to its last."""
        try:
            return any(grip.excerpt in recorded.event.text for recorded in self._run(grip))
        except NotFound:
            return False

    def _run(self, grip: Grip) -> Iterator[Recorded]:
        first = self._get(grip.first_event_id)
        yield first
        if grip.last_event_id == grip.first_event_id:
            return
        last = self._get(grip.last_event_id)
        start = event_key(first.event.time_ms, first.event.event_id)
        stop = event_key(last.event.time_ms, last.event.event_id) + b"\0"
        for _, recorded in self._log.by_session(first.event.session_id, start, stop):
            yield recorded
