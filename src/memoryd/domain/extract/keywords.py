"""Keywords: the names and technical terms by which a stretch of conversation is found again. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from math import log
from typing import Final

from memoryd.domain.extract.terms import UNSPACED, stem
from memoryd.domain.extract.vocabulary import COMMON, EVERYWHERE, STOP

KEYWORD_LIMIT: Final = 96
_LONGEST: Final = 60
_OUTPUT_SHARE: Final = 0.3  # what a name in tool output counts beside one that was spoken of
_OUTPUT_WORD_SHARE: Final = 0.1  # and a plain word

_EXTENSIONS: Final = (
    "py|pyi|ipynb|js|mjs|cjs|jsx|ts|tsx|json|jsonl|yaml|yml|toml|md|mdx|rst|txt|html|css|scss|vue|svelte|go|rs|java|kt|kts|swift|c|h|cc|cpp|hpp"
    "|cs|rb|php|sh|bash|zsh|sql|proto|graphql|prisma|xml|ini|cfg|conf|env|lock|log|csv|tf|gradle|ex|exs|erl|hs|ml|scala|dart|lua|pl|r|zig|dockerfile"
)
_NAME: Final = re.compile(
    rf"(?P<file>(?:[\w@.~-]*/)*[\w@-][\w@.-]*\.(?:{_EXTENSIONS})\b(?![\w/]))"
    r"|(?P<name>\b[A-Za-z]\w*[a-z0-9][A-Z]\w*\b|\b[A-Z]+[a-z]+[A-Z]\w*\b|\b[A-Za-z]\w*_\w+\b"
    r"|(?<![\w/-])@?[a-z][a-z0-9]+(?:-[a-z0-9]+)+(?![\w-])|(?<![\w.])[a-z]\w+(?:\.[a-z]\w+)+\(?|\b[A-Z]{1,5}-?\d{2,6}\b|\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{7,12}\b"
    r"|(?<![\w/.])/[a-z][a-z-]{2,20}(?![\w/.])|(?<!\w)--[a-z][a-z-]{2,30})"
    r"|(?P<word>[^\W\d_][^\W_]{1,30})"
)
_RUN: Final = re.compile(
    "[\u30a0-\u30ff]{2,12}|[\u3400-\u4dbf\u4e00-\u9fff]{2,16}|[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]{2,16}"
)
_PARTICLE: Final = re.compile(
    "[的了是在和与就都而及着或很也把被让给对从到这那我你他它们个些吗呢吧啊么请帮]|因为|所以|没有|可以|需要|使用|一个|什么|怎么|已经|现在|如果|然后|还是|以及|通过|进行|看看|一下|下一步|问题|是否|应该|时候"
)
_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_HASH: Final = re.compile(r"[0-9a-f]{7,12}")
_MODE: Final = re.compile(r"[dl-]?[rwx-]{9}[@.]?")
_REACHED: Final = re.compile(r"^(?:this|self|cls|window|module|exports)\.")
_EVERYDAY: Final = re.compile(
    r"(?:logger|console|log|logging|e|err|error|json|string|object|array|math|std)\.|toolu_|call_|req_|msg_"
)
_HUMPED: Final = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]")
_AROUND: Final = ".,;:!?()[]{}<>\"'`*_|…“”‘’«»"
_TOKEN_LIMIT: Final = 200  # a longer run without spaces is data, unless its script has none
_WORD_HEFT: Final = 1.0
_UNSPACED_SIZES: Final = range(2, 9)  # one character says too little, nine are a clause
_SHORTEST: Final = 3
_FEW: Final = 12  # beyond so many, a word must have been said more than in passing
_USUAL: Final = 3  # times that two words stand side by side before they are a phrase
_Pair = tuple[str, str, int]
_ACRONYM: Final = re.compile(r"[A-Z][A-Z0-9]{1,6}")


class Tally:
    """Counts what may become a keyword; ``best`` gives those that matter most."""

    def __init__(self, never: Iterable[str] = ()) -> None:
        self._never = frozenset(name.lower() for name in never)
        self._weight: dict[str, float] = {}  # by the folded form
        self._spread: Counter[str] = Counter()
        self._surface: dict[str, dict[str, int]] = {}
        self._pairs: Counter[tuple[str, str]] = Counter()

    def add(self, texts: Iterable[str], *, spoken: bool, factor: float = 1.0) -> None:
        """Count the candidates of one event's texts."""
        share, word_share = (1.0, 1.0) if spoken else (_OUTPUT_SHARE, _OUTPUT_WORD_SHARE)
        seen: dict[str, None] = {}
        for text in texts:
            tokens = text.split()
            for token, times in Counter(tokens).items():
                for key, surface, heft in classified(token):
                    part = share if heft > _WORD_HEFT else word_share
                    weight = heft * part * factor * times
                    self._weight[key] = self._weight.get(key, 0.0) + weight
                    forms = self._surface.setdefault(key, {})
                    forms[surface] = forms.get(surface, 0) + times
                    seen[key] = None
            if spoken:
                self._pairs.update(pairwise(tokens))
        self._spread.update(seen.keys())

    def best(self, limit: int = KEYWORD_LIMIT) -> tuple[str, ...]:
        """The keywords in order of weight; of several forms the most usual one."""
        scored: list[tuple[float, str]] = []
        for key, weight in self._weight.items():
            heft = log(1 + weight) * (1 + log(self._spread[key]))
            scored.append((-round(heft, 6), key))
        scored.sort()
        near = self._near()
        chosen: list[str] = []
        taken: set[str] = set()
        for _, key in scored:
            if len(chosen) >= limit:
                break
            if key in taken or key in self._never or (len(chosen) >= _FEW and self._passing(key)):
                continue
            taken.add(key)
            chosen.append(self._phrase(key, taken, near) or self._usual(key))
        return tuple(dict.fromkeys(chosen))

    def _passing(self, key: str) -> bool:
        """Whether a word was said only in passing: a plain one, in one place."""
        return self._spread[key] == 1 and self._weight[key] <= 2 * _WORD_HEFT

    def _usual(self, key: str) -> str:
        forms = self._surface[key]
        return min(forms, key=lambda form: (-forms[form], len(form), form))

    def _phrase(self, key: str, taken: set[str], near: Mapping[str, Sequence[_Pair]]) -> str:
        """The key with the word that mostly stands beside it, if there is one."""
        total = sum(self._surface[key].values())
        for one, other, count in near.get(key, ()):
            partner = other if one == key else one
            if count * 2 > total and partner not in taken:
                taken.add(partner)
                return f"{self._usual(one)} {self._usual(other)}"
        return ""

    def _near(self) -> dict[str, list[_Pair]]:
        """Pairs of words said at least three times, by either word, the most frequent first."""
        counted: Counter[tuple[str, str]] = Counter()
        for (left, right), count in self._pairs.items():
            if count > 1 and left[-1:].isalnum():
                before, after = classified(left), classified(right)
                if len(before) == len(after) == 1:
                    counted[before[0][0], after[0][0]] += count
        near: dict[str, list[_Pair]] = {}
        for (one, other), count in sorted(counted.items(), key=lambda item: (-item[1], item[0])):
            if count >= _USUAL and one != other and one in self._surface and other in self._surface:
                near.setdefault(one, []).append((one, other, count))
                near.setdefault(other, []).append((one, other, count))
        return near


@lru_cache(maxsize=1 << 16)
def classified(token: str) -> tuple[tuple[str, str, float], ...]:
    """What a token between spaces may be found by: folded form, form and heft of each."""
    if len(token) > _TOKEN_LIMIT:
        return ()
    if "-" in token and (long := _UUID.search(token)):
        token = token[: long.start()] + " " + token[long.end() :]
    bare = token.strip(_AROUND)
    if bare.isascii() and bare.isalpha() and not _HUMPED.search(bare):
        return _word(bare)
    found: list[tuple[str, str, float]] = []
    if not token.isascii():
        found += [(word, word, 1.2) for word in _unspaced(token)]
    for match in _NAME.finditer(token):
        value = match.group()
        if match.lastgroup == "file":
            base = value.rpartition("/")[2]
            if not _UUID.search(base):
                found.append((base.lower(), base, 2.2))
        elif match.lastgroup == "name":
            found += _name(value)
        else:
            found += _word(value)
    return tuple(entry for entry in found if 1 < len(entry[0]) <= _LONGEST)


def _name(value: str) -> tuple[tuple[str, str, float], ...]:
    """An identifier, without what it was reached through; nothing for those of every program."""
    value = _REACHED.sub("", value.rstrip("("))
    lower = value.lower()
    if lower in EVERYWHERE or _MODE.fullmatch(lower) or _EVERYDAY.match(lower):
        return ()
    if (
        "." not in value
        and "_" not in value
        and "-" not in value
        and value.isalpha()
        and value.islower()
    ):
        return _word(value)
    return ((lower, value, 1.2 if _HASH.fullmatch(lower) else 2.0),)


def _word(value: str) -> tuple[tuple[str, str, float], ...]:
    """A plain word, by its stem; nothing for words that say nothing."""
    lower = value.lower()
    if (
        lower in STOP
        or lower.endswith("ly")
        or (value.isascii() and len(value) < _SHORTEST)
        or UNSPACED.match(value)
    ):
        return ()
    acronym = _ACRONYM.fullmatch(value) is not None
    heft = 0.15 if lower in COMMON else 1.5 if acronym else _WORD_HEFT
    return ((stem(lower), value if acronym else lower, heft),)


def _unspaced(text: str) -> Iterable[str]:
    """Words of scripts without spaces: runs of one script, cut at particles."""
    for run in _RUN.findall(text):
        for word in _PARTICLE.split(run):
            if len(word) in _UNSPACED_SIZES:
                yield word


def merged(lists: Sequence[tuple[Sequence[str], float]], limit: int) -> tuple[str, ...]:
    """Merge lists of keywords: by weight and spread, but so that every list keeps its best.

    A list's weight says how much it matters beside the others.
    """
    total: dict[str, float] = {}
    surface: dict[str, str] = {}
    for words, weight in lists:
        for rank, word in enumerate(words):
            key = word.casefold()
            surface.setdefault(key, word)
            total[key] = total.get(key, 0.0) + weight / (rank + 4)
    order = sorted(total, key=lambda key: (-round(total[key], 6), key))
    kept = dict.fromkeys(order[: limit // 2])
    # the other half goes round the lists, so that what only one of them holds can still be found
    for rank in range(max((len(words) for words, _ in lists), default=0)):
        for words, _ in lists:
            if len(kept) < limit and rank < len(words):
                kept.setdefault(words[rank].casefold())
    return tuple(surface[key] for key in kept)
