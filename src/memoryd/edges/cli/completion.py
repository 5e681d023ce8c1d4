"""`memory completion`: the script with which a shell completes our commands."""

import click

from memoryd.edges.cli import output as out
from memoryd.edges.cli.output import Output

_HELP = """\b
Examples:
  eval "$(memory completion bash)"         in ~/.bashrc
  eval "$(memory completion zsh)"          in ~/.zshrc
  memory completion fish > ~/.config/fish/completions/memory.fish

Commands and options are completed, and, where the daemon runs, agents, sessions, notes, jobs and
the ids of nodes, grips and events."""
# ids hold colons, at which bash would break them
_BASH = "COMP_WORDBREAKS=${COMP_WORDBREAKS//:/}\n"


@click.command(epilog=_HELP)
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@out.common
def completion(output: Output, shell: str) -> None:
    """Print the script that lets SHELL complete commands, options and names."""
    from click.shell_completion import get_completion_class

    from memoryd.edges.cli.main import main

    made = get_completion_class(shell)
    if made is None:
        raise click.ClickException(f"this click cannot complete in {shell}")
    script = made(main, {}, "memory", "_MEMORY_COMPLETE").source()
    text = script + (_BASH if shell == "bash" else "")
    if output.json:
        output.line({"shell": shell, "script": text})
    else:
        click.echo(text, nl=False)
