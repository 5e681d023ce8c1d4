"""`memory remember`, `recall` and `forget`; and how all commands name a note and its author."""

import getpass
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from memoryd.domain.note import KINDS, SCOPES
from memoryd.edges.cli import ids, names
from memoryd.edges.cli import output as out
from memoryd.edges.cli.output import Output, one_line, visible
from memoryd.edges.cli.pager import pages
from memoryd.wire import Missing

if TYPE_CHECKING:
    from memoryd.client import Client

_F = TypeVar("_F", bound=Callable[..., Any])
_EXCERPT_LINES: Final = 4
_EXCERPT_CHARACTERS: Final = 400
_READ_LIMIT: Final = 2 * 1024 * 1024
_REMEMBER = """\b
Examples:
  memory remember deploy "Run make ship." --tag ops --alias "ship it"
  memory remember deploy --overwrite - < deploy.md
  memory remember style "No abbreviations." --scope global --pin
"""


def scoped(command: _F) -> _F:
    """Let a command take --scope and --session."""
    command = click.option(
        "--scope",
        type=click.Choice(SCOPES),
        metavar="SCOPE",
        default=None,
        help=f"One of {', '.join(SCOPES)}.",
    )(command)
    return click.option(
        "--session", type=names.SESSION, metavar="S", default="", help="The session."
    )(command)


def signed(command: _F) -> _F:
    """Let a command take --author."""
    return click.option("--author", metavar="A", default=None, help="Who says so.  [default: you]")(
        command
    )


def author_of(name: str | None) -> str:
    """The author that was given, or the user's name."""
    if name is not None:
        return name
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def project_of(client: "Client", output: Output) -> str:
    """The project to name in a request, in a store that several projects share."""
    if not client.settings.unified:
        return ""
    from memoryd import project

    return project.project_id(output.start_dir)


def where(
    client: "Client", output: Output, name: str, scope: str | None, session: str
) -> dict[str, Any]:
    """The fields that name a note in a request."""
    project = "" if scope == "global" else project_of(client, output)
    return {"name": name, "scope": scope or "", "session_id": session, "project": project}


def text_of(text: str | None) -> str:
    """The text that was given; "-" stands for stdin."""
    if text != "-":
        return text or ""
    data = sys.stdin.buffer.read(_READ_LIMIT + 1)
    if len(data) > _READ_LIMIT:
        raise click.UsageError("stdin holds far more than one note may: 64 KiB in one write")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        msg = f"stdin is not UTF-8 at byte {error.start + 1}"
        raise click.UsageError(msg) from None


@click.command(epilog=_REMEMBER)
@click.argument("name", type=names.NOTE)
@click.argument("text", required=False)
@click.option("--append", "mode", flag_value="append", default="append", help="Add to the note.")
@click.option("--overwrite", "mode", flag_value="overwrite", help="Replace what it holds.")
@scoped
@click.option(
    "--kind",
    type=click.Choice(KINDS),
    metavar="KIND",
    default=None,
    help=f"One of {', '.join(KINDS)}. Cannot change.",
)
@click.option("--category", default="", metavar="WORD", help="core, daily, conversation or yours.")
@click.option("--tag", "tags", multiple=True, metavar="WORD", help="May be repeated.")
@click.option("--alias", "aliases", multiple=True, metavar="NAME", help="May be repeated.")
@click.option("--pin/--unpin", "pinned", default=None, help="Whether it is always at hand.")
@click.option(
    "--from",
    "provenance",
    multiple=True,
    metavar="ID",
    help="An event or grip that it stands on. May be repeated.",
)
@signed
@out.common
def remember(output: Output, name: str, text: str | None, **options: Any) -> None:
    """Write the note NAME, or add TEXT to it ("-" reads stdin).

    Adding leaves out lines that the note holds already. Without --scope it is a note of the
    project.
    """
    said = text is not None
    if (
        not said
        and not any(options[o] for o in ("tags", "aliases", "category", "provenance"))
        and options["pinned"] is None
    ):
        raise click.UsageError("there is nothing to remember: give TEXT, or - to read stdin")
    if not said and options["mode"] == "overwrite":
        raise click.UsageError("--overwrite needs TEXT, or - to read stdin")
    fields = {k: options[k] for k in ("mode", "category", "tags", "aliases", "provenance")}
    if options["pinned"] is not None:
        fields["pinned"] = options["pinned"]
    content = text_of(text)
    with output.connect() as client:
        answer = client.note(
            "Remember",
            **where(client, output, name, options["scope"], options["session"]),
            **fields,
            kind=options["kind"] or "",
            content=content,
            author=author_of(options["author"]),
        )
    report(output, answer)


def report(output: Output, answer: dict[str, Any]) -> None:
    """Say what became of a note that was written."""
    if output.as_json:
        output.line(answer)
        return
    note = answer["note"]
    word = "created" if answer["created"] else "changed" if answer["changed"] else "unchanged"
    dropped = answer["dropped_lines"]
    left = f", {dropped} lines were there already" if dropped else ""
    output.show(f"{one_line(note['name'])}: {word}, revision {note['revision']}{left}")


@click.command(epilog="\b\nExamples:\n  memory recall deploy\n  memory recall 'deploy*' --limit 3")
@click.argument("query", nargs=-1, required=True)
@scoped
@click.option("--kind", type=click.Choice(KINDS), metavar="KIND", default=None, help="Only these.")
@click.option(
    "--limit",
    default=5,
    show_default=True,
    type=click.IntRange(1, 100),
    metavar="N",
    help="At most so many.",
)
@out.common
@pages
def recall(output: Output, query: tuple[str, ...], **options: Any) -> None:
    """Find the notes that fit QUERY best. A word that ends with * stands for all that begin so."""
    with output.connect() as client:
        found = client.note(
            "Recall",
            query=" ".join(query),
            scope=options["scope"] or "",
            session_id=ids.whole(client, options["session"], ids.SESSION),
            kind=options["kind"] or "",
            limit=options["limit"],
            project=project_of(client, output),
        )["notes"]
    if output.as_json:
        output.lines(found)
        return
    for hit in found:
        _show_excerpt(output, hit["note"])
    if not found:
        output.show("no notes")


@click.command(epilog="\b\nExample:\n  memory forget deploy")
@click.argument("name", type=names.NOTE)
@scoped
@signed
@out.common
def forget(output: Output, name: str, **options: Any) -> None:
    """Forget a note. Its history stays: see memory notes history, memory notes restore."""
    with output.connect() as client:
        address = where(client, output, name, options["scope"], options["session"])
        try:
            answer = client.note("Forget", **address, author=author_of(options["author"]))
        except Missing as error:
            raise Missing(f"{error}{ids.meant(client, address)}") from None
    if output.as_json:
        output.line(answer["note"])
    else:
        output.show(f"{one_line(answer['note']['name'])}: forgotten")


def _show_excerpt(output: Output, note: dict[str, Any]) -> None:
    from rich.padding import Padding
    from rich.text import Text

    head = Text(one_line(note["name"]), "bold")
    head.append(f"  {note['scope']} {note['kind']}", "dim")
    output.show(head)
    lines = note["content"][:_EXCERPT_CHARACTERS].strip().split("\n")[:_EXCERPT_LINES]
    if any(lines):
        output.show(Padding(Text(visible("\n".join(lines)), overflow="fold"), (0, 0, 0, 4)))
