"""`memory doctor`: whether everything is as it has to be, and what to do if not."""

from typing import TYPE_CHECKING

import click

from memoryd.edges.cli import output as out
from memoryd.edges.cli.output import Output, one_line

if TYPE_CHECKING:
    from memoryd.edges.doctor.finding import Finding

_HELP = """\b
Examples:
  memory doctor
  memory doctor --quiet && echo all is well
  memory doctor --json | jq 'select(.state == "problem")'

It sends a probe through the hooks of every agent that has ours; the daemon tells that it came
and writes it nowhere. It repairs nothing. Exit code 0 if there is no problem, else 1."""
_STYLES = {"ok": "green", "note": "yellow", "problem": "bold red"}


@click.command(epilog=_HELP)
@click.option("-q", "--quiet", is_flag=True, help="Only what is not as it should be.")
@out.common
def doctor(output: Output, *, quiet: bool) -> None:
    """Check everything: installation, service, socket, permissions, hooks, spool, index, clock."""
    from memoryd.edges.doctor.finding import OK, PROBLEM
    from memoryd.edges.doctor.run import examined

    output.quiet_grpc()
    problems = notes = 0
    for found in examined(output.start_dir):
        problems += found.state == PROBLEM
        notes += found.state not in {OK, PROBLEM}
        if quiet and found.state == OK:
            continue
        if output.as_json:
            output.line(found._asdict())
        else:
            _show(output, found)
    if not output.as_json and not quiet:
        result = _counted(problems, "problem") if problems else "all is well"
        output.show(f"\n{result}" + (f", {_counted(notes, 'note')}" if notes else ""))
    if problems:
        raise click.exceptions.Exit(1)


def _show(output: Output, found: "Finding") -> None:
    from rich.table import Table
    from rich.text import Text

    row = Table.grid(padding=(0, 1, 0, 0))
    row.add_column(width=8)
    row.add_column(width=20)
    row.add_column(overflow="fold")
    said = Text(one_line(found.said))
    if found.todo:
        said.append(f"\n-> {one_line(found.todo)}", "cyan")
    row.add_row(Text(found.state, _STYLES[found.state]), Text(one_line(found.check)), said)
    output.show(row)
    output.flush()


def _counted(count: int, word: str) -> str:
    return f"{count} {word}{'s' if count != 1 else ''}"
