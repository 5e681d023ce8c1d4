"""`memory demo`: the point of it all, in one minute."""

import click

from memoryd.edges.cli import output as out
from memoryd.edges.cli.browse import on_terminal
from memoryd.edges.cli.output import Output, warn

_HELP = """\b
Examples:
  memory demo
  memory demo --no-json < /dev/null

Nothing of yours is read or changed: the story has a daemon and a directory of its own, and both
are gone when you leave, also if the demo is killed."""
_NEXT = """
In your own project:
  memory service install   the daemon, started with your session
  memory install           lets your agents tell what they do
  memory import            takes in the conversations that are on disk already
  memory browse            what you have just seen, with your own story"""


@click.command(epilog=_HELP)
@out.common
def demo(output: Output) -> None:
    """Show it all with a made-up story: a throwaway memory, and the browser on it.

    Without a terminal, the tree of the story is printed instead.
    """
    from memoryd.edges.demo import stage

    watched = on_terminal() and not output.json
    warn("a made-up story is being remembered, in a memory of its own ...")
    with stage.set_up() as project:
        if watched:
            from memoryd.edges.browse import run

            run.browse(project)
        else:
            _print(output, project)
    if not output.json:
        warn(f"the story is gone again, nothing of yours was touched\n{_NEXT}")


def _print(output: Output, project: str) -> None:
    """Print the tree; as text also where other commands would print JSON."""
    from memoryd.edges.cli.toc import toc

    output.start_dir = project
    output.json = bool(output.json)
    click.get_current_context().invoke(toc, depth=5, since=0, until=None)
