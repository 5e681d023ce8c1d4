"""Reads JSON, with or without comments, and keeps where in the text everything stands.

Owns the tree of a settings file that edits are planned on. It takes what the agents take: JSON,
``//`` and ``/* */`` comments, and a comma behind the last entry. Pure: text in, tree out.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

_DEPTH: Final = 100
_GAP: Final = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING: Final = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_WORD: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null")


class Broken(ValueError):
    """The text is not JSON. Its message says in which line."""


class Node(NamedTuple):
    """One value: where it stands, and what is in it."""

    start: int
    end: int
    kind: str
    raw: str
    children: "tuple[Child, ...]" = ()

    def named(self, key: str) -> "list[int]":
        """The places of the children with that key; more than one only in odd files."""
        return [place for place, child in enumerate(self.children) if child.key == key]


class Child(NamedTuple):
    """One entry of an object or a list. ``comma`` is where its comma stands, -1 if it has none."""

    key: str | None
    start: int
    node: Node
    comma: int

    @property
    def end(self) -> int:
        """Where the entry ends, without its comma."""
        return self.node.end


def parse(text: str) -> Node:
    """The tree of a text. Raises Broken."""
    reader = _Reader(text)
    node = reader.value(reader.gap(0), 0)
    rest = reader.gap(node.end)
    if rest != len(text):
        raise reader.broken(rest, "something stands behind the end")
    return node


def plain(node: Node) -> Any:
    """The value that a node stands for, as `json` would give it; a later key hides an earlier."""
    match node.kind:
        case "object":
            return {child.key: plain(child.node) for child in node.children}
        case "list":
            return [plain(child.node) for child in node.children]
    return json.loads(node.raw)


def exact(node: Node) -> Any:
    """What a node says, to the letter: order, repeated keys and the spelling of numbers count."""
    if node.kind == "value":
        return node.raw
    return node.kind, tuple((child.key, exact(child.node)) for child in node.children)


class _Reader:
    """Walks over one text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def broken(self, at: int, problem: str) -> Broken:
        """The error for a place in the text."""
        line = self._text.count("\n", 0, at) + 1
        return Broken(f"line {line}: {problem}")

    def gap(self, at: int) -> int:
        """The end of the space and the comments that begin here."""
        found = _GAP.match(self._text, at)
        return found.end() if found else at

    def value(self, at: int, depth: int) -> Node:
        """The value that begins here."""
        if depth > _DEPTH:
            raise self.broken(at, f"more than {_DEPTH} levels deep")
        match self._text[at : at + 1]:
            case "{":
                return self._container(at, depth, "object", "}")
            case "[":
                return self._container(at, depth, "list", "]")
            case '"':
                return self._string(at)
        found = _WORD.match(self._text, at)
        if not found:
            raise self.broken(at, "a value is missing")
        return Node(at, found.end(), "value", found[0])

    def _string(self, at: int) -> Node:
        found = _STRING.match(self._text, at)
        try:
            if found:
                json.loads(found[0])
                return Node(at, found.end(), "value", found[0])
        except ValueError:
            pass
        raise self.broken(at, "this is not a string")

    def _container(self, at: int, depth: int, kind: str, close: str) -> Node:
        children = tuple(self._entries(at, depth, kind, close))
        last = at
        if children:
            last = max(children[-1].comma, children[-1].end - 1)
        end = self.gap(last + 1)
        return Node(at, end + 1, kind, "", children)

    def _entries(self, at: int, depth: int, kind: str, close: str) -> Iterator[Child]:
        here = self.gap(at + 1)
        while self._text[here : here + 1] != close:
            start, key = here, None
            if kind == "object":
                key, here = self._key(here)
            node = self.value(here, depth + 1)
            here = self.gap(node.end)
            comma = here if self._text[here : here + 1] == "," else -1
            if comma < 0 and self._text[here : here + 1] != close:
                raise self.broken(here, f"a comma or {close} is missing")
            yield Child(key, start, node, comma)
            here = self.gap(here + 1) if comma >= 0 else here

    def _key(self, at: int) -> tuple[str, int]:
        name = self._string(at)
        colon = self.gap(name.end)
        if self._text[colon : colon + 1] != ":":
            raise self.broken(colon, "a colon is missing")
        return json.loads(name.raw), self.gap(colon + 1)
