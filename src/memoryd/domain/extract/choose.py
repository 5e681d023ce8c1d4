"""Choosing: few statements that together say most, each something the others do not. Pure."""

from collections.abc import Sequence
from typing import Final

from memoryd.domain.event import EventRole
from memoryd.domain.extract.candidates import Candidate
from memoryd.domain.extract.cues import Kind
from memoryd.domain.extract.terms import overlap

MOST: Final = 7
FEWEST: Final = 3
_POOL: Final = 60  # only so many of the best are compared with each other
SAME: Final = 0.72  # statements that share more of their terms say the same
_ENOUGH: Final = 0.42  # beyond the fewest, a statement must add at least this


def choose(
    candidates: Sequence[Candidate], before: Sequence[frozenset[str]], most: int = MOST
) -> list[Candidate]:
    """At most so many candidates, the best first, by worth and by novelty."""
    pool = sorted(candidates, key=lambda c: (-c.score, c.place))[:_POOL]
    value = {
        c.place: c.score - 0.35 * max((overlap(c.terms, old) for old in before), default=0.0)
        for c in pool
    }
    closest = dict.fromkeys(value, 0.0)
    chosen: list[Candidate] = []
    kinds: set[tuple[Kind, bool]] = set()
    events: dict[int, int] = {}
    while pool and len(chosen) < most:
        best, best_gain = None, 0.0
        for c in pool:
            gain = value[c.place] - 0.6 * closest[c.place] - 0.06 * events.get(c.event, 0)
            if (c.kind, c.role == EventRole.USER) not in kinds:
                gain += 0.12
            gain = round(gain, 6)
            if best is None or gain > best_gain:
                best, best_gain = c, gain
        if best is None or (len(chosen) >= FEWEST and best_gain < _ENOUGH) or best_gain < 0.0:
            break
        chosen.append(best)
        kinds.add((best.kind, best.role == EventRole.USER))
        events[best.event] = events.get(best.event, 0) + 1
        for c in pool:
            closest[c.place] = max(closest[c.place], overlap(c.terms, best.terms))
        pool = [c for c in pool if c is not best and closest[c.place] <= SAME]
    return chosen
