"""Who said what is recalled, and which of them are less trusted. Pure.

What a tool has given may come from a file, a program or a web page, and so from anybody. Wherever
such words are recalled they carry `MARK`.
"""

from collections.abc import Iterable
from typing import Final

from memoryd.domain.event import Event, EventRole

MARK: Final = "(less trusted) "
PARTLY: Final = "partly less trusted"

_TOOL: Final = EventRole.TOOL.name.lower()


def of_event(event: Event) -> str:
    """Who said an event: the agent, the role, and of a tool its name."""
    role = EventRole(event.role).name.lower() if event.role else ""
    tool = event.metadata.get("tool_name", "") if event.role == EventRole.TOOL else ""
    return " ".join(part for part in (event.agent, role, tool) if part)


def of_excerpt(agent: str, role: int) -> str:
    """Who said an excerpt, as a grip names it: the agent and the role."""
    return f"{agent} {EventRole(role).name.lower()}".strip()


def from_tool(source: str) -> bool:
    """Whether the source that a grip names is a tool; one that nobody knows counts as one."""
    return not source or source.rsplit(maxsplit=1)[-1] == _TOOL


def less_trusted(sources: Iterable[str]) -> bool:
    """Whether any of a bullet's sources is a tool, or it has none."""
    known = list(sources)
    return not known or any(map(from_tool, known))
