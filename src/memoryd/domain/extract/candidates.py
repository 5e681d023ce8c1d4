"""Candidates: every statement of a segment that could stand in its summary, with its worth. Pure."""

from collections import Counter
from collections.abc import Iterator, Sequence
from math import log
from typing import Final, NamedTuple

from memoryd.domain.event import Event, EventRole
from memoryd.domain.extract.cues import Kind
from memoryd.domain.extract.outputs import REPORTING, outcomes
from memoryd.domain.extract.prose import Piece
from memoryd.domain.extract.statements import Draft, statements
from memoryd.domain.extract.terms import COMMON_TERMS

CANDIDATE_LIMIT: Final = 600  # of one segment; what comes later in a monstrous one is left out


class Candidate(NamedTuple):
    """A statement, who made it, what it does and how much it matters."""

    event: int  # its place in the list of events
    place: int  # its place among the candidates, which is the order of speaking
    piece: Piece
    kind: Kind
    role: int
    terms: frozenset[str]
    score: float


def gather(events: Sequence[Event]) -> list[Candidate]:
    """Every candidate of a segment in the order of speaking; what is repeated, once."""
    last_reply = max(
        (n for n, e in enumerate(events) if e.role == EventRole.ASSISTANT and e.text.strip()),
        default=-1,
    )
    drafts: list[Draft] = []
    told: set[tuple[str, ...]] = set()
    for number, event in enumerate(events):
        if len(drafts) >= CANDIDATE_LIMIT:
            break
        for draft in _drafts(number, event, 0.15 if number == last_reply else 0.0):
            if draft.terms not in told:
                told.add(draft.terms)
                drafts.append(draft)
    return _weighed(drafts[:CANDIDATE_LIMIT])


def _drafts(number: int, event: Event, share: float) -> Iterator[Draft]:
    """The statements of one event."""
    tool = event.metadata.get("tool_name", "")
    if event.role == EventRole.TOOL and not REPORTING.fullmatch(tool):
        return outcomes(number, event)
    return statements(number, event, share)


def _weighed(drafts: Sequence[Draft]) -> list[Candidate]:
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
