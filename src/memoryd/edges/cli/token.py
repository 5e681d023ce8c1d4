"""`memory token`: the token that calls over TCP must present."""

import click

from memoryd.edges.cli import output as out
from memoryd.edges.cli.output import Output


@click.group()
def token() -> None:
    """Change the token for calls over TCP."""


@token.command(epilog="\b\nExample:\n  memory token rotate")
@out.common
def rotate(output: Output) -> None:
    """Make a new token. The old one is refused at once; clients read the new one from its file."""
    with output.connect() as client:
        path = client.rotate_token()
    if output.as_json:
        output.line({"path": path})
    else:
        output.show(f"a new token holds from now on: {path}")
