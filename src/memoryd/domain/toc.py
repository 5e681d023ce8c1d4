"""The table of contents: nodes of five levels, and the grips under their bullets. Derived.

Everything here follows from the events and can be thrown away and made again.
"""

from enum import IntEnum
from typing import NamedTuple


class Level(IntEnum):
    """How long a period a node covers; the numbers are those on the wire."""

    YEAR = 1
    MONTH = 2
    WEEK = 3
    DAY = 4
    SEGMENT = 5


class Bullet(NamedTuple):
    """One line of a node and the evidence it stands on: at least one grip."""

    text: str
    grip_ids: tuple[str, ...]
    weight: float  # how much it matters beside other bullets, 0 to 1


class Grip(NamedTuple):
    """The evidence behind a bullet: words of the conversation, and where they were said."""

    grip_id: str
    excerpt: str  # verbatim from one of the events between first and last
    first_event_id: str
    last_event_id: str
    time_ms: int  # of the first event
    source: str  # who said it: the agent and the role, such as "claude-code assistant"
    node_id: str  # the segment


class Node(NamedTuple):
    """One period: what happened in it, in words from the conversation."""

    node_id: str
    level: Level
    title: str
    summary: str
    bullets: tuple[Bullet, ...]
    keywords: tuple[str, ...]
    child_ids: tuple[str, ...]  # in the order of time; a segment has none
    start_ms: int
    end_ms: int
    version: int  # counts up each time the node is written anew
    session_ids: tuple[str, ...]
    agents: tuple[str, ...]
    event_count: int
    summarizer: str  # which one wrote it, with its version, such as "extractive/1"
    provisional: bool  # the period may still grow
