"""Candidates: every statement of a segment that could stand in its summary, with its worth. Pure."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from math import log
from typing import Final, NamedTuple

from memoryd.domain.event import Event, EventRole
from memoryd.domain.extract.cues import (
    ASIDE,
    EMPTY,
    FAILED,
    OPENER,
    OUTCOME,
    Kind,
    cues_of,
    kind_of,
)
from memoryd.domain.extract.prose import Form, Piece, pieces, shortened, visible
from memoryd.domain.extract.terms import COMMON_TERMS, terms, terms_of, words
from memoryd.domain.extract.vocabulary import STOP

CANDIDATE_LIMIT: Final = 600  # of one segment; what comes later in a monstrous one is left out
OUTPUT_LIMIT: Final = 12_000  # characters of one tool result that are searched for outcomes
OUTPUT_LINES: Final = 4  # outcomes taken from one tool result

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
# Tools by what they do: look at things, plan, or report what another agent did.
_LOOKING: Final = re.compile(
    r"read|grep|glob|^ls$|list|search|find|view|fetch|open|cat|write|edit|patch|replace|notebook",
    re.IGNORECASE,
)
PLANNING: Final = re.compile(r"todo|plan", re.IGNORECASE)
_REPORTING: Final = re.compile(r"Task|Agent|TaskOutput|AgentOutputTool|wait_agent")
_PURPOSE: Final = re.compile(r"^description: (.{8,200})$", re.MULTILINE)
_SPOKEN: Final = 8  # statements of a message that someone may well have typed
_SPECIFIC: Final = re.compile(r"`|\w[._/-]\w|[a-z][A-Z]|\b[A-Z]{3,}\b|\d")
_CONTENT_MIN: Final = 2
_TYPED: Final = 3  # statements that a user writes before pasting something
_TERSE: Final = 4  # terms; fewer say little
_LONG: Final = 28  # terms; more are hard to read
_LINE_MIN: Final = 8
_LEFTOVERS: Final = 40


class Candidate(NamedTuple):
    """A statement, who made it, what it does and how much it matters."""

    event: int  # its place in the list of events
    place: int  # its place among the candidates, which is the order of speaking
    piece: Piece
    kind: Kind
    role: int
    terms: frozenset[str]
    score: float


class _Draft(NamedTuple):
    """A statement before it is weighed against the others."""

    event: int
    piece: Piece
    kind: Kind
    role: int
    terms: tuple[str, ...]
    base: float


def gather(events: Sequence[Event]) -> list[Candidate]:
    """Every candidate of a segment in the order of speaking."""
    last_reply = max(
        (n for n, e in enumerate(events) if e.role == EventRole.ASSISTANT and e.text.strip()),
        default=-1,
    )
    drafts: list[_Draft] = []
    told: set[tuple[str, ...]] = set()
    for number, event in enumerate(events):
        if len(drafts) >= CANDIDATE_LIMIT:
            break
        for draft in _drafts(number, event):
            if draft.terms in told:
                continue
            told.add(draft.terms)
            drafts.append(draft._replace(base=draft.base + 0.15) if number == last_reply else draft)
    return _weighed(drafts[:CANDIDATE_LIMIT])


def _drafts(number: int, event: Event) -> Iterator[_Draft]:
    """The statements of one event."""
    tool = event.metadata.get("tool_name", "")
    if event.role == EventRole.TOOL and not _REPORTING.fullmatch(tool):
        yield from _outcomes(number, event)
        return
    user = event.role == EventRole.USER
    aside = -0.3 if "compaction" in event.metadata or event.role == EventRole.SYSTEM else 0.0
    aside -= 0.15 if "subagent" in event.metadata or tool else 0.0
    found = list(pieces(event.text))
    for place, piece in enumerate(found):
        # the middle of a long message of a user was pasted rather than said
        said = user and not (len(found) > _SPOKEN and _TYPED <= place < len(found) - 2)
        draft = _draft(number, event.role, piece, user=said)
        if draft is not None:
            first = 0.2 if said and place == 0 else 0.0
            yield draft._replace(base=draft.base + aside + first)


def _draft(number: int, role: int, piece: Piece, *, user: bool) -> _Draft | None:
    """A statement with what it is worth by itself; None if it says next to nothing."""
    text = piece.text
    if role == EventRole.USER and OUTCOME.match(text):
        piece = piece._replace(form=Form.OUTPUT)
    spoken = words(text)
    held = tuple(dict.fromkeys(terms_of(spoken, plain=text.isascii())))
    if len(held) < _CONTENT_MIN:
        return None
    opener = OPENER.match(text)
    said = (text[opener.end() :] if opener else text).replace("\u2019", "'")
    cues = cues_of(spoken, text)
    failed = piece.form is Form.OUTPUT and FAILED.search(text) is not None
    kind = Kind.FAILURE if failed else kind_of(cues, said, user=user)
    base = _WORTH[kind] + _FORM[piece.form] + 0.07 * max(0, len(cues) - 1)
    if user:
        base += 0.25
    elif role == EventRole.USER:
        base -= 0.1
    if EMPTY.match(said):
        base -= 0.3 if user else 0.9
    elif ASIDE.match(said):
        base -= 0.3
    if (
        role == EventRole.USER
        and len(spoken) >= _TERSE
        and STOP.isdisjoint(spoken)
        and text.isascii()
    ):
        base -= 0.3  # a line of a log, not a sentence
    return _Draft(number, piece, kind, role, held, base + _manner(text, len(held)))


def _manner(text: str, size: int) -> float:
    """What the way a statement is put adds to its worth."""
    worth = 0.1 if _SPECIFIC.search(text) else 0.0
    if size < _TERSE:
        worth -= 0.25
    elif size > _LONG:
        worth -= 0.15
    if text.endswith((":", "：", ",", "，")):
        worth -= 0.35
    return worth


def _outcomes(number: int, event: Event) -> Iterator[_Draft]:
    """What a tool's output says went wrong, or how it ended; and what the call was for."""
    tool = event.metadata.get("tool_name", "")
    if PLANNING.search(tool):
        return
    failing = "error" in event.metadata
    call, _, output = event.text[:OUTPUT_LIMIT].partition("\n\n")
    if purpose := _PURPOSE.search(call):
        yield _output(number, event.role, Piece(purpose[1].strip(), Form.OUTPUT), Kind.FACT, 0.1)
    if _LOOKING.search(tool) and not failing:
        return
    if len(event.text) > OUTPUT_LIMIT:
        output += "\n" + event.text[-OUTPUT_LIMIT:]
    count = 0
    for found in OUTCOME.finditer(output or call):
        line = shortened(found.group().strip(), 300)
        if len(line) < _LINE_MIN or line not in event.text:
            continue
        failed = FAILED.search(line) is not None
        kind = Kind.FAILURE if failed else Kind.FACT
        base = (0.2 if failed else 0.1) + 0.15 * failing
        yield _output(number, event.role, Piece(line, Form.OUTPUT), kind, base)
        count += 1
        if count >= OUTPUT_LINES:
            return


def _output(number: int, role: int, piece: Piece, kind: Kind, base: float) -> _Draft:
    held = tuple(dict.fromkeys(terms(piece.text)))
    return _Draft(number, piece, kind, role, held, base)


def _weighed(drafts: Sequence[_Draft]) -> list[Candidate]:
    """Weigh every statement by how much of what the whole segment speaks of it holds."""
    said: dict[str, set[int]] = {}
    for draft in drafts:
        for term in draft.terms:
            said.setdefault(term, set()).add(draft.event)
    times: Counter[str] = Counter(term for draft in drafts for term in draft.terms)
    heft = {
        term: (0.3 if term in COMMON_TERMS else 1.0) * (log(len(where)) + 0.5 * log(times[term]))
        for term, where in said.items()
    }
    central = [
        sum(heft[term] for term in draft.terms) / (len(draft.terms) + 6.0) for draft in drafts
    ]
    most = max(central, default=0.0) or 1.0
    return [
        Candidate(
            d.event,
            place,
            d.piece,
            d.kind,
            d.role,
            frozenset(d.terms),
            round(d.base + 0.6 * value / most, 6),
        )
        for place, (d, value) in enumerate(zip(drafts, central, strict=True))
    ]


def leftovers(events: Sequence[Event]) -> list[Candidate]:
    """Whatever can be quoted from a segment that says nothing in sentences: its first lines.

    Tool calls come first, which begin with what was called on what.
    """
    found: list[Candidate] = []
    seen: set[str] = set()
    for number, event in enumerate(events):
        if len(found) >= _LEFTOVERS:
            break
        text = _first_line(event.text)
        if not text or text in seen:
            continue
        seen.add(text)
        kind = Kind.FAILURE if "error" in event.metadata else Kind.FACT
        size = len(terms(text))
        score = 0.1 * (kind is Kind.FAILURE) + 0.02 * min(size, 6)
        if size < _CONTENT_MIN or PLANNING.search(event.metadata.get("tool_name", "")):
            score = 0.0
        piece = Piece(text, Form.OUTPUT)
        found.append(
            Candidate(
                number, len(found), piece, kind, event.role, frozenset({text}), round(score, 6)
            )
        )
    return found


def _first_line(text: str) -> str:
    """The first line that holds a letter or a digit, or else anything at all; bounded."""
    lines = [line for part in visible(text[:OUTPUT_LIMIT]) for line in part.splitlines()]
    best = next((line for line in lines if any(map(str.isalnum, line))), text[:OUTPUT_LIMIT])
    return shortened(best.strip(), 200).strip()
