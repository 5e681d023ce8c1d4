"""Text that goes inside our fence, made so that none of it can end or imitate the fence. Pure.

Whoever reads the block is a model, which may take for a tag what no parser would: other letter
case, blanks, wide or small forms, letters of other alphabets that look alike. So a text is folded
to the letters that it seems to show, and what looks like a tag is found there:

- a bracket before a name that matters loses its place to `STAND_IN`: names of our own, of the
  harness around us, of the ways in which models are told of roles and call tools;
- the fence's own name is replaced wherever it stands without blanks, with or without a bracket.
"""

import re
import unicodedata
from bisect import bisect_left
from functools import lru_cache
from typing import Final, NamedTuple

STAND_IN: Final = "[no tag: "
NAME_STAND_IN: Final = "[memoryd fence]"

# what a model may read as "<", also as HTML, JSON and URLs spell it
_BRACKETS: Final = "<\u00ab\u02c2\u1438\u2039\u2329\u276c\u276e\u2770\u27e8\u27ea\u29fc\u3008\u300a\ufe3d\ufe3f\ufe64\uff1c"
_OPENING: Final = re.compile(
    rf"[{_BRACKETS}]|&lt;?|&#0*60;?|&#x0*3c;?|&lang;|\\u003c|\\x3c|%3c", re.IGNORECASE
)
# beginnings of tags that matter to us or to the harness around us, in letters alone
_TAGS: Final = ("memor", "systemreminder", "systemnotif", "userprompt", "sessionstart")
_NAME: Final = "memorydcontext"
_SEEN_AHEAD: Final = 40  # letters behind a bracket that are looked at
# beginnings of what calls a tool, answers a call, or begins another speaker's turn
_CALLS: Final = (
    "functioncall",
    "functionresult",
    "invoke",
    "parametername",
    "toolcall",
    "tooluse",
    "toolresult",
    "tooloutput",
    "systemprompt",
    "systemmessage",
    "imstart",
    "imend",
    "endoftext",
    "startheader",
    "endofturn",
    "startofturn",
)
_CALL_AHEAD: Final = 8  # a name space may stand before it
# whole tags of one plain word, which in other places is a word like any other
_ROLES: Final = re.compile(
    r"<(?=\s*/?\s*(?:system|human|user|assistant|developer|instructions?)\s*/?\s*>|<\s*/?\s*sys\s*>>)",
    re.IGNORECASE,
)

# digits and signs that pass for letters
_LEET: Final = dict(zip("0134578$@|", "oieastbsal", strict=True))
# Cyrillic, Greek and Armenian letters that show the shape of a Latin one
_SHAPES: Final = {
    "a": "\u0430\u03b1",
    "b": "\u0432\u044c\u03b2",
    "c": "\u0441\u03c2\u03f2",
    "d": "\u0501\u0434\u03b4",
    "e": "\u0435\u044d\u03b5",
    "g": "\u0581",
    "h": "\u043d\u0570",
    "i": "\u0456\u03b9",
    "j": "\u0458\u0575",
    "k": "\u043a\u03ba",
    "m": "\u043c\u03bc",
    "n": "\u043f\u03b7\u0578\u057c",
    "o": "\u043e\u03bf\u0585",
    "p": "\u0440\u03c1",
    "r": "\u0433\u044f",
    "s": "\u0455\u03c3",
    "t": "\u0442\u03c4",
    "u": "\u0438\u057d",
    "v": "\u03bd",
    "w": "\u03c9",
    "x": "\u0445\u03c7",
    "y": "\u0443\u03b3\u03c5",
}
_LOOK_ALIKES: Final = {**_LEET, **{c: shown for shown, all_ in _SHAPES.items() for c in all_}}
_ASCII: Final = {
    code: _LEET.get(chr(code)) or (chr(code).lower() if chr(code).isalpha() else None)
    for code in range(128)
}
_LETTER_NAMED: Final = re.compile(r"\b(?:LETTER|CAPITAL|SMALL) ([A-Z])\b")
_ANY: Final = "?"  # a letter that may look like any other
_GONE: Final = frozenset(("Cc", "Cf", "Cs", "Co", "Cn"))
_KEPT: Final = frozenset("\n\t")
_INVISIBLE: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0") | frozenset(
    map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))
)
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


class _Folded(NamedTuple):
    """The letters that a text seems to show, and where each of them stands."""

    letters: str
    places: list[int]


def inert(text: str) -> str:
    """The text without what does not print, and without anything that looks like a tag of ours."""
    text = _ROLES.sub(STAND_IN, shown(text))
    if text.isascii():
        letters = text.translate(_ASCII)
        if not any(tag in letters for tag in (*_TAGS, *_CALLS)):
            return text
    folded = _fold(text)
    cuts = [*_names(text, folded)]
    taken = [range(start, stop) for start, stop, _ in cuts]
    cuts += [c for c in _tags(text, folded) if not any(c[0] in span for span in taken)]
    kept, position = [], 0
    for start, stop, instead in sorted(cuts):
        kept += [text[position:start], instead]
        position = stop
    return "".join((*kept, text[position:]))


def shown(text: str) -> str:
    """The text as valid Unicode with nothing that does not print but newlines and tabs."""
    lines = "\n".join(text.splitlines())
    if lines.isascii():
        return _CONTROLS.sub("", lines)
    lines = lines.encode("utf-8", "replace").decode()
    return "".join(
        c
        for c in lines
        if c in _KEPT or (c not in _INVISIBLE and unicodedata.category(c) not in _GONE)
    )


def _fold(text: str) -> _Folded:
    letters: list[str] = []
    places: list[int] = []
    for place, sign in enumerate(text):
        for letter in _seems(sign):
            letters.append(letter)
            places.append(place)
    return _Folded("".join(letters), places)


@lru_cache(4096)
def _seems(sign: str) -> str:
    """The Latin letters, in lower case, that a character may be taken for; "" if for none."""
    shown = ""
    for part in unicodedata.normalize("NFKD", sign).casefold():
        if part.isascii() and part.isalpha():
            shown += part
        elif part in _LOOK_ALIKES:
            shown += _LOOK_ALIKES[part]
        elif not part.isascii() and unicodedata.category(part)[0] in "LNS":
            named = _LETTER_NAMED.search(unicodedata.name(part, ""))
            if named is not None:
                shown += named[1].lower()
            elif part.isalpha():
                shown += _ANY
    return shown


def _names(text: str, folded: _Folded) -> list[tuple[int, int, str]]:
    """Where the fence's name stands, in one piece, and what to put there."""
    found: list[tuple[int, int, str]] = []
    for first in _matches(folded.letters, _NAME):
        start, last = folded.places[first], folded.places[first + len(_NAME) - 1]
        piece = text[start : last + 1]
        if not any(c.isspace() for c in piece) and (not found or start >= found[-1][1]):
            found.append((start, last + 1, NAME_STAND_IN))
    return found


def _tags(text: str, folded: _Folded) -> list[tuple[int, int, str]]:
    """Where brackets stand that seem to begin a tag, and what to put there."""
    found: dict[int, tuple[int, int, str]] = {}
    for names, ahead in ((_TAGS, _SEEN_AHEAD), (_CALLS, _CALL_AHEAD)):
        places = sorted({p for tag in names for p in _matches(folded.letters, tag)})
        for bracket in _OPENING.finditer(text) if places else ():
            behind = bisect_left(folded.places, bracket.end())
            near = bisect_left(places, behind)
            if near < len(places) and places[near] <= behind + ahead:
                found[bracket.start()] = (bracket.start(), bracket.end(), STAND_IN)
    return list(found.values())


def _matches(letters: str, wanted: str) -> list[int]:
    """Where letters show a word, if half of them are certain."""
    pattern = _pattern(wanted)
    return [
        found.start()
        for found in pattern.finditer(letters)
        if 2 * found[1].count(_ANY) <= len(wanted)
    ]


@lru_cache(64)
def _pattern(wanted: str) -> re.Pattern[str]:
    return re.compile("(?=(" + "".join(f"[{letter}?]" for letter in wanted) + "))")
