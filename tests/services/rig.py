"""A pump over a store of its own, with a clock that stands still, and what its tree is made of."""

from collections.abc import Callable, Iterable, Sequence
from zoneinfo import ZoneInfo

from memoryd.domain.calendar import PERIODS, Calendar
from memoryd.domain.event import Event
from memoryd.domain.segment import Rules
from memoryd.domain.toc import Grip, Level, Node
from memoryd.services.pump import Pump, Recipe
from memoryd.services.rollup import Steps
from memoryd.services.workshop import Workshop
from memoryd.storage.committer import Committer
from memoryd.storage.log import Draft
from memoryd.storage.store import Store
from tests.services.words import Plain

NOON = 1_780_308_000_000  # 2026-06-01 12:00 in Berlin, a Monday
MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
ZONE = "Europe/Berlin"
LATER = NOON + 3 * 365 * DAY


class Crash(BaseException):
    """Ends a step as a kill would: nothing after it is done."""


class Rig:
    """A store, its committer and its pump."""

    def __init__(
        self,
        directory: str,
        *,
        now_ms: int = LATER,
        zone: str = ZONE,
        rules: Rules | None = None,
        reach: Callable[[str], None] = lambda _name: None,
        factory: str = "",
    ) -> None:
        self.now_ms = now_ms
        self.errors: list[str] = []
        self.store = Store(directory)
        self.nodes = self.store.nodes
        self.committer = Committer(self.store, lambda: self.now_ms)
        self.committer.start()
        self.calendar = Calendar(ZoneInfo(zone))
        workshop = Workshop(Plain(), factory, self._note)
        self.pump = Pump(
            self.store,
            self.committer,
            workshop,
            self.calendar,
            Recipe(zone, rules or Rules()),
            lambda: self.now_ms,
            Steps(reach, self._note),
        )
        self.pump.prepare()

    def _note(self, operation: str, message: str) -> None:
        self.errors.append(f"{operation}: {message}")

    def append(self, events: Iterable[Event]) -> None:
        """Write events, as one request."""
        self.committer.append([Draft(e, timed=True) for e in events])

    def settle(self) -> None:
        """Work everything in, and derive every period."""
        for level in PERIODS:
            self.pump.roll_up(level)

    def feed(self, batches: Iterable[Sequence[Event]]) -> None:
        """Write batch after batch, working each in before the next comes."""
        for batch in batches:
            self.append(batch)
            self.pump.catch_up()

    def tree(self) -> dict[str, Node]:
        """Every latest node, without its version."""
        return {n.node_id: n._replace(version=0) for n in self.nodes.between("toc:", "toc:~")}

    def grips(self) -> dict[str, Grip]:
        """The grips that the latest nodes stand on."""
        used = {g for n in self.tree().values() for b in n.bullets for g in b.grip_ids}
        return {grip_id: self.nodes.grip(grip_id) for grip_id in used}

    def level(self, level: Level) -> list[Node]:
        """The latest nodes of a level, in order."""
        return [n for n in self.tree().values() if n.level is level]

    def close(self) -> None:
        """Leave the store as a stop would."""
        self.pump.stop()
        self.committer.stop()
        self.store.close()


def event(number: int, time_ms: int, session: str = "s", text: str = "", kind: int = 2) -> Event:
    """An event that its number names."""
    said = text or f"line {number} of what was said"
    return Event(
        f"e{number:06}", session, time_ms, kind, 1 + number % 2, said, {}, "a", "p", "", ""
    )
