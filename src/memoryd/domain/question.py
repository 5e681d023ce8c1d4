"""A question to the memory: words, "phrases", -not, field:value, prefix* and ~fuzzy. Pure.

Owns what the signs in a question mean and how much each word counts. Nothing that a person can
type is an error: a sign that makes no sense is passed over, and a field that is not known is two
words. What comes out is made of analysed tokens alone, and of a bounded number of them.
"""

import re
from enum import IntEnum
from typing import Final, NamedTuple

from memoryd.domain import analyze

LENGTH_LIMIT: Final = 10_000  # characters of a question that are read
TERM_LIMIT: Final = 64
PHRASE_LIMIT: Final = 8
PHRASE_LENGTH: Final = 32  # tokens of a phrase that are compared
WITHOUT_LIMIT: Final = 16
INEXACT_LIMIT: Final = 4  # beginnings and misspellings, for which the engine walks its dictionary
PREFIX_LEAST: Final = 2  # letters: fewer would stand for a good part of all words
FUZZY_LEAST: Final = 4  # letters: fewer could be anything
FIELDS: Final = frozenset(("kind", "agent", "session", "role", "project", "speaker", "scope"))

# how much a term counts beside a plain word
WHOLE: Final = 1.3  # a name as it is written
PART: Final = 0.7  # one of its parts
WEAK: Final = 0.5  # a word that questions are full of

# words that ask and do not describe
_ASKING_WORDS: Final = """
after again all any because before between both did do does down during each few gave get
give given go going got happen happened how kind like many more most much new off only other
out over own said same say some someone something tell thing things told type up way what
when where which while who whom whose why
"""
_ASKING: Final = frozenset(_ASKING_WORDS.split())
_WEAK_WORDS: Final = """
able across actually already another anyone anything around ask asked back bad became become
call called came come coming consider current currently day decide decided describe
described different discuss discussed end ended ever everyone everything feel felt find
finding first found gets getting gone good help helped idea instead keep kept kinds know
known last leave left likely long look looked looking lot made main make makes making
mention mentioned need needed next old one others part people place plan put rather real
really reason recent recently right saw saying second see seen set several show shown sort
start started still take taken talk talked think thought three time times took tried try
trying turn two types under use used using want wanted wants ways well went whole within
without work worked wrong yet
"""
_WEAK: Final = frozenset(_WEAK_WORDS.split())
_PIECE: Final = re.compile(
    r"""(?P<minus>(?<!\S)-)?"(?P<phrase>[^"]*)"
      | (?<!\S)-(?P<without>[^\s"-][^\s"]*)
      | (?<!\S)(?P<field>[a-z]+):(?P<value>"[^"]*"|[^\s"]+)
      | (?<!\S)~(?P<fuzzy>[^\s"]+)
      | (?P<prefix>\w[^\s"*]*)\*(?=\s|$)
      | (?P<words>[^\s"]+)""",
    re.VERBOSE,
)


class How(IntEnum):
    """How a term is compared with the tokens of a text."""

    EXACT = 0
    PREFIX = 1
    FUZZY = 2


class Term(NamedTuple):
    """One token to look for, and how much it counts."""

    token: str
    weight: float
    how: How = How.EXACT
    name: bool = True  # whether it may name who spoke: a part of an identifier does not


class Question(NamedTuple):
    """What is looked for. Phrases must be there, what stands in ``without`` must not."""

    terms: tuple[Term, ...]
    phrases: tuple[tuple[str, ...], ...] = ()
    without: tuple[tuple[str, ...], ...] = ()
    fields: tuple[tuple[str, str], ...] = ()


class _Reading:
    """What has been read of a question."""

    def __init__(self) -> None:
        self.terms: dict[tuple[str, How], float] = {}
        self.asking: dict[tuple[str, How], float] = {}  # taken if nothing else is there
        self.phrases: list[tuple[str, ...]] = []
        self.without: list[tuple[str, ...]] = []
        self.fields: list[tuple[str, str]] = []
        self.inexact_left = INEXACT_LIMIT

    def word(self, compound: str) -> None:
        lower = compound.lower()
        found = analyze.split(compound)
        weight = WEAK if lower in _WEAK else 1.0
        into = self.asking if lower in _ASKING else self.terms
        for place, token in enumerate(found):
            share = 1.0 if len(found) == 1 else WHOLE if place == 0 else PART
            into.setdefault((token, How.EXACT), weight * share)

    def words(self, text: str) -> None:
        for compound in analyze.compounds(text):
            self.word(compound)

    def phrase(self, text: str, *, negated: bool) -> None:
        found = tuple(analyze.tokens(text))[:PHRASE_LENGTH]
        if not found:
            return
        if negated:
            self.without.append(found)
            return
        self.phrases.append(found)
        self.words(text)

    def inexact(self, text: str, how: How) -> None:
        """A beginning or a misspelling: its last compound is compared so, the rest exactly.

        One that is too short, or one too many, is compared exactly as well.
        """
        parts = analyze.compounds(text)
        for compound in parts[:-1]:
            self.word(compound)
        for compound in parts[-1:]:
            folded = analyze.fold(compound).lower().replace("_", "")
            stems = analyze.split(compound)
            token = stems[0] if how is How.FUZZY and stems else "".join(analyze.compounds(folded))
            least = FUZZY_LEAST if how is How.FUZZY else PREFIX_LEAST
            if self.inexact_left and (len(token) >= least or not token.isascii()):
                self.inexact_left -= 1
                self.terms.setdefault((token[: analyze.TOKEN_LIMIT], how), 1.0)
            else:
                self.word(compound)


def read(text: str) -> Question:
    """The question in a text. Never fails."""
    reading = _Reading()
    for match in _PIECE.finditer(text[:LENGTH_LIMIT]):
        _take(reading, match)
    chosen = reading.terms or reading.asking
    terms = [
        Term(token, weight, how, how is How.EXACT and weight not in {PART, WHOLE})
        for (token, how), weight in chosen.items()
    ]
    return Question(
        tuple(terms[:TERM_LIMIT]),
        tuple(reading.phrases[:PHRASE_LIMIT]),
        tuple(reading.without[:WITHOUT_LIMIT]),
        tuple(dict.fromkeys(reading.fields)),
    )


def _take(reading: _Reading, match: "re.Match[str]") -> None:
    part = match.groupdict()
    if part["phrase"] is not None:
        reading.phrase(part["phrase"], negated=part["minus"] is not None)
    elif part["without"] is not None:
        reading.phrase(part["without"], negated=True)
    elif part["field"] is not None:
        if part["field"] in FIELDS and not part["value"].startswith("//"):
            reading.fields.append((part["field"], part["value"].strip('"')))
        else:
            reading.words(match[0])
    elif part["fuzzy"] is not None:
        reading.inexact(part["fuzzy"], How.FUZZY)
    elif part["prefix"] is not None:
        reading.inexact(part["prefix"], How.PREFIX)
    else:
        reading.words(part["words"])
