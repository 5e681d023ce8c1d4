"""One run of an import: transcripts in, events out to their daemons, and the account of it all.

Owns the order of things: read a record, make events, find the daemon, leave out what its log
holds already, send the rest in batches. Running it again changes nothing: ids follow from the
records, and what a hook has told is recognised (`memoryd.domain.capture.twins`).
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Collection
from typing import Any, Final, NamedTuple

from memoryd.client import Client, ClientError, Filter
from memoryd.domain.capture.transcripts import READERS, Reader
from memoryd.domain.capture.twins import Pairing
from memoryd.domain.event import Event, EventType
from memoryd.edges.importers import places, records
from memoryd.edges.importers.places import Transcript
from memoryd.edges.importers.records import Advance, Unreadable
from memoryd.edges.importers.route import Destination, Routes
from memoryd.wire import ROLES, TYPES

_BATCH_EVENTS: Final = 500
_BATCH_CHARACTERS: Final = 4 * 1024 * 1024
_SESSIONS_KEPT: Final = 256
_ALREADY_EXISTS: Final = 6
_TYPES: Final = {word: number for number, word in enumerate(TYPES, 1)}
_ROLES: Final = {word: number for number, word in enumerate(ROLES, 1)}


class Problem(NamedTuple):
    """Something that could not be taken, and where it stands."""

    file: str
    line: int
    reason: str


class Seen(NamedTuple):
    """An event of a transcript, and whether the log held it."""

    event: Event
    destination: Destination
    held: bool


class Options(NamedTuple):
    """What a run leaves out."""

    since_ms: int = 0
    dry: bool = False
    only: Collection[tuple[str, str]] | None = None  # agents and their sessions


class Account:
    """What became of the files, records and events of a run, per agent and together."""

    def __init__(self) -> None:
        self.files = self.records = self.used = self.turns = self.unexplained = 0
        self.new = self.known = self.refused = self.lost = self.earlier = 0
        self.skipped: Counter[str] = Counter()

    def as_dict(self) -> dict[str, Any]:
        """The account as JSON has it."""
        return {
            "files": self.files,
            "records": self.records,
            "records_used": self.used,
            "records_skipped": dict(self.skipped.most_common()),
            "records_unexplained": self.unexplained,
            "turns": self.turns,
            "new": self.new,
            "known": self.known,
            "refused": self.refused,
            "not_sent": self.lost,
            "before_since": self.earlier,
        }


class Run:
    """Takes transcripts one after the other."""

    def __init__(
        self, routes: Routes, options: Options, watch: Callable[[Seen], None] = lambda _: None
    ) -> None:
        """``watch`` is told of every event, before anything is sent."""
        self.accounts: dict[str, Account] = {}
        self.problems: list[Problem] = []
        self._routes = routes
        self._options = options
        self._watch = watch
        self._seen: dict[str, set[str]] = {}
        self._homes: dict[tuple[str, str], str] = {}
        self._pairings: OrderedDict[tuple[str, str], Pairing] = OrderedDict()
        self._batches: dict[str, list[dict[str, Any]]] = {}
        self._sizes: Counter[str] = Counter()

    def take(self, transcript: Transcript, advance: Advance = lambda _: None) -> None:
        """Import one transcript; what cannot be read is noted, and the rest goes on."""
        agent = transcript.agent
        account = self.accounts.setdefault(agent, Account())
        account.files += 1
        reader = READERS[agent](places.place_of(transcript), self._seen.setdefault(agent, set()))
        try:
            self._read(reader, transcript, account, advance)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            self.problems.append(Problem(transcript.path, 0, reason or str(error)))
        for destination in self._routes.destinations.values():
            self._send(destination, account)
        account.records += reader.records
        account.used += reader.used
        account.skipped += reader.skipped
        account.unexplained += reader.unexplained
        self.problems += [Problem(transcript.path, *problem) for problem in reader.problems]

    def _read(
        self, reader: Reader, transcript: Transcript, account: Account, advance: Advance
    ) -> None:
        if reader.surveys:
            for _, value in records.read(transcript.path):
                if not isinstance(value, Unreadable) and reader.survey(value):
                    break
        try:
            for number, value in records.read(transcript.path, advance):
                if isinstance(value, Unreadable):
                    reader.unreadable(number, value.reason)
                    continue
                for event in reader.feed(number, value):
                    self._event(event, account)
        finally:
            for event in reader.end():
                self._event(event, account)

    def _event(self, event: Event, account: Account) -> None:
        only = self._options.only
        # a conversation belongs to the directory that it began in, wherever its agent goes
        session = (event.agent, event.session_id)
        home = self._homes.get(session) or event.metadata.get("cwd", "")
        self._homes[session] = home
        if event.time_ms < self._options.since_ms:
            account.earlier += 1
            return
        if only is not None and session not in only:
            return
        if event.type == EventType.USER_MESSAGE:
            account.turns += 1
        destination, project = self._routes.of(home)
        pairing = self._pairing(destination, event.session_id)
        held = pairing is not None and pairing.take(event)
        self._watch(Seen(event, destination, held))
        if held:
            account.known += 1
            destination.known += 1
            return
        if pairing is not None:
            pairing.ids.add(event.event_id)
        if destination.client is None and not self._options.dry:
            account.lost += 1
            destination.lost += 1
        elif self._options.dry:
            account.new += 1
            destination.new += 1
        else:
            self._queue(destination, event, project, account)

    def _queue(
        self, destination: Destination, event: Event, project: str, account: Account
    ) -> None:
        batch = self._batches.setdefault(destination.project, [])
        batch.append(_wire(event, project))
        self._sizes[destination.project] += len(event.text)
        full = self._sizes[destination.project] > _BATCH_CHARACTERS
        if full or len(batch) >= _BATCH_EVENTS:
            self._send(destination, account)

    def _send(self, destination: Destination, account: Account) -> None:
        batch = self._batches.pop(destination.project, [])
        del self._sizes[destination.project]
        if not batch or destination.client is None:
            destination.lost += len(batch)
            account.lost += len(batch)
            return
        try:
            results = destination.client.ingest(batch)
        except ClientError as error:
            self._lose(destination, str(error))
            destination.lost += len(batch)
            account.lost += len(batch)
            return
        for event, result in zip(batch, results, strict=True):
            self._settle(destination, account, event, result)

    def _settle(
        self,
        destination: Destination,
        account: Account,
        event: dict[str, Any],
        result: dict[str, Any],
    ) -> None:
        # an id that stands for other words tells of the same thing, by another way or version
        known = not result["created"] and result["error_code"] in (0, _ALREADY_EXISTS)
        for counts in (destination, account):
            counts.new += result["created"]
            counts.known += known
            counts.refused += not result["created"] and not known
        if not result["created"] and not known:
            file = event["metadata"].get("source_file", "")
            self.problems.append(Problem(file, 0, f"refused by the daemon: {result['error']}"))

    def _pairing(self, destination: Destination, session_id: str) -> Pairing | None:
        if destination.client is None:
            return None
        key = (destination.project, session_id)
        found = self._pairings.get(key)
        if found is None:
            try:
                found = Pairing(_events(destination.client, session_id))
            except ClientError as error:
                self._lose(destination, str(error))
                return None
            self._pairings[key] = found
        self._pairings.move_to_end(key)
        while len(self._pairings) > _SESSIONS_KEPT:
            self._pairings.popitem(last=False)
        return found

    def _lose(self, destination: Destination, reason: str) -> None:
        destination.problem = reason
        if destination.client is not None:
            destination.client.close()
            destination.client = None


def _events(client: Client, session_id: str) -> Any:
    """The events of a session in the log."""
    for found in client.events(Filter(session_id=session_id)):
        yield Event(
            event_id=found["event_id"],
            session_id=found["session_id"],
            time_ms=found["timestamp_ms"],
            type=_TYPES.get(found["event_type"], 0),
            role=_ROLES.get(found["role"], 0),
            text=found["text"],
            metadata=found["metadata"],
            agent=found["agent"],
            project=found["project"],
            parent_id=found["parent_id"],
            turn_id=found["turn_id"],
        )


def _wire(event: Event, project: str) -> dict[str, Any]:
    return {
        "event_id": event.event_id,
        "session_id": event.session_id,
        "timestamp_ms": event.time_ms,
        "event_type": int(event.type),
        "role": int(event.role),
        "text": event.text,
        "metadata": event.metadata,
        "agent": event.agent,
        "project": project or event.project,
        "parent_id": event.parent_id,
        "turn_id": event.turn_id,
    }
