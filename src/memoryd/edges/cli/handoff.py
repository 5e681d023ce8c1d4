"""`memory handoff`: what happened since an agent last looked."""

import click

from memoryd.edges.cli import ids, names
from memoryd.edges.cli import output as out
from memoryd.edges.cli.events import Time
from memoryd.edges.cli.output import Output
from memoryd.edges.cli.pager import pages
from memoryd.edges.cli.remember import project_of

_HELP = """\b
Examples:
  memory handoff --agent codex
  memory handoff --since yesterday --tokens 1500
  memory handoff --agent claude-code --json | jq '.sessions[].session_id'

An agent last looked when its last session ended. A session of its own that began in the last ten
minutes is taken for the one that asks, unless --session names that. Without an agent: the last day
of work. T is a time as for `memory events`."""


@click.command(epilog=_HELP)
@click.option(
    "--agent", type=names.AGENT, default="", metavar="A", help="Since this agent last looked."
)
@click.option("--since", type=Time(end=False), default=0, metavar="T", help="Since T instead.")
@click.option(
    "--session", type=names.SESSION, default="", metavar="S", help="The session that asks."
)
@click.option(
    "--tokens",
    default=3_000,
    show_default=True,
    metavar="N",
    type=click.IntRange(min=300, max=100_000),
    help="About how long it may be.",
)
@out.common
@pages
def handoff(output: Output, agent: str, since: int, session: str, tokens: int) -> None:
    """Tell what happened since an agent last looked: sessions, what was done, what is open.

    Prints Markdown, and JSON only with --json.
    """
    from memoryd.edges import handoff as told

    with output.connect() as client:
        session = ids.whole(client, session, ids.SESSION)
        begin = (
            told.Since(since, "since then")
            if since
            else told.last_seen(client, agent, out.now_ms(), session)
        )
        found = told.gather(client, begin, project=project_of(client, output), budget=tokens)
    if output.json and not output.paged:
        output.line(found)
        return
    output.show(told.markdown(found, tokens).rstrip("\n"))
