"""The fence: text of a conversation inside a prompt, so that none of it can end the fence. Pure.

Whatever looks like one of the fence's own tags loses its angle bracket to a look-alike, and the
tag carries a mark that follows from all of the text inside, which nobody can know who writes it.
"""

import re
from hashlib import blake2b
from typing import Final, NamedTuple

from memoryd.domain.inert import shown
from memoryd.domain.segment import tokens

STAND_IN: Final = "\u2039"  # for the "<" of a tag in the text
CUT: Final = "\n[... cut ...]\n"
_TAGS: Final = "transcript|event|context|nodes|node|bullet"
# also the wide and the small form, and whatever does not print between bracket and name
_BRACKET: Final = "[<\uff1c\ufe64]"
_LOOKS_LIKE: Final = re.compile(rf"{_BRACKET}(?=[^\w<\uff1c\ufe64]*(?:{_TAGS}))", re.IGNORECASE)
_MARK_BYTES: Final = 8
_LONGEST_TOKEN: Final = 4  # characters of a token, at most, as tokens are counted here


class Fenced(NamedTuple):
    """Text inside a fence, and the name of the tag that begins and ends it."""

    text: str
    tag: str


def inert(text: str) -> str:
    """The text with nothing in it that looks like a tag of the fence, or that does not print."""
    return _LOOKS_LIKE.sub(STAND_IN, shown(text))


def fenced(name: str, body: str) -> Fenced:
    """A body, whose texts are `inert`, inside a fence."""
    mark = blake2b(body.encode(), digest_size=_MARK_BYTES).hexdigest()
    tag = f"{name}-{mark}"
    return Fenced(f"<{tag}>\n{body}\n</{tag}>", tag)


def bounded(text: str, most: int) -> str:
    """The two ends of a text that is far beyond so many tokens, found without reading it all."""
    ends = most * _LONGEST_TOKEN
    return text if len(text) <= 2 * ends else text[:ends] + CUT + text[-ends:]


def clipped(text: str, most: int) -> str:
    """The beginning and the end of a text, so that it has about as many tokens at most."""
    size = tokens(text)
    if size <= most:
        return text
    length = len(text) * most // size
    while length:
        head = length * 2 // 3
        short = text[:head] + CUT + text[len(text) - (length - head) :]
        if tokens(short) <= most + tokens(CUT):
            return short
        length = length * 4 // 5
    return ""


def shares(sizes: list[int], most: int) -> int:
    """The largest limit for each, so that all of them together have ``most`` at most."""
    left, rest = most, len(sizes)
    for size in sorted(sizes):
        if size * rest > left:
            return left // rest
        left, rest = left - size, rest - 1
    return max(sizes, default=0)
