"""Summaries: what a summarizer is given, and what it gives back. Derived.

Owns the `Summarizer` protocol. A summarizer says what happened in words whose evidence it can
name; it does not know ids, time zones or the store.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from memoryd.domain.event import Event
from memoryd.domain.toc import Bullet, Level, Node


class Evidence(NamedTuple):
    """Words of the conversation: an excerpt that stands verbatim in one of the events."""

    first: int  # places in the list of events that the summarizer was given
    last: int
    excerpt: str


class Point(NamedTuple):
    """One thing that happened, with at least one piece of evidence."""

    text: str
    evidence: tuple[Evidence, ...]
    weight: float  # how much it matters beside other points, 0 to 1


class Summary(NamedTuple):
    """What a segment was about."""

    title: str
    summary: str
    points: tuple[Point, ...]
    keywords: tuple[str, ...]
    by: str = ""  # who wrote it, if not the summarizer that was asked: its name and version


class Digest(NamedTuple):
    """What a longer period was about; its bullets are its children's, with their grips."""

    title: str
    summary: str
    bullets: tuple[Bullet, ...]
    keywords: tuple[str, ...]
    by: str = ""  # who wrote it, if not the summarizer that was asked: its name and version


class Summarizer(Protocol):
    """Puts events, or the nodes below a period, into words. Deterministic if it says so."""

    name: str  # with its version, such as "extractive/1"; stored with every node

    def segment(self, events: Sequence[Event], before: Sequence[Event]) -> Summary:
        """What happened in a segment. ``before`` is context that belongs to the one before it."""

    def period(self, level: Level, children: Sequence[Node]) -> Digest:
        """What happened in a day, week, month or year, from the nodes right below it."""
