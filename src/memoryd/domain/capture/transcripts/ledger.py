"""What all readers of transcripts share: every record's fate, and the ids of what comes of it. Pure.

A reader is fed the records of one transcript in order and gives events. Its ledger knows of every
record whether it went into an event or why it did not, so that nothing falls under the table.

The log orders events by time and then by id, and ids know nothing of places in a file. So of
events that share a millisecond each gets the millisecond after the one before it: the order of
the file holds. Ids are made from the record's own time, so that what was imported stays known.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Final, NamedTuple

from memoryd.domain import ids
from memoryd.domain.capture.build import Source
from memoryd.domain.capture.shape import Json, obj
from memoryd.domain.errors import InvalidInput
from memoryd.domain.event import TIME_LIMIT_MS, Event

_USED: Final = ""
_REPORTED: Final = 1000


class Place(NamedTuple):
    """Where a transcript lies, and what is known of it without reading it."""

    name: str  # the session, if no record says
    file: str = ""
    cwd: str = ""  # the project's directory, if no record says
    changed_ms: int = 0  # stands in for times that no record gives


class Origin(NamedTuple):
    """One record: its number in the file, counting from 1, and its id."""

    number: int
    id: str


class Problem(NamedTuple):
    """A record that could not be read, and why."""

    number: int
    reason: str


class Reader:
    """Reads one transcript. Subclasses say what a record means."""

    agent: ClassVar[str] = ""
    # whether every record must be shown to `survey` before the first is fed
    surveys: ClassVar[bool] = False

    def __init__(self, place: Place, seen: set[str] | None = None) -> None:
        """``seen`` holds the ids of records that other files have already given."""
        self.place = place
        self.problems: list[Problem] = []
        self.seen = set() if seen is None else seen
        self._fates: dict[int, str] = {}
        self._records = 0
        self._made: list[Event] = []
        self._times: dict[str, tuple[int, int]] = {}  # by session: the last time told, and given

    # --- what a subclass says

    def look(self, record: Json) -> bool:
        """Look ahead at a record; True if no more need be shown."""
        raise NotImplementedError

    def take(self, number: int, record: Json) -> bool:
        """Emit what is complete with this record; whether it tells something. May raise InvalidInput."""
        raise NotImplementedError

    def finish(self) -> None:
        """Emit what was still waiting for a record, and skip what waited in vain."""

    # --- what its user calls

    def survey(self, value: object) -> bool:
        """Show a record before feeding begins; True if no more need be shown."""
        if not isinstance(value, dict):
            return False
        try:
            return self.look(value)
        except InvalidInput:
            return False

    def feed(self, number: int, value: object) -> list[Event]:
        """The events that are complete with this record."""
        self._records += 1
        try:
            self.take(number, obj(value, "record"))
        except InvalidInput as error:
            self._reject(number, str(error))
        except RecursionError:
            self._reject(number, "nested too deeply")
        return self._drain()

    def unreadable(self, number: int, reason: str) -> None:
        """Note a line that is no JSON."""
        self._records += 1
        self._reject(number, reason)

    def end(self) -> list[Event]:
        """The events that were still waiting; to be called once, behind the last record."""
        self.finish()
        return self._drain()

    # --- the ledger

    @property
    def records(self) -> int:
        """How many records were fed."""
        return self._records

    @property
    def used(self) -> int:
        """How many records went into events."""
        return sum(fate == _USED for fate in self._fates.values())

    @property
    def skipped(self) -> Counter[str]:
        """How many records did not, by reason."""
        return Counter(fate for fate in self._fates.values() if fate != _USED)

    @property
    def unexplained(self) -> int:
        """How many records have no fate: always 0 after `end`."""
        return self._records - len(self._fates)

    def skip(self, number: int, reason: str) -> bool:
        """Note why a record gives no event, unless a part of it did; False."""
        self._fates.setdefault(number, reason)
        return False

    def emit(self, origins: Sequence[Origin], make: Callable[[], list[Event]]) -> bool:
        """Make events of records, and note that these records were used, or why not."""
        try:
            self._made += make()
        except (InvalidInput, RecursionError) as error:
            reason = str(error) if isinstance(error, InvalidInput) else "nested too deeply"
            for origin in origins:
                self._reject(origin.number, reason)
            return False
        for origin in origins:
            self._fates[origin.number] = _USED
        return True

    def event_id(self, time_ms: int, *key: str) -> str:
        """The id of an event that follows from its record's identity, never from its words."""
        return ids.from_content(time_ms, ("record", self.agent, *key))

    def marked(self, source: Source, origins: Sequence[Origin]) -> Source:
        """The source with the metadata that tells which records an event comes from."""
        return source._replace(metadata={**source.metadata, **self.marks(origins)})

    def marks(self, origins: Sequence[Origin]) -> Mapping[str, str]:
        """The metadata that tells which records an event comes from."""
        source_ids = ",".join(origin.id for origin in origins)
        return {"source_ids": source_ids, "source_file": self.place.file}

    def _drain(self) -> list[Event]:
        made, self._made = self._made, []
        return [self._in_order(event) for event in made]

    def _in_order(self, event: Event) -> Event:
        """The event behind the last of its session, if it claims the same millisecond or one given."""
        told, given = self._times.get(event.session_id, (-1, -1))
        time_ms = event.time_ms
        if told <= time_ms <= given:
            event = event._replace(time_ms=min(given + 1, TIME_LIMIT_MS))
        self._times[event.session_id] = (time_ms, event.time_ms)
        return event

    def _reject(self, number: int, reason: str) -> None:
        self._fates.setdefault(number, "not readable")
        if len(self.problems) < _REPORTED:
            self.problems.append(Problem(number, reason))
