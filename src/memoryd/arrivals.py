"""What arrived by a hook, as events: the one way for the daemon and for hooks that call it.

Owns ids and projects of captured events. An id follows from the payload's name in the spool,
unless the parser knows a better one, so that a payload that comes twice is known.
"""

import json

from memoryd import project
from memoryd.domain import ids
from memoryd.domain.capture import Received, from_hook
from memoryd.domain.errors import InvalidInput
from memoryd.domain.event import Event
from memoryd.spool import Envelope


def events(envelope: Envelope, name: str) -> list[Event]:
    """The events of a payload that came under a name. Raises InvalidInput, with the reason."""
    try:
        payload = json.loads(envelope.payload)
    except RecursionError:
        raise InvalidInput("the payload is nested too deeply") from None
    except UnicodeDecodeError:
        raise InvalidInput("the payload is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise InvalidInput(f"the payload is not JSON: {error.msg} at {error.pos}") from None
    except ValueError:
        raise InvalidInput("the payload holds a number that is too long") from None
    received = Received(envelope.agent, envelope.event, envelope.time_ms, envelope.cwd)
    return [
        event._replace(
            event_id=event.event_id or _id(event.time_ms, name, index),
            project=project_of(envelope, event.metadata.get("cwd", "")),
        )
        for index, event in enumerate(from_hook(received, payload))
    ]


def _id(time_ms: int, name: str, index: int) -> str:
    return ids.from_content(time_ms, ("spool", name, str(index)))


def project_of(envelope: Envelope, cwd: str) -> str:
    """The project that was chosen, or that of the directory in which the agent worked."""
    if envelope.chosen or not cwd.startswith("/") or "\0" in cwd or cwd == envelope.cwd:
        return envelope.project
    return project.id_of_root(project.project_root(cwd))
