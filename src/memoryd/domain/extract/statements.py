"""Statements: what each sentence of a message is worth by itself. Pure."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from memoryd.domain.event import Event, EventRole
from memoryd.domain.extract.cues import (
    ASIDE,
    EMPTY,
    OPENER,
    PASTED,
    Kind,
    cues_of,
    kind_of,
)
from memoryd.domain.extract.prose import Form, Piece, pieces
from memoryd.domain.extract.terms import terms_of, words
from memoryd.domain.extract.vocabulary import STOP

CONTENT_MIN: Final = 2  # terms; a statement with fewer says next to nothing
_SPOKEN: Final = 8  # statements of a message that someone may well have typed
_TYPED: Final = 3  # statements that a user writes before pasting something
_TERSE: Final = 4  # terms; fewer say little
_LONG: Final = 28  # terms; more are hard to read
_OWN: Final = frozenset({"i", "my", "we", "our", "im", "ive", "were", "weve"})

_WORTH: Final = {
    Kind.FACT: 0.15,
    Kind.ASK: 0.55,
    Kind.DECISION: 0.55,
    Kind.CHANGE: 0.5,
    Kind.FAILURE: 0.4,
    Kind.CAUSE: 0.5,
    Kind.OPEN: 0.35,
}
_FORM: Final = {
    Form.PROSE: 0.0,
    Form.ITEM: -0.05,
    Form.HEADING: -0.4,
    Form.ROW: -0.4,
    Form.OUTPUT: 0.0,
}


class Draft(NamedTuple):
    """A statement before it is weighed against the others."""

    event: int
    piece: Piece
    kind: Kind
    role: int
    terms: tuple[str, ...]
    base: float


def statements(number: int, event: Event, share: float) -> Iterator[Draft]:
    """The statements of a message; ``share`` is what its place among the others adds to each."""
    metadata, role = event.metadata, event.role
    if "compaction" in metadata or role == EventRole.SYSTEM:
        share -= 0.3
    if "subagent" in metadata or role == EventRole.TOOL:
        share -= 0.15
    chat = "speaker" in metadata
    user = role == EventRole.USER and not chat
    found = list(pieces(event.text))
    pasted = range(_TYPED, len(found) - 2) if user and len(found) > _SPOKEN else range(0)
    for place, piece in enumerate(found):
        spoken = words(piece.text)
        held = tuple(dict.fromkeys(terms_of(spoken, plain=piece.text.isascii())))
        if len(held) < CONTENT_MIN:
            continue
        worth = share + _manner(piece.text, spoken, len(held))
        if user:
            kind, piece, own = _of_user(piece, spoken, typed=place not in pasted)  # noqa: PLW2901
            worth += own + (0.2 if place == 0 else 0.0)
        else:
            kind, own = _of_agent(piece, spoken)
            worth += own + (_of_chat(piece.text, spoken) if chat else 0.0)
        yield Draft(number, piece, kind, role, held, worth + _WORTH[kind] + _FORM[piece.form])


def _manner(text: str, spoken: list[str], size: int) -> float:
    """What the way a statement is put adds to its worth."""
    # more words than spaces: a path, an identifier, a figure
    worth = 0.1 if "`" in text or len(spoken) > text.count(" ") + 1 else 0.0
    if size < _TERSE:
        worth -= 0.25
    elif size > _LONG:
        worth -= 0.15
    if text.endswith((":", "：", ",", "，")):
        worth -= 0.35
    return worth


def _said(text: str) -> str:
    """A statement without its opener, to be matched with cues."""
    opener = OPENER.match(text)
    said = text[opener.end() :] if opener else text
    return said.replace("\u2019", "'")


def _of_agent(piece: Piece, spoken: list[str]) -> tuple[Kind, float]:
    """What an agent's statement does, and what that adds to its worth."""
    cues = cues_of(spoken, piece.text)
    worth = 0.07 * (len(cues) - 1) if cues else 0.0
    said = _said(piece.text)
    if EMPTY.match(said):
        worth -= 0.9
    elif ASIDE.match(said):
        worth -= 0.3
    if said.endswith(("?", "？")):
        worth -= 0.2
    return kind_of(cues), worth


def _of_user(piece: Piece, spoken: list[str], *, typed: bool) -> tuple[Kind, Piece, float]:
    """What a user's statement does, as what it is to be seen, and what that adds to its worth."""
    text = piece.text
    cues = cues_of(spoken, text)
    worth = 0.07 * (len(cues) - 1) if cues else 0.0
    worth += 0.25 if typed else -0.1
    if len(spoken) >= _TERSE and text.isascii() and STOP.isdisjoint(spoken):
        worth -= 0.3  # a line of a log, not a sentence
    if PASTED.match(text):
        return Kind.FAILURE, Piece(text, Form.OUTPUT), worth
    said = _said(text)
    if EMPTY.match(said):
        worth -= 0.3
    return kind_of(cues, said if typed else ""), piece, worth


def _of_chat(text: str, spoken: list[str]) -> float:
    """What counts where people talk: what they tell of themselves, not what they ask or praise."""
    worth = 0.3 if not _OWN.isdisjoint(spoken) else 0.0
    if text.endswith("?"):
        worth -= 0.35
    elif text.endswith("!"):
        worth -= 0.1
    return worth - 0.3 if text.startswith("[") else worth
