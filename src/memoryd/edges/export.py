"""A readable copy of the memory: a Markdown tree for people, JSON lines for everything.

Owns the layout of the tree. Files that it wrote are listed with their hashes in
``.memoryd-export``: only those are ever replaced or removed, and only while they are as they
were written.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from hashlib import blake2b, sha256
from heapq import merge
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from memoryd.domain import notepage
from memoryd.domain.note import MEMORY, SCRATCHPAD, Note
from memoryd.edges.page import Page, escaped
from memoryd.edges.tocpages import grip, toc_pages

if TYPE_CHECKING:
    from memoryd.client import Client

MANIFEST: Final = ".memoryd-export"
FOLDERS: Final = {"note": "notes", "scratchpad": "notes", "archive": "archives", "daily": "daily"}
JSONL_VERSION: Final = 1

_UNSAFE: Final = re.compile(r"[^a-z0-9._-]+", re.IGNORECASE)
_PLAIN: Final = re.compile(r"[a-z0-9_][a-z0-9._-]*")
_HASHED: Final = re.compile(r".*-[0-9a-f]{8}")
_LINE: Final = re.compile(r"([0-9a-f]{64})  (.+)")
_SLUG_LIMIT: Final = 60
_BOOK: Final = """\
[book]
title = "{title}"
src = "."

[build]
build-dir = "book"
create-missing = false
"""


class Outcome(NamedTuple):
    """What an export did; ``edited`` were changed since the last one and left alone."""

    written: list[str]
    unchanged: int
    removed: list[str]
    edited: list[str]


def note_pages(client: "Client", project: str) -> Iterator[Page]:
    """A page for each note."""
    for fields in client.notes(project=project):
        note = Note(**{f: _value(fields[f]) for f in Note._fields})._replace(project="")
        path = note_path(note)
        part = "" if "/" not in path else path.partition("/")[0].capitalize()
        yield Page(path, notepage.write(note), part, note.name)


# a further section of the tree is one more function here
SECTIONS: Final[tuple[Callable[["Client", str], Iterator[Page]], ...]] = (note_pages, toc_pages)


def note_path(note: Note) -> str:
    """Where the page of a note is; notes that differ in place or name never share a file."""
    if note.scope == "project":
        if (note.name, note.kind) == (MEMORY, "note"):
            return "MEMORY.md"
        if (note.name, note.kind) == (SCRATCHPAD, "scratchpad"):
            return "SCRATCHPAD.md"
    folder = FOLDERS[note.kind]
    if note.scope == "global":
        folder += "/global"
    elif note.scope == "session":
        folder += f"/session/{slug(note.session_id)}"
    return f"{folder}/{slug(note.name)}.md"


def slug(name: str) -> str:
    """A file name for a name, on any file system; with a hash unless it is the name itself."""
    if _PLAIN.fullmatch(name) and len(name) <= _SLUG_LIMIT and not _HASHED.fullmatch(name):
        return name
    digest = blake2b(name.encode(), digest_size=4).hexdigest()
    return f"{_UNSAFE.sub('_', name)[:_SLUG_LIMIT].lstrip('.-') or '_'}-{digest}"


def write_tree(client: "Client", directory: str, project: str, *, force: bool = False) -> Outcome:
    """Write the tree, and remove what the last export wrote and this one does not.

    A file that was edited since is left alone, unless ``force``. Raises OSError.
    """
    pages = sorted(page for section in SECTIONS for page in section(client, project))
    wanted = {page.path: page.text for page in pages} | {"SUMMARY.md": summary(pages)}
    os.makedirs(directory, mode=0o700, exist_ok=True)
    known = _manifest(directory)
    written, removed, edited = [], [], []
    listed: dict[str, str] = {}
    for path, text in sorted(wanted.items()):
        data = text.encode()
        listed[path] = sha256(data).hexdigest()
        present = _hash(f"{directory}/{path}")
        if present == listed[path]:
            continue
        if present is not None and present != known.get(path) and not force:
            edited.append(path)
            listed.pop(path)
            if path in known:
                listed[path] = known[path]
            continue
        _write(f"{directory}/{path}", data)
        written.append(path)
    for path in sorted(known.keys() - wanted.keys()):
        present = _hash(f"{directory}/{path}")
        if present == known[path] or (force and present is not None):
            _remove(directory, path)
            removed.append(path)
        elif present is not None:
            edited.append(path)
            listed[path] = known[path]
    _seed_book(directory, client.settings.project)
    lines = (f"{digest}  {path}\n" for path, digest in sorted(listed.items()))
    _write(f"{directory}/{MANIFEST}", "".join(lines).encode())
    return Outcome(
        written, len(wanted) - len(written) - len(set(edited) & set(wanted)), removed, edited
    )


def summary(pages: Iterable[Page]) -> str:
    """The table of contents as mdbook wants it."""
    lines = ["# Summary", ""]
    part = ""
    for page in sorted(pages, key=lambda page: (page.part, page.path)):
        if page.part != part:
            part = page.part
            lines.append(f"- [{part}]()")
        indent = "  " * (page.depth + 1) if part else ""
        lines.append(f"{indent}- [{escaped(page.chapter)}]({page.path})")
    return "\n".join([*lines, ""])


def records(client: "Client") -> Iterator[dict[str, Any]]:
    """Everything, as objects to write one per line: a head, the truth, what follows from it."""
    status = client.status()
    yield {
        "type": "memoryd",
        "version": JSONL_VERSION,
        "project": status["project"],
        "store_id": status["store_id"],
    }
    # in the order in which it was written, so that it can be written so again
    yield from merge(
        event_records(client, status["sequence"]),
        note_records(client, "project"),
        key=lambda record: record.get("log_sequence", record["sequence"]),
    )
    yield from note_records(client, "global")
    yield from toc_records(client)


def event_records(client: "Client", end: int) -> Iterator[dict[str, Any]]:
    """Every event up to a number, in the order of writing."""
    if not end:
        return
    for event in client.tail(after_sequence=0):
        yield {"type": "event", **event}
        if event["sequence"] >= end:
            return


def note_records(client: "Client", scope: str) -> Iterator[dict[str, Any]]:
    """Every revision of every note of a store, in the order of writing."""
    after, more = 0, True
    while more:
        answer = client.note("ListRevisions", scope=scope, after_sequence=after, limit=1000)
        more = answer["has_more"]
        for revision in answer["revisions"]:
            after = revision["sequence"]
            yield {"type": "note", **revision}


def toc_records(client: "Client") -> Iterator[dict[str, Any]]:
    """Every node of the table of contents, and behind it the grips that no other had before.

    How often a node was written anew is left out: it says nothing of what happened.
    """
    seen: set[str] = set()
    for node in client.nodes():
        yield {"type": "node", **{k: v for k, v in node.items() if k != "version"}}
        for grip_id in [grip_id for bullet in node["bullets"] for grip_id in bullet["grip_ids"]]:
            found = None if grip_id in seen else grip(client, grip_id)
            if found is not None:
                seen.add(grip_id)
                yield {"type": "grip", **found}


def _value(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _manifest(directory: str) -> dict[str, str]:
    """What the last export wrote, with its hashes; lines that make no sense count nothing."""
    try:
        with open(f"{directory}/{MANIFEST}", encoding="utf-8") as file:
            lines = file.read().splitlines()
    except FileNotFoundError:
        return {}
    found = {match[2]: match[1] for match in map(_LINE.fullmatch, lines) if match}
    return {
        path: digest
        for path, digest in found.items()
        if not os.path.isabs(path) and ".." not in path.split("/")
    }


def _hash(path: str) -> str | None:
    try:
        with open(path, "rb") as file:
            return sha256(file.read()).hexdigest()
    except FileNotFoundError:
        return None


def _write(path: str, data: bytes) -> None:
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    temporary = f"{path}.tmp"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(data)
    os.replace(temporary, path)


def _remove(directory: str, path: str) -> None:
    os.unlink(f"{directory}/{path}")
    folder = os.path.dirname(path)
    while folder:
        with suppress(OSError):  # not empty
            os.rmdir(f"{directory}/{folder}")
        folder = os.path.dirname(folder)


def _seed_book(directory: str, project: str) -> None:
    """Make a book.toml if there is none; one that is there belongs to the user."""
    if not os.path.lexists(f"{directory}/book.toml"):
        _write(f"{directory}/book.toml", _BOOK.format(title=f"Memory of {project}").encode())
