"""`memory search`, `related` and `reindex`: find what was said, here or in all projects."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

import click

from memoryd.domain.note import SCOPES
from memoryd.edges.cli import finding, ids, names
from memoryd.edges.cli import output as out
from memoryd.edges.cli.events import Time
from memoryd.edges.cli.output import Output
from memoryd.edges.cli.pager import pages
from memoryd.wire import KINDS, ROLES, ClientError, Search

if TYPE_CHECKING:
    from memoryd.client import Client

_LIMIT: Final = 10
_MOST: Final = 100
_ALL_PROJECTS_SECONDS: Final = 5.0
_HELP = """\b
Examples:
  memory search why did we drop the retry
  memory search '"connection reset" -test' --since 2w --role tool
  memory search TS2687 --session 5f1c --explain
  memory search --sessions flaky upload
  memory search --kind toc_node --kind note --node toc:month:2026-05 release
  memory search --all-projects 'deploy script'

Words are enough. "..." is a phrase, -word leaves out, field:value filters (kind, agent, session,
role, project, speaker, scope), begin* and ~mispeled find more. "yesterday" or "in May" lifts what was
said then. T is a time as for `memory events`."""

_RELATED = """\b
Examples:
  memory related 01JZ0000000000000000000000
  memory related 01JZ --limit 3 --explain
  memory related toc:day:2026-05-04
"""


@click.command(epilog=_HELP)
@click.argument("query", nargs=-1, required=True)
@click.option("--since", type=Time(end=False), default=0, metavar="T", help="Only from T on.")
@click.option("--until", type=Time(end=True), default=0, metavar="T", help="Only up to T.")
@click.option(
    "--session",
    type=names.SESSION,
    default="",
    metavar="S",
    help="Only what was said in this session.",
)
@click.option(
    "--agent", type=names.AGENT, default="", metavar="A", help="Only what this agent said."
)
@click.option("--role", "roles", multiple=True, type=click.Choice(ROLES), help="May be repeated.")
@click.option("--kind", "kinds", multiple=True, type=click.Choice(KINDS), help="May be repeated.")
@click.option(
    "--node", type=names.NODE, default="", metavar="NODE", help="Only what lies in this node."
)
@click.option("--scope", type=click.Choice(SCOPES), help="Only notes of this scope.")
@click.option(
    "--limit",
    default=_LIMIT,
    show_default=True,
    metavar="N",
    type=click.IntRange(1, _MOST),
    help="At most so many.",
)
@click.option("--offset", default=0, metavar="N", type=click.IntRange(0, 1000), help="Skip N.")
@click.option("--explain", is_flag=True, help="Say why each result is where it is.")
@click.option("--sessions", is_flag=True, help="The sessions that matter, with their best turns.")
@click.option("--all-projects", is_flag=True, help="Ask every daemon of this user that runs.")
@out.common
@pages
def search(output: Output, query: tuple[str, ...], **options: Any) -> None:
    """Find what was said, best first."""
    if options["sessions"] and options["all_projects"]:
        raise click.UsageError("--sessions and --all-projects do not go together")
    which, question = _which(options), " ".join(query)
    if options["all_projects"]:
        results = _everywhere(output, question, which)
    else:
        with output.connect() as client:
            which = which._replace(
                session_id=ids.whole(client, which.session_id, ids.SESSION),
                node_id=ids.whole(client, which.node_id, ids.NODE),
            )
            ask = client.search_sessions if options["sessions"] else client.search
            answer = ask(question, which)
        results = answer["sessions" if options["sessions"] else "results"]
        finding.say_state(answer)
    if output.as_json:
        output.lines(results)
    elif options["sessions"]:
        finding.show_sessions(output, results)
    else:
        finding.show_results(output, results)


@click.command(epilog=_RELATED)
@click.argument("like", metavar="EVENT|NODE", type=names.NODE)
@click.option(
    "--limit",
    default=_LIMIT,
    show_default=True,
    metavar="N",
    type=click.IntRange(1, _MOST),
    help="At most so many.",
)
@click.option("--explain", is_flag=True, help="Say why each result is where it is.")
@out.common
@pages
def related(output: Output, like: str, limit: int, *, explain: bool) -> None:
    """Find what is like an event or a node, best first."""
    with output.connect() as client:
        name = ids.whole(client, like, ids.EVENT_OR_NODE)
        answer = client.related(name, Search(limit=limit, explain=explain, now_ms=out.now_ms()))
    finding.say_state(answer)
    if output.as_json:
        output.lines(answer["results"])
    else:
        finding.show_results(output, answer["results"])


def _which(options: dict[str, Any]) -> Search:
    """What the options ask for."""
    here = datetime.now().astimezone().utcoffset()
    return Search(
        kinds=options["kinds"],
        roles=options["roles"],
        agent=options["agent"],
        session_id=options["session"],
        node_id=options["node"],
        scope=options["scope"] or "",
        since_ms=options["since"],
        until_ms=options["until"],
        limit=options["limit"],
        offset=options["offset"],
        explain=options["explain"],
        now_ms=out.now_ms(),
        utc_offset_minutes=int(here.total_seconds() // 60) if here else 0,
    )


@click.command(epilog="\b\nExample:\n  memory reindex")
@out.common
def reindex(output: Output) -> None:
    """Make the search index anew from the log."""
    with output.connect() as client:
        if output.as_json:
            for told in client.rebuild_index():
                output.line(told)
        else:
            _watch(output, client)


def _everywhere(output: Output, question: str, which: Search) -> list[dict[str, Any]]:
    """The results of all daemons, the best of each first; says which did not answer.

    Scores of different stores cannot be compared, so places are.
    """
    from memoryd import client

    clients, silent = client.running(output.start_dir, timeout=_ALL_PROJECTS_SECONDS)
    answers: list[list[dict[str, Any]]] = []
    with ThreadPoolExecutor(max(1, len(clients))) as pool:
        wanted = which._replace(offset=0, limit=min(_MOST, which.limit + which.offset))
        for asked, answer in zip(
            clients, pool.map(lambda c: _ask(c, question, wanted), clients), strict=True
        ):
            if answer is None:
                silent.append(asked.settings.project)
                continue
            name = asked.settings.project
            answers.append([{"store_project": name, **found} for found in answer["results"]])
    for name in sorted(silent):
        out.warn(f"memory: the daemon for project {name} did not answer")
    if not clients and not silent:
        out.warn("memory: no daemon of this user is running: start one with `memoryd serve`")
    merged = [found for row in zip_longest(*answers) for found in row if found is not None]
    return merged[which.offset : which.offset + which.limit]


def _ask(client: "Client", question: str, which: Search) -> dict[str, Any] | None:
    try:
        with client:
            return client.search(question, which)
    except ClientError:
        return None


def _watch(output: Output, client: "Client") -> None:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    told: dict[str, Any] = {}
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=output.console, transient=True) as bar:
        task = bar.add_task("", total=None)
        for told in client.rebuild_index():
            bar.update(task, completed=told["done"], total=told["total"])
    output.show(f"the search index holds {told.get('done', 0):,} events")
