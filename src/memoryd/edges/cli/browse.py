"""`memory browse`: the memory of this project, to walk about in."""

import sys

import click

from memoryd.edges.cli import output as out
from memoryd.edges.cli.output import Output

_HELP = """\b
Examples:
  memory browse
  memory --project ~/src/api browse
  memory browse --light

\b
Keys: arrows and enter walk the tree, / searches, t timeline, n notes, s status, ? all keys,
q quits. It starts whether or not the daemon runs, and follows what is written."""


@click.command(epilog=_HELP)
@click.option("--light", "look", flag_value="memory-light", help="Dark on light.")
@click.option("--dark", "look", flag_value="memory-dark", help="Light on dark.")
@out.common
def browse(output: Output, look: str | None) -> None:
    """Walk about in what is remembered: tree, evidence, search, notes, status."""
    if not on_terminal():
        raise click.UsageError("memory browse needs a terminal: see memory toc, search and show")
    from memoryd.edges.browse import run

    run.browse(output.start_dir, look or "")


def on_terminal() -> bool:
    """Whether there is a terminal to draw on; the picture goes to stderr."""
    return all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))
