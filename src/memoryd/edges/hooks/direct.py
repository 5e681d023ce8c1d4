"""The other transport: a hook that hands its events to the daemon itself.

Chosen with `hook.transport = "rpc"`. It costs a start of gRPC at every call and is worth it only
where nothing may lie in a spool. What the daemon does not take in time goes to the spool: the
events have the same ids there, so that none is written twice.
"""

import os
import time
from typing import Any

from memoryd import arrivals
from memoryd.client import ClientError, connect
from memoryd.config import ConfigError
from memoryd.domain.errors import InvalidInput
from memoryd.domain.event import Event
from memoryd.spool import Envelope

SECONDS = 0.3


def send(envelope: Envelope, name: str, start_dir: str) -> str:
    """Have the daemon write the events of a payload; return "" or why it has not."""
    os.dup2(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC), 2)  # gRPC speaks up on stderr
    try:
        events = arrivals.events(envelope, name)
        deadline = time.monotonic() + SECONDS
        with connect(start_dir, timeout=SECONDS) as client:
            for event in events:
                if time.monotonic() > deadline:
                    return f"the daemon has not answered within {SECONDS} s"
                client.ingest_one(_plain(event))
    except (ClientError, ConfigError, InvalidInput) as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - the spool takes what the daemon does not
        return type(error).__name__  # its words may be those of the payload
    return ""


def _plain(event: Event) -> dict[str, Any]:
    """The event as the client takes it."""
    fields = event._asdict()
    fields["timestamp_ms"] = fields.pop("time_ms")
    fields["event_type"] = fields.pop("type")
    return fields
