"""Which ids begin with some characters: people shorten ids to what is unique. Reads never write."""

from collections.abc import Iterator
from enum import IntEnum
from itertools import islice
from typing import Final

from memoryd.domain.errors import InvalidInput
from memoryd.domain.event import check_id
from memoryd.services.note_query import Filter, NoteQuery
from memoryd.services.paging import bounded
from memoryd.storage.log import Log
from memoryd.storage.nodes import Nodes

LIMIT_DEFAULT: Final = 10
LIMIT: Final = 1_000


class IdKind(IntEnum):
    """What an id stands for; the numbers are those on the wire."""

    EVENT = 1
    SESSION = 2
    NODE = 3
    GRIP = 4
    NOTE = 5


class Resolver:
    """Finds ids by how they begin. Safe to call from many threads."""

    def __init__(self, log: Log, nodes: Nodes, notes: NoteQuery) -> None:
        self._log = log
        self._nodes = nodes
        self._notes = notes

    def resolve(
        self, prefix: str, kinds: frozenset[int], limit: int, project: str
    ) -> tuple[list[tuple[IdKind, str]], bool]:
        """The ids with their kinds, and whether there are more; an exact one is the only answer.

        Raises InvalidInput for an empty prefix or a kind that is not known.
        """
        if not prefix:
            raise InvalidInput("prefix is empty: give at least one character")
        check_id("prefix", prefix)
        unknown = kinds - set(IdKind)
        if unknown:
            raise InvalidInput(f"kind {min(unknown)} is not known")
        limit = bounded("limit", limit, LIMIT_DEFAULT, LIMIT)
        found: list[tuple[IdKind, str]] = []
        for kind in sorted(kinds or set(IdKind)):
            ids = self._ids(IdKind(kind), prefix, project)
            found += [(IdKind(kind), name) for name in islice(ids, limit + 1)]
        exact = [item for item in found if item[1] == prefix]
        return (exact, False) if exact else (found[:limit], len(found) > limit)

    def _ids(self, kind: IdKind, prefix: str, project: str) -> Iterator[str]:
        match kind:
            case IdKind.EVENT:
                return self._log.ids_from("event_ids", prefix)
            case IdKind.SESSION:
                return self._log.ids_from("sessions", prefix)
            case IdKind.NODE:
                return self._nodes.ids_from("toc_latest", prefix)
            case IdKind.GRIP:
                return self._nodes.ids_from("grips", prefix)
        names = {h.note.name for h in self._notes.heads(Filter(project=project))}
        return iter(sorted(name for name in names if name.startswith(prefix)))
