"""`memory toc`, `memory show` and `memory timeline`: what happened, and the evidence for it."""

from collections.abc import Iterator
from datetime import date
from typing import TYPE_CHECKING, Any, Final

import click

from memoryd.domain.origin import MARK, PARTLY, from_tool
from memoryd.edges.cli import finding, ids, names, times
from memoryd.edges.cli import output as out
from memoryd.edges.cli.events import Time, excerpt, head, show_whole
from memoryd.edges.cli.output import Output, one_line, visible
from memoryd.edges.cli.pager import pages
from memoryd.wire import KEYWORDS_SHOWN, LEVELS

if TYPE_CHECKING:
    from rich.text import Text

    from memoryd.client import Client

_COUNT: Final = click.IntRange(min=0, max=1_000)
_DEPTH: Final = 4
_NEAR: Final = 600  # characters shown around an excerpt
_HELP: Final = """\b
Examples:
  memory toc --depth 5 --since "last week"
  memory show toc:day:2026-01-31
  memory timeline --since "last tuesday" --tokens 1000

T is a date or time (2026-01-31, 2026-01-31T14:30), a span back from now (2h, 3d, "3 days ago"),
today, yesterday, tuesday, last week, this month, or milliseconds since 1970."""


@click.command(epilog=_HELP)
@click.option(
    "--depth",
    default=_DEPTH,
    show_default=True,
    type=click.IntRange(1, len(LEVELS)),
    help="How far down: 1 years, 2 months, 3 weeks, 4 days, 5 segments.",
)
@click.option("--since", type=Time(end=False), default=0, metavar="T", help="Only from T on.")
@click.option("--until", type=Time(end=True), default=None, metavar="T", help="Only up to T.")
@click.option(
    "--find", default="", metavar="WORDS", help="Only nodes that speak of it, best first."
)
@out.common
@pages
def toc(output: Output, depth: int, since: int, until: int | None, find: str) -> None:
    """Show the table of contents as a tree: years, months, weeks, days, segments.

    With --find: the nodes of the depth that speak of some words.
    """
    if find and (since or until is not None):
        raise click.UsageError("--find goes with neither --since nor --until: see memory search")
    span = (since, until if until is not None else times.LAST_MS)
    with output.connect() as client:
        if find:
            found = client.search_children("", find, level=LEVELS[depth - 1])
            finding.show_nodes(output, found)
            return
        if output.as_json:
            for level, node in _walk(client, "", depth, span):
                output.put(node | {"depth": level})
            output.flush()
            return
        from rich.tree import Tree

        stack = [Tree("", hide_root=True, guide_style="dim")]
        for level, node in _walk(client, "", depth, span):
            del stack[level:]
            stack.append(stack[-1].add(_line(node)))
        output.show(stack[0] if stack[0].children else "nothing yet")


@click.command(epilog=_HELP)
@click.argument("name", metavar="NODE|GRIP|EVENT", type=names.OPENS)
@click.option(
    "--version", "number", default=0, type=_COUNT, metavar="N", help="An older version of a node."
)
@click.option(
    "--before", default=3, show_default=True, type=_COUNT, metavar="N", help="Events before a grip."
)
@click.option(
    "--after", default=3, show_default=True, type=_COUNT, metavar="N", help="Events after a grip."
)
@click.option("--find", default="", metavar="WORDS", help="Where in a node these words occur.")
@out.common
@pages
def show(output: Output, name: str, number: int, before: int, after: int, find: str) -> None:
    """Show a node with its children, a grip in its conversation, or an event."""
    with output.connect() as client:
        name = ids.whole(client, name, ids.OPENS)
        if find and not name.startswith("toc:"):
            raise click.UsageError("--find goes with a node")
        if find:
            finding.show_matches(output, client.search_node(name, find))
        elif name.startswith("toc:"):
            _show_node(output, client, client.node(name, number))
        elif name.startswith("grip:"):
            _show_grip(output, client.expand(name, before=before, after=after))
        else:
            found = client.event(name)
            if output.as_json:
                output.line(found)
            else:
                show_whole(output, found)


@click.command(epilog=_HELP)
@click.option("--since", type=Time(end=False), default=0, metavar="T", help="Only from T on.")
@click.option("--until", type=Time(end=True), default=None, metavar="T", help="Only up to T.")
@click.option(
    "--tokens",
    default=2_000,
    show_default=True,
    metavar="N",
    type=click.IntRange(min=1),
    help="About how long the answer may be.",
)
@click.option(
    "--level", type=click.Choice(LEVELS), default=None, help="The level, whatever its length."
)
@out.common
@pages
def timeline(output: Output, since: int, until: int | None, tokens: int, level: str | None) -> None:
    """Show what happened between two times, in as much detail as fits."""
    if until == 0:
        raise click.UsageError("--until lies before 1970")
    with output.connect() as client:
        found = client.timeline(
            since_ms=since, until_ms=until or 0, tokens=tokens, level=level or ""
        )
    if output.as_json:
        output.line(found)
        return
    if not found["nodes"]:
        output.show("nothing happened then, or it has not been worked in yet")
    for node in found["nodes"]:
        output.show(_line(node))
        _show_bullets(output, node, grips=False)
    if found["truncated"]:
        from rich.text import Text

        output.show(Text("\nthere was more before that: see --tokens and --since", "dim"))


def _walk(
    client: "Client", parent: str, depth: int, span: tuple[int, int], level: int = 1
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The nodes below one that reach into a span, each before its children, with their depth."""
    for node in client.children(parent) if parent else client.toc_root():
        # a period ends before its end, a segment with its last event
        last = node["end_time_ms"] - (node["level"] != "segment")
        if last >= span[0] and node["start_time_ms"] <= span[1]:
            yield level, node
            if level < depth and node["child_node_ids"]:
                yield from _walk(client, node["node_id"], depth, span, level + 1)


def _line(node: dict[str, Any]) -> "Text":
    """A node in one line: when, what, how much."""
    from rich.text import Text

    line = Text(label(node), "cyan")
    line.append(f"  {one_line(node['title']) or '(no words)'}", "bold")
    if node["level"] == "segment" and node["agents"]:
        line.append(f"  {one_line(', '.join(node['agents']))}", "magenta")
    count = node["event_count"]
    line.append(f"  {count:,} event{'s' if count != 1 else ''}", "dim")
    if node["less_trusted"]:
        line.append(f"  ({PARTLY})", "dim yellow")
    return line.append("  open", "yellow") if node["provisional"] else line


def label(node: dict[str, Any]) -> str:
    """The name of a node's period for people."""
    name = one_line(node["node_id"].rpartition(":")[2])
    level = node["level"]
    if level == "segment":
        start, end = node["start_time_ms"], node["end_time_ms"]
        return f"{times.clock(start)[:5]}-{times.clock(end)[:5]}"
    if level == "day":
        return date.fromisoformat(name).strftime("%a %d %b %Y")
    if level == "month":
        return date.fromisoformat(f"{name}-01").strftime("%B %Y")
    return f"week {name[6:].lstrip('0')}" if level == "week" else name


def _show_node(output: Output, client: "Client", node: dict[str, Any]) -> None:
    if output.as_json:
        output.line(node)
        return
    from rich.text import Text

    output.show(_line(node))
    made = f"{node['node_id']}, version {node['version']}, {node['summarizer'] or 'no words'}"
    output.show(Text(one_line(made), "dim"))
    if node["summary"]:
        output.show("")
        output.show(Text(visible(node["summary"])))
    _show_bullets(output, node, grips=True)
    if node["keywords"]:
        output.show(Text(f"\n{one_line(', '.join(node['keywords'][:KEYWORDS_SHOWN]))}", "italic"))
    if node["child_node_ids"]:
        output.show("")
        for child in client.children(node["node_id"]):
            output.show(_line(child).append(f"  {one_line(child['node_id'])}", "dim"))


def _show_bullets(output: Output, node: dict[str, Any], *, grips: bool) -> None:
    from rich.padding import Padding
    from rich.text import Text

    for bullet in node["bullets"]:
        text = Text("- ").append(MARK if bullet["less_trusted"] else "", "yellow")
        text.append(visible(bullet["text"]))
        if grips:
            text.append("".join(f"  {one_line(grip)}" for grip in bullet["grip_ids"]), "dim")
        output.show(Padding(text, (0, 0, 0, 2), expand=False))


def _show_grip(output: Output, found: dict[str, Any]) -> None:
    if output.as_json:
        output.line(found)
        return
    from rich.text import Text

    grip = found["grip"]
    heading = Text.assemble(("session ", "dim"), (one_line(grip["session_id"]), "bold"))
    heading.append(f"  {one_line(grip['source'])}", "magenta")
    output.show(heading.append(f"  {MARK}" if from_tool(grip["source"]) else "", "yellow"))
    for event in found["events_before"]:
        _show_event(output, event)
    for event in found["excerpt_events"]:
        output.show(head(event, live=False))
        _show_around(output, event["text"], grip["excerpt"])
    for event in found["events_after"]:
        _show_event(output, event)


def _show_event(output: Output, event: dict[str, Any]) -> None:
    output.show(head(event, live=False))
    for line in excerpt(event):
        output.show(line)


def _show_around(output: Output, text: str, words: str) -> None:
    """Print the text of an event with the excerpt marked; of a long one what is near it."""
    from rich.padding import Padding
    from rich.text import Text

    place = text.find(words)
    if place < 0:
        start, end = 0, min(len(text), 2 * _NEAR)
    else:
        start, end = max(0, place - _NEAR), min(len(text), place + len(words) + _NEAR)
    shown = Text("… " if start else "", "dim")
    if place < 0:
        shown.append(visible(text[start:end]))
    else:
        shown.append(visible(text[start:place]), "none")
        shown.append(visible(words), "bold reverse")
        shown.append(visible(text[place + len(words) : end]), "none")
    if end < len(text):
        shown.append(" …", "dim")
    output.show(Padding(shown, (0, 0, 0, 4), expand=False))
