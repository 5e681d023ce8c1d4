"""Finding the nodes that speak of a question by the words they share. Pure.

Words are compared by their stems. A word counts the more, the fewer of the nodes compared have
it, and a second mention adds less than the first.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from math import log
from typing import Final, NamedTuple

from memoryd.domain.extract.terms import terms
from memoryd.domain.toc import Node


class SearchField(IntEnum):
    """A part of a node; the numbers are those on the wire."""

    TITLE = 1
    SUMMARY = 2
    BULLETS = 3
    KEYWORDS = 4


ALL_FIELDS: Final = frozenset(SearchField)
_MORE: Final = 0.5  # how much of its weight a word keeps back for being said again


class Passage(NamedTuple):
    """One text of a node, and the terms in it."""

    field: SearchField
    text: str
    grip_ids: tuple[str, ...]
    terms: Counter[str]


class Match(NamedTuple):
    """A text that shares words with a question: which share of it, from 0 to 1."""

    field: SearchField
    text: str
    grip_ids: tuple[str, ...]
    score: float


class Found(NamedTuple):
    """A node that shares words with a question, and where."""

    node: Node
    score: float
    matches: tuple[Match, ...]


def passages(node: Node) -> tuple[Passage, ...]:
    """The texts of a node."""
    field = SearchField
    texts = [(field.TITLE, node.title, ()), (field.SUMMARY, node.summary, ())]
    texts += [(field.BULLETS, b.text, b.grip_ids) for b in node.bullets]  # type: ignore[misc]
    texts += [(field.KEYWORDS, word, ()) for word in node.keywords]
    return tuple(Passage(f, text, grips, Counter(terms(text))) for f, text, grips in texts if text)


def search(
    nodes: Iterable[Node],
    question: str,
    fields: frozenset[SearchField] = ALL_FIELDS,
    read: Callable[[Node], Sequence[Passage]] = passages,
) -> list[Found]:
    """The nodes that share words with a question, best first; the later of equals first."""
    asked = frozenset(terms(question))
    looked = [(n, [p for p in read(n) if p.field in fields]) for n in nodes] if asked else []
    said = [_mentions(asked, texts) for _, texts in looked]
    spread = Counter(term for mentions in said for term in mentions)
    weights = {term: log(1 + (len(looked) + 1) / (spread[term] + 0.5)) for term in asked}
    total = sum(weights.values())
    found = []
    for (node, texts), mentions in zip(looked, said, strict=True):
        if mentions:
            score = sum(weights[t] * (1 - _MORE**n) / _MORE for t, n in mentions.items())
            matches = _matches(texts, weights, total)
            found.append(Found(node, score / total, matches))
    found.sort(key=lambda f: (-f.score, -f.node.start_ms, f.node.node_id))
    top = max((f.score for f in found), default=1.0)
    return [f._replace(score=f.score / max(top, 1.0)) for f in found]


def _mentions(asked: frozenset[str], texts: Sequence[Passage]) -> Counter[str]:
    counted: Counter[str] = Counter()
    for passage in texts:
        for term in asked & passage.terms.keys():
            counted[term] += passage.terms[term]
    return counted


def _matches(
    texts: Sequence[Passage], weights: Mapping[str, float], total: float
) -> tuple[Match, ...]:
    found = []
    for field, text, grip_ids, held in texts:
        score = sum(weights[term] for term in weights.keys() & held.keys())
        if score:
            found.append(Match(field, text, grip_ids, score / total))
    found.sort(key=lambda m: -m.score)
    return tuple(found)
