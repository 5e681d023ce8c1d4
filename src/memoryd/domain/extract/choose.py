"""Choosing: few statements that together say most, each something the others do not. Pure."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from memoryd.domain.event import EventRole
from memoryd.domain.extract.candidates import Candidate
from memoryd.domain.extract.cues import Kind
from memoryd.domain.extract.terms import overlap

MOST: Final = 7
FEWEST: Final = 3
_POOL: Final = 60  # only so many of the best are compared with each other
SAME: Final = 0.72  # statements that share more of their terms say the same
_FIRST: Final = 0.12  # what the first statement of its kind has over others
ENOUGH: Final = 0.33  # beyond the fewest, a bullet must add at least this
_LEAST: Final = 0.15  # and anything else that is told, this


class Choice(NamedTuple):
    """A chosen candidate, and how much it adds to those chosen before it."""

    candidate: Candidate
    gain: float


def choose(
    candidates: Sequence[Candidate], before: Sequence[frozenset[str]], most: int
) -> list[Choice]:
    """At most so many candidates, the best first, by worth and by novelty."""
    pool = sorted(candidates, key=lambda c: (-c.score, c.place))[:_POOL]
    value = {c.place: c.score for c in pool}
    if before:
        for c in pool:
            value[c.place] -= 0.35 * max(overlap(c.terms, old) for old in before)
    closest = dict.fromkeys(value, 0.0)
    chosen: list[Choice] = []
    kinds: set[tuple[Kind, bool]] = set()
    events: dict[int, int] = {}
    while pool and len(chosen) < most:
        best, best_gain = pool[0], -9.0
        for c in pool:
            gain = value[c.place] - 0.75 * closest[c.place]
            if gain + _FIRST > best_gain:
                gain -= 0.06 * events.get(c.event, 0)
                gain += 0.0 if (c.kind, c.role == EventRole.USER) in kinds else _FIRST
                gain = round(gain, 6)
                if gain > best_gain:
                    best, best_gain = c, gain
        if best_gain < (_LEAST if len(chosen) >= FEWEST else 0.0):
            break
        chosen.append(Choice(best, best_gain))
        kinds.add((best.kind, best.role == EventRole.USER))
        events[best.event] = events.get(best.event, 0) + 1
        for c in pool:
            closest[c.place] = max(closest[c.place], overlap(c.terms, best.terms))
        pool = [c for c in pool if c is not best and closest[c.place] <= SAME]
    return chosen


def split(chosen: Sequence[Choice], most: int) -> tuple[list[Candidate], list[Candidate]]:
    """The choices that are worth a bullet, at most so many, and the others."""
    count = 0
    while count < min(most, len(chosen)) and (count < FEWEST or chosen[count].gain >= ENOUGH):
        count += 1
    candidates = [choice.candidate for choice in chosen]
    return candidates[:count], candidates[count:]
