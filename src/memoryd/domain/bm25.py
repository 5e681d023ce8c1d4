"""Ranking of short documents by BM25, exact, in memory. Derived.

Owns the cutting of text into words and the postings. A document that changes is put anew under
a new number; what stays behind is swept out when it is the larger part.
"""

import re
import unicodedata
from array import array
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from heapq import nlargest
from math import log
from typing import Any, Final, Generic, NamedTuple, TypeVar

_K1: Final = 1.2
_B: Final = 0.75
_MOST: Final = 0xFFFF
_SWEEP: Final = 1_000
_WORD: Final = re.compile(r"[^\W_]+")
_ASCII: Final = re.compile(r"[a-z0-9]+")
_DENSE: Final = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]+")

_K = TypeVar("_K", bound=Hashable)


class Query(NamedTuple):
    """What to look for: whole words, and beginnings of words."""

    words: tuple[str, ...]
    prefixes: tuple[str, ...]


def words(text: str) -> Iterable[str]:
    """The words of a text, folded; scripts without spaces are cut into pairs of characters."""
    if text.isascii():  # the usual case, and the fast one
        return _ASCII.findall(text.lower())
    return _folded(text)


def _folded(text: str) -> Iterator[str]:
    for match in _WORD.finditer(unicodedata.normalize("NFKC", text).casefold()):
        word = match[0]
        if word.isascii() or not _DENSE.search(word):
            yield word
            continue
        end = 0
        for run in _DENSE.finditer(word):
            if run.start() > end:
                yield word[end : run.start()]
            yield from _pairs(run[0])
            end = run.end()
        if end < len(word):
            yield word[end:]


def _pairs(run: str) -> Iterator[str]:
    if len(run) == 1:
        yield run
    for place in range(len(run) - 1):
        yield run[place : place + 2]


def parse(text: str) -> Query:
    """The words of a query; one that ends with ``*`` stands for all that begin so."""
    whole: list[str] = []
    prefixes: list[str] = []
    for chunk in text.split():
        found = list(words(chunk))
        if found and chunk.endswith("*"):
            prefixes.append(found.pop())
        whole += found
    return Query(tuple(dict.fromkeys(whole)), tuple(dict.fromkeys(prefixes)))


class Ranked(Generic[_K]):
    """Documents by key, found by their words. Not for several threads at once."""

    def __init__(self) -> None:
        self._numbers: dict[_K, int] = {}
        self._clear()

    def _clear(self) -> None:
        self._postings: dict[str, tuple[array[int], array[int]]] = {}
        self._keys: list[_K | None] = []
        self._lengths: array[int] = array("I")
        self._total = 0
        self._terms: list[str] | None = []

    def __len__(self) -> int:
        return len(self._numbers)

    def put(self, key: _K, counts: Mapping[str, int]) -> None:
        """Add a document, or change it: how often, weighted, it has each word."""
        self.remove(key)
        number = len(self._keys)
        self._numbers[key] = number
        self._keys.append(key)
        length = sum(counts.values())
        self._lengths.append(length)
        self._total += length
        for word, count in counts.items():
            posting = self._postings.get(word)
            if posting is None:
                posting = self._postings[word] = (array("I"), array("H"))
                if self._terms is not None:
                    insort(self._terms, word)
            posting[0].append(number)
            posting[1].append(min(count, _MOST))

    def remove(self, key: _K) -> None:
        """Take a document out, if it is there."""
        number = self._numbers.pop(key, None)
        if number is None:
            return
        self._keys[number] = None
        self._total -= self._lengths[number]
        if len(self._keys) > 2 * len(self._numbers) + _SWEEP:
            self._sweep()

    def loading(self) -> None:
        """Say that many documents will follow, so that terms are sorted once at the end."""
        self._terms = None

    def search(
        self,
        query: Query,
        limit: int,
        order: Callable[[_K], Any],
        wanted: Callable[[_K], bool] | None = None,
    ) -> list[tuple[_K, float]]:
        """The best documents that are wanted, the best first; ``order`` decides between equals."""
        scores: dict[int, float] = {}
        for word in query.words:
            posting = self._postings.get(word)
            if posting is not None:
                self._add(scores, *posting)
        for prefix in query.prefixes:
            counts: Counter[int] = Counter()
            for word in self._beginning(prefix):
                counts.update(dict(zip(*self._postings[word], strict=True)))
            self._add(scores, counts.keys(), counts.values())
        keys = self._keys
        found = [
            (key, score)
            for number, score in scores.items()
            if (key := keys[number]) is not None and (wanted is None or wanted(key))
        ]
        if len(found) > limit:
            least = nlargest(limit, [score for _, score in found])[-1]
            found = [item for item in found if item[1] >= least]
        return sorted(found, key=lambda item: (-item[1], order(item[0])))[:limit]

    def _add(
        self, scores: dict[int, float], numbers: Collection[int], counts: Iterable[int]
    ) -> None:
        """Add what one word gives to the scores of the documents that have it, so often."""
        total = len(self._numbers)
        keys, lengths = self._keys, self._lengths
        among = len(numbers)
        if len(keys) > total:
            among = sum(keys[number] is not None for number in numbers)
        if not among:
            return
        rarity = log(1 + (total - among + 0.5) / (among + 0.5)) * (_K1 + 1)
        fixed = _K1 * (1 - _B)
        slope = _K1 * _B * total / max(self._total, 1)
        get = scores.get
        for number, count in zip(numbers, counts, strict=True):
            share = count / (count + fixed + slope * lengths[number])
            scores[number] = get(number, 0.0) + rarity * share

    def _beginning(self, prefix: str) -> Iterator[str]:
        if self._terms is None:
            self._terms = sorted(self._postings)
        terms = self._terms
        for place in range(bisect_left(terms, prefix), len(terms)):
            if not terms[place].startswith(prefix):
                return
            yield terms[place]

    def _sweep(self) -> None:
        old = self._postings
        keys, lengths = self._keys, self._lengths
        moved = {number: place for place, number in enumerate(self._numbers.values())}
        self._clear()
        self._keys = [keys[number] for number in moved]
        self._lengths = array("I", (lengths[number] for number in moved))
        self._total = sum(self._lengths)
        self._numbers = {key: moved[number] for key, number in self._numbers.items()}
        for word, (numbers, counts) in old.items():
            kept = [(moved[n], c) for n, c in zip(numbers, counts, strict=True) if n in moved]
            if kept:
                kept.sort()
                self._postings[word] = (
                    array("I", (n for n, _ in kept)),
                    array("H", (c for _, c in kept)),
                )
        self._terms = None
