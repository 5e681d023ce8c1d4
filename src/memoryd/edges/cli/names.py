"""Names that the shell can complete: agents, sessions, notes, nodes, grips, events, jobs.

A kind of parameter that takes any text, and asks the daemon when the shell completes. A daemon
that does not run or is slow gives nothing, and nothing is printed: the shell is in the middle of
a line.
"""

import os
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from memoryd.client import Client

_TIMEOUT_S: Final = 0.5
_SHOWN: Final = 50


class Named(click.ParamType[str]):
    """A text that names something which the daemon knows."""

    name = "text"

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ARG002 - click's signature
        """The text as it is."""
        return str(value)

    def shell_complete(
        self,
        ctx: click.Context,
        param: click.Parameter,  # noqa: ARG002 - click's signature
        incomplete: str,
    ) -> "list[CompletionItem]":
        """What the daemon knows that begins so; nothing if it does not answer at once."""
        from click.shell_completion import CompletionItem

        from memoryd import client
        from memoryd.config import ConfigError

        os.environ.setdefault("GRPC_VERBOSITY", "NONE")
        start_dir = ctx.find_root().params.get("start_dir") or "."
        try:
            with client.connect(start_dir, timeout=_TIMEOUT_S) as daemon:
                found = _known(daemon, self._kind, incomplete)
        except (client.ClientError, ConfigError, OSError, ValueError):
            return []
        return [
            CompletionItem(name, help=said or None)
            for name, said in found
            if name.startswith(incomplete) and name.isprintable()
        ][:_SHOWN]


def _known(daemon: "Client", kind: str, incomplete: str) -> list[tuple[str, str]]:
    """Names, and what to say of each, the likeliest first."""
    match kind:
        case "agent":
            return [(a["agent"], f"{a['event_count']} events") for a in daemon.agents()]
        case "job":
            return [(job["job_name"], job["cron_expr"]) for job in daemon.jobs()]
        case "session" if not incomplete:
            sessions = daemon.sessions(limit=_SHOWN)
            return [(s["session_id"], ", ".join(s["agents"])) for s in sessions]
        case "note" if not incomplete:
            return [(n["name"], n["scope"]) for n in daemon.notes(without_content=True)]
        case "opens" if not incomplete:
            return [("toc:", "a node"), ("grip:", "a grip")]
    kinds = ("event", "node", "grip") if kind == "opens" else (kind,)
    found, _ = daemon.resolve(incomplete or "toc:", kinds, limit=_SHOWN)
    return [(item["id"], item["kind"]) for item in found]


AGENT: Final = Named("agent")
SESSION: Final = Named("session")
NOTE: Final = Named("note")
NODE: Final = Named("node")
EVENT: Final = Named("event")
OPENS: Final = Named("opens")
JOB: Final = Named("job")
