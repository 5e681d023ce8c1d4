"""One page of the readable copy, and words of conversations as Markdown that shows them. Pure."""

import re
from typing import Final, NamedTuple

_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>#|&!~])")
_LEADING: Final = re.compile(r"^([-+=])")


class Page(NamedTuple):
    """One file of the tree; ``chapter`` is its title in SUMMARY.md, so deep under its ``part``."""

    path: str
    text: str
    part: str
    chapter: str
    depth: int = 0


def escaped(text: str) -> str:
    """The text on one line, without a meaning in Markdown, HTML or for mdbook."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def escaped_lines(text: str) -> list[str]:
    """The lines of a text, each without a meaning; blanks at their beginnings go."""
    return [_LEADING.sub(r"\\\1", escaped(line)) for line in text.strip().splitlines()]
