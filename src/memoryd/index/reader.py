"""Asks the index: which documents may answer a question, and how well each term fits them. Derived.

Everything that the engine is asked is built from analysed tokens; its own query parser, which a
text can kill, is never used. An error of the engine is a doubt about the index.

A question is asked twice. Once as a whole, which gives the pool of candidates and is about as
fast as the engine can be. Then term by term, which tells how well each term fits, so that
`domain.rank` can weigh them. Where the terms are so common that the second way would be slow, the
candidates come with one figure for all terms together.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Final, NamedTuple

import tantivy
from tantivy import Occur, Query

from memoryd.domain.document import KIND_NAMES, Head, Kind
from memoryd.domain.errors import IndexDoubt
from memoryd.domain.question import How, Question, Term
from memoryd.domain.rank import Candidate, Pool, rarity
from memoryd.domain.when import Period
from memoryd.index import schema
from memoryd.index.files import doubting

POOL: Final = 100  # candidates that are weighed against each other
_COSTLY_POOL: Final = 16  # the same, where that takes long
_PULLED: Final = 10  # of the first candidates, the turns beside them are looked at too
_COSTLY_PULLED: Final = 2
_TERMS: Final = 24  # the rarest terms of a question that are asked for
_LIST: Final = 250  # documents in the list of one term
_COSTLY: Final = 15_000  # postings above which terms are not asked for one by one
_NAMES: Final = 2_000  # names of speakers up to which all are known beforehand
_COMMON_SPEAKER: Final = 20_000  # documents above which a speaker's name finds nobody
_PREFIXED: Final = 32  # terms that one beginning may stand for
_FUZZY_FIT: Final = 6.0  # what a misspelled term fits; the engine does not say
_LONG_WORD: Final = 6  # letters from which two may be wrong

Address = tuple[int, int]
Clause = tuple[Occur, Query]


class Filters(NamedTuple):
    """Which documents are wanted; an empty part asks for nothing in particular."""

    kinds: tuple[Kind, ...] = ()  # nodes and grips are not looked for together with others
    roles: tuple[str, ...] = ()
    agent: str = ""
    session: str = ""
    project: str = ""
    node: str = ""
    scope: str = ""
    speaker: tuple[str, ...] = ()  # analysed
    from_ms: int = 0
    to_ms: int = 0  # included; 0: no end


class _Commit:
    """The index as one commit left it, and what every question wants to know of it."""

    def __init__(self, index: tantivy.Index) -> None:
        self.searcher = index.searcher()
        self.schema = index.schema

    @cached_property
    def alike(self) -> dict[str, int]:
        """How many documents have their words in each text field, those lately removed too."""
        found = dict.fromkeys(("text", "gist"), 0)
        for kind, name in KIND_NAMES.items():
            found[schema.text_field((kind,))] += int(self.searcher.doc_freq("kind", name))
        return found

    @cached_property
    def _names(self) -> dict[str, int] | None:
        """All names of speakers, and how many documents have each; None: there are too many."""
        found = self.searcher.terms_with_prefix("who", "", limit=_NAMES)
        return dict(found) if len(found) < _NAMES else None

    def spoken_by(self, name: str) -> int:
        """How many documents have a name for their speaker's."""
        names = self._names
        return int(self.searcher.doc_freq("who", name)) if names is None else names.get(name, 0)


class Reader:
    """Reads one index, as its last commit left it when it was loaded. For many threads."""

    def __init__(self, index: tantivy.Index) -> None:
        self._index = index
        self._schema = index.schema
        self._now = _Commit(index)

    def reload(self) -> None:
        """See what has been committed since. Raises IndexDoubt."""
        with doubting("the index cannot be read again"):
            self._index.reload()
            self._now = _Commit(self._index)

    def state(self) -> schema.State:
        """What the last commit stands for. Raises IndexDoubt if it does not say."""
        with doubting("the state of the index cannot be read"):
            searcher = self._now.searcher
            hits = searcher.search(self._term("key", schema.STATE_KEY), 2, count=False).hits
            if len(hits) != 1:
                raise IndexDoubt("the index does not say what it stands for")
            return schema.State.decode(bytes(searcher.doc(hits[0][1])["head"][0]))

    def count(self, filters: Filters = Filters()) -> int:  # noqa: B008 - a tuple
        """How many documents there are."""
        with doubting("the index cannot be counted"):
            searcher = self._now.searcher
            clauses = self._filter(filters)
            if not clauses:
                return int(searcher.num_docs)
            found = searcher.search(Query.boolean_query(clauses), 1, count=True)
            return int(found.count or 0)  # type: ignore[attr-defined]

    def segments(self) -> int:
        """How many parts the index has."""
        with doubting("the index cannot be read"):
            return int(self._now.searcher.num_segments)

    def pool(
        self,
        question: Question,
        filters: Filters,
        periods: Sequence[Period] = (),
        size: int = POOL,
    ) -> Pool:
        """The candidates for a question. Raises IndexDoubt."""
        with doubting("the index cannot be searched"):
            return _Asking(self._now, question, filters).pool(periods, size)

    def newest(self, question: Question, filters: Filters, size: int) -> list[Head]:
        """Documents that pass the filters and exclusions alone, newest first."""
        with doubting("the index cannot be searched"):
            return _Asking(self._now, question, filters).newest(size)

    def _term(self, field: str, value: str) -> Query:
        return Query.term_query(self._schema, field, value, "basic")

    def _filter(self, filters: Filters) -> list[Clause]:
        return filter_clauses(self._schema, filters)


class _Asking:
    """One question to one state of the index."""

    def __init__(self, commit: _Commit, question: Question, filters: Filters) -> None:
        self._commit = commit
        self._searcher = commit.searcher
        self._schema = commit.schema
        self._text = schema.text_field(filters.kinds)
        self._documents = max(1, commit.alike[self._text])
        self._must = filter_clauses(self._schema, filters)
        self._must += [(Occur.Must, self._phrase(p)) for p in question.phrases]
        self._must += [(Occur.MustNot, self._phrase(p)) for p in question.without]
        counted = [(self._frequency(term), term) for term in question.terms]
        counted = [(df, term) for df, term in counted if df or term.how is not How.EXACT]
        if len(counted) > _TERMS:
            counted = sorted(counted, key=lambda item: item[0])[:_TERMS]
        self._terms = [term for _, term in counted]
        self._frequencies = [df for df, _ in counted]
        self._postings = sum(self._frequencies)  # that the engine has to look at
        self._queries = [self._query(term, df) for df, term in counted]
        self._speakers = self._named(question.terms)

    def pool(self, periods: Sequence[Period], size: int) -> Pool:
        costly = self._postings > _COSTLY
        size = _COSTLY_POOL if costly and size == POOL else size
        totals = self._whole(periods, size)
        more = len(totals) >= size
        columns = [] if costly else [self._list(query) for query in self._queries]
        heads = self._heads(totals)
        self._pull_in(totals, heads, _COSTLY_PULLED if costly else _PULLED)
        tokens = () if costly else tuple(term.token for term in self._terms)
        rarities = [
            term.weight * rarity(self._documents, df)
            for term, df in zip(self._terms, self._frequencies, strict=True)
        ]
        return Pool(
            [
                Candidate(heads[address], self._fits(address, total, columns))
                for address, total in totals.items()
            ],
            tokens,
            (1.0,) if costly else tuple(rarities),
            self._speakers,
            self._documents,
            more,
        )

    def newest(self, size: int) -> list[Head]:
        clauses = [*self._must]
        if not any(occur == Occur.Must for occur, _ in clauses):
            known = Query.range_query(self._schema, "time", tantivy.FieldType.Integer, 0, None)
            clauses.append((Occur.Must, known))
        hits = self._searcher.search(
            Query.boolean_query(clauses), size, count=False, order_by_field="time"
        ).hits
        return [self._head(address) for _, address in hits]

    def _whole(self, periods: Sequence[Period], size: int) -> dict[Address, float]:
        """The best documents for all terms together, and for those inside named periods."""
        either: list[Clause] = [(Occur.Should, query) for query in self._queries]
        either += [
            (Occur.Should, self._weighed(self._term("who", token), 1.0))
            for token in self._speakers
            if self._commit.spoken_by(token) <= _COMMON_SPEAKER or not self._queries
        ]
        if not either:
            return {}
        found: dict[Address, float] = {}
        question = Query.boolean_query(either)
        self._gather(found, [*self._must, (Occur.Must, question)] if self._must else either, size)
        for period in periods[:3]:
            inside = _time(self._schema, period.start_ms, period.end_ms - 1)
            clauses = [*self._must, (Occur.Must, question), (Occur.Must, inside)]
            self._gather(found, clauses, size // 2)
        return found

    def _gather(self, found: dict[Address, float], clauses: list[Clause], size: int) -> None:
        result = self._searcher.search(Query.boolean_query(clauses), size, count=False)
        for score, address in result.hits:
            found.setdefault((address.segment_ord, address.doc), score)

    def _list(self, query: Query) -> tuple[dict[Address, float], bool]:
        """The documents that one term fits, and whether these are all."""
        hits = self._searcher.search(query, _LIST, count=False).hits
        return {(a.segment_ord, a.doc): score for score, a in hits}, len(hits) < _LIST

    def _fits(
        self, address: Address, total: float, columns: list[tuple[dict[Address, float], bool]]
    ) -> tuple[float, ...]:
        """How well each term fits; what the lists leave open is shared out among their terms."""
        if not columns:
            return (total,)
        fits = [found.get(address, 0.0) for found, _ in columns]
        rest = total - sum(fits)
        if rest > 0.01:  # noqa: PLR2004 - below it is the engine's rounding
            left_open = [i for i, (_, whole) in enumerate(columns) if not whole and not fits[i]]
            for i in left_open:
                fits[i] = rest / len(left_open)
        return tuple(fits)

    def _pull_in(
        self, totals: dict[Address, float], heads: dict[Address, Head], count: int
    ) -> None:
        """Take in the turns beside the best candidates, which may have none of the words."""
        known = {(head.session, head.place) for head in heads.values()}
        best = sorted(totals, key=totals.__getitem__, reverse=True)[:count]
        wanted = {
            (head.session, head.place + step)
            for head in (heads[address] for address in best)
            if head.place
            for step in ((-2, -1, 1, 2) if count == _PULLED else (-1, 1))
        }
        terms = [self._term("place", schema.place_of(*place)) for place in wanted - known]
        if not terms:
            return
        beside = Query.boolean_query([(Occur.Should, term) for term in terms])
        clauses = [*self._must, (Occur.Must, beside)] if self._must else [(Occur.Must, beside)]
        for _, address in self._searcher.search(
            Query.boolean_query(clauses), len(terms), count=False
        ).hits:
            key = (address.segment_ord, address.doc)
            totals[key] = 0.0
            heads[key] = self._head(address)

    def _heads(self, addresses: Iterable[Address]) -> dict[Address, Head]:
        return {a: self._head(tantivy.DocAddress(*a)) for a in addresses}

    def _head(self, address: tantivy.DocAddress) -> Head:
        return schema.decode_head(bytes(self._searcher.doc(address)["head"][0]))

    def _named(self, terms: Iterable[Term]) -> dict[str, float]:
        """The terms that name a speaker, and how rare each is."""
        found = {}
        for term in terms:
            having = self._commit.spoken_by(term.token) if term.name else 0
            if having:
                found[term.token] = rarity(self._documents, having)
        return found

    def _true(self, having: int) -> float:
        """Corrects the engine's idf, which counts documents that have no words in the field."""
        counted = rarity(max(self._searcher.num_docs, having), having)
        return rarity(max(self._documents, having), having) / counted

    def _frequency(self, term: Term) -> int:
        return int(self._searcher.doc_freq(self._text, term.token))

    def _query(self, term: Term, having: int) -> Query:
        exact = self._term(self._text, term.token, "freq")
        weight = term.weight * self._true(having)
        if term.how is How.PREFIX:
            found = self._searcher.terms_with_prefix(self._text, term.token, limit=_PREFIXED)
            self._postings += sum(count for _, count in found)
            terms = [self._term(self._text, token, "freq") for token, _ in found]
            return self._weighed(Query.disjunction_max_query([exact, *terms]), weight)
        if term.how is How.FUZZY:
            wrong = 2 if len(term.token) >= _LONG_WORD else 1
            near = Query.fuzzy_term_query(self._schema, self._text, term.token, wrong)
            near = Query.const_score_query(near, _FUZZY_FIT)
            return self._weighed(Query.disjunction_max_query([exact, near]), term.weight)
        return self._weighed(exact, weight)

    def _phrase(self, tokens: tuple[str, ...]) -> Query:
        if len(tokens) == 1:
            return _silent(self._term(self._text, tokens[0]))
        return _silent(Query.phrase_query(self._schema, self._text, list(tokens)))

    def _term(self, field: str, value: str, option: str = "basic") -> Query:
        return Query.term_query(self._schema, field, value, option)

    @staticmethod
    def _weighed(query: Query, weight: float) -> Query:
        return query if weight == 1.0 else Query.boost_query(query, weight)


def filter_clauses(made: tantivy.Schema, filters: Filters) -> list[Clause]:
    """What the filters ask of a document, without any say in its score."""
    clauses: list[Clause] = []
    for field, values in (
        ("kind", tuple(KIND_NAMES[kind] for kind in filters.kinds)),
        ("role", filters.roles),
        ("agent", (filters.agent,) if filters.agent else ()),
        ("session", (filters.session,) if filters.session else ()),
        ("project", (filters.project,) if filters.project else ()),
        ("path", (filters.node,) if filters.node else ()),
        ("scope", (filters.scope,) if filters.scope else ()),
    ):
        if values:
            terms = [Query.term_query(made, field, value, "basic") for value in values]
            either = Query.boolean_query([(Occur.Should, term) for term in terms])
            clauses.append((Occur.Must, _silent(either)))
    clauses += [
        (Occur.Must, _silent(Query.term_query(made, "who", token, "basic")))
        for token in filters.speaker
    ]
    if filters.from_ms or filters.to_ms:
        clauses.append((Occur.Must, _time(made, filters.from_ms, filters.to_ms or None)))
    return clauses


def _time(made: tantivy.Schema, start_ms: int, end_ms: int | None) -> Query:
    """Both ends included; None: no end."""
    return _silent(Query.range_query(made, "time", tantivy.FieldType.Integer, start_ms, end_ms))


def _silent(query: Query) -> Query:
    return Query.const_score_query(query, 0.0)
