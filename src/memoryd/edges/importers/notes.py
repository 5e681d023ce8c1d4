"""Notes from files: the tree that `export` writes, MEMORY.md with daily files, or notes.jsonl.

Lenient: a file or line that cannot be taken is reported and left out. Strict about changing:
everything is read and planned before anything is sent.
"""

import json
import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from memoryd.domain import notepage, notetext
from memoryd.domain.errors import InvalidInput
from memoryd.domain.note import CONTENT_LIMIT, MEMORY, SCRATCHPAD, Note, checked
from memoryd.edges.export import MANIFEST

if TYPE_CHECKING:
    from memoryd.client import Client

_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_OWN: Final = {"MEMORY.md": (MEMORY, "note"), "SCRATCHPAD.md": (SCRATCHPAD, "scratchpad")}
_KIND_OF_FOLDER: Final = {"notes": "note", "archives": "archive", "daily": "daily"}
_FIELDS: Final = tuple(f for f in Note._fields if f != "project")
_BATCH_NOTES: Final = 500
_BATCH_BYTES: Final = 8 * 1024 * 1024

Key = tuple[str, str, str]


class Found(NamedTuple):
    """A note in a file. ``plain``: the file says nothing but its content."""

    note: Note
    source: str
    plain: bool


class Source(NamedTuple):
    """What was found, what could not be taken, and whether it speaks of all scopes."""

    found: list[Found]
    problems: list[str]
    everything: bool


class Step(NamedTuple):
    """What is to become of one note."""

    action: str  # create, change, forget, unchanged, older
    name: str
    scope: str
    session_id: str
    sent: dict[str, Any] | None = None


def read(path: str) -> Source:
    """Read a directory or a notes.jsonl. Raises OSError if it cannot be read at all."""
    found: dict[Key, Found] = {}
    problems: list[str] = []
    if os.path.isfile(path):
        _take(found, problems, _jsonl(path, os.path.basename(path), problems))
        return Source(list(found.values()), problems, everything=False)
    for relative in sorted(_files(path)):
        if relative == "notes.jsonl":
            _take(found, problems, _jsonl(f"{path}/{relative}", relative, problems))
            continue
        try:
            page = _page(f"{path}/{relative}", relative)
        except (ValueError, InvalidInput) as error:
            problems.append(f"{relative}: {error}")
            continue
        if page is not None:
            _take(found, problems, iter([page]))
    return Source(list(found.values()), problems, os.path.exists(f"{path}/{MANIFEST}"))


def plan(
    client: "Client", source: Source, project: str, now_ms: int, *, replace: bool
) -> list[Step]:
    """What has to be done so that the notes are as the source has them."""
    known = {_key(note): note for note in client.notes(project=project)}
    steps = []
    if replace:
        kept = {_key(found.note._asdict()) for found in source.found}
        for key, old in known.items():
            if key not in kept and (source.everything or old["scope"] == "project"):
                gone = {"content": "", "forgotten": True, "changed_ms": now_ms}
                steps.append(_step("forget", old | gone, old["revision"] + 1))
    for found in source.found:
        note = found.note._replace(project="" if found.note.scope == "global" else project)
        present = known.get(_key(note._asdict()))
        if present is None:
            steps.append(_step("create", note._asdict(), 0))
        else:
            steps.append(_changed(client, found, present, now_ms, replace=replace))
    return steps


def apply(client: "Client", steps: list[Step]) -> None:
    """Have the daemon check every step, and then do them. Raises ClientError."""
    sent = [step.sent for step in steps if step.sent is not None]
    batches = list(_batches(sent))
    for dry_run in (True, False):
        for batch in batches:
            client.note("ImportNotes", notes=batch, dry_run=dry_run)


def _changed(
    client: "Client", found: Found, present: dict[str, Any], now_ms: int, *, replace: bool
) -> Step:
    new: dict[str, Any] = {f: getattr(found.note, f) for f in _FIELDS}
    if found.plain:
        content = found.note.content
        if not replace and found.note.kind in {"note", "scratchpad"} and present["content"]:
            content = notetext.append(present["content"], content).text
        new = {f: present[f] for f in _FIELDS} | {"content": content}
    if _same(new, present):
        return _step("unchanged", present, None)
    if not found.plain and not replace and _was(client, new, present):
        return _step("older", present, None)
    if new["changed_ms"] <= present["changed_ms"] or found.plain:
        new["changed_ms"] = max(now_ms, present["changed_ms"])
    return _step("change", present | new, present["revision"] + 1)


def _was(client: "Client", new: dict[str, Any], present: dict[str, Any]) -> bool:
    """Whether a page is an earlier revision of the note, which has changed since."""
    address = {f: present[f] for f in ("name", "scope", "session_id", "project")}
    before, more = 0, True
    while more:
        answer = client.note("History", **address, before_revision=before)
        more = answer["has_more"]
        for earlier in answer["revisions"]:
            if _same(new, earlier) and not earlier["forgotten"]:
                return True
            before = earlier["revision"]
    return False


def _same(new: dict[str, Any], old: dict[str, Any]) -> bool:
    return all((list(new[f]) if isinstance(old[f], list) else new[f]) == old[f] for f in _FIELDS)


def _step(action: str, note: dict[str, Any], revision: int | None) -> Step:
    sent = None if revision is None else note | {"revision": revision, "action": "import"}
    return Step(action, note["name"], note["scope"], note["session_id"], sent)


def _key(note: dict[str, Any]) -> Key:
    scope = note["scope"]
    return scope, note["session_id"] if scope == "session" else "", note["name"]


def _batches(sent: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    batch: list[dict[str, Any]] = []
    size = 0
    for note in sent:
        length = len(note["content"].encode())
        if batch and (len(batch) == _BATCH_NOTES or size + length > _BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(note)
        size += length
    if batch:
        yield batch


def _take(found: dict[Key, Found], problems: list[str], pages: Iterator[Found]) -> None:
    for page in pages:
        key = _key(page.note._asdict())
        if key in found:
            problems.append(f"{page.source}: {found[key].source} is the same note: left out")
        else:
            found[key] = page


def _files(directory: str) -> Iterator[str]:
    """What may hold notes: our folders, and known names at the top. Links are not followed."""
    for entry in os.scandir(directory):
        if entry.is_file(follow_symlinks=False):
            day = entry.name.endswith(".md") and _DAY.fullmatch(_stem(entry.name))
            if day or entry.name in _OWN or entry.name == "notes.jsonl":
                yield entry.name
    for top in (*_KIND_OF_FOLDER, "memory"):
        for folder, _, files in os.walk(f"{directory}/{top}"):
            for name in files:
                path = os.path.relpath(f"{folder}/{name}", directory)
                day = _DAY.fullmatch(name.removesuffix(".md"))
                if name.endswith(".md") and not name.startswith(".") and (top != "memory" or day):
                    yield path


def _page(path: str, relative: str) -> Found | None:
    """The note in a file; None for a link or the like. Raises ValueError, InvalidInput."""
    if os.path.islink(path) or not os.path.isfile(path):
        return None
    with open(path, "rb") as file:
        data = file.read(2 * CONTENT_LIMIT)
        modified = os.fstat(file.fileno()).st_mtime_ns // 1_000_000
    try:
        fields, content = notepage.read(data.decode())
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        msg = f"line {line}: not UTF-8"
        raise ValueError(msg) from None
    if fields is not None:
        note = checked(Note(**({"name": _stem(relative)} | fields), content=content))
        return Found(note._replace(project=""), relative, plain=False)
    return Found(_plain(relative, content, modified), relative, plain=True)


def _plain(relative: str, content: str, modified: int) -> Note:
    """The note in anybody's Markdown: the file's place says what it is."""
    top, *folders, _ = relative.split("/") if "/" in relative else ("", "")
    name, kind = _OWN.get(relative, (_stem(relative), _KIND_OF_FOLDER.get(top, "daily")))
    scope, session = "project", ""
    if folders[:1] == ["global"]:
        scope = "global"
    elif folders[:1] == ["session"] and len(folders) > 1:
        scope, session = "session", folders[1]
    text = content.removeprefix("\ufeff").removesuffix("\n")
    return checked(
        Note(
            name,
            text,
            kind=kind,
            scope=scope,
            session_id=session,
            created_ms=modified,
            changed_ms=modified,
        )
    )


def _stem(relative: str) -> str:
    return os.path.basename(relative).removesuffix(".md")


def _jsonl(path: str, relative: str, problems: list[str]) -> Iterator[Found]:
    """The notes of a notes.jsonl, each named by its time."""
    counted: dict[str, list[str]] = {}
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                at, text = _entry(line)
                texts = counted.setdefault(notepage.iso(at), [])
                if text in texts:
                    continue
                texts.append(text)
                name = notepage.iso(at) + (f" ({len(texts)})" if len(texts) > 1 else "")
                note = checked(Note(name, text, created_ms=at, changed_ms=at))
            except (ValueError, OverflowError, InvalidInput) as error:
                problems.append(f"{relative}: line {number}: {error}")
                continue
            yield Found(note, f"{relative}: line {number}", plain=False)


def _entry(line: bytes) -> tuple[int, str]:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        entry = None
    if not isinstance(entry, dict):
        msg = "not a JSON object"
        raise ValueError(msg)  # noqa: TRY004 - one kind of error for a bad line
    at, text = entry.get("at"), entry.get("text")
    if not isinstance(at, int) or isinstance(at, bool) or not isinstance(text, str):
        msg = 'not {"at": milliseconds, "text": "..."}'
        raise ValueError(msg)  # noqa: TRY004 - one kind of error for a bad line
    return at, text
