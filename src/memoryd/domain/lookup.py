"""Finding the nodes that speak of a question by the words they share. Pure.

Words are compared by their stems. A word counts the more, the fewer of the nodes compared have
it, and less if every coding conversation says it; a second mention adds less than the first. The
keywords of a node stand in the order of their weight, so the first of them count as several
mentions and the last as hardly one. The score of a node does not depend on how well the others
do, so that nodes found below different parents can be compared.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from math import log
from typing import Final, NamedTuple

from memoryd.domain.extract.terms import COMMON_TERMS, stem, terms
from memoryd.domain.extract.vocabulary import ASKING
from memoryd.domain.toc import Node


class SearchField(IntEnum):
    """A part of a node; the numbers are those on the wire."""

    TITLE = 1
    SUMMARY = 2
    BULLETS = 3
    KEYWORDS = 4


ALL_FIELDS: Final = frozenset(SearchField)
_ASKING_TERMS: Final = frozenset(map(stem, ASKING))
_HALF: Final = 1.5  # mentions with which a word has half of its weight
_COMMON: Final = 0.5  # what a word of every coding conversation counts
# as if the nodes compared were some of many: few siblings say little about what is rare
_OTHERS, _OTHERS_HAVING = 10, 5
_LEADING, _FALL = 2.0, 32  # what the first keyword counts, and the rank at which it is half of that


class Passage(NamedTuple):
    """One text of a node, and the terms in it."""

    field: SearchField
    text: str
    grip_ids: tuple[str, ...]
    terms: tuple[str, ...]
    weight: float  # how many mentions a term in it stands for


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
    found = [_passage(field.TITLE, node.title), _passage(field.SUMMARY, node.summary)]
    found += [_passage(field.BULLETS, bullet.text, bullet.grip_ids) for bullet in node.bullets]
    for rank, word in enumerate(node.keywords):
        weight = _LEADING / (1 + rank / _FALL)
        found.append(Passage(field.KEYWORDS, word, (), tuple(dict.fromkeys(terms(word))), weight))
    return tuple(passage for passage in found if passage.text)


def _passage(field: SearchField, text: str, grip_ids: tuple[str, ...] = ()) -> Passage:
    return Passage(field, text, grip_ids, tuple(terms(text)), 1.0)


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
    asked = asked_terms(question)
    held: list[tuple[Node, Mapping[str, float]]] = []
    looked = 0
    for node in nodes if asked else ():
        looked += 1
        mentions = _mentions(asked, read(node), fields)
        if mentions:
            held.append((node, mentions))
    spread = Counter(term for _, mentions in held for term in mentions)
    weights = {term: _weight(term, looked, spread[term]) for term in sorted(asked)}
    total = sum(weights.values())
    ranked = [(round(_score(mentions, weights) / total, 9), node) for node, mentions in held]
    ranked.sort(key=lambda r: (-r[0], -r[1].start_ms, r[1].node_id))
    found = [
        Found(node, score, _matches([p for p in read(node) if p.field in fields], weights))
        for score, node in ranked[: limit or None]
    ]
    return found, len(ranked)


def asked_terms(question: str) -> frozenset[str]:
    """What a question is about: its terms, without those that it only asks with if others are left."""
    asked = frozenset(terms(question))
    return asked - _ASKING_TERMS or asked


def _weight(term: str, looked: int, having: int) -> float:
    """How much a term says, of which so many of the nodes looked at have it."""
    share = _COMMON if term in COMMON_TERMS else 1.0
    return share * log(1 + (looked + _OTHERS) / (having + _OTHERS_HAVING))


def _score(mentions: Mapping[str, float], weights: Mapping[str, float]) -> float:
    return sum(weights[t] * m / (m + _HALF) for t in weights if (m := mentions.get(t, 0.0)))


def _mentions(
    asked: frozenset[str], texts: Sequence[Passage], fields: frozenset[SearchField]
) -> Mapping[str, float]:
    counted: dict[str, float] = {}
    for passage in texts:
        if passage.field in fields and not asked.isdisjoint(passage.terms):
            for term in passage.terms:
                if term in asked:
                    counted[term] = counted.get(term, 0.0) + passage.weight
    return counted


def _matches(texts: Sequence[Passage], weights: Mapping[str, float]) -> tuple[Match, ...]:
    total = sum(weights.values())
    found = []
    for field, text, grip_ids, held, _ in texts:
        score = sum(weight for term, weight in weights.items() if term in held)
        if score:
            found.append(Match(field, text, grip_ids, score / total))
    found.sort(key=lambda m: -m.score)
    return tuple(found)
