"""`memory forget-events` and `memory receipts`: erase events for good, and see what was erased.

For people. It shows what would go, asks, erases exactly that, and says what the search at the end
has found and what it cannot know.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from memoryd.edges.cli import output as out
from memoryd.edges.cli import times
from memoryd.edges.cli.events import Time
from memoryd.edges.cli.output import Output, one_line, warn
from memoryd.erasure_client import Which
from memoryd.wire import Refused

if TYPE_CHECKING:
    from memoryd.client import Client

_SHOWN: Final = 20
_HELP = """\b
Examples:
  memory forget-events --session 5f1c --dry-run
  memory forget-events --between 2026-01-30 "2026-01-31 12:00" --matching acme
  memory forget-events --event 01JZ0000000000000000000000 --yes --reason "customer data"

Filters narrow each other: an event goes if it fits all of them. A and B are dates or times as in
memory events; a day as B means its end."""
_STEPS: Final = {
    "receipt": "receipt written",
    "bodies": "taking out texts and metadata",
    "derived": "deriving the table of contents again where it stood on them",
    "notes": "rewriting notes and blocks that told of them",
    "index": "making the search index anew",
    "files": "writing every table of the database anew",
    "search": "searching every byte of the data directory",
}
BACKUPS: Final = (
    "Not touched: backups and exported copies made before, the agents' own transcripts, and what "
    "other daemons hold."
)


@click.command("forget-events", epilog=_HELP)
@click.option("--session", "sessions", multiple=True, metavar="S", help="Events of this session.")
@click.option("--event", "events", multiple=True, metavar="ID", help="This event.")
@click.option(
    "--between",
    type=(Time(end=False), Time(end=True)),
    default=None,
    metavar="A B",
    help="Events from A to B.",
)
@click.option("--matching", default="", metavar="TEXT", help="Events that hold TEXT, in any case.")
@click.option("--dry-run", is_flag=True, help="Only show what would go.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--reason", default="", metavar="TEXT", help="Kept on the receipt.")
@out.common
def forget_events(output: Output, **options: Any) -> None:
    """Erase events for good: texts and metadata, and all that was made of them.

    The one operation that destroys something. It shows what would go, and asks. The places of the
    events in the log stay, so that the log can still be verified, and a receipt says what went,
    never what it said. --session and --event may be repeated.
    """
    which = _which(options)
    with output.connect() as client:
        plan = _plan(client, which)
        _show_plan(output, plan, dry_run=options["dry_run"])
        if options["dry_run"] or not plan["count"]:
            return
        if not options["yes"]:
            _ask(plan["count"])
        outcome = _erase(output, client, which, plan, options["reason"])
    if outcome["remains"]:
        raise click.exceptions.Exit(1)


def _which(options: dict[str, Any]) -> Which:
    first = last = 0
    if options["between"]:
        first, last = options["between"]
        if first > last:
            raise click.UsageError("--between: the first time lies after the second")
    which = Which(options["sessions"], options["events"], first, last, options["matching"])
    if not any(which):
        raise click.UsageError("name what is to go: --session, --event, --between or --matching")
    return which


def _plan(client: "Client", which: Which) -> dict[str, Any]:
    events: list[dict[str, Any]] = []
    last: dict[str, Any] = {}
    for last in client.plan_erasure(which):
        events += last["events"]
    if not last.get("complete"):
        raise Refused("the plan is not complete: try again")
    return last | {"events": events}


def _show_plan(output: Output, plan: dict[str, Any], *, dry_run: bool) -> None:
    if output.as_json:
        if dry_run:
            events = [{k: v for k, v in e.items() if k != "words"} for e in plan["events"]]
            output.line(plan | {"events": events})
        return
    from rich.text import Text

    events = plan["events"]
    if not events:
        output.show("nothing fits: there is nothing to erase")
        return
    spans = [event["timestamp_ms"] for event in events]
    sessions = Counter(event["session_id"] for event in events)
    output.show(
        f"{_count(len(events), 'event')} of {_count(len(sessions), 'session')}, "
        f"{times.stamp(min(spans))} to {times.stamp(max(spans))}"
    )
    for session, count in sessions.most_common(_SHOWN):
        output.show(Text(f"  {count:>7,}  session {one_line(session)}"))
    output.show("")
    for event in events[:_SHOWN]:
        line = Text(f"  {times.stamp(event['timestamp_ms'])}  ", "dim")
        line.append(f"{event['role']:<10}", out.ROLE_STYLES.get(event["role"], "blue"))
        output.show(line.append(one_line(event["words"]), "default"))
    if len(events) > _SHOWN:
        output.show(Text(f"  … and {len(events) - _SHOWN:,} more", "dim"))
    output.show("")
    output.show(BACKUPS)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _ask(count: int) -> None:
    if not sys.stdin.isatty():
        raise Refused("nothing was erased: nobody can be asked here; look at --dry-run, then --yes")
    warn("This cannot be undone.")
    given = click.prompt(f"Type {count} to erase these events", default="", show_default=False)
    if given.strip() != str(count):
        raise Refused("nothing was erased")


def _erase(
    output: Output, client: "Client", which: Which, plan: dict[str, Any], reason: str
) -> dict[str, Any]:
    last = _followed(output, client.erase(which, plan, reason))
    outcome: dict[str, Any] = last["outcome"]
    if output.as_json:
        output.line({"receipt": last["receipt"], "erased": plan["count"]} | outcome)
    else:
        output.show("")
        erased = _count(plan["count"], "event")
        output.show(f"erased: {erased}, receipt {last['receipt']}")
        _show_outcome(output, outcome)
    return outcome


def _followed(output: Output, told: Iterator[dict[str, Any]]) -> dict[str, Any]:
    """Say what is being done until it is done; the last word."""
    last: dict[str, Any] = {}
    for last in told:
        if output.as_json:
            continue
        if last["error"]:
            warn(f"  {last['error']}; it is tried again")
        elif last["step"] in _STEPS:
            output.show(f"  {_STEPS[last['step']]}")
    if last.get("step") != "done":
        raise Refused("the erasure is not at its end: `memory receipts` says when it is")
    return last


def _show_outcome(output: Output, outcome: dict[str, Any]) -> None:
    looked = f"{outcome['files']:,} files with {out.size(outcome['bytes'])}"
    if outcome["remains"]:
        warn("Words of erased events are still in: " + ", ".join(outcome["remains"]))
        warn(
            "What was made by hand or by a repair is yours to remove; the rest goes with the next restart."
        )
    elif outcome["texts"]:
        output.show(f"None of their words is left in {looked}, tables unpacked.")
    else:
        output.show(
            f"{looked} were looked at. There were no words to search for: none had been said, or "
            "the daemon was killed after the texts had gone. The bodies are gone."
        )
    if outcome["short_texts"]:
        output.show(f"{outcome['short_texts']:,} texts are too short to search for.")
    if outcome["elsewhere"]:
        numbers = ", ".join(str(number) for number in outcome["elsewhere"][:_SHOWN])
        output.show(
            f"The same words stand in {len(outcome['elsewhere']):,} events that were not named, "
            f"by number: {numbers}"
        )


_RECEIPTS = """\b
Examples:
  memory receipts
  memory receipts 3 --json
  memory receipts 3 --follow"""


@click.command(epilog=_RECEIPTS)
@click.argument("number", required=False, type=click.IntRange(min=1))
@click.option("--follow", is_flag=True, help="Wait for the end of an erasure that was cut off.")
@out.common
def receipts(output: Output, number: int | None, *, follow: bool) -> None:
    """Show what was erased, when and by whom; with NUMBER, the ids and hashes of one receipt."""
    if follow and number is None:
        raise click.UsageError("--follow needs the number of a receipt")
    with output.connect() as client:
        if follow and number is not None:
            outcome = _followed(output, client.follow_erasure(number))["outcome"]
            if output.as_json:
                output.line({"receipt": number} | outcome)
            else:
                _show_outcome(output, outcome)
            return
        if number is None:
            _show_receipts(output, client.receipts())
            return
        found = list(client.receipt_events(number))
    if output.as_json:
        output.lines(found)
        return
    from rich.text import Text

    grid = out.table("number", "time", "event", "session", "sha256 of the text", right=("number",))
    for event in found:
        fields = (str(event["sequence"]), times.stamp(event["timestamp_ms"]))
        ids = (one_line(event["event_id"]), one_line(event["session_id"]))
        grid.add_row(*fields, *map(Text, ids), event["text_sha256"])
    output.show(grid)


def _show_receipts(output: Output, found: list[dict[str, Any]]) -> None:
    if output.as_json:
        output.lines(found)
        return
    if not found:
        output.show("nothing was ever erased")
        return
    from rich.text import Text

    grid = out.table("receipt", "time", "who", "events", "outcome", "reason", right=("events",))
    for receipt in found:
        outcome = receipt["outcome"]
        state = "goes on" if outcome is None else "words remain" if outcome["remains"] else "done"
        grid.add_row(
            str(receipt["number"]),
            times.stamp(receipt["time_ms"]),
            f"{one_line(receipt['user'])} ({receipt['uid']})",
            f"{receipt['events']:,}",
            state,
            Text(one_line(receipt["reason"])),
        )
    output.show(grid)
