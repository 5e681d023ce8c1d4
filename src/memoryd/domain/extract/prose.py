"""Sentences: where a message's statements begin and end. Pure.

Owns what is prose and what is not: Markdown is looked through, code, diffs, numbered listings and
markup that programs put into messages are left out. Every piece is a verbatim slice of the text.
"""

import re
from collections.abc import Iterator
from enum import IntEnum
from typing import Final, NamedTuple

# What is looked at of one event: the rest of a longer text is never read, so that the largest
# event costs no more than a long message. Messages matter at both ends, tool output too.
HEAD: Final = 24_000
TAIL: Final = 8_000
SENTENCE_LIMIT: Final = 400  # a longer statement is cut where it pauses

_WRAPPED: Final = 50  # a shorter line was ended by hand, a longer one may have been wrapped
_LINE: Final = re.compile(r"[^\n\r]+")
_NOISE: Final = re.compile(
    r"<(system-reminder|command-name|command-message|command-args|local-command-stdout|local-command-stderr"
    r"|local-command-caveat|ide_opened_file|ide_selection|environment_context|user_instructions|INSTRUCTIONS"
    r"|permissions instructions|collaboration_mode|skills_instructions|task-notification|bash-input|bash-stdout|bash-stderr"
    r"|tool_use_error)\b[^>]*>.*?(?:</\1>|\Z)",
    re.DOTALL,
)
_HEADING: Final = re.compile(r"\s*#{1,6}\s+(?=\S)")
_STRONG: Final = re.compile(r"\s*(?:\d+[.)]\s+|[-*•]\s+)?(\*\*|__)([^*_]{3,90}?)[:.]?\1[:.]?\s*$")
_ITEM: Final = re.compile(r"\s*(?:>\s*)*(?:[-*+•‣▪–✓✔✗✘]|\d{1,3}[.)、])\s+(?:\[[ xX]\]\s+)?")
_QUOTE: Final = re.compile(r"\s*(?:>\s?)+")
_LISTING: Final = re.compile(r"\s*\d+\s*(?:[→│|]|\t)|\s*L?\d+:\s{2,}|.*:\d+[:-]\s")
_DIFF: Final = re.compile(
    r"(?:\+\+\+|---|@@|diff --git|index [0-9a-f]{6})|[+-](?=[\t{}()<@/*#\w]|\s{2})(?!\d)"
)
_CODE: Final = re.compile(
    r"\s*(?:import [\w{*\"'][^ ]*(?:;|$| from| as)|from \S+ import|export (?:default|const|function|class|async|\{|\w+=)|const [\w{\[]+|let \w+ =|var \w+ ="
    r"|def \w+\(|class \w+[:({]|return [^ ]*[;(){}\[\]]|function \w*\(|async (?:def|function|\()|await \w+[.(]|(?:\} )?else[\s:{]*$|(?:if|for|while) \("
    r"|(?:public|private|protected|static) \w+ \w|#include|#!|//|/\*|\*/|\* @|</?[a-zA-Z][^>]*>\s*$|[}\])]|@\w+\(|\$ |\"[\w$-]+\":|(?:/[\w.@-]+){3,}\s)"
    r"|.*(?:[{;]|=>|\) =|\(\))\s*$"
)
_SYMBOL: Final = re.compile(r"[{}()\[\]<>=;|\\$&+\"^~]")
_RULE: Final = re.compile(r"[\s\-=_*|:+─━│┌┐└┘├┤═║╔╗╚╝.•~]*$")

_NO_END: Final = (
    r"(?<!\b[A-Z]\.)(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bvs\.)(?<!\b[DMN][rso]\.)(?<!\bcf\.)(?<!\bbzw\.)(?<!\bca\.)"
    r"(?<!\bz\.B\.)(?<!\bd\.h\.)(?<!\bFig\.)(?<!\bapprox\.)(?<!\betc\.)(?<!\bresp\.)(?<!\bincl\.)"
)
_END: Final = re.compile(
    rf"(?<![.!?…])[.!?…]++{_NO_END}[\"'”’»)\]*_`]*\s+(?=[^\sa-z])|[a-z)]{{2}}[.!?]{_NO_END}\s+(?=[a-z])"
    r"|[。！？｡]+[」』”’）)\]*_]*\s*|[।॥።։۔؟។။།]+\s*"
)
_PAUSE: Final = re.compile(r"[,;:，；：、—–)]\s*|\s")
_OPEN: Final = re.compile(r"[^.!?:。！？；;)\]]\s*$")


class Form(IntEnum):
    """How a piece stands in its message."""

    PROSE = 0
    ITEM = 1
    HEADING = 2
    ROW = 3
    OUTPUT = 4


class Piece(NamedTuple):
    """A statement: ``text`` stands verbatim in the event."""

    text: str
    form: Form


def visible(text: str) -> list[str]:
    """What is looked at of a text: all of it, or its head and its tail, without injected markup."""
    parts = [text] if len(text) <= HEAD + TAIL else [text[:HEAD], text[-TAIL:]]
    return [kept for part in parts for kept in _without_noise(part)]


def _without_noise(text: str) -> list[str]:
    """The stretches of a text between markup that programs put in."""
    if "<" not in text:
        return [text]
    kept, at = [], 0
    for noise in _NOISE.finditer(text):
        kept.append(text[at : noise.start()])
        at = noise.end()
    kept.append(text[at:])
    return [part for part in kept if part and not part.isspace()]


def pieces(text: str) -> Iterator[Piece]:
    """The statements of a message in their order."""
    for part in visible(text):
        for block, form in _blocks(part):
            yield from _sentences(block, form)


def _blocks(text: str) -> Iterator[tuple[str, Form]]:
    """Paragraphs, items and headings; what is neither is left out."""
    fenced = False
    start, end, form = -1, -1, Form.PROSE  # of the paragraph that may go on
    for found in _LINE.finditer(text):
        line = found.group()
        head = line.lstrip()[:3]
        if head in {"```", "~~~"}:
            fenced = not fenced
        elif not fenced:
            skip, kind = _form(line)
            if kind is None:
                continue
            if start >= 0:
                if (
                    kind is Form.PROSE
                    and form <= Form.ITEM
                    and _goes_on(text, end, found.start(), line)
                ):
                    end = found.end()
                    continue
                yield text[start:end], form
            start, end, form = found.start() + skip, found.end(), kind
            continue
        if start >= 0:
            yield text[start:end], form
            start = -1
    if start >= 0:
        yield text[start:end], form


def _goes_on(text: str, end: int, start: int, line: str) -> bool:
    """Whether a line continues the paragraph before it: that one was wrapped, not ended."""
    first = line.lstrip()[:1]
    return (
        text.count("\n", end, start) == 1
        and (first.islower() or first in "(`\"'")
        and _OPEN.match(text, max(0, end - 1), end) is not None
        and end - text.rfind("\n", 0, end) > _WRAPPED
    )


def _form(line: str) -> tuple[int, Form | None]:
    """How many characters of markup a line begins with, and its form; None for no prose."""
    first = line.lstrip()[:1]
    if not first.isalpha():
        if _RULE.match(line):
            return 0, None
        if heading := _HEADING.match(line):
            return heading.end(), Form.HEADING
        if strong := _STRONG.match(line):
            return strong.start(2), Form.HEADING
    if first == "|":
        return 0, Form.ROW
    mark = None if first.isalpha() else _ITEM.match(line) or _QUOTE.match(line)
    skip = mark.end() if mark else 0
    if looks_like_code(line[skip:] if skip else line):
        return 0, None
    return skip, Form.ITEM if mark and first != ">" else Form.PROSE


def looks_like_code(line: str) -> bool:
    """Whether a line is written for a machine: code, a diff, a numbered listing, JSON."""
    if _CODE.match(line) or _DIFF.match(line) or _LISTING.match(line):
        return True
    size = len(line)
    marks = len(_SYMBOL.findall(line))
    if marks * 9 > size:
        return True
    # a long unbroken run is a path or a hash, unless the script has no spaces
    return size > _WRAPPED and line.count(" ") * 30 < size and line.isascii()


def _sentences(block: str, form: Form) -> Iterator[Piece]:
    """Cut a block where its statements end."""
    if form >= Form.HEADING:
        yield from _bounded(block, form)
        return
    at = 0
    for end in _END.finditer(block):
        yield from _bounded(block[at : end.end()], form)
        at = end.end()
    if at < len(block):
        yield from _bounded(block[at:], form)


def _bounded(text: str, form: Form) -> Iterator[Piece]:
    """The statement without space around it; one that is too long is cut where it pauses."""
    text = text.strip()
    while text:
        part = shortened(text, SENTENCE_LIMIT)
        yield Piece(part, form)
        text = text[len(part) :].strip()


def shortened(text: str, limit: int) -> str:
    """The longest start of a text within a limit that ends at a pause; verbatim."""
    if len(text) <= limit:
        return text
    best = 0
    for pause in _PAUSE.finditer(text, limit // 2, limit):
        if best == 0 or not pause.group().isspace() or text[best - 1] not in ",;:，；：、—–)":
            best = pause.end()
    return text[: best or limit].rstrip()
