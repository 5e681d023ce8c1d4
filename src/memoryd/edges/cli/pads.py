"""`memory todo`, `daily` and `edit`: the scratchpad, the log of a day, a note in an editor."""

import os
import shlex
import subprocess
import tempfile
from typing import TYPE_CHECKING, Any

import click

from memoryd.domain import notepage, notetext
from memoryd.domain.errors import InvalidInput
from memoryd.domain.note import SCRATCHPAD, Note
from memoryd.edges.cli import names, times
from memoryd.edges.cli import output as out
from memoryd.edges.cli.examples import shared
from memoryd.edges.cli.output import Output, one_line, visible, warn
from memoryd.edges.cli.pager import pages
from memoryd.edges.cli.remember import author_of, report, scoped, signed, text_of, where
from memoryd.wire import ClientError, Missing, Refused

if TYPE_CHECKING:
    from memoryd.client import Client

_TODO = """\b
Examples:
  memory todo add "Rename the flag"
  memory todo list --all
  memory todo done 2
  memory todo done rename
"""
_DAILY = """\b
Examples:
  memory daily add "Found the leak: the cache was never cleared." --heading Debugging
  memory daily show
  memory daily show yesterday
"""
_EDIT = """\b
Examples:
  memory edit deploy
  EDITOR="code --wait" memory edit deploy --all
"""


@click.group(invoke_without_command=True, epilog=_TODO)
@click.pass_context
def todo(ctx: click.Context) -> None:
    """Keep the scratchpad: what is open and what is done."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_)


@todo.command()
@click.argument("text")
@scoped
@signed
@out.common
def add(output: Output, text: str, scope: str | None, session: str, author: str | None) -> None:
    """Add an open item."""
    try:
        line = notetext.todo(text)
    except InvalidInput as error:
        raise click.UsageError(str(error)) from None
    with output.connect() as client:
        answer = client.note(
            "Remember",
            **where(client, output, SCRATCHPAD, scope, session),
            kind="scratchpad",
            content=line,
            author=author_of(author),
        )
    report(output, answer)


@todo.command("list")
@scoped
@click.option("--all", "everything", is_flag=True, help="Also what is done.")
@out.common
@pages
def list_(
    output: Output, scope: str | None = None, session: str = "", *, everything: bool = False
) -> None:
    """List what is open."""
    with output.connect() as client:
        note = _existing(client, where(client, output, SCRATCHPAD, scope, session))
    items = enumerate(notetext.items(note["content"] if note else ""), 1)
    shown = [(n, item) for n, item in items if everything or not item.done]
    if output.as_json:
        output.lines({"number": n, "text": item.text, "done": item.done} for n, item in shown)
        return
    from rich.text import Text

    for number, item in shown:
        box = "x" if item.done else " "
        output.show(Text(f"{number:>3} [{box}] {one_line(item.text)}", "dim" if item.done else ""))
    if not shown:
        output.show("nothing is open")


@todo.command()
@click.argument("which")
@scoped
@click.option("--undo", is_flag=True, help="Open it again.")
@signed
@out.common
def done(output: Output, which: str, *, undo: bool, **options: Any) -> None:
    """Mark an item as done: its number, or words that only it holds."""
    with output.connect() as client:
        address = where(client, output, SCRATCHPAD, options["scope"], options["session"])
        note = client.note("Get", **address)["note"]
        item = _chosen(notetext.items(note["content"]), which, done=undo)
        content = notetext.tick(note["content"], item.line, done=not undo)
        _rewrite(client, note | {"content": content}, options["author"])
    if output.as_json:
        output.line({"text": item.text, "done": not undo})
    else:
        output.show(f"{'open' if undo else 'done'}: {one_line(item.text)}")


def _chosen(items: list[notetext.Item], which: str, *, done: bool) -> notetext.Item:
    """The item that is meant. Raises Refused if none or several are."""
    if which.isdecimal() and which.isascii():
        if 1 <= int(which) <= len(items):
            return items[int(which) - 1]
        raise Refused(f"there is no item {which}: see memory todo list --all")
    fits = [i for i in items if i.done == done and which.casefold() in i.text.casefold()]
    if len(fits) != 1:
        state = "done" if done else "open"
        raise Refused(f"{len(fits)} {state} items hold {which!r}: give the number of one")
    return fits[0]


@click.group(epilog=_DAILY)
def daily() -> None:
    """Keep a log, one for each day."""


@daily.command("add")
@click.argument("text")
@click.option("--heading", default="", metavar="TEXT", help="A title for the entry.")
@scoped
@signed
@out.common
def daily_add(output: Output, text: str, heading: str, **options: Any) -> None:
    """Add an entry to today's log, under the time of day. "-" reads stdin."""
    content = text_of(text)
    with output.connect() as client:
        answer = client.note(
            "Remember",
            **where(client, output, "", options["scope"], options["session"]),
            kind="daily",
            heading=heading,
            content=content,
            author=author_of(options["author"]),
        )
    report(output, answer)


@daily.command("show")
@click.argument("day", default="today")
@scoped
@out.common
@pages
def daily_show(output: Output, day: str, scope: str | None, session: str) -> None:
    """Show the log of a day: today, yesterday, or a date."""
    with output.connect() as client:
        now = times.as_seen_in(client.settings.timezone, out.now_ms())
        try:
            name = times.stamp(times.parse_time(day, now))[:10]
        except ValueError as error:
            raise click.UsageError(str(error)) from None
        note = _existing(client, where(client, output, name, scope, session))
    if note is None:
        raise Refused(f"there is no log of {name}")
    if output.as_json:
        output.line(note)
        return
    from rich.text import Text

    output.show(Text(visible(note["content"])))


@click.command(epilog=_EDIT)
@click.argument("name", type=names.NOTE)
@scoped
@click.option("--all", "everything", is_flag=True, help="Also aliases, tags, category and so on.")
@signed
@out.common
def edit(output: Output, name: str, *, everything: bool, **options: Any) -> None:
    """Change a note in $VISUAL or $EDITOR; a note that is not there is made.

    If somebody else has changed the note meanwhile, nothing is overwritten, and your text is kept
    in a file.
    """
    with output.connect() as client:
        address = where(client, output, name, options["scope"], options["session"])
        found = _existing(client, address)
        note = found or address | {"scope": options["scope"] or "project", "content": ""}
        before = notepage.write(_note(note)) if everything and found else note["content"]
        path = _opened(before)
        try:
            after = _read(path)
            if after == before:
                os.unlink(path)
                output.line(note) if output.as_json else output.show("nothing was changed")
                return
            changed = _page(note, after) if everything and found else note | {"content": after}
            written = _rewrite(client, changed, options["author"])
        except (ClientError, ValueError) as error:
            warn(f"memory: your text is kept in {path}")
            raise Refused(str(error)) from error
        os.unlink(path)
    if output.as_json:
        output.line(written)
    else:
        output.show(f"{one_line(written['name'])}: revision {written['revision']}")


def _existing(client: "Client", address: dict[str, Any]) -> dict[str, Any] | None:
    """The note, or None if there is none."""
    try:
        note: dict[str, Any] = client.note("Get", **address)["note"]
    except Missing:
        return None
    return note


def _rewrite(client: "Client", note: dict[str, Any], author: str | None) -> dict[str, Any]:
    """Write a note as it is, on top of the revision that was read."""
    sent = note | {
        "revision": note.get("revision", 0) + 1,
        "changed_ms": out.now_ms(),
        "author": author_of(author),
        "action": "edit",
    }
    client.note("ImportNotes", notes=[sent])
    return sent


def _note(note: dict[str, Any]) -> Note:
    fields = {f: tuple(v) if isinstance(v, list) else v for f, v in note.items()}
    known: dict[str, Any] = {f: fields[f] for f in Note._fields if f in fields}
    return Note(**known)


def _page(note: dict[str, Any], text: str) -> dict[str, Any]:
    """The note as a page says it. Raises ValueError if the page makes it another note."""
    fields, content = notepage.read(text)
    if fields is None:
        msg = "the list of fields at the top is gone"
        raise ValueError(msg)
    said = Note(**fields, content=content)
    if (said.place, said.name, said.kind) != (_note(note).place, note["name"], note["kind"]):
        msg = "name, scope, session and kind cannot be changed by editing"
        raise ValueError(msg)
    return note | said._asdict()


def _opened(text: str) -> str:
    """Let the user change a text; return the file that holds it. Raises Refused."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    fd, path = tempfile.mkstemp(prefix="memory-", suffix=".md")
    with os.fdopen(fd, "w", encoding="utf-8", newline="") as file:
        file.write(text + "\n")  # editors end a file with a line's end
    try:
        code = subprocess.run([*shlex.split(editor), path], check=False).returncode  # noqa: S603 - the user's own editor
    except (OSError, ValueError) as error:
        os.unlink(path)
        raise Refused(f"the editor {editor!r} does not start: set EDITOR ({error})") from None
    if code:
        os.unlink(path)
        raise Refused(f"the editor {editor!r} ended with {code}: nothing was changed")
    return path


def _read(path: str) -> str:
    with open(path, encoding="utf-8", newline="") as file:
        return file.read().removesuffix("\n")


shared(todo)
shared(daily)
