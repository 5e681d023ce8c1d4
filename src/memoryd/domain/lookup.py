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
    limit: int = 0,
    read: Callable[[Node], Sequence[Passage]] = passages,
) -> tuple[list[Found], int]:
    """The nodes that share words with a question, best first, at most so many; and how many do.

    The later of equals comes first. A node that shares nothing is not held on to.
    """
    asked = frozenset(terms(question))
    held: list[tuple[Node, Counter[str]]] = []
    looked = 0
    for node in nodes if asked else ():
        looked += 1
        mentions = _mentions(asked, read(node), fields)
        if mentions:
            held.append((node, mentions))
    spread = Counter(term for _, mentions in held for term in mentions)
    weights = {term: log(1 + (looked + 1) / (spread[term] + 0.5)) for term in sorted(asked)}
    total = sum(weights.values())
    ranked = [(_score(mentions, weights) / total, node) for node, mentions in held]
    ranked.sort(key=lambda r: (-r[0], -r[1].start_ms, r[1].node_id))
    top = max(1.0, ranked[0][0]) if ranked else 1.0
    found = [
        Found(node, score / top, _matches([p for p in read(node) if p.field in fields], weights))
        for score, node in ranked[: limit or None]
    ]
    return found, len(ranked)


def _score(mentions: Counter[str], weights: Mapping[str, float]) -> float:
    return sum(weights[t] * (1 - _MORE ** mentions[t]) / _MORE for t in weights if t in mentions)


def _mentions(
    asked: frozenset[str], texts: Sequence[Passage], fields: frozenset[SearchField]
) -> Counter[str]:
    counted: Counter[str] = Counter()
    for passage in texts:
        if passage.field in fields:
            for term in asked & passage.terms.keys():
                counted[term] += passage.terms[term]
    return counted


def _matches(texts: Sequence[Passage], weights: Mapping[str, float]) -> tuple[Match, ...]:
    total = sum(weights.values())
    found = []
    for field, text, grip_ids, held in texts:
        score = sum(weight for term, weight in weights.items() if term in held)
        if score:
            found.append(Match(field, text, grip_ids, score / total))
    found.sort(key=lambda m: -m.score)
    return tuple(found)
