"""`memory backup`, `verify`, `compact`, `restore`, `repair`: looking after the data.

The first three ask the daemon. The last two, and `verify` when no daemon runs, need the store for
themselves: `memoryd` does them in a process of its own, and tells how far it is.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from memoryd.edges.cli import output as out
from memoryd.edges.cli import times
from memoryd.edges.cli.output import Output, one_line

if TYPE_CHECKING:
    from rich.progress import Progress

_OURS: Final = frozenset(
    {"MEMORYD_ADDRESS", "MEMORYD_TOKEN"}
)  # not for the program that is started

Told = dict[str, Any]


@click.command(epilog="\b\nExample:\n  memory backup ~/backups/api --keep 7")
@click.argument("destination", metavar="DEST", type=click.Path(file_okay=False))
@click.option("--keep", type=click.IntRange(1), metavar="N", help="Keep only the N newest backups.")
@out.common
def backup(output: Output, destination: str, keep: int | None) -> None:
    """Back everything up into DEST, while the daemon goes on.

    DEST holds the backups of one project; each is complete, and shares with the others on the
    disk what has not changed. The search index is left out: it is made anew.
    """
    path = os.path.realpath(os.path.expanduser(destination))
    with output.connect() as client:
        made = _watch(output, "copying", client.backup(path, keep or 0), out.size)
    if output.as_json:
        output.line({name: made[name] for name in made if name not in {"done", "total"}})
        return
    output.show(one_line(f"{made['sequence']:,} events are in {made['path']}"))
    sizes = f"{made['files']:,} files, {out.size(made['size'])}"
    output.show(f"{sizes}, of which {out.size(made['copied'])} are new")
    for name in made["removed"]:
        output.show(one_line(f"removed {name}"))


@click.command(epilog="\b\nExample:\n  memory verify && echo whole")
@out.common
def verify(output: Output) -> None:
    """Check everything: events, running hash, notes, grips, search index.

    Asks the daemon, or does it alone if none runs. Ends with 1 if something is wrong, and says
    what to run.
    """
    from memoryd.client import NotRunning

    try:
        with output.connect() as client:
            found = _watch(output, "", client.verify(), _count)
            found = {**found["summary"], "problems": found["problems"]}
    except NotRunning:
        found = _watch(output, "", _apart(output, "verify"), _count)
    if output.as_json:
        output.line(found)
    else:
        _show_verdict(output, found)
    if found["problems"]:
        click.get_current_context().exit(1)


@click.command(epilog="\b\nExample:\n  memory compact")
@out.common
def compact(output: Output) -> None:
    """Merge all tables of the database, which gives space back."""
    with output.connect() as client:
        done = _watch(output, "merging", client.compact(), _count)
    if output.as_json:
        output.line({"before": done["before"], "after": done["after"]})
    else:
        output.show(f"{out.size(done['before'])} before, {out.size(done['after'])} now")


@click.command(epilog="\b\nExample:\n  memory restore ~/backups/api --stop")
@click.argument("source", metavar="SRC", type=click.Path(exists=True, file_okay=False))
@click.option("--name", default="", help="Which backup of a directory.  [default: the newest]")
@click.option("--data-dir", metavar="DIR", type=click.Path(file_okay=False), help="Restore to DIR.")
@click.option("--list", "listing", is_flag=True, help="Say which backups there are.")
@click.option("--stop", is_flag=True, help="Stop the daemon first.")
@click.option("--other-store", is_flag=True, help="Even if the backup is of another store.")
@click.option("--global-notes", is_flag=True, help="The notes that all projects share, too.")
@out.common
def restore(
    output: Output, source: str, name: str, data_dir: str | None, *, listing: bool, **flags: bool
) -> None:
    """Put a backup in the place of the project's store.

    SRC is a backup or a directory of backups. It is copied and checked from end to end before
    anything changes, and what was there is kept aside. No daemon may run meanwhile.
    """
    arguments = [os.path.realpath(source)]
    if listing:
        _show_backups(output, arguments)
        return
    arguments += ["--name", name] if name else []
    arguments += ["--data-dir", os.path.realpath(data_dir)] if data_dir else []
    arguments += [f"--{flag.replace('_', '-')}" for flag, given in flags.items() if given]
    done = _watch(output, "copying", _apart(output, "restore", *arguments), _count)
    if output.as_json:
        output.line(done)
        return
    output.show(one_line(f"{done['events']:,} events restored from {done['backup']}"))
    if done["aside"]:
        output.show(one_line(f"what was there before is in {done['aside']}"))
    if done["global_notes"] == "kept":
        output.show("the global notes are as they were: --global-notes would restore them")


@click.command(epilog="\b\nExample:\n  memory repair")
@out.common
def repair(output: Output) -> None:
    """Save what is left of a damaged store, and say exactly what is gone.

    Works on a copy. The damaged store is kept aside. A backup, if there is one, has more: see
    `memory restore`.
    """
    done = _watch(output, "reading", _apart(output, "repair"), _count)
    if output.as_json:
        output.line(done)
        return
    for words in done["told"]:
        output.show(one_line(words))
    output.show(f"{done['events']:,} events and {done['revisions']:,} revisions of notes are saved")
    for noun, spans in (("events", done["gone"]), ("revisions of notes", done["notes_gone"])):
        if spans or noun == "events":
            output.show(f"{noun} that are gone: {_spans(spans) or 'none'}")
    output.show(one_line(f"the damaged store is in {done['aside']}"))


def _show_backups(output: Output, arguments: list[str]) -> None:
    from rich.text import Text

    found = _last(_apart(output, "restore", "--list", *arguments), lambda _word: None)["backups"]
    if output.as_json:
        output.lines(found)
        return
    table = out.table("name", "made", "events", "size", right=("events", "size"))
    for one in found:
        made, size = times.ago(one["made_ms"], out.now_ms()), out.size(one["size"])
        table.add_row(Text(one_line(one["name"])), made, f"{one['sequence']:,}", size)
    output.show(table)


def _show_verdict(output: Output, found: Told) -> None:
    from rich.text import Text

    for problem in found["problems"]:
        output.show(Text(one_line(f"{problem['part']}: {problem['text']}"), "red"))
    for remedy in dict.fromkeys(problem["remedy"] for problem in found["problems"]):
        output.show(Text(one_line(f"  {remedy}"), "bold"))
    for noun, gaps in (("events", found["event_gaps"]), ("revisions", found["note_gaps"])):
        for when in sorted({gap["repaired_ms"] for gap in gaps}):
            spans = [(g["first"], g["last"]) for g in gaps if g["repaired_ms"] == when]
            gone = sum(last - first + 1 for first, last in spans)
            day = times.stamp(when)
            output.show(f"{gone:,} {noun} are gone since the repair of {day}: {_spans(spans)}")
    parts = (
        ("events", found["events"]),
        ("revisions of notes", found["revisions"]),
        ("global ones", found["global_revisions"]),
        ("nodes", found["nodes"]),
        ("grips", found["grips"]),
        ("events in the index", found["indexed"]),
    )
    counts = ", ".join(f"{count:,} {noun}" for noun, count in parts if count)
    wrong = len(found["problems"])
    output.show(f"{counts or 'nothing there'}: {f'{wrong} problems' if wrong else 'whole'}")


def _spans(spans: list[Any]) -> str:
    return ", ".join(f"{a} to {b}" if b > a else str(a) for a, b in spans)


def _count(number: int) -> str:
    return f"{number:,}"


def _apart(output: Output, command: str, *arguments: str) -> Iterator[Told]:
    """Have `memoryd` do something in a process of its own; what it tells.

    Leaves with its exit code if it fails; what it says then is on stderr.
    """
    line = [sys.executable, "-m", "memoryd.daemon", command, "--json", *arguments]
    if "--data-dir" not in arguments:
        line += ["--project", output.start_dir]
    environ = {name: value for name, value in os.environ.items() if name not in _OURS}
    with subprocess.Popen(line, stdout=subprocess.PIPE, env=environ) as process:  # noqa: S603 - our own
        last: Told = {}
        for told in process.stdout or ():
            ((kind, last),) = json.loads(told).items()
            if kind not in {"progress", "problem"}:
                last["finished"] = True
            if kind != "problem":
                yield last
    if not last.pop("finished", False):
        click.get_current_context().exit(process.returncode or 1)


def _watch(output: Output, what: str, told: Iterator[Told], spelled: Callable[[int], str]) -> Told:
    """Show how far something is until it is done; its last word."""
    if output.as_json:
        return _last(told, lambda _word: None)
    with _bar(output) as bar:
        task = bar.add_task(what, total=None, said="")

        def show(word: Told) -> None:
            total = word.get("total") or None
            said = spelled(word.get("done", 0)) + (f" of {spelled(total)}" if total else "")
            part = word.get("part") or what
            bar.update(
                task, description=part, total=total, completed=word.get("done", 0), said=said
            )

        return _last(told, show)


def _last(told: Iterator[Told], show: Callable[[Told], None]) -> Told:
    last: Told = {}
    for last in told:
        if not last.get("finished"):
            show(last)
    last.pop("finished", None)
    return last


def _bar(output: Output) -> "Progress":
    from rich.progress import BarColumn, Progress, TextColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[said]}"),
        console=output.console,
        transient=True,
        disable=not output.console.is_terminal,
    )
