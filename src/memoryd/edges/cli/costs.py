"""`memory jobs costs`: what models took to write summaries."""

import click

from memoryd.edges.cli import output as out
from memoryd.edges.cli.output import Output, one_line
from memoryd.edges.cli.pager import pages


@click.command(epilog="\b\nExample:\n  memory jobs costs --days 30")
@click.option(
    "--days",
    type=click.IntRange(1, 3660),
    default=7,
    show_default=True,
    help="How many days back, today included.",
)
@out.common
@pages
def costs(output: Output, days: int) -> None:
    """Show what models were asked and the tokens that took, day by day."""
    with output.connect() as client:
        found = client.costs(days)
    if output.as_json:
        output.line(found)
        return
    from rich.text import Text

    figures = ("calls", "input", "output", "failed", "fallbacks")
    table = out.table("day", "model", *figures, right=figures)
    for entry in found["costs"]:
        table.add_row(
            entry["day"],
            Text(one_line(entry["model"])),
            f"{entry['calls']:,}",
            f"{entry['input_tokens']:,}",
            f"{entry['output_tokens']:,}",
            Text(f"{entry['failures']:,}", "red" if entry["failures"] else ""),
            f"{entry['fallbacks']:,}",
        )
    if found["costs"]:
        output.show(table)
    if not found["model"]:
        output.show("no model writes summaries: they are extractive, and cost nothing")
        return
    output.show(
        one_line(
            f"{found['model']} writes summaries; {found['waiting']:,} wait; today "
            f"{found['spent_today']:,} of {found['daily_tokens']:,} tokens"
        )
    )
