"""Puts an entry into the text of a JSON file, or takes one out, and leaves all other bytes alone.

Owns the looks of what is inserted: it follows the indentation, the line ends and the one-line or
many-lines habit of its surroundings. Pure. Whoever calls it compares the data before and after.
"""

import json
import re
from typing import Any, Final

from memoryd.edges.install.jsonc import Child, Node

_REST_OF_LINE: Final = re.compile(r"(?:[ \t]+|/\*[^\r\n]*?\*/)*(?://[^\r\n]*)?(?=\r?\n)")
_COMMENT: Final = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_FIRST_INDENT: Final = re.compile(r"\{[ \t]*\r?\n([ \t]+)\S")
_NO_SPACE: Final = re.compile(r'^\s*\{\s*"[^"\\]*":\S')
DEFAULT_INDENT: Final = "  "


def rendered(value: Any, indent: str = DEFAULT_INDENT) -> str:
    """A value as lines of JSON; a list of words stays on one line."""
    if not value or not isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict):
        pairs = value.items()
        parts = [f"{json.dumps(k, ensure_ascii=False)}: {rendered(v, indent)}" for k, v in pairs]
        opening, closing = "{}"
    else:
        parts = [rendered(inner, indent) for inner in value]
        if not any(isinstance(inner, (dict, list)) for inner in value):
            return f"[{', '.join(parts)}]"
        opening, closing = "[]"
    body = ",\n".join(parts).replace("\n", f"\n{indent}")
    return f"{opening}\n{indent}{body}\n{closing}"


def inserted(text: str, container: Node, key: str | None, value: Any) -> str:
    """The text with one more entry at the end of an object (with a key) or a list (without)."""
    newline = "\r\n" if "\r\n" in text else "\n"
    unit = _unit(text)
    if not container.children:
        return _into_empty(text, container, _entry(key, value, unit), unit, newline)
    last = container.children[-1]
    own_comma = "," if last.comma >= 0 else ""
    after = max(last.comma + 1, last.end)
    if not _begins_a_line(text, last):
        spaced = " " if not _NO_SPACE.match(text) else ""
        entry = _entry(key, value, None, spaced=bool(spaced))
        lead = spaced if own_comma else f",{spaced}"
        return f"{text[:after]}{lead}{entry}{own_comma}{text[after:]}"
    indent = _indent_of(text, last.start)
    entry = _entry(key, value, unit).replace("\n", newline + indent)
    rest = _REST_OF_LINE.match(text, after)
    place = rest.end() if rest else after
    comma = "" if own_comma else ","
    return (
        f"{text[:after]}{comma}{text[after:place]}{newline}{indent}{entry}{own_comma}{text[place:]}"
    )


def removed(text: str, container: Node, place: int) -> str:
    """The text without one entry; of its surroundings, only one comma and its own line go."""
    child = container.children[place]
    if len(container.children) == 1:
        inner = text[container.start + 1 : child.start] + text[_end(child) : container.end - 1]
        inner = inner if inner.strip() else ""
        return text[: container.start + 1] + inner + text[container.end - 1 :]
    start, end = _blank_before(text, child.start), _end(child)
    before = container.children[place - 1].comma + 1 if place else container.start + 1
    if _in_comment(text[before:start]) and not _REST_OF_LINE.match(text, end):
        start = child.start  # the line break ends a comment, which must not swallow what follows
    if child.comma < 0:
        comma = container.children[place - 1].comma
        return text[:comma] + text[comma + 1 : start] + text[end:]
    if place == 0 and not _begins_a_line(text, child):
        start = child.start
        end += len(text[end:]) - len(text[end:].lstrip(" \t"))
    return text[:start] + text[end:]


def _into_empty(text: str, container: Node, entry: str, unit: str, newline: str) -> str:
    """Comments in it stay where they are, above the entry."""
    indent = _indent_of(text, container.start)
    inner = text[container.start + 1 : container.end - 1].rstrip()
    body = newline + indent + unit + entry.replace("\n", newline + indent + unit)
    return text[: container.start + 1] + inner + body + newline + indent + text[container.end - 1 :]


def _entry(key: str | None, value: Any, unit: str | None, *, spaced: bool = True) -> str:
    if unit is None:
        separators = (", ", ": ") if spaced else (",", ":")
        made = json.dumps(value, ensure_ascii=False, separators=separators)
    else:
        spaced, made = True, rendered(value, unit)
    colon = ": " if spaced else ":"
    return made if key is None else f"{json.dumps(key, ensure_ascii=False)}{colon}{made}"


def _unit(text: str) -> str:
    """What one level is indented by, judged by the first line inside the outermost object."""
    found = _FIRST_INDENT.search(text)
    return found[1] if found else DEFAULT_INDENT


def _end(child: Child) -> int:
    return max(child.comma + 1, child.end)


def _blank_before(text: str, at: int) -> int:
    """Where the entry's own space begins: with the line break before it, if there is one."""
    start = len(text[:at].rstrip(" \t"))
    if text[:start].endswith("\r\n"):
        return start - 2
    return start - 1 if text[:start].endswith("\n") else start


def _in_comment(gap: str) -> bool:
    """Whether the space between two entries ends inside a comment that only a line break ends."""
    comments = list(_COMMENT.finditer(gap))
    return bool(comments) and comments[-1].end() == len(gap) and comments[-1][0].startswith("//")


def _begins_a_line(text: str, child: Child) -> bool:
    return text[: child.start].rstrip(" \t").endswith("\n")


def _indent_of(text: str, at: int) -> str:
    """The white space that the line of a place begins with."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]
