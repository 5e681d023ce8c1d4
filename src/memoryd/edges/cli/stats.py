"""`memory stats`: how much was said, when and by whom; as text, JSON or a picture."""

import os
import sys
import tempfile
from datetime import date
from typing import TYPE_CHECKING, Final

import click

from memoryd.edges.cli import output as out
from memoryd.edges.cli import times
from memoryd.edges.cli.output import Output, one_line
from memoryd.edges.cli.remember import project_of

if TYPE_CHECKING:
    from rich.text import Text

    from memoryd.edges.stats.gather import Figures

_HELP = """\b
Examples:
  memory stats
  memory stats --year 2025
  memory stats --svg activity.svg
  memory stats --json | jq .total"""
_YEARS: Final = click.IntRange(1970, 2262)
_COLOURS: Final = ("grey37", "#0f5c9a", "#1f86d6", "#52b0f5", "#a5d8ff")
_WIDE: Final = 112  # from here on a week takes two characters
_NAME: Final = 20


@click.command(epilog=_HELP)
@click.option("--year", type=_YEARS, metavar="YEAR", help="A year.  [default: up to today]")
@click.option(
    "--svg",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help='Write the picture to a file; "-" is stdout.',
)
@out.common
def stats(output: Output, year: int | None, svg: str | None) -> None:
    """Show the activity of a year, day by day, who spoke how much, and the totals."""
    from memoryd.edges.stats import figures, gather

    today = date.fromisoformat(times.stamp(out.now_ms())[:10])
    span = figures.calendar_year(year) if year else figures.last_year(today)
    with output.connect() as client:
        found = gather.figures(client, *span, project=project_of(client, output))
    if svg is not None:
        _draw(output, found, svg)
    elif output.as_json:
        output.line(found.as_json())
    else:
        _show(output, found)


def _draw(output: Output, found: "Figures", path: str) -> None:
    from memoryd.edges.stats import picture

    name, _, _ = found.status["project"].rpartition("-")  # the rest keeps namesakes apart
    text = picture.svg(found, f"What {name or found.status['project']} remembers")
    if path == "-":
        sys.stdout.write(text)
        return
    folder = os.path.dirname(os.path.abspath(path))
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=folder, prefix=".memory-", delete=False
        ) as file:
            file.write(text)
        os.chmod(file.name, 0o644)
        os.replace(file.name, path)
    except OSError as error:
        raise click.UsageError(f"{path!r} cannot be written: {error.strerror}") from None
    if output.as_json:
        output.line({"svg": path})
    else:
        output.show(f"written to {one_line(path)}")


def _show(output: Output, found: "Figures") -> None:
    from rich.text import Text

    from memoryd.edges.stats.figures import bar, counted

    console = output.console
    for line in _heat(found, 2 if console.width >= _WIDE else 1, colour=_has_colour(output)):
        output.show(line)
    habits = found.habits
    output.show("")
    if habits.busiest:
        output.show(
            f"{counted(habits.events, 'event')} on {counted(habits.active_days, 'day')}, most on "
            f"{habits.busiest:%a %d %b %Y} ({habits.busiest_count:,}); longest run "
            f"{counted(habits.longest_streak, 'day')}, now {habits.streak}"
        )
    else:
        output.show("no events in this span")
    if found.agents:
        output.show("")
    most = max((int(agent["event_count"]) for agent in found.agents), default=0)
    names = [one_line(agent["agent"])[:_NAME] or "(unnamed)" for agent in found.agents]
    longest = max(map(len, names), default=0)
    width = max(8, min(48, console.width - longest - 32))
    for name, agent in zip(names, found.agents, strict=True):
        count = int(agent["event_count"])
        line = Text(f"{name:<{longest}}  ").append(f"{bar(count, most, width):<{width}}", "cyan")
        told = f"  {count:>7,} events, {counted(int(agent['session_count']), 'session')}"
        output.show(line.append(told, "dim"))
    output.show("")
    output.show(Text(_totals(found), "dim"))


def _heat(found: "Figures", width: int, *, colour: bool) -> "list[Text]":
    """The lines of the heatmap, the months on top, the meaning of the shades below."""
    from rich.text import Text

    from memoryd.edges.stats.figures import SIGNS, WEEKDAYS, heatmap, month_line

    heat = heatmap(found.days, found.first, found.last)
    lines = [Text(f"     {month_line(heat, width)}".rstrip(), "dim")]
    signs = ("·", "■", "■", "■", "■") if colour else SIGNS
    for weekday, name in enumerate(WEEKDAYS):
        line = Text.assemble((f"{name if weekday % 2 == 0 else '':<5}", "dim"))
        for cell in heat.row(weekday):
            sign = signs[cell.shade] if cell else " "
            line.append(f"{sign:<{width}}", _COLOURS[cell.shade] if cell else "")
        lines.append(line)
    legend = Text.assemble(("     less ", "dim"))
    for shade, sign in enumerate(signs):
        legend.append(sign, _COLOURS[shade])
    return [*lines, legend.append(" more", "dim")]


def _has_colour(output: Output) -> bool:
    console = output.console
    return console.color_system in {"256", "truecolor"} and not console.no_color


def _totals(found: "Figures") -> str:
    status = found.status
    said = (
        f"in all {status['sequence']:,} events, {status['sessions']:,} sessions, "
        f"{status['agents']:,} agents, {found.notes:,} notes, {out.size(status['disk_bytes'])}"
    )
    if not status["first_event_ms"]:
        return said
    return f"{said}, since {times.stamp(status['first_event_ms'])[:10]}"
