"""A note as a Markdown page: its fields as a definition list on top, then its content. Pure.

Writing and reading are exact inverses. A page without the list is anybody's Markdown: it has no
fields, and all of it is content.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from html import escape, unescape
from typing import Any, Final, NamedTuple

from memoryd.domain.note import Note

_OPEN: Final = '<dl class="memoryd-note">'
_CLOSE: Final = "</dl>"
_LINE: Final = re.compile(r"<dt>([a-z_]+)</dt>((?:<dd>[^<]*</dd>)+)")
_VALUE: Final = re.compile(r"<dd>([^<]*)</dd>")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MS: Final = timedelta(milliseconds=1)
_BOM: Final = "\ufeff"


class Page(NamedTuple):
    """What a page says: the fields of a note that it names, or None, and the content."""

    fields: dict[str, Any] | None
    content: str


def write(note: Note) -> str:
    """The page of a note."""
    lines = [_OPEN]
    for field, (_, texts) in _FIELDS.items():
        values = texts(getattr(note, field))
        if values:
            said = "".join(f"<dd>{escape(value, quote=False)}</dd>" for value in values)
            lines.append(f"<dt>{field}</dt>{said}")
    return "\n".join([*lines, _CLOSE, "", note.content, ""])


def read(text: str) -> Page:
    """What a page says. Raises ValueError, which names the line, if its list makes no sense."""
    lines = text.removeprefix(_BOM).split("\n")
    if lines[0].rstrip() != _OPEN:
        return Page(None, text)
    fields: dict[str, Any] = {}
    for number, line in enumerate(lines[1:], 2):
        bare = line.rstrip()
        if bare == _CLOSE:
            break
        match = _LINE.fullmatch(bare)
        if match is None or match[1] not in _FIELDS or match[1] in fields:
            msg = f"line {number}: {bare[:80]!r} is no field of a note"
            raise ValueError(msg)
        try:
            fields[match[1]] = _FIELDS[match[1]][0]([unescape(v) for v in _VALUE.findall(match[2])])
        except (ValueError, OverflowError):
            msg = f"line {number}: {match[1]} has a value that makes no sense"
            raise ValueError(msg) from None
    else:
        msg = f"line {len(lines)}: the list of fields has no end: {_CLOSE} is missing"
        raise ValueError(msg)
    start = number + (number < len(lines) and not lines[number].rstrip("\r"))
    return Page(fields, "\n".join(lines[start:]).removesuffix("\n"))


def iso(time_ms: int) -> str:
    """A moment in UTC, to the millisecond."""
    return (_EPOCH + time_ms * _MS).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def from_iso(text: str) -> int:
    """The moment of a date and time that names its zone. Raises ValueError."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(text)
    return (moment - _EPOCH) // _MS


def _one(values: list[str]) -> str:
    (value,) = values
    return value


def _flag(values: list[str]) -> bool:
    if values not in (["yes"], ["no"]):
        raise ValueError(values)
    return values == ["yes"]


def _said(value: str) -> list[str]:
    return [value] if value else []


def _stamped(time_ms: int) -> list[str]:
    return [iso(time_ms)] if time_ms else []


def _time(values: list[str]) -> int:
    return from_iso(_one(values))


_Field = tuple[Callable[[list[str]], Any], Callable[[Any], list[str]]]
# each field of the list in its order: how it is read, how it is written
_FIELDS: Final[dict[str, _Field]] = {
    "name": (_one, _said),
    "kind": (_one, _said),
    "category": (_one, _said),
    "scope": (_one, _said),
    "session_id": (_one, _said),
    "project": (_one, _said),
    "aliases": (tuple, list),
    "tags": (tuple, list),
    "created_ms": (_time, _stamped),
    "changed_ms": (_time, _stamped),
    "author": (_one, _said),
    "provenance": (tuple, list),
    "pinned": (_flag, lambda pinned: ["yes"] if pinned else []),
}
