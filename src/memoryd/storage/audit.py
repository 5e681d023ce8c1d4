"""Checks the whole log: every event, its place in the running hash, and every table about it.

Reads each family once, in the order of its keys, whatever the order of writing was: events fill a
table of what each sequence number stands for, and the other families are compared with that. It
changes nothing, and goes on behind what cannot be read.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from memoryd.domain.chain import GENESIS, link_digest
from memoryd.domain.errors import StoreDamaged
from memoryd.domain.keys import event_key, split_sequence_key
from memoryd.domain.session import AgentStats, SessionStats
from memoryd.storage import codec
from memoryd.storage.db import Database
from memoryd.storage.gaps import EVENTS, Gap, Steps, gaps_of
from memoryd.storage.receipts import Receipts
from memoryd.storage.salvage import scan_past
from memoryd.storage.slots import Slots, short

_TELL: Final = 4096  # entries between two words about how far it is
_SHOWN: Final = 50  # runs of numbers that are spelled out
_MASK: Final = 2**64 - 1


class Fault(NamedTuple):
    """Something that is wrong, in words; ``part`` is what it is wrong with."""

    part: str
    text: str


class Progress(NamedTuple):
    """How much of a part has been read."""

    part: str
    done: int
    total: int


Told = Fault | Progress


class LogEnd(NamedTuple):
    """The end of the log, as its tables have it."""

    sequence: int
    chain: bytes


class Runs:
    """Gathers sequence numbers, and spells them as runs."""

    def __init__(self, noun: str, says: str) -> None:
        self._noun, self._says = noun, says
        self._runs: list[list[int]] = []
        self.count = 0

    def add(self, number: int, last: int | None = None) -> None:
        """Take in a number, or all up to another."""
        last = number if last is None else last
        self.count += last - number + 1
        if self._runs and self._runs[-1][1] == number - 1:
            self._runs[-1][1] = last
        else:
            self._runs.append([number, last])

    def faults(self, part: str) -> Iterator[Fault]:
        """One fault for each run, and one for those that are too many to name."""
        for first, last in self._runs[:_SHOWN]:
            if first == last:
                yield Fault(part, f"{self._noun} {first} {self._says}")
            else:
                plural = self._says.replace("is ", "are ", 1).replace("does ", "do ", 1)
                yield Fault(part, f"{self._noun}s {first} to {last} {plural}")
        rest = self._runs[_SHOWN:]
        if rest:
            count = sum(last - first + 1 for first, last in rest)
            yield Fault(part, f"and {count} more {self._noun}s in {len(rest)} places")


class _Tally:
    """What the events say of a session."""

    __slots__ = ("agents", "events", "first_ms", "last_ms", "projects", "sum")

    def __init__(self) -> None:
        self.events = self.last_ms = self.sum = 0
        self.first_ms = _MASK
        self.agents: set[str] = set()
        self.projects: set[str] = set()


class Audit:
    """One check of one database. ``scratch`` is a directory for a table while it runs."""

    def __init__(self, db: Database, mark: int, indexed: int, scratch: str) -> None:
        """``mark``: the last sequence number that is known to have been written.

        ``indexed``: up to which number events with a text are counted.
        """
        self._db = db
        self._indexed = indexed
        self.indexable = 0
        self.gaps: list[Gap] = gaps_of(db, EVENTS)
        self._end = max(mark, _last(db), *(gap.last for gap in self.gaps), 0)
        self._slots = Slots(self._end, scratch)
        self._sessions: defaultdict[str, _Tally] = defaultdict(_Tally)
        self._agents: dict[str, list[int]] = {}
        self._faults: list[Fault] = []
        self.events = 0
        self.tail = LogEnd(0, GENESIS)

    def close(self) -> None:
        """Give back what the check needed."""
        self._slots.close()

    def run(self) -> Iterator[Told]:
        """Check everything; what is wrong comes as soon as it is known."""
        for part in (self._events, self._journal, self._event_ids, self._session_events):
            yield from part()
            yield from self._faults
            self._faults.clear()
        yield from self._statistics()

    def _read(self, family: str, each: Callable[[bytes, bytes], None]) -> Iterator[Told]:
        """Hand over every entry of a family; an entry that makes no sense is a fault."""
        done = senseless = 0

        def missed(_last: bytes, reason: str) -> None:
            self._faults.append(Fault(family, f"cannot read {family}: {reason}"))

        for key, value in scan_past(self._db, family, missed):
            try:
                each(key, value)
            except (StoreDamaged, ValueError, TypeError, IndexError) as error:
                senseless += 1
                if senseless <= _SHOWN:
                    said = f"an entry of {family} makes no sense ({type(error).__name__})"
                    self._faults.append(Fault(family, said))
            done += 1
            if not done % _TELL:
                yield Progress(family, done, max(done, self._end))
        if senseless > _SHOWN:
            self._faults.append(Fault(family, f"and {senseless - _SHOWN} more entries"))
        yield Progress(family, done, done)

    def _events(self) -> Iterator[Told]:
        slots, sessions = self._slots, self._sessions
        strange = Runs("event", "is stored twice, or under a number that was never given")
        misplaced = Runs("event", "is stored under another time or id than its own")
        unsaid = Runs("event", "is erased, and no receipt says so")
        receipts = Receipts(self._db).digests()

        def each(key: bytes, value: bytes) -> None:
            head, digest, speaks, erased = codec.seal(value)
            fields = codec.head_fields(head)
            event_id, session, time_ms, agent, project = (*fields[:3], *fields[6:8])
            sequence = fields[10]
            if not slots.put(sequence, digest, key):
                strange.add(sequence)
                return
            if erased and receipts.get(event_id) != (sequence, digest):
                unsaid.add(sequence)
            self.events += 1
            self.indexable += speaks and sequence <= self._indexed
            if event_key(time_ms, event_id) != key:
                misplaced.add(sequence)
            self._count(sessions[session], key, time_ms, (agent, project))

        yield from self._read("events", each)
        yield from strange.faults("events")
        yield from misplaced.faults("events")
        yield from unsaid.faults("events")

    def _count(self, tally: _Tally, key: bytes, time_ms: int, who: tuple[str, str]) -> None:
        tally.events += 1
        tally.sum += int.from_bytes(short(key), "big")
        tally.first_ms = min(tally.first_ms, time_ms)
        tally.last_ms = max(tally.last_ms, time_ms)
        agent, project = who
        known = self._agents.setdefault(agent, [0, 0, time_ms, time_ms])
        if agent not in tally.agents:
            tally.agents.add(agent)
            known[1] += 1
        tally.projects.add(project)
        known[0] += 1
        known[2] = min(known[2], time_ms)
        known[3] = max(known[3], time_ms)

    def _journal(self) -> Iterator[Told]:
        missing = Runs("event", "is missing from the journal")
        gone = Runs("event", "is gone")
        changed = Runs("event", "does not match the running hash")
        elsewhere = Runs("event", "is named by the journal under another key than its own")
        steps = Steps(self.gaps)
        expected = 1
        previous: bytes | None = GENESIS

        def each(key: bytes, value: bytes) -> None:
            nonlocal expected, previous
            sequence = split_sequence_key(key)
            expected, previous = steps.over(expected, previous)
            if sequence != expected:
                missing.add(expected, sequence - 1)
                previous = None
            chain, named = codec.read_journal(value)
            found = self._slots.get(sequence)
            if found is None:
                gone.add(sequence)
            elif previous is not None and link_digest(previous, found[0]) != chain:
                changed.add(sequence)
            elif found[1] != short(named):
                elsewhere.add(sequence)
            previous, expected = chain, sequence + 1

        yield from self._read("journal", each)
        end, chain = steps.over(expected, previous)
        self.tail = LogEnd(end - 1, chain or GENESIS)
        for runs in (missing, gone, changed, elsewhere):
            yield from runs.faults("events" if runs is gone else "journal")

    def _event_ids(self) -> Iterator[Told]:
        wrong = Runs("event", "is not found by its id")
        found = 0

        def each(key: bytes, value: bytes) -> None:
            nonlocal found
            time_ms, sequence = codec.read_place(value)
            slot = self._slots.get(sequence)
            if slot is None or slot[1] != short(event_key(time_ms, key.decode())):
                wrong.add(sequence)
            else:
                found += 1

        yield from self._read("event_ids", each)
        yield from wrong.faults("event_ids")
        if found < self.events:
            text = f"{self.events - found} events are not found by their ids"
            yield Fault("event_ids", text)

    def _session_events(self) -> Iterator[Told]:
        found: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0])

        def each(key: bytes, _value: bytes) -> None:
            counted = found[int.from_bytes(key[:4], "big")]
            counted[0] += 1
            counted[1] += int.from_bytes(short(key[4:]), "big")

        yield from self._read("session_events", each)
        names: dict[int, str] = {}

        def name(key: bytes, value: bytes) -> None:
            names[codec.read_session(value).number] = key.decode()

        yield from self._read("sessions", name)
        for number, session in names.items():
            tally = self._sessions.get(session)
            counted = found.pop(number, [0, 0])
            if tally is None or counted != [tally.events, tally.sum]:
                there = tally.events if tally else 0
                text = (
                    f"session {session}: {counted[0]} events are found by it, {there} are its own"
                )
                yield Fault("session_events", text)
        if found:
            count = sum(counted[0] for counted in found.values())
            yield Fault(
                "session_events", f"{count} events are listed for sessions that are not known"
            )

    def _statistics(self) -> Iterator[Told]:
        wrong = lost = 0
        seen = set()
        for key, value in scan_past(self._db, "sessions", lambda *_: None):
            session, stats = key.decode(), codec.read_session(value)
            seen.add(session)
            wrong += session not in self._sessions or not _fits(stats, self._sessions[session])
        lost = len(self._sessions.keys() - seen)
        if wrong or lost:
            text = f"what is told of {wrong} sessions does not fit their events, {lost} are missing"
            yield Fault("sessions", text)
        agents = {
            key.decode(): codec.read_agent(value)
            for key, value in scan_past(self._db, "agents", lambda *_: None)
        }
        counted = {agent: AgentStats(*figures) for agent, figures in self._agents.items()}
        differ = {a for a in agents.keys() | counted.keys() if agents.get(a) != counted.get(a)}
        if differ:
            yield Fault("agents", f"what is told of {len(differ)} agents does not fit their events")


def _fits(stats: SessionStats, tally: _Tally) -> bool:
    counted: tuple[Any, ...] = (tally.events, tally.first_ms, tally.last_ms)
    told = (stats.events, stats.first_ms, stats.last_ms)
    names = set(stats.agents) == tally.agents and set(stats.projects) == tally.projects
    return counted == told and names


def _last(db: Database) -> int:
    """The last number in the journal, as far as it can be read."""
    try:
        for key, _ in db.scan("journal", reverse=True):
            return split_sequence_key(key)
    except StoreDamaged:
        return _largest(db)
    return 0


def _largest(db: Database) -> int:
    keys = scan_past(db, "journal", lambda *_: None)
    return max((split_sequence_key(key) for key, _ in keys), default=0)
