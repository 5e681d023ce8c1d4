"""`memory notes`: list notes, show one, see and bring back what was."""

from collections.abc import Iterable
from typing import Any

import click

from memoryd.domain.note import KINDS
from memoryd.edges.cli import ids, names, times
from memoryd.edges.cli import output as out
from memoryd.edges.cli.examples import shared
from memoryd.edges.cli.output import Output, one_line, visible
from memoryd.edges.cli.pager import pages
from memoryd.edges.cli.remember import author_of, project_of, scoped, signed, text_of, where

_NOTES = """\b
Examples:
  memory notes
  memory notes list --tag ops --scope project
  memory notes show deploy
  memory notes history deploy
  memory notes restore deploy --revision 3
  memory notes replace deploy "make ship" "make release"
  memory notes aliases deploy "ship it" release
  memory notes archive 5f1c "We moved the cache." --messages 40
"""


@click.group(invoke_without_command=True, epilog=_NOTES)
@click.pass_context
def notes(ctx: click.Context) -> None:
    """List notes, show one, see and bring back what was."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_)


@notes.command("list")
@scoped
@click.option("--kind", type=click.Choice(KINDS), metavar="KIND", default=None, help="Only these.")
@click.option("--category", default="", metavar="WORD", help="Only of this category.")
@click.option("--tag", default="", metavar="WORD", help="Only with this tag.")
@click.option("--count", is_flag=True, help="Only how many.")
@out.common
@pages
def list_(output: Output, **options: Any) -> None:
    """List notes by scope and name."""
    with output.connect() as client:
        fields = {k: options.get(k) or "" for k in ("scope", "kind", "category", "tag")}
        fields |= {
            "session_id": ids.whole(client, options.get("session") or "", ids.SESSION),
            "project": project_of(client, output),
        }
        if options.get("count"):
            counted = client.note("Count", **fields)
            if output.as_json:
                output.line(counted)
            else:
                output.show(f"{counted['count']:,}")
            return
        found = client.notes(**fields, without_content=not output.as_json)
        if output.as_json:
            output.lines(found)
        else:
            _show_list(output, list(found))


@notes.command()
@click.argument("name", type=names.NOTE)
@scoped
@click.option("--revision", default=0, metavar="N", help="An earlier revision.")
@out.common
@pages
def show(output: Output, name: str, scope: str | None, session: str, revision: int) -> None:
    """Show one note, whole."""
    with output.connect() as client:
        address = where(client, output, name, scope, session)
        note = ids.note(client, "Get", address, revision=revision)["note"]
    if output.as_json:
        output.line(note)
    else:
        _show_whole(output, note)


@notes.command()
@click.argument("name", type=names.NOTE)
@scoped
@click.option(
    "--limit",
    default=20,
    show_default=True,
    type=click.IntRange(1, 1000),
    metavar="N",
    help="At most so many.",
)
@out.common
@pages
def history(output: Output, name: str, scope: str | None, session: str, limit: int) -> None:
    """Show the revisions of a note, the newest first."""
    with output.connect() as client:
        address = where(client, output, name, scope, session)
        found = ids.note(client, "History", address, limit=limit)["revisions"]
    if output.as_json:
        output.lines(found)
        return
    from rich.text import Text

    table = out.table("revision", "when", "what", "by", "bytes", right=("bytes",))
    for note in found:
        table.add_row(
            str(note["revision"]),
            times.ago(note["changed_ms"], out.now_ms()),
            note["action"],
            Text(one_line(note["author"]), "magenta"),
            f"{len(note['content'].encode()):,}",
        )
    output.show(table)


@notes.command()
@click.argument("name", type=names.NOTE)
@scoped
@click.option("--revision", default=0, metavar="N", help="Which.  [default: the last that lived]")
@signed
@out.common
def restore(output: Output, name: str, **options: Any) -> None:
    """Bring an earlier revision of a note back, or a forgotten note."""
    with output.connect() as client:
        address = where(client, output, name, options["scope"], options["session"])
        note = client.note(
            "Restore",
            **address,
            revision=options["revision"],
            author=author_of(options["author"]),
        )["note"]
    _changed(output, note, "restored")


@notes.command()
@click.argument("name", type=names.NOTE)
@click.argument("old")
@click.argument("new")
@scoped
@signed
@out.common
def replace(output: Output, name: str, old: str, new: str, **options: Any) -> None:
    """Put NEW in the place of OLD, which must occur exactly once in the note."""
    with output.connect() as client:
        address = where(client, output, name, options["scope"], options["session"])
        author = author_of(options["author"])
        note = client.note("Edit", **address, old=old, new=new, author=author)["note"]
    _changed(output, note, "changed")


@notes.command()
@click.argument("name", type=names.NOTE)
@click.argument("alias", nargs=-1)
@scoped
@signed
@out.common
def aliases(output: Output, name: str, alias: tuple[str, ...], **options: Any) -> None:
    """Give a note exactly these aliases; none takes all away."""
    with output.connect() as client:
        address = where(client, output, name, options["scope"], options["session"])
        note = client.note(
            "SetAliases", **address, aliases=alias, author=author_of(options["author"])
        )["note"]
    _changed(output, note, "changed")


@notes.command()
@click.argument("session", type=names.SESSION)
@click.argument("text")
@click.option(
    "--messages",
    default=0,
    metavar="N",
    type=click.IntRange(min=0),
    help="How many messages it stands for.",
)
@signed
@out.common
def archive(output: Output, session: str, text: str, messages: int, author: str | None) -> None:
    """Keep the summary TEXT of a session: as an archive, and in the log of the day.

    "-" reads stdin. The same summary again changes nothing.
    """
    content = text_of(text)
    with output.connect() as client:
        answer = client.note(
            "ArchiveSession",
            session_id=session,
            content=content,
            message_count=messages,
            author=author_of(author),
            project=project_of(client, output),
        )
    if output.as_json:
        output.line(answer)
    else:
        word = "created" if answer["created"] else "unchanged"
        output.show(f"{one_line(answer['archive']['name'])}: {word}")


def _changed(output: Output, note: dict[str, Any], word: str) -> None:
    if output.as_json:
        output.line(note)
    else:
        output.show(f"{one_line(note['name'])}: {word}, revision {note['revision']}")


def _show_list(output: Output, found: Iterable[dict[str, Any]]) -> None:
    from rich.text import Text

    if not found:
        output.show("no notes")
        return
    now = out.now_ms()
    table = out.table("name", "scope", "kind", "category", "changed", "tags")
    for note in found:
        name = Text(one_line(note["name"]), "bold" if note["pinned"] else "")
        table.add_row(
            name,
            note["scope"],
            note["kind"],
            Text(one_line(note["category"])),
            times.ago(note["changed_ms"], now),
            Text(one_line(", ".join(note["tags"])), "magenta"),
        )
    output.show(table)


def _show_whole(output: Output, note: dict[str, Any]) -> None:
    from rich.text import Text

    grid = out.table("", "")
    grid.show_header = False
    for field, value in note.items():
        if field in {"content", "sequence", "log_sequence", "forgotten"} or not value:
            continue
        said = ", ".join(value) if isinstance(value, list) else str(value)
        if field.endswith("_ms"):
            said = f"{times.stamp(value)} ({times.ago(value, out.now_ms())})"
        grid.add_row(Text(field.removesuffix("_ms"), "dim"), Text(one_line(said)))
    output.show(grid)
    if note["content"]:
        output.show("")
        output.show(Text(visible(note["content"])))


shared(notes)
