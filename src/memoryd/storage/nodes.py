"""Nodes and grips: the table of contents on disk, and what is still to be done to it. Derived.

Nodes are versioned. A version that was final stays readable for ever; one that was provisional
gives way to the next. All writing goes through a `Change`, one atomic batch, and is for one
thread alone, the pump's. Everything else may be called from any thread.
"""

from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Final, NamedTuple

from memoryd.domain.errors import NotFound
from memoryd.domain.keys import sequence_key, session_prefix, split_sequence_key
from memoryd.domain.toc import Grip, Level, Node
from memoryd.storage import codec
from memoryd.storage.db import Database
from memoryd.storage.log import Log

_FAMILIES: Final = (
    "toc_nodes",
    "toc_latest",
    "toc_changes",
    "toc_segments",
    "toc_dirty",
    "toc_open",
    "toc_unwritten",
    "grips",
)
_LAST_KEY: Final = b"\xff" * 300
_VERSION: Final = Struct(">I")
_DUE: Final = Struct(">BQ")


class Extent(NamedTuple):
    """Which events a segment holds: those of a session from one key to another."""

    session: int  # the session's number
    first: bytes
    last: bytes
    node_id: str
    events: int
    before: bytes  # the key of the first event of its context, which ends where it begins
    before_events: int
    closes_ms: int  # 0: it is closed


class Due(NamedTuple):
    """A provisional node that is to be closed at a time; ``place`` finds a segment's extent."""

    level: Level
    closes_ms: int
    node_id: str
    place: bytes


class Changed(NamedTuple):
    """A node that has changed, or with None is no more; an empty id: all of them are no more."""

    number: int
    node_id: str
    node: Node | None
    gone_grips: tuple[str, ...]  # grips that the node had once and has no longer


class Nodes:
    """The table of contents in an open database."""

    def __init__(self, db: Database, log: Log) -> None:
        self._db = db
        self._log = log
        self.to_write: frozenset[Level] = frozenset()  # levels whose finished nodes a model writes
        newest = next(db.scan("toc_changes", reverse=True), None)
        self.changed = split_sequence_key(newest[0]) if newest else 0  # the last change's number

    def changes(self, after: int) -> Iterator[Changed]:
        """What has changed behind a number, in order: of each node only the latest change.

        For whoever keeps something in step with the nodes: remember the last number, come again.
        """
        for key, value in self._db.scan("toc_changes", sequence_key(after + 1)):
            node_id, gone = codec.read(value, "change")
            yield Changed(split_sequence_key(key), node_id, self.find(node_id), tuple(gone))

    def find(self, node_id: str, version: int = 0) -> Node | None:
        """A node, in its latest version unless one is named, or None."""
        version = version or self.latest(node_id)
        if not version:
            return None
        value = self._db.get("toc_nodes", _node_key(node_id, version))
        return codec.read_node(node_id, version, value) if value is not None else None

    def latest(self, node_id: str) -> int:
        """The latest version of a node, or 0 if there is none."""
        stored = self._db.get("toc_latest", node_id.encode())
        return codec.read(stored, "version")[0] if stored is not None else 0

    def get(self, node_id: str, version: int = 0) -> Node:
        """A node, in its latest version unless one is named. Raises NotFound."""
        node = self.find(node_id, version)
        if node is None:
            which = f"version {version} of node" if version else "node"
            raise NotFound(f"there is no {which} {node_id}")
        return node

    def between(self, first_id: str, last_id: str, *, after: str = "") -> Iterator[Node]:
        """The latest nodes with ids from one to another, both included, or behind ``after``."""
        start = after.encode() + b"\0" if after else first_id.encode()
        for key, _ in self._db.scan("toc_latest", start, last_id.encode() + b"\0"):
            node = self.find(key.decode())
            if node is not None:  # it may go while the scan is under way
                yield node

    def ids_between(self, first_id: str, last_id: str) -> Iterator[str]:
        """The ids of the latest nodes from one to another, both included."""
        for key, _ in self._db.scan("toc_latest", first_id.encode(), last_id.encode() + b"\0"):
            yield key.decode()

    def ids_from(self, family: str, prefix: str) -> Iterator[str]:
        """The ids in "toc_latest" or "grips" that begin with a prefix, in order."""
        return self._db.names(family, prefix)

    def versions(self, node_id: str) -> list[int]:
        """The versions of a node that are stored, oldest first."""
        start, stop = _node_key(node_id, 0), _node_key(node_id, 2**32 - 1)
        return [_VERSION.unpack(k[-4:])[0] for k, _ in self._db.scan("toc_nodes", start, stop)]

    def stored(self) -> Iterator[Node]:
        """Every stored version of every node, also of those that are no more."""
        for key, value in self._db.scan("toc_nodes"):
            name, version = key[:-5].decode(), _VERSION.unpack(key[-4:])[0]
            yield codec.read_node(name, version, value)

    def grip(self, grip_id: str) -> Grip:
        """A grip. Raises NotFound."""
        stored = self._db.get("grips", grip_id.encode())
        if stored is None:
            raise NotFound(f"there is no grip {grip_id}")
        return codec.read_grip(grip_id, stored)

    def sources(self, grip_ids: Sequence[str]) -> list[str]:
        """Who said each of some grips; "" for one that is gone."""
        found = self._db.get_many("grips", [grip_id.encode() for grip_id in grip_ids])
        pairs = zip(grip_ids, found, strict=True)
        return [codec.read_grip(g, stored).source if stored else "" for g, stored in pairs]

    def grips(self) -> Iterator[Grip]:
        """Every grip, also those of versions that are no longer the latest."""
        for key, stored in self._db.scan("grips"):
            yield codec.read_grip(key.decode(), stored)

    def extent_at(self, session: int, key: bytes) -> Extent | None:
        """The segment of a session that begins with, or last before, an event key."""
        prefix = session_prefix(session)
        stop = prefix + key + b"\0"
        for found, value in self._db.scan("toc_segments", prefix, stop, reverse=True):
            return _extent(found, value)
        return None

    def extents(self, session: int, first: bytes, stop: bytes | None) -> Iterator[Extent]:
        """The segments of a session that begin between two event keys."""
        prefix = session_prefix(session)
        end = prefix + stop if stop is not None else session_prefix(session + 1)
        for key, value in self._db.scan("toc_segments", prefix + first, end):
            yield _extent(key, value)

    def last_extent(self, session: int) -> Extent | None:
        """The last segment of a session."""
        start, stop = session_prefix(session), session_prefix(session + 1)
        for found, value in self._db.scan("toc_segments", start, stop, reverse=True):
            return _extent(found, value)
        return None

    def dirty(self, level: Level) -> list[str]:
        """The ids of the periods of a level that must be derived again, in order of time."""
        start, stop = bytes([level]), bytes([level + 1])
        return [key[1:].decode() for key, _ in self._db.scan("toc_dirty", start, stop)]

    def unwritten(self, level: Level) -> list[str]:
        """The ids of the finished nodes of a level that a model is to write, newest first."""
        start, stop = bytes([level]), bytes([level + 1])
        found = self._db.scan("toc_unwritten", start, stop, reverse=True)
        return [key[1:].decode() for key, _ in found]

    def due(self, level: Level, now_ms: int) -> Iterator[Due]:
        """The provisional nodes of a level whose time has come."""
        start, stop = _DUE.pack(level, 0), _DUE.pack(level, now_ms + 1)
        for key, place in self._db.scan("toc_open", start, stop):
            yield Due(level, _DUE.unpack_from(key)[1], key[_DUE.size :].decode(), place)

    def next_due_ms(self, level: Level) -> int | None:
        """When the next provisional node of a level is to be closed."""
        for key, _ in self._db.scan("toc_open", bytes([level]), bytes([level + 1])):
            closes: int = _DUE.unpack_from(key)[1]
            return closes
        return None

    def change(self) -> "Change":
        """An empty change."""
        return Change(self._db, self._log, self)


class Change:
    """What one step of the pump writes, all or nothing. A node appears in it once at most."""

    def __init__(self, db: Database, log: Log, nodes: Nodes) -> None:
        self._db = db
        self._log = log
        self._nodes = nodes
        self._batch = db.batch()
        self._changed = nodes.changed
        self._handles = {family: db.handle(family) for family in (*_FAMILIES, "checkpoints")}

    def put_node(self, node: Node, *, anew: bool = False) -> bool:
        """Make this the latest version of a node; say whether that changed anything.

        With ``anew`` it is written in any case, and every other version goes.
        """
        old = self._nodes.find(node.node_id)
        if not anew and old is not None and old._replace(version=node.version) == node:
            return False
        if anew:
            self.drop_versions(node.node_id)
        if old is not None:
            version = old.version + 1
        else:
            version = max(self._nodes.versions(node.node_id), default=0) + 1
        self._clear_open(old)
        self._give_way(old)
        key = _node_key(node.node_id, version)
        self._batch.put(key, codec.node_value(node), self._handles["toc_nodes"])
        latest = codec.value((version, self._note(node.node_id, old, node)))
        self._batch.put(node.node_id.encode(), latest, self._handles["toc_latest"])
        if node.provisional and node.level is not Level.SEGMENT:
            self._batch.put(_due_key(node), b"", self._handles["toc_open"])
        if not node.provisional and node.level in self._nodes.to_write:
            mark = bytes([node.level]) + node.node_id.encode()
            self._batch.put(mark, b"", self._handles["toc_unwritten"])
        elif old is not None:
            self.clear_unwritten(node.level, node.node_id)
        return True

    def remove_node(self, node_id: str) -> bool:
        """Take a node out of the latest tree; say whether it was there."""
        old = self._nodes.find(node_id)
        if old is None:
            return False
        self._clear_open(old)
        self._give_way(old)
        self._note(node_id, old, None)
        self.clear_unwritten(old.level, node_id)
        self._batch.delete(node_id.encode(), self._handles["toc_latest"])
        return True

    def drop_versions(self, node_id: str, *, but: int = 0) -> None:
        """Take every stored version of a node out, but for one."""
        for version in self._nodes.versions(node_id):
            if version != but:
                self._batch.delete(_node_key(node_id, version), self._handles["toc_nodes"])

    def drop_grip(self, grip_id: str) -> None:
        """Take a grip out."""
        self._batch.delete(grip_id.encode(), self._handles["grips"])

    def put_grip(self, grip: Grip) -> None:
        """Keep a grip."""
        self._batch.put(grip.grip_id.encode(), codec.grip_value(grip), self._handles["grips"])

    def put_extent(self, extent: Extent, old: Extent | None) -> None:
        """Say which events a segment holds, in place of what was said before."""
        self._close_extent(old)
        key = session_prefix(extent.session) + extent.first
        self._batch.put(key, codec.value(extent[2:]), self._handles["toc_segments"])
        if extent.closes_ms:
            due = _DUE.pack(Level.SEGMENT, extent.closes_ms) + extent.node_id.encode()
            self._batch.put(due, key, self._handles["toc_open"])

    def remove_extent(self, extent: Extent) -> None:
        """Forget a segment that is no more."""
        self._close_extent(extent)
        key = session_prefix(extent.session) + extent.first
        self._batch.delete(key, self._handles["toc_segments"])

    def drop_due(self, due: Due) -> None:
        """Forget that a node was to be closed."""
        key = _DUE.pack(due.level, due.closes_ms) + due.node_id.encode()
        self._batch.delete(key, self._handles["toc_open"])

    def mark_dirty(self, level: Level, node_id: str) -> None:
        """Have a period derived again."""
        self._batch.put(bytes([level]) + node_id.encode(), b"", self._handles["toc_dirty"])

    def clear_dirty(self, level: Level, node_id: str) -> None:
        """Say that a period has been derived."""
        self._batch.delete(bytes([level]) + node_id.encode(), self._handles["toc_dirty"])

    def clear_unwritten(self, level: Level, node_id: str) -> None:
        """Say that no model is to write a node, or that it has."""
        self._batch.delete(bytes([level]) + node_id.encode(), self._handles["toc_unwritten"])

    def acknowledge(self, done: int) -> None:
        """Take everything up to a sequence number out of the outbox."""
        self._log.acknowledge(self._batch, done)

    def start_over(self, last: int, now_ms: int) -> None:
        """Throw every node and grip away, and have every event worked in again."""
        for family in _FAMILIES:
            self._batch.delete_range(b"", _LAST_KEY, self._handles[family])
        self._changed += 1
        everything = codec.value(("", ()))
        self._batch.put(sequence_key(self._changed), everything, self._handles["toc_changes"])
        self._log.replay(self._batch, last, now_ms)

    def remember(self, name: str, content: object) -> None:
        """Keep a checkpoint."""
        self._batch.put(name.encode(), codec.value(content), self._handles["checkpoints"])

    def write(self) -> None:
        """Apply the change as a whole. Raises ReadOnly and applies nothing."""
        self._db.write(self._batch)
        self._nodes.changed = self._changed

    def _note(self, node_id: str, old: Node | None, new: Node | None) -> int:
        """Number a change, in place of the node's last one, whose lost grips it takes over."""
        self._changed += 1
        gone: dict[str, None] = {}
        stored = self._db.get("toc_latest", node_id.encode()) if old is not None else None
        if stored is not None:
            key = sequence_key(codec.read(stored, "version")[1])
            before = self._db.get("toc_changes", key)
            if before is not None:
                gone.update(dict.fromkeys(codec.read(before, "change")[1]))
            self._batch.delete(key, self._handles["toc_changes"])
        gone.update(dict.fromkeys(_own_grips(old)))
        lost = [grip for grip in gone if grip not in _own_grips(new)]
        number = sequence_key(self._changed)
        self._batch.put(number, codec.value((node_id, lost)), self._handles["toc_changes"])
        return self._changed

    def _give_way(self, old: Node | None) -> None:
        if old is not None and old.provisional:
            self._batch.delete(_node_key(old.node_id, old.version), self._handles["toc_nodes"])

    def _clear_open(self, old: Node | None) -> None:
        if old is not None and old.provisional and old.level is not Level.SEGMENT:
            self._batch.delete(_due_key(old), self._handles["toc_open"])

    def _close_extent(self, old: Extent | None) -> None:
        if old is not None and old.closes_ms:
            due = _DUE.pack(Level.SEGMENT, old.closes_ms) + old.node_id.encode()
            self._batch.delete(due, self._handles["toc_open"])


def _node_key(node_id: str, version: int) -> bytes:
    return node_id.encode() + b"\0" + _VERSION.pack(version)


def _own_grips(node: Node | None) -> frozenset[str]:
    """The grips that belong to a node itself: a segment's; those of a period are its segments'."""
    if node is None or node.level is not Level.SEGMENT:
        return frozenset()
    return frozenset(grip for bullet in node.bullets for grip in bullet.grip_ids)


def _due_key(node: Node) -> bytes:
    return _DUE.pack(node.level, node.end_ms) + node.node_id.encode()


def _extent(key: bytes, value: bytes) -> Extent:
    session = int.from_bytes(key[:4], "big")
    return Extent(session, key[4:], *codec.read(value, "segment"))
