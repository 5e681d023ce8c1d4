"""`memory config show`: each setting, its value, and the place that it comes from."""

import os

import click

from memoryd.edges.cli import output as out
from memoryd.edges.cli.output import Output, one_line


@click.group()
def config() -> None:
    """Show the settings."""


@config.command(epilog="\b\nExample:\n  memory config show")
@out.common
def show(output: Output) -> None:
    """Show each setting and where it comes from. Needs no daemon."""
    from memoryd.client import load

    settings, values = load(output.start_dir)
    chosen = "unified" if settings.unified else "environment MEMORY_PROJECT_ID"
    named = settings.unified or os.environ.get("MEMORY_PROJECT_ID")
    rows = [
        ("project", settings.project, chosen if named else "the directory"),
        ("project_root", settings.project_root, "the directory"),
        ("socket_path", settings.socket_path, "runtime_dir"),
        *((value.key, value.value, value.source) for value in values),
    ]
    if output.as_json:
        output.lines({"key": key, "value": value, "source": place} for key, value, place in rows)
        return
    from rich.text import Text

    table = out.table("key", "value", "from")
    for key, value, place in rows:
        said = str(value).lower() if isinstance(value, bool) else str(value)
        style = "dim" if place == "default" else ""
        table.add_row(key, Text(one_line(said)), Text(one_line(place), style))
    output.show(table)
