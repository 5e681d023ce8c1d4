"""`memory events` and `memory event`: read the log, once or as it grows."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from memoryd.domain.origin import MARK
from memoryd.edges.cli import ids, names, times
from memoryd.edges.cli import output as out
from memoryd.edges.cli.output import Output, one_line, visible
from memoryd.edges.cli.pager import pages
from memoryd.wire import ROLES, TYPES, Filter, Unavailable

if TYPE_CHECKING:
    from memoryd.client import Client

_LIMIT = 50
_TEXT_LINES = 12
_TEXT_CHARACTERS = 2000
_HELP = """\b
Examples:
  memory events --since 2h --role user
  memory events --session 5f1c --oldest --limit 10
  memory events -f --type tool_result

T is a date or time (2026-01-31, 2026-01-31T14:30), a span back from now (90s, 2h, 3d, 2w, "3 days
ago"), today, yesterday, tuesday, last week, this month, or milliseconds since 1970. --until with
a day, week, month or year means its end."""


class Time(click.ParamType[int]):
    """A point in time as people write it; with ``end``, a day means its last moment."""

    name = "time"

    def __init__(self, *, end: bool) -> None:
        self._end = end

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The moment, in milliseconds since 1970."""
        if isinstance(value, int):
            return value
        try:
            return times.parse_time(value, out.now_ms(), end=self._end)
        except ValueError as error:
            self.fail(str(error), param, ctx)


@click.command(epilog=_HELP)
@click.option("--since", type=Time(end=False), default=0, metavar="T", help="Only from T on.")
@click.option("--until", type=Time(end=True), default=None, metavar="T", help="Only up to T.")
@click.option(
    "--session", type=names.SESSION, default="", metavar="S", help="Only events of this session."
)
@click.option(
    "--agent", type=names.AGENT, default="", metavar="A", help="Only events of this agent."
)
@click.option(
    "--role",
    "roles",
    multiple=True,
    metavar="ROLE",
    type=click.Choice(ROLES),
    help=f"One of {', '.join(ROLES)}. May be repeated.",
)
@click.option(
    "--type",
    "types",
    multiple=True,
    metavar="TYPE",
    type=click.Choice(TYPES),
    help=f"One of {', '.join(TYPES)}. May be repeated.",
)
@click.option(
    "--limit",
    default=_LIMIT,
    show_default=True,
    metavar="N",
    type=click.IntRange(min=0),
    help="At most so many; 0 for all.",
)
@click.option("--newest", "order", flag_value="newest", default=None, help="Newest first.")
@click.option("--oldest", "order", flag_value="oldest", help="The oldest instead of the newest.")
@click.option("-f", "--follow", is_flag=True, help="Go on with what is written from now on.")
@out.common
@pages
def events(output: Output, **options: Any) -> None:
    """Show the newest events, in reading order.

    --newest shows the same events with the newest first, --oldest the first events of the range.
    """
    if options["follow"] and (options["until"] is not None or options["order"]):
        raise click.UsageError("--follow goes with none of --until, --newest and --oldest")
    if options["until"] == 0:
        raise click.UsageError("--until lies before 1970")
    with output.connect() as client:
        which = Filter(
            session_id=ids.whole(client, options["session"], ids.SESSION),
            agent=options["agent"],
            roles=options["roles"],
            event_types=options["types"],
        )
        printer = _Printer(output, live=options["follow"])
        if options["follow"]:
            _follow(client, which, options, printer)
            return
        shown, more = _read(client, which, options)
        for event in shown:
            printer.show(event)
        printer.end(more=more, limit=options["limit"])


@click.command(epilog="\b\nExample:\n  memory event 01JZ0000000000000000000000")
@click.argument("event_id", metavar="ID", type=names.EVENT)
@out.common
@pages
def event(output: Output, event_id: str) -> None:
    """Show one event, whole."""
    with output.connect() as client:
        found = client.event(ids.whole(client, event_id, ids.EVENT))
    if output.as_json:
        output.line(found)
    else:
        show_whole(output, found)


def _read(
    client: "Client", which: Filter, options: dict[str, Any]
) -> tuple[Iterable[dict[str, Any]], bool]:
    """The events in the order to show, and whether the limit left some out."""
    limit, order = options["limit"], options["order"]
    newest = order != "oldest" and (limit > 0 or order == "newest")
    found = client.events(
        which,
        since_ms=options["since"],
        until_ms=options["until"] or 0,
        newest=newest,
        limit=limit + 1 if limit else None,
    )
    if not limit:
        return found, False
    held = list(found)
    shown = held[:limit]
    if newest and order != "newest":
        shown.reverse()
    return shown, len(held) > limit


def _follow(client: "Client", which: Filter, options: dict[str, Any], printer: "_Printer") -> None:
    """Show the last events and then every new one, each once.

    The log's end is asked for first: what is written behind it may come with the first answer
    and comes again with the stream, and is known by its number.
    """
    end = client.status()["sequence"]
    known = set()
    shown, _ = _read(client, which, options)
    for event in shown:
        printer.show(event)
        if event["sequence"] > end:
            known.add(event["sequence"])
    printer.flush()
    for event in client.tail(which, after_sequence=end):
        if event["sequence"] not in known and event["timestamp_ms"] >= options["since"]:
            printer.show(event)
            printer.flush()
    raise Unavailable(f"daemon for project {client.settings.project} has stopped")


class _Printer:
    """Prints events one after the other; people get a heading when the session changes."""

    def __init__(self, output: Output, *, live: bool) -> None:
        self._output = output
        self._live = live
        self._session: tuple[str, str] | None = None

    def show(self, event: dict[str, Any]) -> None:
        if self._output.as_json:
            self._output.put(event)
            return
        from rich.text import Text

        session = (event["session_id"], event["agent"])
        if session != self._session:
            if self._session is not None:
                self._output.show("")
            heading = Text.assemble(("session ", "dim"), (one_line(session[0]), "bold"))
            if session[1]:
                heading.append("  ").append(one_line(session[1]), "magenta")
            self._output.show(heading)
            self._session = session
        self._output.show(head(event, live=self._live))
        for line in excerpt(event):
            self._output.show(line)

    def flush(self) -> None:
        self._output.flush()

    def end(self, *, more: bool, limit: int) -> None:
        self.flush()
        if self._output.as_json:
            return
        if self._session is None:
            self._output.show("no events")
        elif more:
            from rich.text import Text

            self._output.show(Text(f"\nthere are more than these {limit}: see --limit", "dim"))


def head(event: dict[str, Any], *, live: bool) -> Any:
    """The line above an event: when, who, which."""
    from rich.text import Text

    when = (
        times.clock(event["timestamp_ms"])
        if live
        else times.ago(event["timestamp_ms"], out.now_ms())
    )
    role = event["role"]
    head = Text.assemble(
        (f"  {when:<9} ", "dim"), (f"{role:<10}", out.ROLE_STYLES.get(role, "blue"))
    )
    if event["event_type"] not in {"user_message", "assistant_message", "tool_result"}:
        head.append(f" {event['event_type'].replace('_', ' ')} ", "italic")
    if role == "tool":
        head.append(f" {MARK}".rstrip(), "yellow")
    return head.append(f" {one_line(event['event_id'])}", "dim")


def excerpt(event: dict[str, Any]) -> Iterator[Any]:
    """The beginning of the text, wrapped and set in."""
    from rich.padding import Padding
    from rich.text import Text

    if event["erased_ms"]:
        yield Text(f"    [erased {times.stamp(event['erased_ms'])}]", "dim italic")
        return
    text = event["text"].strip("\n")
    lines = text[:_TEXT_CHARACTERS].split("\n", _TEXT_LINES)
    shown = "\n".join(lines[:_TEXT_LINES])
    if shown:
        yield Padding(Text(visible(shown), overflow="fold"), (0, 0, 0, 4), expand=False)
    if len(shown) < len(text):
        left = len(text) - len(shown)
        yield Text(
            f"    … {left:,} more characters: memory event {one_line(event['event_id'])}", "dim"
        )


def show_whole(output: Output, event: dict[str, Any]) -> None:
    """Print one event with all its fields."""
    from rich.text import Text

    grid = out.table("", "")
    grid.show_header = False
    now = out.now_ms()
    for name, value in event.items():
        if name in {"text", "metadata"} or not value:
            continue
        said = str(value)
        if name.endswith("_ms"):
            said = f"{times.stamp(value)} ({times.ago(value, now)})"
        grid.add_row(Text(name.removesuffix("_ms"), "dim"), Text(one_line(said)))
    for name, value in event["metadata"].items():
        grid.add_row(Text(one_line(name), "dim italic"), Text(one_line(value)))
    output.show(grid)
    if event["erased_ms"]:
        output.show(Text("\n[its text was erased: see memory receipts]", "dim italic"))
    if event["text"]:
        output.show("")
        if event["role"] == "tool":
            output.show(Text(MARK.strip(), "yellow"))
        output.show(Text(visible(event["text"])))
