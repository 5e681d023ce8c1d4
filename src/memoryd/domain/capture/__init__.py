"""From what agents send and leave behind to events. Pure; feeds the truth.

`from_hook` takes the payload of a hook; a module per agent knows its shapes. Parsers are strict
about the types of fields they know and blind to fields they do not. Whatever the JSON, they give
events or raise InvalidInput, and nothing else. The ids of hook events are empty except for tool
calls: ingest makes them from time and content. An id that is taken by other content (Conflict)
is the same call told by another source, and counts as known.
"""

from collections.abc import Callable, Mapping
from typing import Final

from memoryd.domain.capture import claude_code, codex, copilot, cursor, gemini, opencode
from memoryd.domain.capture.shape import Json, Received, obj, text
from memoryd.domain.errors import InvalidInput
from memoryd.domain.event import Event

__all__ = ("AGENTS", "Received", "from_hook")

_PARSERS: Final[Mapping[str, Callable[[Received, str, Json], list[Event]]]] = {
    "claude-code": claude_code.from_hook,
    "codex": codex.from_hook,
    "gemini": gemini.from_hook,
    "copilot": copilot.from_hook,
    "cursor": cursor.from_hook,
    "opencode": opencode.from_hook,
}
AGENTS: Final = tuple(_PARSERS)


def from_hook(received: Received, payload: object) -> list[Event]:
    """The events of a hook's payload; none if it carries nothing to remember.

    What the payload itself says of its event counts before what the command line said. Raises
    InvalidInput, with the reason, for an unknown agent or a payload of a wrong shape.
    """
    parser = _PARSERS.get(received.agent)
    if parser is None:
        msg = f"agent {received.agent!r} is not known: take one of {', '.join(AGENTS)}"
        raise InvalidInput(msg)
    record = obj(payload, "payload")
    event = text(record, "hook_event_name") or received.event
    try:
        return parser(received, event, record)
    except RecursionError:
        raise InvalidInput("payload is nested too deeply") from None
