"""Terms: what words are compared by, across inflection, identifiers and scripts. Pure.

Owns what counts as a word that says nothing, and how words are cut and stemmed. A term is a
stem; two texts share a subject if they share terms. Scripts without spaces give pairs of
characters, so that no dictionary is needed.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

import Stemmer

from memoryd.domain.extract.vocabulary import COMMON, STOP

_CONTRACTION: Final = re.compile(r"(?<=\w)['’](?=(?:t|s|re|ve|ll|d|m)\b)", re.IGNORECASE)
_WORD: Final = re.compile(r"[^\W_]+")
_HUMPED: Final = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
UNSPACED: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f]+"
)
_LATIN: Final = Stemmer.Stemmer("english")
_CYRILLIC: Final = Stemmer.Stemmer("russian")


def words(text: str) -> list[str]:
    """The words of a text, lower case; identifiers are cut into their words, "don't" is one."""
    if "'" in text or "\u2019" in text:
        text = _CONTRACTION.sub("", text)
    if _HUMPED.search(text):
        text = _HUMP.sub(" ", text)
    return _WORD.findall(text.lower())


def stem(word: str) -> str:
    """What one lower-case word of an alphabet is compared by."""
    found: str = (_LATIN if word.isascii() or not _is_cyrillic(word) else _CYRILLIC).stemWord(word)
    return found


def _is_cyrillic(word: str) -> bool:
    return "\u0400" <= word[0] <= "\u04ff"


def _stems(found: list[str]) -> list[str]:
    stems: list[str] = _LATIN.stemWords(found)
    return stems


def terms_of(found: Sequence[str], *, plain: bool) -> list[str]:
    """The terms among words in their order, without stop words; ``plain`` says all are ASCII."""
    if plain:
        return _stems([w for w in found if w not in STOP and len(w) > 1])
    kept: list[str] = []
    for word in found:
        if word in STOP:
            continue
        if word.isascii():
            if len(word) > 1:
                kept.append(_LATIN.stemWord(word))
        else:
            kept.extend(_foreign(word))
    return kept


def terms(text: str) -> list[str]:
    """The terms of a text in their order, repeated as often as they are said, without stop words."""
    return terms_of(words(text), plain=text.isascii())


def _foreign(word: str) -> Iterable[str]:
    """The terms of a word that is not ASCII."""
    if _is_cyrillic(word):
        yield stem(word)
        return
    at = 0
    for run in UNSPACED.finditer(word):
        if at < run.start():
            yield _LATIN.stemWord(word[at : run.start()])
        piece, at = run.group(), run.end()
        yield from (piece[i : i + 2] for i in range(max(1, len(piece) - 1)))
    if at < len(word) and (at or len(word) > 1):
        yield _LATIN.stemWord(word[at:])


COMMON_TERMS: Final = frozenset(_LATIN.stemWords(sorted(COMMON)))


def overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """How much of the smaller set lies in the other, 0 to 1."""
    if not one or not other:
        return 0.0
    return len(one & other) / min(len(one), len(other))
