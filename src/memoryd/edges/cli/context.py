"""`memory context`: the block that an agent is given, or was given."""

import sys
from typing import Any, Final

import click

from memoryd.edges.cli import ids, names
from memoryd.edges.cli import output as out
from memoryd.edges.cli.output import Output, visible
from memoryd.edges.cli.pager import pages
from memoryd.edges.cli.remember import project_of

_TOKENS: Final = "t"
_HELP = """\b
Examples:
  memory context
  memory context "why the retries" --budget 2000t
  memory context --as-of 5f1c9a > block.txt

SIZE is a number of bytes, or with a t of tokens. A block has 8 KiB by default and 32 KiB at most.
Looking writes nothing: only what hooks inject is kept for --as-of."""


class Size(click.ParamType[tuple[int, int]]):
    """Bytes, or tokens with a t behind."""

    name = "size"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
        """Bytes and tokens, one of them 0."""
        if isinstance(value, tuple):
            return value
        digits = value.removesuffix(_TOKENS)
        if not (digits.isascii() and digits.isdigit() and 0 < int(digits) < 2**31):
            self.fail(f"{value!r} is no size: take 4096 for bytes, 1000t for tokens", param, ctx)
        return (0, int(digits)) if value.endswith(_TOKENS) else (int(digits), 0)


@click.command(epilog=_HELP)
@click.argument("query", nargs=-1)
@click.option(
    "--session", type=names.SESSION, default="", metavar="S", help="The session that it is for."
)
@click.option(
    "--agent",
    type=names.AGENT,
    default="",
    metavar="A",
    help="Since when: since this agent last looked.",
)
@click.option("--budget", type=Size(), default=(0, 0), metavar="SIZE", help="How long it may be.")
@click.option(
    "--as-of", type=names.SESSION, default="", metavar="S", help="What this session was given."
)
@click.option(
    "--number",
    type=click.IntRange(min=1),
    default=None,
    metavar="N",
    help="With --as-of: the so-manieth block.  [default: the last]",
)
@out.common
@pages
def context(output: Output, query: tuple[str, ...], **options: Any) -> None:
    """Show what an agent is told when a session begins."""
    if options["number"] and not options["as_of"]:
        raise click.UsageError("--number goes with --as-of")
    with output.connect() as client:
        found = client.context(
            session_id=ids.whole(client, options["session"], ids.SESSION),
            agent=options["agent"],
            query=" ".join(query),
            budget_bytes=options["budget"][0],
            budget_tokens=options["budget"][1],
            as_of_session=ids.whole(client, options["as_of"], ids.SESSION),
            as_of_number=options["number"] or 0,
            project=project_of(client, output),
        )
    if output.json:
        output.line(found)
    elif output.paged or sys.stdout.isatty():
        output.show(visible(found["text"]).rstrip("\n") or "there is nothing to say")
    else:
        sys.stdout.buffer.write(found["text"].encode())  # byte for byte
        sys.stdout.buffer.flush()
