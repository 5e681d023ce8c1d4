"""Writes a new store from what can be read of a damaged one. Truth.

What is kept are events, notes, and what was counted or noted beside them; every table about them
is made anew, and what is derived is left to be derived. Nothing is kept that contradicts the
running hash. What is gone is written down as gaps.
"""

from collections.abc import Callable, Iterator
from typing import Final

from rocksdict import WriteBatch

from memoryd.domain.chain import GENESIS
from memoryd.domain.errors import StoreDamaged
from memoryd.domain.keys import event_key, sequence_key, session_prefix, split_sequence_key
from memoryd.domain.session import AgentStats, SessionStats
from memoryd.storage import codec
from memoryd.storage.db import Database
from memoryd.storage.gaps import EVENTS, NOTES, Gap, gap_entry, gaps_of
from memoryd.storage.highwater import Mark
from memoryd.storage.notebook import Tail
from memoryd.storage.renew_notes import note_links, rebuild_names
from memoryd.storage.salvage import scan_past
from memoryd.storage.walk import Link, Walk

_BATCH: Final = 1_000
_KEPT: Final = ("ledger", "injections", "checkpoints", "receipts")
_META: Final = (b"created_ms", b"redactions", b"migrations")

Missed = Callable[[bytes, str], object]


class Renewal:
    """One damaged database, and the new one that is made from it."""

    def __init__(
        self,
        old: Database,
        new: Database,
        now_ms: int,
        missed: Missed,
        spare: Callable[[], Database | None] = lambda: None,
    ) -> None:
        """``missed`` is told of each place in the old one that cannot be read.

        ``spare`` is asked then for a copy without what keeps other things from being read.
        """
        self._old, self._new = old, new
        self._spare = spare
        self._now_ms = now_ms
        self._missed = missed
        self._batch = new.batch()
        self._size = 0
        self.gaps: list[Gap] = []
        self.note_gaps: list[Gap] = []
        self.events = 0

    def run(
        self, store_id: str, mark: Mark | None, notes_mark: Mark | None, version: int
    ) -> Iterator[int]:
        """Do everything; how many events have been taken over, now and then."""
        yield from self._take_events(self._old)
        spare = self._spare()
        if spare is not None:
            with spare:
                yield from self._take_events(spare)
        self.gaps, tail = self._chain(EVENTS, self._event_links(), mark, self._drop_event)
        self.tail = tail
        yield from self._tables()
        links = note_links(scan_past(self._old, "notes", self._missed))
        self.note_gaps, self.notes_tail = self._chain(NOTES, links, notes_mark, lambda _: None)
        self._take_notes()
        for family in _KEPT:
            for key, value in scan_past(self._old, family, self._missed):
                self._put(family, key, value)
        for name in _META:
            found = self._old.get("meta", name) if self._meta_reads(name) else None
            if found is not None:
                self._put("meta", name, found)
        self._put("meta", b"store_id", store_id.encode())
        self._put("meta", b"format", b"%d" % version)
        self._flush()
        self._new.sync()
        self._new.flush()

    def _meta_reads(self, name: bytes) -> bool:
        try:
            self._old.get("meta", name)
        except StoreDamaged:
            return False
        return True

    # --- events

    def _take_events(self, source: Database) -> Iterator[int]:
        """Take over every event that makes sense and is not there, and note where it stands."""
        again = source is not self._old
        for key, value in scan_past(source, "events", self._missed):
            try:
                fields = codec.head_fields(codec.seal(value).head)
                sequence = fields[10]
                sound = event_key(fields[2], fields[0]) == key
            except (StoreDamaged, IndexError, TypeError, ValueError):
                continue
            if not sound or (again and self._new.get("events", key) is not None):
                continue
            self._put("events", key, value)
            self._put("journal", sequence_key(sequence), codec.journal_value(GENESIS, key))
            self.events += 1
            if not self.events % _BATCH:
                yield self.events
        self._flush()

    def _event_links(self) -> Iterator[Link]:
        """Every event that was taken over, in order, with the running hash of the old journal."""
        old = _Journal(scan_past(self._old, "journal", self._missed))
        for key, value in self._new.scan("journal"):
            sequence = split_sequence_key(key)
            yield from old.before(sequence)
            stored = self._new.get("events", codec.read_journal(value)[1])
            if stored is not None:
                yield Link(sequence, codec.seal(stored).digest, old.at(sequence))
        yield from old.before(2**64)

    def _drop_event(self, sequence: int) -> None:
        """Take an event out again that is not the one that was written."""
        key = sequence_key(sequence)
        stored = self._new.get("journal", key)
        if stored is not None:
            named = codec.read_journal(stored)[1]
            self._batch.delete(named, self._new.handle("events"))
            self.events -= 1
        self._batch.delete(key, self._new.handle("journal"))

    # --- the running hash

    def _chain(
        self, kind: bytes, links: Iterator[Link], mark: Mark | None, drop: Callable[[int], None]
    ) -> tuple[list[Gap], Tail]:
        """Follow the chain over what is there; the gaps in it, old and new, and its end."""
        walk = Walk(gaps_of(self._old, kind), self._now_ms)
        for link in links:
            if not link.digest:
                walk.hear(link)
            elif walk.step(link):
                if kind == EVENTS:
                    self._settle(link.sequence, walk.chain or GENESIS)
            else:
                drop(link.sequence)
        if mark is not None:
            walk.hear(Link(mark.sequence, b"", mark.chain))
        gaps = walk.finish()
        for gap in gaps:
            self._put("gaps", *gap_entry(kind, gap))
        self._flush()
        return gaps, Tail(walk.end, walk.chain or GENESIS)

    def _settle(self, sequence: int, chain: bytes) -> None:
        stored = self._new.get("journal", sequence_key(sequence))
        if stored is not None:
            named = codec.read_journal(stored)[1]
            self._put("journal", sequence_key(sequence), codec.journal_value(chain, named))

    # --- tables

    def _tables(self) -> Iterator[int]:
        """Make every table about the events anew, in the order in which they were written."""
        sessions: dict[str, SessionStats] = {}
        agents: dict[str, AgentStats] = {}
        done = 0
        for key, value in self._new.scan("journal"):
            named = codec.read_journal(value)[1]
            stored = self._new.get("events", named)
            if stored is None:
                continue
            fields = codec.head_fields(codec.seal(stored).head)
            stats = _count(sessions, agents, fields[1], fields[2], (fields[6], fields[7]))
            place = codec.place_value(fields[2], split_sequence_key(key))
            self._put("event_ids", named[8:], place)
            self._put("session_events", session_prefix(stats.number) + named, b"")
            done += 1
            if not done % _BATCH:
                yield done
        for session, stats in sessions.items():
            self._put("sessions", session.encode(), codec.value(stats))
        for agent, counted in agents.items():
            self._put("agents", agent.encode(), codec.value(counted))
        if done:
            self._put("meta", b"session_count", codec.VERSION + b"%d" % len(sessions))
            outbox = codec.value((self.tail.sequence, self._now_ms))
            self._put("outbox", sequence_key(1), outbox)
        self._flush()

    def _take_notes(self) -> None:
        gone = [range(gap.first, gap.last + 1) for gap in self.note_gaps]
        kept = []
        for key, value in scan_past(self._old, "notes", self._missed):
            if not any(split_sequence_key(key) in span for span in gone):
                self._put("notes", key, value)
                kept.append(value)
        for family, key, value in rebuild_names(kept):
            self._put(family, key, value)

    # --- writing

    def _put(self, family: str, key: bytes, value: bytes) -> None:
        self._batch.put(key, value, self._new.handle(family))
        self._size += 1
        if self._size >= _BATCH:
            self._flush()

    def _flush(self) -> None:
        full: WriteBatch = self._batch
        self._batch, self._size = self._new.batch(), 0
        self._new.write(full)


class _Journal:
    """The running hashes of the old journal, read beside the events."""

    def __init__(self, entries: Iterator[tuple[bytes, bytes]]) -> None:
        self._entries = entries
        self._next: Link | None = None

    def before(self, sequence: int) -> Iterator[Link]:
        """Entries below a number: of events that are gone."""
        while (entry := self._peek()) is not None and entry.sequence < sequence:
            self._next = None
            yield entry

    def at(self, sequence: int) -> bytes | None:
        """The running hash at a number, if it is there."""
        entry = self._peek()
        if entry is None or entry.sequence != sequence:
            return None
        self._next = None
        return entry.chain

    def _peek(self) -> Link | None:
        while self._next is None:
            key, value = next(self._entries, (b"", b""))
            if not key:
                return None
            try:
                self._next = Link(split_sequence_key(key), b"", codec.read_journal(value)[0])
            except (StoreDamaged, ValueError):
                continue
        return self._next


def _count(
    sessions: dict[str, SessionStats],
    agents: dict[str, AgentStats],
    session: str,
    time_ms: int,
    who: tuple[str, str],
) -> SessionStats:
    """Take an event into the statistics, as the log does when it is written."""
    agent, project = who
    fresh = SessionStats(len(sessions) + 1, 0, time_ms, time_ms, (), ())
    number, events, first, last, names, projects = sessions.get(session, fresh)
    joined = agent not in names
    stats = SessionStats(
        number,
        events + 1,
        min(first, time_ms),
        max(last, time_ms),
        (*names, agent) if joined else names,
        projects if project in projects else (*projects, project),
    )
    sessions[session] = stats
    total, count, low, high = agents.get(agent, AgentStats(0, 0, time_ms, time_ms))
    agents[agent] = AgentStats(total + 1, count + joined, min(low, time_ms), max(high, time_ms))
    return stats
