"""Titles: what a person would write over it. Pure."""

import re
from collections.abc import Sequence
from typing import Final

from memoryd.domain.event import EventRole
from memoryd.domain.extract.candidates import Candidate
from memoryd.domain.extract.condense import TITLE_LIMIT, headline
from memoryd.domain.extract.cues import EMPTY, Kind, cues_of, is_outcome, kind_of
from memoryd.domain.extract.prose import Form
from memoryd.domain.extract.terms import overlap, terms, words

UNTITLED: Final = "Nothing was said"
_SHORT: Final = 14
_ROOM: Final = 48  # a headline up to here leaves room for a second
_TELLING: Final = 3  # terms that a second part must have
_SAME: Final = 0.5
_WORTH: Final = {
    Kind.CHANGE: 0.4,
    Kind.ASK: 0.25,
    Kind.DECISION: 0.2,
    Kind.CAUSE: 0.1,
    Kind.OPEN: -0.2,
}
_PERIOD_WORTH: Final = {Kind.CHANGE: 0.4, Kind.DECISION: 0.35, Kind.CAUSE: 0.15, Kind.ASK: 0.15}
_MACHINERY: Final = frozenset(("agent", "agents", "subagent", "subagents"))  # not what they did
_REFERRING: Final = re.compile(
    r"(?:it|this|that|these|those|they|he|she|here|there|yes|no|both|all|which|same|es|das|dies)\b|(?:这|那|它|これ|それ|あれ)",
    re.IGNORECASE,
)


def title_of(chosen: Sequence[Candidate]) -> str:
    """The segment's title: what was asked for or what came of it, and both if both fit."""
    drafts = []
    for candidate in chosen:
        text = headline(candidate.piece.text, spoken=candidate.piece.form is not Form.OUTPUT)
        drafts.append((-round(_worth(candidate, text), 6), candidate.place, text))
    drafts.sort()
    enough = min(-drafts[0][0], -0.6 * drafts[0][0]) if drafts else 0.0
    return joined([text for worth, _, text in drafts if text and -worth >= enough]) or UNTITLED


def _worth(candidate: Candidate, text: str) -> float:
    """How well a statement serves as a title."""
    worth = candidate.score + _WORTH.get(candidate.kind, 0.0) - _flaws(text)
    worth -= 0.15 * (len(text) > _ROOM)
    worth -= 0.1 * (len(text) < len(candidate.piece.text) // 2)
    worth -= 0.8 * (candidate.role == EventRole.TOOL or candidate.piece.form >= Form.ROW)
    return worth


def _flaws(text: str) -> float:
    """What a headline loses by the way it reads: it leans on something else, announces, is a scrap."""
    flaws = 0.35 * (_REFERRING.match(text) is not None)
    flaws += 0.4 * (EMPTY.match(text.replace("\u2019", "'")) is not None)
    return flaws + 0.3 * (len(text) < _SHORT)


def telling(text: str) -> float:
    """How well a headline tells what came of a period: outcomes and decisions before the rest."""
    spoken = words(text)
    kind = kind_of(cues_of(spoken, text), text)
    if kind is Kind.CHANGE and text.isascii() and not is_outcome(spoken):
        kind = Kind.FACT
    worth = _PERIOD_WORTH.get(kind, 0.0) - _flaws(text) - 0.2 * text.endswith("?")
    return worth - 0.3 * (not _MACHINERY.isdisjoint(spoken))


def joined(parts: Sequence[str]) -> str:
    """The parts with semicolons between them, as many as fit and say something new; at most two."""
    for number, part in enumerate(parts):
        said = frozenset(terms(part))
        title = part[:TITLE_LIMIT].rstrip()
        for other in parts[number + 1 :]:
            words = frozenset(terms(other))
            fits = len(title) + len(other) + 2 <= TITLE_LIMIT
            if fits and len(words) >= _TELLING and overlap(words, said) < _SAME:
                return f"{title}; {other}"
        return title
    return ""
