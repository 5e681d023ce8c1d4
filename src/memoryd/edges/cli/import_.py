"""`memory import`: conversations that are on disk already, into the log of their project.

With ``--jsonl``, a copy of everything into a store.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import click

from memoryd.edges.cli import output as out
from memoryd.edges.cli.events import Time
from memoryd.edges.cli.output import Output, one_line, warn

if TYPE_CHECKING:
    from memoryd.edges.importers.places import Transcript
    from memoryd.edges.importers.route import Routes
    from memoryd.edges.importers.run import Account, Run

_NAMED: Final = 20
_HELP = """\b
Examples:
  memory import                          everything, in its usual places
  memory import claude-code --since 30d
  memory import codex ~/old-laptop/.codex/sessions --project-map moved.json
  memory import ~/backup --into-this-project --dry-run
  gunzip < backup.jsonl.gz | memory import --jsonl -

\b
Agents: claude-code, codex, gemini, copilot, cursor, opencode.
The project map is a JSON object: {"/old/directory": "/new/directory"}; the key "" stands for
conversations that name no directory. Importing again adds nothing."""


@click.command("import", epilog=_HELP)
@click.argument("what", nargs=-1, metavar="[AGENT] [PATH]")
@click.option("--since", type=Time(end=False), default=0, metavar="T", help="Only from T on.")
@click.option(
    "--project-map",
    "project_map",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help="Directories that have another name now.",
)
@click.option(
    "--into-this-project",
    is_flag=True,
    help="Write everything into the log of this project, each event marked with its own.",
)
@click.option("--dry-run", is_flag=True, help="Read and count, and write nothing.")
@click.option(
    "--jsonl",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    help='Instead restore what memory export --jsonl wrote, with the same ids; "-" is stdin.',
)
@out.common
def import_(
    output: Output, what: tuple[str, ...], since: int, jsonl: str | None, **options: Any
) -> None:
    """Import the transcripts of an agent, or of all agents, into the logs of their projects.

    Each conversation goes to the daemon of the project that its directory belongs to; a project
    whose daemon is not running is named, and the others go on.
    """
    if jsonl is not None:
        if what or since or any(options.values()):
            raise click.UsageError("--jsonl restores all of a copy: give nothing else")
        from memoryd.edges.cli.copy import restore

        restore(output, jsonl)
        return
    from memoryd.edges.importers.run import Options, Run

    with prepared(output, what, **options) as (found, routes):
        run = Run(routes, Options(since_ms=since, dry=options["dry_run"]))
        take_all(run, [each for each in found if each.changed_ms >= since])
        report(output, run, routes, dry=options["dry_run"])
    if any(place.problem for place in routes.destinations.values()):
        raise click.exceptions.Exit(3)


@contextmanager
def prepared(
    output: Output, what: tuple[str, ...], **options: Any
) -> Iterator[tuple[list["Transcript"], "Routes"]]:
    """The transcripts that the arguments mean, and the ways to their daemons."""
    from memoryd.edges.importers import places, route

    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # its lines are not for people
    agents, path = _arguments(what)
    try:
        moved = route.read_map(options["project_map"]) if options.get("project_map") else {}
        found, strange = places.find(agents, path)
    except (OSError, ValueError) as error:
        raise click.UsageError(str(error)) from None
    for file in strange[:_NAMED]:
        warn(f"{file}: not a transcript that is known, left out")
    routes = route.Routes(
        here=os.path.abspath(output.start_dir),
        into_here=options.get("into_this_project", False),
        moved=moved,
    )
    try:
        yield found, routes
    finally:
        routes.close()


def take_all(run: "Run", found: list["Transcript"]) -> None:
    """Import transcripts, with a bar on stderr if somebody watches."""
    if not sys.stderr.isatty() or not found:
        for transcript in found:
            run.take(transcript)
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(binary_units=True))
    with Progress(
        *columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True
    ) as bar:
        task = bar.add_task("", total=sum(transcript.size for transcript in found))
        for number, transcript in enumerate(found, 1):
            name = one_line(os.path.basename(transcript.path))[:40]
            bar.update(task, description=f"{number}/{len(found)} {transcript.agent} {name}")
            run.take(transcript, lambda size: bar.advance(task, size))


def report(output: Output, run: "Run", routes: "Routes", *, dry: bool) -> None:
    """Say what became of everything."""
    if output.as_json:
        output.line(_as_json(run, routes, dry=dry))
    else:
        _show(output, run, routes, dry=dry)


def _arguments(what: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """The agents and the path that the arguments mean."""
    from memoryd.edges.importers.places import AGENTS

    rest = list(what)
    agents = AGENTS
    if rest and rest[0] in AGENTS:
        agents = (rest.pop(0),)
    path = rest.pop(0) if rest else ""
    if rest:
        raise click.UsageError(f"too many arguments: {' '.join(rest)}")
    if path and not os.path.exists(path):
        names = ", ".join(AGENTS)
        raise click.UsageError(f"{path!r} is neither an agent ({names}) nor a file or directory")
    return agents, path


def _as_json(run: "Run", routes: "Routes", *, dry: bool) -> dict[str, Any]:
    return {
        "dry_run": dry,
        "agents": {agent: account.as_dict() for agent, account in run.accounts.items()},
        "projects": [
            {
                "project": place.project,
                "directory": place.directory,
                "new": place.new,
                "known": place.known,
                "refused": place.refused,
                "not_sent": place.lost,
                "problem": place.problem,
            }
            for place in routes.destinations.values()
        ],
        "problems": [problem._asdict() for problem in run.problems],
    }


def _show(output: Output, run: "Run", routes: "Routes", *, dry: bool) -> None:
    from rich.text import Text

    if not run.accounts:
        output.show("no transcripts found")
        return
    numbers = ("files", "records", "turns", "would be new" if dry else "new", "known", "not sent")
    table = out.table("agent", *numbers, right=numbers)
    for agent, account in run.accounts.items():
        lost = account.lost + account.refused
        counts = (account.files, account.records, account.turns, account.new, account.known, lost)
        table.add_row(agent, *(f"{count:,}" for count in counts))
    output.show(table)
    for agent, account in run.accounts.items():
        _show_skipped(output, agent, account)
    for place in routes.destinations.values():
        words = f"{place.new:,} new, {place.known:,} known"
        if place.problem:
            words = f"{place.lost:,} not sent: {place.problem}"
        name = place.project or "no project"
        output.show(Text.assemble(("project ", "dim"), one_line(name), f"  {one_line(words)}"))
    for problem in run.problems[:_NAMED]:
        line = f", line {problem.line}" if problem.line else ""
        warn(f"{problem.file}{line}: {problem.reason}")
    if len(run.problems) > _NAMED:
        warn(f"and {len(run.problems) - _NAMED:,} more: see --json")


def _show_skipped(output: Output, agent: str, account: "Account") -> None:
    from rich.text import Text

    reasons = ", ".join(f"{count:,} {reason}" for reason, count in account.skipped.most_common())
    if reasons:
        output.show(Text(f"{agent}: records that tell nothing: {one_line(reasons)}", "dim"))
    if account.unexplained:
        output.show(Text(f"{agent}: {account.unexplained:,} records unexplained", "red"))
