"""The order of what search found: one score from many signs. Pure.

Owns the weights, all in one table, and the reasons that `explain` shows. The index gives, for
each candidate and each term of the question, how well the term fits the text (BM25); everything
else is decided here:

1. A term counts where it fits best: in the text, in who spoke, or in the turns around a short
   turn, whose words a conversation leaves out ("How was the trip?" "Great!"). The other places
   count for a part.
2. A candidate that has more of the question's terms gets more (coverage).
3. What kind of turn it is: long output and the harness's own words count less than what people
   and agents say.
4. What is said around it: the best that the turns near it, in the same session, have for each
   term.
5. The time: turns inside a period that the question names are lifted; if wanted, new over old.

Then near-duplicates go behind what they repeat, and, if wanted, no session fills the list alone.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from memoryd.domain.document import Head, Kind
from memoryd.domain.event import EventRole
from memoryd.domain.when import Period


class Weights(NamedTuple):
    """How much each sign counts. The defaults serve small talk and coding sessions alike."""

    who: float = 7.0  # a term that names the speaker, beside a term in the text
    previous: float = 0.4  # a term in the turn before, for a short turn
    next: float = 0.4  # a term in the turn after, for a short turn
    second: float = 0.5  # share of those two for the turn but one
    mix: float = 0.5  # share of the places in which a term fits less well than in its best
    short: int = 600  # characters up to which a turn takes from its neighbours
    giving: int = 1_000  # characters up to which a turn gives to its neighbours
    coverage: float = 0.3  # power of the share of terms that a candidate has
    around: float = 0.3  # the best of the turns near it
    around_coverage: float = 1.5  # power of the share of terms that they have
    reach: int = 8  # how many turns near reaches, to each side
    period: float = 2.0  # inside a period that the question names
    period_slack_ms: int = 3 * 86_400_000  # people speak of things for some days
    tool: float = 0.9  # output of tools
    system: float = 0.5  # words of the harness, not of people or agents
    node: float = 0.9  # a node: its words are those of the events below it
    grip: float = 0.8  # a grip: an excerpt of an event that is found itself
    long: float = 0.15  # power of the discount for long texts
    long_from: int = 8_000  # characters at which that discount begins to be felt
    alike: int = 7  # of 8 numbers of the sketch shared: a near-duplicate
    repeated: float = 0.5  # what is left of a near-duplicate's score


DEFAULT: Final = Weights()


class Candidate(NamedTuple):
    """A found document: per term of the question, how well its text fits."""

    head: Head
    fits: tuple[float, ...]


class Pool(NamedTuple):
    """Everything that the index says about a question."""

    candidates: list[Candidate]
    tokens: tuple[str, ...]  # the term of each column; empty: one column for all terms together
    rarity: tuple[float, ...]  # how much each column counts for coverage
    speakers: Mapping[str, float]  # terms that name a speaker, and how rare that is
    documents: int  # in the whole index
    more: bool = False  # whether there may be further candidates, behind these


class Ranked(NamedTuple):
    """A candidate in its place, with the parts of its score and the factors on them."""

    head: Head
    score: float
    terms: float = 0.0
    around: float = 0.0
    kind: float = 1.0
    time: float = 1.0
    repeated: float = 1.0

    @property
    def reasons(self) -> dict[str, float]:
        """What the score is made of, by name."""
        return dict(zip(self._fields[2:], self[2:], strict=True))


class Wishes(NamedTuple):
    """What the caller wants beyond the best first."""

    periods: Sequence[Period] = ()
    half_life_ms: int = 0  # with a value: a document that is so much older counts half
    now_ms: int = 0
    per_session: int = 0  # with a value: so many of a session come first, the others behind


def rank(pool: Pool, wishes: Wishes, weights: Weights = DEFAULT) -> list[Ranked]:
    """All candidates that fit at all, best first."""
    scorer = _Scorer(pool, weights)
    timed = bool(wishes.periods or wishes.half_life_ms)
    ranked = []
    for candidate in pool.candidates:
        own = scorer.own(candidate)
        if own <= 0:
            continue
        head = candidate.head
        around = weights.around * scorer.around(candidate)
        kind = kind_factor(head, weights)
        time = _time_factor(head, wishes, weights) if timed else 1.0
        ranked.append(Ranked(head, (own + around) * kind * time, own, around, kind, time))
    ranked.sort(key=_order)
    ranked = _repeated_behind(ranked, weights)
    return spread(ranked, wishes.per_session, lambda r: r.head.session)


def kind_factor(head: Head, weights: Weights = DEFAULT) -> float:
    """How much a document of this kind and length counts."""
    factor = math.pow(1 + head.length / weights.long_from, -weights.long)
    if head.kind == Kind.EVENT:
        if head.role == EventRole.TOOL:
            return factor * weights.tool
        return factor * weights.system if head.role == EventRole.SYSTEM else factor
    if head.kind == Kind.NODE:
        return factor * weights.node
    return factor * weights.grip if head.kind == Kind.GRIP else factor


def rarity(documents: int, having: int) -> float:
    """How much a term tells that so many of all documents have (the idf of BM25)."""
    return math.log(1 + (documents - having + 0.5) / (having + 0.5))


class _Scorer:
    """Looks at one candidate with its neighbours in mind."""

    def __init__(self, pool: Pool, weights: Weights) -> None:
        self._weights = weights
        self._tokens = pool.tokens
        self._rarity = pool.rarity
        self._all = sum(pool.rarity) or 1.0
        self._speakers = pool.speakers
        self._places: dict[str, dict[int, Candidate]] = {}
        for candidate in pool.candidates:
            head = candidate.head
            if head.session and head.kind == Kind.EVENT:
                self._places.setdefault(head.session, {})[head.place] = candidate

    def own(self, candidate: Candidate) -> float:
        """What the terms give to a candidate, in its text, its speaker and beside it."""
        weights = self._weights
        if not self._tokens:
            return self._own_total(candidate)
        lists = self._beside(candidate.head)
        lists.append(candidate.fits)
        named = self._named(candidate.head) if self._speakers else ()
        if any(named):
            lists.append(named)
        if len(lists) == 1:
            best, rest = candidate.fits, 0.0
        else:
            best = tuple(map(max, *lists))
            rest = sum(map(sum, lists)) - sum(best)
        score = sum(best) + weights.mix * rest
        return score * math.pow(self._coverage(best), weights.coverage)

    def _own_total(self, candidate: Candidate) -> float:
        """The same where there is one figure for all terms together."""
        weights, head = self._weights, candidate.head
        total = candidate.fits[0]
        lent = [fits[0] for fits in self._beside(head)]
        if lent:
            best = max(total, *lent)
            total = best + weights.mix * (total + sum(lent) - best)
        if self._speakers:
            total += weights.who * sum(self._speakers.get(token, 0.0) for token in head.who)
        return total

    def around(self, candidate: Candidate) -> float:
        """What the turns near a candidate, itself among them, have together."""
        head, reach = candidate.head, self._weights.reach
        others = self._places.get(head.session) if head.kind == Kind.EVENT else None
        best = candidate.fits
        if not self._tokens and (others is None or len(others) == 1):
            return best[0]
        if others and len(others) > 1:
            if len(others) > 2 * reach:
                places = range(head.place - reach, head.place + reach + 1)
                near = [others[place].fits for place in places if place in others]
            else:
                near = [c.fits for p, c in others.items() if abs(p - head.place) <= reach]
            best = tuple(map(max, *near)) if len(near) > 1 else best
        return sum(best) * math.pow(self._coverage(best), self._weights.around_coverage)

    def _coverage(self, fits: Sequence[float]) -> float:
        if all(fits):
            return 1.0
        return sum(r for r, fit in zip(self._rarity, fits, strict=True) if fit > 0) / self._all

    def _named(self, head: Head) -> tuple[float, ...]:
        """What the question's terms give for naming the speaker."""
        factor, who = self._weights.who, head.who
        return tuple(
            factor * self._speakers.get(token, 0.0) if token in who else 0.0
            for token in self._tokens
        )

    def _beside(self, head: Head) -> list[tuple[float, ...]]:
        """What short turns next to a short turn lend it."""
        weights = self._weights
        others = self._places.get(head.session)
        if not others or not head.place or len(others) == 1 or head.length > weights.short:
            return []
        found = []
        for step, share in ((1, 1.0), (2, weights.second)):
            for place, weight in (
                (head.place - step, weights.previous),
                (head.place + step, weights.next),
            ):
                other = others.get(place)
                if other is not None and other.head.length <= weights.giving:
                    found.append(tuple(weight * share * fit for fit in other.fits))
        return found


def _time_factor(head: Head, wishes: Wishes, weights: Weights) -> float:
    factor = 1.0
    slack = weights.period_slack_ms
    if any(p.start_ms <= head.time_ms < p.end_ms + slack for p in wishes.periods):
        factor += weights.period
    if wishes.half_life_ms:
        age = max(0, wishes.now_ms - head.time_ms)
        factor *= math.exp(-math.log(2) * age / wishes.half_life_ms)
    return factor


def _order(ranked: Ranked) -> tuple[float, int, str]:
    # the newer of two that fit equally well; the id settles the rest
    return -ranked.score, -ranked.head.time_ms, ranked.head.id


def _repeated_behind(ranked: list[Ranked], weights: Weights) -> list[Ranked]:
    """The list with every near-duplicate of a better one put down.

    Two sketches that differ in one number share one of their two smallest, so that only what is
    filed under these is compared.
    """
    filed: dict[int, list[tuple[int, ...]]] = {}
    found, changed = [], False
    for item in ranked:
        sketch = item.head.sketch
        first = sketch[:2]
        others = [other for number in first if number in filed for other in filed[number]]
        if others and _alike(sketch, others, weights.alike):
            factor = weights.repeated
            found.append(item._replace(score=item.score * factor, repeated=factor))
            changed = True
            continue
        found.append(item)
        for number in first:
            filed.setdefault(number, []).append(sketch)
    return sorted(found, key=_order) if changed else found


def _alike(sketch: tuple[int, ...], others: list[tuple[int, ...]], most: int) -> bool:
    limit = min(most, len(sketch))
    numbers = frozenset(sketch)
    return any(len(o) <= len(sketch) + 1 and len(numbers.intersection(o)) >= limit for o in others)


def spread(ranked: list[Ranked], most: int, group: Callable[[Ranked], str]) -> list[Ranked]:
    """The list with at most so many of each group in front, the others behind, in order."""
    if not most:
        return ranked
    seen: Counter[str] = Counter()
    front: list[Ranked] = []
    behind: list[Ranked] = []
    for item in ranked:
        name = group(item)
        seen[name] += 1
        (front if not name or seen[name] <= most else behind).append(item)
    return front + behind
