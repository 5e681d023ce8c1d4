"""`memory mcp`: the server for agents that speak the Model Context Protocol."""

import click

from memoryd.edges.cli import output as out
from memoryd.edges.cli.output import Output

_HELP = """\b
Examples:
  claude mcp add memoryd -- memory mcp
  memory --project ~/src/api mcp

It speaks on stdin and stdout, starts whether or not the daemon runs, and ends with its input."""


@click.command(epilog=_HELP)
@out.common
def mcp(output: Output) -> None:
    """Serve this memory to an agent, over MCP on stdin and stdout."""
    from memoryd.edges.mcp import server

    server.run(output.start_dir)
