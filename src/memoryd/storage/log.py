"""The append-only log: events, their ids, their order, and what is still to be worked in. Truth.

`append` is for the committer alone, which lets one thread at a time do it: it numbers events, links
them into the running hash and writes everything that belongs to them in one batch. Everything else
may be called from any thread.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from rocksdict import WriteBatch

from memoryd.domain.chain import GENESIS, link, text_hash
from memoryd.domain.errors import Conflict, MemorydError, NotFound, StoreDamaged
from memoryd.domain.event import Appended, Event, Recorded, difference
from memoryd.domain.keys import (
    event_key,
    sequence_key,
    session_prefix,
    split_sequence_key,
)
from memoryd.domain.session import AgentStats, SessionStats
from memoryd.storage import codec
from memoryd.storage.db import Database
from memoryd.storage.gaps import EVENTS, last_gap

_SESSIONS_CACHED: Final = 1024


class Draft(NamedTuple):
    """An event on its way into the log.

    ``timed`` says whether its source gave the time, ``redactions`` how many secrets of each kind
    were taken out of it.
    """

    event: Event
    timed: bool
    redactions: Mapping[str, int] = {}


class Tail(NamedTuple):
    """The end of the log."""

    sequence: int
    chain: bytes


class Log:
    """The log in an open database."""

    def __init__(self, db: Database, store_id: str) -> None:
        self._db = db
        self.store_id = store_id
        self.store_bytes = UUID(store_id).bytes
        self._sessions: OrderedDict[str, SessionStats] = OrderedDict()
        self._agents: dict[str, AgentStats] = {}
        self.tail = self.read_tail()
        self.session_count = self._read_session_count()
        self._agents = {key.decode(): codec.read_agent(v) for key, v in db.scan("agents")}
        self._redactions = self._read_redactions()

    # --- writing: through the committer only

    def append(self, drafts: Sequence[Draft], arrival_ms: int) -> list[Appended]:
        """Write what is new of the drafts in one batch, in their order; not yet synced.

        A draft that is known, contradicts a known one, or is not Unicode gets a result that says
        so. Raises ReadOnly, and changes nothing, if the batch cannot be written.
        """
        pen = _Pen(self, arrival_ms)
        known = self._db.get_many("event_ids", [d.event.event_id.encode() for d in drafts])
        results = []
        for draft, place in zip(drafts, known, strict=True):
            try:
                results.append(pen.put(draft, place))
            except MemorydError as error:
                # its traceback would hold this frame, and so the batch and the open database
                bare = type(error)(*error.args)
                results.append(Appended(draft.event.event_id, 0, created=False, error=bare))
        if pen.count:
            self._db.write(pen.finish())
            self._take_over(pen)
        return results

    def reload(self) -> None:
        """Read the end of the log again, after a write whose fate is not known."""
        self._sessions.clear()
        self.tail = self.read_tail()
        self.session_count = self._read_session_count()
        self._agents = {key.decode(): codec.read_agent(v) for key, v in self._db.scan("agents")}
        self._redactions = self._read_redactions()

    def _take_over(self, pen: "_Pen") -> None:
        self.tail = pen.tail
        self.session_count = pen.session_count
        self._agents.update(pen.agents)
        self._redactions = pen.redactions
        for session_id, stats in pen.sessions.items():
            self._sessions[session_id] = stats
            self._sessions.move_to_end(session_id)
        while len(self._sessions) > _SESSIONS_CACHED:
            self._sessions.popitem(last=False)

    # --- reading

    def read_tail(self) -> Tail:
        """The last sequence number and running hash, from the disk."""
        tail = Tail(0, GENESIS)
        for key, value in self._db.scan("journal", reverse=True):
            tail = Tail(split_sequence_key(key), codec.read_journal(value)[0])
            break
        gap = last_gap(self._db, EVENTS)
        return Tail(gap.last, gap.chain) if gap and gap.last > tail.sequence else tail

    def get(self, event_id: str) -> Recorded:
        """The event of an id. Raises NotFound."""
        place = self._db.get("event_ids", event_id.encode())
        if place is None:
            raise NotFound(f"there is no event {event_id}")
        time_ms, _ = codec.read_place(place)
        return self.at_key(event_key(time_ms, event_id))

    def at_key(self, key: bytes) -> Recorded:
        """The event of a key that another family names. Raises StoreDamaged if it is not there."""
        value = self._db.get("events", key)
        if value is None:
            raise StoreDamaged("an event that the log names is gone: run `memory verify`")
        return codec.read_event(value)

    def by_time(
        self, start: bytes = b"", stop: bytes | None = None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, Recorded]]:
        """Events with their keys, by time, between two keys."""
        return self._db.scan_as(codec.read_event, "events", start, stop, reverse=reverse)

    def by_session(
        self,
        session_id: str,
        start: bytes = b"",
        stop: bytes | None = None,
        *,
        reverse: bool = False,
    ) -> Iterator[tuple[bytes, Recorded]]:
        """Events of one session with their keys, by time, between two event keys."""
        stats = self.session(session_id)
        if stats is None:
            return
        for key in self.session_keys(stats.number, start, stop, reverse=reverse):
            yield key, self.at_key(key)

    def session_keys(
        self, number: int, start: bytes = b"", stop: bytes | None = None, *, reverse: bool = False
    ) -> Iterator[bytes]:
        """The keys of a session's events, by time, between two event keys."""
        prefix = session_prefix(number)
        end = prefix + stop if stop is not None else session_prefix(number + 1)
        for key, _ in self._db.scan("session_events", prefix + start, end, reverse=reverse):
            yield key[4:]

    def after(self, sequence: int, last: int | None = None) -> Iterator[Recorded]:
        """Events in the order in which they were written, behind a sequence number.

        Up to ``last``, included; numbers that a repair found gone are passed over.
        """
        stop = sequence_key(last + 1) if last is not None else None
        for _, value in self._db.scan("journal", sequence_key(sequence + 1), stop):
            yield self.at_key(codec.read_journal(value)[1])

    def session(self, session_id: str) -> SessionStats | None:
        """What is known of a session."""
        cached = self._sessions.get(session_id)
        if cached is not None:
            return cached
        stored = self._db.get("sessions", session_id.encode())
        return codec.read_session(stored) if stored is not None else None

    def sessions(self) -> Iterator[tuple[str, SessionStats]]:
        """Every session, in the order of their ids."""
        for key, value in self._db.scan("sessions"):
            yield key.decode(), codec.read_session(value)

    def ids_from(self, family: str, prefix: str) -> Iterator[str]:
        """The ids in "event_ids" or "sessions" that begin with a prefix, in order."""
        return self._db.names(family, prefix)

    def agents(self) -> dict[str, AgentStats]:
        """Every agent."""
        return dict(self._agents)

    def redactions(self) -> dict[str, int]:
        """How many secrets of each kind were taken out of the events of the log."""
        return dict(self._redactions)

    def span(self) -> tuple[int, int]:
        """The times of the first and the last event; zeros in an empty log."""
        first = next((r.event.time_ms for _, r in self.by_time()), 0)
        last = next((r.event.time_ms for _, r in self.by_time(reverse=True)), 0)
        return first, last

    def pending(self) -> tuple[int, int]:
        """How many events wait in the outbox, and when the oldest of them was written."""
        for key, value in self._db.scan("outbox"):
            _, written_ms = codec.read_outbox(value)
            return self.tail.sequence - split_sequence_key(key) + 1, written_ms
        return 0, 0

    def outbox(self) -> Iterator[tuple[int, int, int]]:
        """What waits, in order: first and last sequence number, and when it was written."""
        for key, value in self._db.scan("outbox"):
            last, written_ms = codec.read_outbox(value)
            yield split_sequence_key(key), last, written_ms

    def acknowledge(self, batch: WriteBatch, done: int) -> None:
        """Have a batch take everything up to a sequence number out of the outbox."""
        handle = self._db.handle("outbox")
        for first, last, written_ms in self.outbox():
            if first > done:
                return
            batch.delete(sequence_key(first), handle)
            if last > done:
                rest = codec.value((last, written_ms))
                batch.put(sequence_key(done + 1), rest, handle)

    def replay(self, batch: WriteBatch, last: int, now_ms: int) -> None:
        """Have a batch put every event up to a sequence number into the outbox again."""
        handle = self._db.handle("outbox")
        for first, _, _ in self.outbox():
            if first <= last:
                batch.delete(sequence_key(first), handle)
        if last:
            batch.put(sequence_key(1), codec.value((last, now_ms)), handle)

    def _read_session_count(self) -> int:
        stored = self._db.get("meta", b"session_count")
        return int(stored[1:]) if stored else 0

    def _read_redactions(self) -> Mapping[str, int]:
        stored = self._db.get("meta", b"redactions")
        return codec.read_redactions(stored) if stored else {}


class _Pen:
    """Collects one batch: every family's part of every new event."""

    def __init__(self, log: Log, arrival_ms: int) -> None:
        self._log = log
        self._db = log._db  # noqa: SLF001 - the log's own other half
        self._batch = self._db.batch()
        self._arrival_ms = arrival_ms
        self._pack = codec.packer()
        self._written: dict[str, tuple[Event, int]] = {}
        self._handles = [
            self._db.handle(f) for f in ("events", "event_ids", "journal", "session_events")
        ]
        self._sequence, self._chain = log.tail
        self._first = self._sequence + 1
        self.session_count = log.session_count
        self._tallies: dict[tuple[str, str, str], _Tally] = {}
        self._numbers: dict[str, int] = {}
        self.sessions: dict[str, SessionStats] = {}
        self.agents: dict[str, AgentStats] = {}
        self.redactions = log._redactions  # noqa: SLF001

    @property
    def count(self) -> int:
        """How many new events the batch holds."""
        return len(self._written)

    @property
    def tail(self) -> Tail:
        """The end of the log once the batch is written."""
        return Tail(self._sequence, self._chain)

    def put(self, draft: Draft, place: bytes | None) -> Appended:
        """Add one event, unless it is known. ``place`` is what event_ids says of its id."""
        event, timed, redactions = draft
        event_id, time_ms, text = event.event_id, event.time_ms, event.text
        if place is not None or event_id in self._written:
            return self._again(event, place, timed=timed)
        sequence, pack = self._sequence + 1, self._pack
        head = codec.event_head(event, sequence, self._arrival_ms, self._log.store_id, pack)
        chain = link(self._chain, head, text_hash(text))
        key = event_key(time_ms, event_id)
        number = self._count(event)
        put = self._batch.put
        events, event_ids, journal, session_events = self._handles
        put(key, codec.event_value(head, text, pack), events)
        put(key[8:], codec.place_value(time_ms, sequence), event_ids)
        put(sequence_key(sequence), codec.journal_value(chain, key), journal)
        put(session_prefix(number) + key, b"", session_events)
        self._sequence, self._chain = sequence, chain
        if redactions:
            self._redact(redactions)
        self._written[event_id] = event, sequence
        return Appended(event_id, sequence, True)

    def _again(self, sent: Event, place: bytes | None, *, timed: bool) -> Appended:
        """The place of an event that is known. Raises Conflict if it says something else."""
        if place is None:
            known, sequence = self._written[sent.event_id]
        else:
            key = event_key(codec.read_place(place)[0], sent.event_id)
            known, sequence, _, _, erased_ms = self._log.at_key(key)
            if erased_ms:  # whatever it says now: what was erased does not come back
                return Appended(sent.event_id, sequence, created=False, erased=True)
        field = difference(known, sent, timed=timed)
        if field is not None:
            msg = (
                f"event {sent.event_id} is in the log with another {field}: an event never changes"
            )
            raise Conflict(msg)
        return Appended(sent.event_id, sequence, created=False)

    def finish(self) -> WriteBatch:
        """Add what is written once per batch, and hand the batch over."""
        put, handle = self._batch.put, self._db.handle
        self._settle()
        for session_id, stats in self.sessions.items():
            put(session_id.encode(), codec.value(stats), handle("sessions"))
        for agent, counted in self.agents.items():
            put(agent.encode(), codec.value(counted), handle("agents"))
        outbox = codec.value((self._sequence, self._arrival_ms))
        put(sequence_key(self._first), outbox, handle("outbox"))
        put(b"session_count", codec.VERSION + b"%d" % self.session_count, handle("meta"))
        if self.redactions is not self._log._redactions:  # noqa: SLF001
            put(b"redactions", codec.value(self.redactions), handle("meta"))
        return self._batch

    def _redact(self, counts: Mapping[str, int]) -> None:
        """Take what was redacted in an event into the statistics."""
        sums = {rule: self.redactions.get(rule, 0) + count for rule, count in counts.items()}
        self.redactions = {**self.redactions, **sums}

    def _count(self, event: Event) -> int:
        """Tally the event for the statistics; return its session's number."""
        _, session_id, time_ms, _, _, _, _, agent, project, _, _ = event
        tally = self._tallies.get((session_id, agent, project))
        if tally is None:
            tally = _Tally(self._number(session_id), time_ms)
            self._tallies[session_id, agent, project] = tally
        tally.events += 1
        if time_ms < tally.first_ms:
            tally.first_ms = time_ms
        elif time_ms > tally.last_ms:
            tally.last_ms = time_ms
        return tally.session

    def _number(self, session_id: str) -> int:
        """The number of a session; a new one gets the next."""
        if session_id not in self._numbers:
            stats = self._log.session(session_id)
            if stats is None:
                self.session_count += 1
            self._numbers[session_id] = stats.number if stats else self.session_count
        return self._numbers[session_id]

    def _settle(self) -> None:
        """Take the tallies into the statistics, in the order of their first events."""
        for (session_id, agent, project), tally in self._tallies.items():
            events, first_ms, last_ms = tally.events, tally.first_ms, tally.last_ms
            known = self.sessions.get(session_id) or self._log.session(session_id)
            stats = known or SessionStats(tally.session, 0, first_ms, last_ms, (), ())
            joined = agent not in stats.agents
            self.sessions[session_id] = SessionStats(
                stats.number,
                stats.events + events,
                min(stats.first_ms, first_ms),
                max(stats.last_ms, last_ms),
                (*stats.agents, agent) if joined else stats.agents,
                stats.projects if project in stats.projects else (*stats.projects, project),
            )
            counted = self.agents.get(agent) or self._log._agents.get(agent)  # noqa: SLF001
            total, sessions, first, last = counted or AgentStats(0, 0, first_ms, last_ms)
            self.agents[agent] = AgentStats(
                total + events, sessions + joined, min(first, first_ms), max(last, last_ms)
            )


class _Tally:
    """What one batch adds to the statistics of a session, for one agent and project."""

    __slots__ = ("events", "first_ms", "last_ms", "session")

    def __init__(self, session: int, time_ms: int) -> None:
        self.session = session
        self.events = 0
        self.first_ms = self.last_ms = time_ms
