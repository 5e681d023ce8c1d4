"""Erasure of events: which ones, what stays of them, the receipt, and the words to look for. Pure.

Erasing is the one change that an event can see. Its text and metadata go; its place, time, ids and
hashes stay, so that the running hash still holds and nobody can bring the text back under the
same id. A `Receipt` says who did it, when, and to which events, and never what they said.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Final, NamedTuple

from ahocorasick_rs import BytesAhoCorasick

from memoryd.domain.capture import twins
from memoryd.domain.chain import digest as event_digest
from memoryd.domain.chain import text_hash
from memoryd.domain.errors import InvalidInput
from memoryd.domain.event import TIME_LIMIT_MS, Event, Recorded, check_id

GONE: Final = "[erased]"  # stands where words were, in notes
REASON_LIMIT: Final = 1_000
NAMED_LIMIT: Final = 10_000  # events or sessions that one request may name
LEAST: Final = 12  # bytes; shorter words stand everywhere

_WINDOW: Final = 48
_NEEDLES_MOST: Final = 50_000
# what JSON and MessagePack spell alike: no quotes, backslashes, controls, nothing beyond ASCII
_PLAIN: Final = re.compile(r"[ !#-\[\]-~]{12,}")
_ANY: Final = re.compile(r"[^\x00-\x1f\"\\]{6,}")


class Which(NamedTuple):
    """Which events are to go: all that fit every part that is given."""

    session_ids: frozenset[str] = frozenset()
    event_ids: frozenset[str] = frozenset()
    from_ms: int = 0
    to_ms: int = 0
    matching: str = ""

    def matches(self, event: Event) -> bool:
        """Whether an event is meant. Letter case does not count in ``matching``."""
        return (
            (not self.session_ids or event.session_id in self.session_ids)
            and (not self.event_ids or event.event_id in self.event_ids)
            and self.from_ms <= event.time_ms <= (self.to_ms or TIME_LIMIT_MS)
            and (not self.matching or self._said(event))
        )

    def _said(self, event: Event) -> bool:
        wanted = self.matching.casefold()
        return wanted in event.text.casefold() or any(
            wanted in value.casefold() for value in event.metadata.values()
        )


class Entry(NamedTuple):
    """One erased event, as a receipt names it."""

    event_id: str
    session_id: str
    time_ms: int
    sequence: int
    text_hash: bytes
    digest: bytes  # of head and text hash, as the running hash takes it
    trace: bytes  # of kind and words, to know the event if another source tells of it
    told: int  # by whom: a hook, a transcript, or otherwise; see `twins.Told`


class Who(NamedTuple):
    """Whose process asked, and why, if they said."""

    uid: int
    user: str
    reason: str = ""


class Receipt(NamedTuple):
    """An erasure that was begun."""

    number: int
    time_ms: int
    who: Who
    entries: tuple[Entry, ...]


class Outcome(NamedTuple):
    """How an erasure ended: what was searched, and where words were found that should be gone."""

    receipt: int
    time_ms: int
    texts: int  # whose words were searched for; 0 after a crash, when nobody knew them any more
    short: int  # texts with too few words to search for
    files: int
    bytes: int
    elsewhere: tuple[int, ...]  # events that say the same words and were not to go
    remains: tuple[str, ...]  # files and families that still hold words; empty if all is well


def checked(which: Which) -> Which:
    """The same, or InvalidInput if it means everything, nothing, or makes no sense."""
    if not any(which):
        raise InvalidInput("nothing is named: give a session, an event, a time or a text")
    for name, ids in (("session_ids", which.session_ids), ("event_ids", which.event_ids)):
        if len(ids) > NAMED_LIMIT:
            raise InvalidInput(f"{name} has {len(ids)} entries, over the limit of {NAMED_LIMIT}")
        for id_ in ids:
            check_id(name, id_)
            if not id_:
                raise InvalidInput(f"an entry of {name} is empty")
    for name, value in (("from", which.from_ms), ("to", which.to_ms)):
        if not 0 <= value <= TIME_LIMIT_MS:
            raise InvalidInput(f"{name}_timestamp_ms {value} is out of range")
    if which.to_ms and which.from_ms > which.to_ms:
        raise InvalidInput("from_timestamp_ms is later than to_timestamp_ms")
    if which.matching and not which.matching.strip():
        raise InvalidInput("matching is blank: it would fit nearly everything")
    return which


def check_reason(reason: str) -> str:
    """The reason, or InvalidInput if it is too long or does not print."""
    if len(reason) > REASON_LIMIT or not reason.isprintable():
        raise InvalidInput(f"reason is not one line of at most {REASON_LIMIT} characters")
    return reason


def digest(store_id: str, recorded: Iterable[tuple[int, str]]) -> str:
    """What stands for exactly these events, by sequence number and id, of this store."""
    hashed = sha256(f"memoryd erasure {store_id}\n".encode())
    for sequence, event_id in sorted(recorded):
        hashed.update(f"{sequence} {event_id}\n".encode())
    return hashed.hexdigest()


def entry_of(recorded: Recorded, head: bytes) -> Entry:
    """What a receipt keeps of an event that is to go; ``head`` is all but its text, as stored."""
    event = recorded.event
    hashed = text_hash(event.text)
    trace, told = twins.trace(event)
    return Entry(
        event.event_id,
        event.session_id,
        event.time_ms,
        recorded.sequence,
        hashed,
        event_digest(head, hashed),
        trace,
        int(told),
    )


class Erased:
    """Knows the erased events again, when another source tells of them under another id."""

    def __init__(self) -> None:
        self._by_session: dict[str, list[Entry]] = {}

    def add(self, entries: Iterable[Entry]) -> None:
        """Take erased events in."""
        for entry in entries:
            self._by_session.setdefault(entry.session_id, []).append(entry)

    def find(self, event: Event) -> Entry | None:
        """The erased event that this one would bring back, or None."""
        entries = self._by_session.get(event.session_id)
        if not entries:
            return None
        trace, told = twins.trace(event)
        sent = (told, event.time_ms)
        for entry in entries:
            if entry.trace == trace and twins.may_be_one((entry.told, entry.time_ms), sent):
                return entry
        return None


class Needles:
    """Pieces of erased texts to search for in bytes."""

    def __init__(self, texts: Iterable[tuple[str, Mapping[str, str]]]) -> None:
        """``texts``: each event's text, and its metadata."""
        pieces: dict[bytes, None] = {}
        self.texts = self.short = 0
        for text, metadata in texts:
            found = list(_windows(text))
            self.texts += bool(found)
            self.short += bool(text.strip()) and not found
            for value in metadata.values():
                found += _windows(value)
            if len(pieces) < _NEEDLES_MOST:
                pieces.update(dict.fromkeys(found))
        self._pieces = list(pieces)
        self._machine = BytesAhoCorasick(self._pieces) if self._pieces else None

    def __len__(self) -> int:
        return len(self._pieces)

    def among(self, data: bytes) -> set[int]:
        """The numbers of the pieces that some bytes hold."""
        if self._machine is None:
            return set()
        found = self._machine.find_matches_as_indexes(data, overlapping=True)
        return {number for number, _, _ in found}

    def without(self, numbers: set[int]) -> "Needles":
        """The same without some pieces."""
        made = Needles(())
        made.texts, made.short = self.texts, self.short
        made._pieces = [p for n, p in enumerate(self._pieces) if n not in numbers]
        made._machine = BytesAhoCorasick(made._pieces) if made._pieces else None
        return made


def _windows(text: str) -> Iterator[bytes]:
    """A piece from the beginning, the middle and the end of a text; none of one too short."""
    runs = _PLAIN.findall(text) or [r for r in _ANY.findall(text) if len(r.encode()) >= LEAST]
    runs = [run for run in (run.strip() for run in runs) if len(run.encode()) >= LEAST]
    chosen: Sequence[str] = [runs[0], runs[len(runs) // 2], runs[-1]] if runs else []
    for run in dict.fromkeys(chosen):
        yield run[:_WINDOW].encode("utf-8", "surrogatepass")
        if len(run) > 2 * _WINDOW:
            yield run[-_WINDOW:].encode("utf-8", "surrogatepass")
