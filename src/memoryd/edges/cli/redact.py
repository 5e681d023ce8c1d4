"""`memory redact`: a text without its secrets, and what they were. Needs no daemon."""

import sys
from typing import Any

import click

from memoryd.edges.cli import output as out
from memoryd.edges.cli.output import Output, visible, warn

_HELP = """\b
Examples:
  memory redact --test notes.md
  git diff | memory redact --test --json | jq .redactions
  memory redact --no-json < session.log > shareable.log
"""


@click.command(epilog=_HELP)
@click.argument("file", default="-", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option("--test", is_flag=True, help="Show the rules that found something, and where, too.")
@out.common
def redact(output: Output, file: str, *, test: bool) -> None:
    """Show a text as the log would keep it: without secrets and private parts.

    Reads FILE, or stdin without FILE or with "-". Uses the rules of redact.rules too, if that is
    set. Nothing is written anywhere.
    """
    from memoryd.client import load
    from memoryd.config import redactor

    settings, _ = load(output.start_dir)
    redacts = redactor(settings)
    text = _read(file)
    clean, counts = redacts.redact(text)
    rows = _rows(text.encode("utf-8", "surrogatepass"), redacts.find(text), counts)
    if output.as_json:
        output.line({"text": clean, "redactions": rows})
        return
    sys.stdout.write(visible(clean) if sys.stdout.isatty() else clean)
    if test:
        _show(output, rows, ended=not clean or clean.endswith("\n"))


def _read(file: str) -> str:
    if file == "-" and sys.stdin.isatty():
        warn("reading text from the terminal: end with Ctrl-D")
    with click.open_file(file, "rb") as source:
        data: bytes = source.read()
    return data.decode("utf-8", "replace")


def _rows(data: bytes, found: list[Any], counts: dict[str, int]) -> list[dict[str, Any]]:
    """Each rule with its count and the lines on which it found something, the first line first."""
    lines: dict[str, list[int]] = {rule: [] for rule in counts}
    for start, _, rule in found:
        number = data.count(b"\n", 0, start) + 1
        if number not in lines.setdefault(rule, []):
            lines[rule].append(number)
    return [
        {"rule": rule, "count": counts.get(rule, 0), "lines": on}
        for rule, on in sorted(lines.items(), key=lambda item: (item[1], item[0]))
    ]


def _show(output: Output, rows: list[dict[str, Any]], *, ended: bool) -> None:
    sys.stdout.flush()
    if not ended:
        output.show("")
    if not rows:
        output.show("nothing would be redacted")
        return
    table = out.table("rule", "count", "lines", right=("count",))
    for row in rows:
        table.add_row(row["rule"], f"{row['count']:,}", ", ".join(map(str, row["lines"])))
    output.show("", table)
