"""`memory sessions` and `memory agents`: who spoke, when, and how much."""

from typing import Any

import click

from memoryd.edges.cli import names, times
from memoryd.edges.cli import output as out
from memoryd.edges.cli.events import Time
from memoryd.edges.cli.output import Output, one_line
from memoryd.edges.cli.pager import pages

_LIMIT = 20


_HELP = """\b
Examples:
  memory sessions --agent claude-code --limit 5
  memory sessions --since "last tuesday" --until yesterday

T is a time as for `memory events`."""


@click.command(epilog=_HELP)
@click.option(
    "--agent",
    type=names.AGENT,
    default="",
    metavar="A",
    help="Only sessions with events of this agent.",
)
@click.option("--since", type=Time(end=False), default=0, metavar="T", help="Active at T or later.")
@click.option("--until", type=Time(end=True), default=0, metavar="T", help="Active at T or before.")
@click.option(
    "--limit",
    default=_LIMIT,
    show_default=True,
    metavar="N",
    type=click.IntRange(min=0),
    help="At most so many; 0 for all.",
)
@out.common
@pages
def sessions(output: Output, agent: str, since: int, until: int, limit: int) -> None:
    """List the sessions, most recently active first."""
    with output.connect() as client:
        found = client.sessions(agent=agent, since_ms=since, until_ms=until, limit=limit or None)
        if output.as_json:
            output.lines(found)
        else:
            _show_sessions(output, list(found))


@click.command(epilog="\b\nExample:\n  memory agents")
@out.common
@pages
def agents(output: Output) -> None:
    """List the agents, most recently active first."""
    with output.connect() as client:
        found = client.agents()
    if output.as_json:
        output.lines(found)
    else:
        _show_agents(output, found)


def _show_sessions(output: Output, found: list[dict[str, Any]]) -> None:
    if not found:
        output.show("no sessions")
        return
    from rich.text import Text

    now = out.now_ms()
    table = out.table("session", "events", "last event", "lasted", "agents", right=("events",))
    for session in found:
        lasted = session["last_event_ms"] - session["first_event_ms"]
        table.add_row(
            Text(one_line(session["session_id"])),
            f"{session['event_count']:,}",
            times.ago(session["last_event_ms"], now),
            times.length(lasted),
            Text(one_line(", ".join(filter(None, session["agents"]))), "magenta"),
        )
    output.show(table)


def _show_agents(output: Output, found: list[dict[str, Any]]) -> None:
    if not found:
        output.show("no agents")
        return
    from rich.text import Text

    now = out.now_ms()
    table = out.table(
        "agent", "events", "sessions", "last event", "first event", right=("events", "sessions")
    )
    for agent in found:
        name = one_line(agent["agent"])
        table.add_row(
            Text(name, "magenta") if name else Text("(not named)", "dim"),
            f"{agent['event_count']:,}",
            f"{agent['session_count']:,}",
            times.ago(agent["last_event_ms"], now),
            times.ago(agent["first_event_ms"], now),
        )
    output.show(table)
