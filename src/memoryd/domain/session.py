"""What is told of sessions and agents without reading their events."""

from typing import NamedTuple


class SessionStats(NamedTuple):
    """What is told of a session, kept up with every append."""

    number: int
    events: int
    first_ms: int
    last_ms: int
    agents: tuple[str, ...]
    projects: tuple[str, ...]


class AgentStats(NamedTuple):
    """What is told of an agent, kept up with every append."""

    events: int
    sessions: int
    first_ms: int
    last_ms: int
