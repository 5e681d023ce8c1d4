"""One question on its way: from its terms to candidates and to their order.

Knows nothing of requests: `search` reads them, and makes answers of what comes out here.
"""

from collections import Counter
from collections.abc import Sequence
from math import log
from typing import Final

from memoryd.domain import analyze, question, rank
from memoryd.domain.document import Kind
from memoryd.domain.question import How, Question, Term
from memoryd.domain.when import Period
from memoryd.index.reader import Filters, Reader

_DEEP: Final = 4  # candidates for each result that is wanted beyond the first
_ABOUT_TERMS: Final = 96


class Asking:
    """Asks an index for documents of one text field at a time."""

    def __init__(self, reader: Reader, asked: Question, wishes: rank.Wishes, wanted: int) -> None:
        """``wanted``: how many results there should be at least, if there are so many."""
        self._reader = reader
        self._asked = asked
        self._wanted = wanted
        self._periods: Sequence[Period] = wishes.periods
        self._wishes = wishes

    def ranked(self, filters: Filters) -> list[rank.Ranked]:
        """What passes the filters, best first, or without words newest first. Raises IndexDoubt.

        The best candidates are weighed against each other; only who asks for more gets the
        others, behind them, so that a page fits to the next.
        """
        asked = self._asked
        if not asked.terms:
            kinds = filters.kinds or (Kind.EVENT, Kind.NOTE)
            heads = self._reader.newest(asked, filters._replace(kinds=kinds), self._wanted)
            return [rank.Ranked(head, 0.0) for head in heads]
        pool = self._reader.pool(asked, filters, self._periods)
        ranked = rank.rank(pool, self._wishes)
        if len(ranked) < self._wanted and pool.more:
            deep = self._reader.pool(asked, filters, self._periods, _DEEP * self._wanted)
            known = {(found.head.kind, found.head.id) for found in ranked}
            further = rank.rank(deep, self._wishes)
            ranked += [f for f in further if (f.head.kind, f.head.id) not in known]
        return ranked


def about(text: str) -> Question:
    """The question that a text itself asks: its most telling tokens."""
    counted = Counter(analyze.tokens(text[: question.LENGTH_LIMIT]))
    terms = [Term(token, 1 + log(n), How.EXACT) for token, n in counted.items() if len(token) > 1]
    terms.sort(key=lambda term: -term.weight)
    return Question(tuple(terms[:_ABOUT_TERMS]))
