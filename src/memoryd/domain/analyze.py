"""Text to the tokens that search compares. Pure; the one place that defines analysis.

Documents and questions go through the same mill, so that what was said in one form is found in
another::

    running, Runs                run                         English stems, without stop words
    getUserName, get_user_name   getusernam get user name    whole, spelled as one, and split
    src/app/main.py              srcappmainpi src app main py
    TS2687                       ts2687 ts 2687              error codes
    v1.20.3                      1.20.3 1.20                 versions keep their dots
    3f2a91c0d4e5                 3f2a91c0d4e5 3f2a91c        hashes, found by their beginning
    数据库                       数 据 库 数据 据库          scripts without spaces, by pairs
    Café                         cafe                        case and accents folded

A token never holds a space, so the tokens of a text can be joined by spaces and split again.
Whoever changes what comes out here raises `VERSION`: an index of another version is made anew.
"""

import re
import unicodedata
import zlib
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import Stemmer

VERSION: Final = 1
TOKEN_LIMIT: Final = 64
HASH_PREFIX: Final = 7
SKETCH_SIZE: Final = 8
_SKETCH_TOKENS: Final = 256

_STOP_WORDS: Final = """
a about also am an and are arent as at be been being but by can cant could couldnt did didnt
do does doesnt doing done dont for from had hadnt has hasnt have havent having he her hers
hes him his i id if ill im in into is isnt it its itself ive just lets may me might must my
no nor not of on or our ours shall she shes should so than that thats the their theirs them
then there these they theyre this those to too us very was wasnt we were werent weve will
with wont would wouldnt you your youre yours youve
"""
STOP: Final = frozenset(_STOP_WORDS.split())

# Chinese and Japanese signs, kana, Hangul: written without spaces
_CJK: Final = (
    "\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_JOINTS: Final = "['\u2019._:/\\\\@+-]+"
_COMPOUND: Final = re.compile(rf"\w+(?:{_JOINTS}\w+)*")
_JOINT: Final = re.compile(_JOINTS)
_RUN: Final = re.compile(f"[{_CJK}]+|[^{_CJK}]+")
_HAS_CJK: Final = re.compile(f"[{_CJK}]")
_HUMP: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\dA-Za-z_]+")
_VERSION: Final = re.compile(r"[vV]?([0-9]+(?:\.[0-9]+)+)")
_HASH: Final = re.compile(r"(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{7,64}")
_ACCENT: Final = re.compile("[\u0300-\u036f]")
_stem: Final = Stemmer.Stemmer("english").stemWord


def tokens(text: str) -> list[str]:
    """The tokens of a text, in its order."""
    found: list[str] = []
    for compound in compounds(text):
        found += split(compound)
    return found


def compounds(text: str) -> list[str]:
    """The words, names, paths and numbers of a text, as they are written."""
    return _COMPOUND.findall(text)


def spans(text: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Where each compound of a text stands, and its tokens."""
    for match in _COMPOUND.finditer(text):
        yield *match.span(), split(match[0])


@lru_cache(maxsize=16_384)
def split(compound: str) -> tuple[str, ...]:
    """The tokens of one compound; the whole comes first, its parts after it."""
    if compound.isascii() and compound.isalpha() and (compound.islower() or compound.istitle()):
        return _word(compound.lower())
    folded = fold(compound)
    if _HAS_CJK.search(folded):
        return tuple(token for run in _RUN.findall(folded) for token in _run(run))
    version = _VERSION.fullmatch(folded)
    if version:
        return _version(version[1])
    parts = [part for part in _JOINT.split(folded) if part.strip("_")]
    if len(parts) <= 1:
        return _name(parts[0]) if parts else ()
    bare = folded.replace("\u2019", "'").lower()
    if "'" in bare and bare.replace("'", "").isalpha():
        return _word(_without_apostrophe(bare))
    split_up = [token for part in parts for token in _name(part)]
    whole = "".join(parts).replace("_", "").lower()
    return (*_word(whole), *split_up) if len(whole) <= TOKEN_LIMIT else tuple(split_up)


def fold(text: str) -> str:
    """The text with accents and compatibility forms folded away; case is kept."""
    if text.isascii():
        return text
    apart = _ACCENT.sub("", unicodedata.normalize("NFKD", text))
    return unicodedata.normalize("NFC", apart)


def sketch(found: list[str]) -> tuple[int, ...]:
    """A few numbers that two texts share in the measure in which they share their tokens."""
    numbers = {zlib.crc32(token.encode()) for token in found[:_SKETCH_TOKENS]}
    return tuple(sorted(numbers)[:SKETCH_SIZE])


def _run(run: str) -> tuple[str, ...]:
    """A run of signs without spaces, or what stands between two of them."""
    if not _HAS_CJK.match(run):
        return tuple(token for part in compounds(run) for token in split(part))
    pairs = (run[place : place + 2] for place in range(len(run) - 1))
    return (*run, *pairs)


def _version(number: str) -> tuple[str, ...]:
    parts = number.split(".")
    return tuple(".".join(parts[:count])[:TOKEN_LIMIT] for count in range(len(parts), 1, -1))


def _without_apostrophe(word: str) -> str:
    head, _, tail = word.partition("'")
    return head if tail == "s" else word.replace("'", "")


def _name(part: str) -> tuple[str, ...]:
    """A name without joints but underscores: whole, and its humps."""
    lower = part.lower()
    humps = [hump.lower() for hump in _HUMP.findall(part)]
    if humps == [lower]:
        return _word(lower)
    whole = lower.replace("_", "")
    if _HASH.fullmatch(whole):
        return (whole, whole[:HASH_PREFIX]) if len(whole) > HASH_PREFIX else (whole,)
    split_up = tuple(token for hump in humps for token in _word(hump))
    one = _word(whole)  # stemmed as well, because somebody may write it without humps
    return split_up if len(whole) > TOKEN_LIMIT or split_up == one else (*one, *split_up)


def _word(word: str) -> tuple[str, ...]:
    if word in STOP:
        return ()
    if len(word) > TOKEN_LIMIT:
        return (word[:TOKEN_LIMIT],)
    return (_stem(word),) if word.isascii() else (word,)
