"""Digests: a day, week, month or year in the words of the nodes below it. Derived.

Owns how a longer period is put into words: bullets are the children's, with their grips, chosen
for importance and so that no subject is lost; the title names the one or two things that mattered.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from memoryd.domain.extract.condense import sentence
from memoryd.domain.extract.keywords import merged
from memoryd.domain.extract.terms import overlap, terms
from memoryd.domain.extract.titles import UNTITLED, joined, telling
from memoryd.domain.summarize import Digest
from memoryd.domain.toc import Bullet, Level, Node

SUMMARY_LIMIT: Final = 800
_MOST: Final = {Level.DAY: 7, Level.WEEK: 7, Level.MONTH: 9, Level.YEAR: 9}
_KEYWORDS: Final = {Level.DAY: 192, Level.WEEK: 256, Level.MONTH: 384, Level.YEAR: 640}
_SHORT: Final = 36  # characters; a title of such parts holds two
_FAR: Final = 0.7  # a second part must be worth at least this share of the first
_SAME: Final = 0.72


class _Line(NamedTuple):
    child: int
    place: int
    bullet: Bullet
    terms: frozenset[str]


def digest(level: Level, children: Sequence[Node]) -> Digest:
    """What happened in a period, from the nodes right below it in the order of time."""
    importance = _importance(children)
    lines = [
        _Line(number, place, bullet, frozenset(terms(bullet.text)))
        for number, child in enumerate(children)
        for place, bullet in enumerate(child.bullets)
    ]
    chosen = _chosen(lines, importance, _MOST.get(level, 7))
    chosen.sort(key=lambda found: (found.child, found.place))
    order = sorted(range(len(children)), key=lambda n: (-importance[n], n))
    lists = [(child.keywords, importance[n]) for n, child in enumerate(children)]
    return Digest(
        _title(children, importance),
        _story(children, order),
        tuple(found.bullet for found in chosen),
        merged(lists, _KEYWORDS.get(level, 40)),
    )


def _importance(children: Sequence[Node]) -> list[float]:
    """How much each child matters, 0.3 to 1: by its bullets' weight and its size."""
    most = max((child.event_count for child in children), default=0) or 1
    values = []
    for child in children:
        top = sorted((bullet.weight for bullet in child.bullets), reverse=True)[:3]
        mean = sum(top) / 3
        values.append(round(0.3 + 0.45 * mean + 0.25 * (child.event_count / most) ** 0.5, 6))
    return values


def _chosen(lines: Sequence[_Line], importance: Sequence[float], most: int) -> list[_Line]:
    """The best lines, each child's first before any child's second."""
    pool = list(lines)
    closest = [0.0] * len(pool)
    taken: dict[int, int] = {}
    chosen: list[_Line] = []
    alive = set(range(len(pool)))
    while alive and len(chosen) < most:
        best, best_gain = -1, 0.0
        for number in sorted(alive):
            found = pool[number]
            gain = found.bullet.weight * (0.5 + importance[found.child])
            gain -= 0.5 * closest[number] + 0.35 * taken.get(found.child, 0)
            gain = round(gain, 6)
            if best < 0 or gain > best_gain:
                best, best_gain = number, gain
        found = pool[best]
        chosen.append(found)
        taken[found.child] = taken.get(found.child, 0) + 1
        alive.discard(best)
        for number in sorted(alive):
            closest[number] = max(closest[number], overlap(pool[number].terms, found.terms))
            if closest[number] > _SAME:
                alive.discard(number)
    return chosen


def _title(children: Sequence[Node], importance: Sequence[float]) -> str:
    """What mattered most, in one line: parts of the children's titles, rather short ones.

    A part counts more if other children speak of the same, and if it tells what came of it.
    """
    spoken = Counter(
        term
        for child in children
        for term in frozenset(terms("\n".join((child.title, *child.keywords))))
    )
    drafts = []
    for number, child in enumerate(children):
        for place, part in enumerate(child.title.split("; ")):
            held = dict.fromkeys(terms(part))
            shared = sum(spoken[term] for term in held) / (len(held) + 2.0) / len(children)
            worth = importance[number] + shared - 0.15 * place - 0.003 * max(0, len(part) - _SHORT)
            worth += telling(part)
            if part and part != UNTITLED:
                drafts.append((-round(worth, 6), number, part))
    drafts.sort()
    enough = min(-drafts[0][0], -_FAR * drafts[0][0]) if drafts else 0.0
    return joined([part for worth, _, part in drafts if -worth >= enough]) or UNTITLED


def _story(children: Sequence[Node], order: Sequence[int]) -> str:
    """The children's titles in the order of time, leaving out the least when there are many."""
    kept: list[int] = []
    size = 0
    said: list[frozenset[str]] = []
    for number in order:
        title = children[number].title
        words = frozenset(terms(title))
        if title == UNTITLED or any(overlap(words, other) > _SAME for other in said):
            continue
        if size + len(title) + 2 <= SUMMARY_LIMIT:
            kept.append(number)
            said.append(words)
            size += len(title) + 2
    return " ".join(sentence(children[number].title) for number in sorted(kept))
