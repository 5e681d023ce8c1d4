"""Whatever is asked, the work that it makes is bounded."""

import os
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoryd.domain import question
from memoryd.domain.question import How
from memoryd.index.reader import POOL
from memoryd.services.search import SearchQuery
from tests.services.test_indexer import Room, event

WORDS = ("pool", "retry", "getUserName", "数据库", "src/net/pool.py", "v1.20.3", "the", "user", "é")
EVENTS = 400
SEARCHES = 128  # of one request: events, then nodes and grips, each in a first and a deeper pool
READ = 12 * POOL  # documents that one request has the engine give back


class Counting:
    """A searcher that counts what it is asked for."""

    def __init__(self, searcher: Any) -> None:
        self._searcher = searcher
        self.num_docs = searcher.num_docs
        self.calls: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        """The searcher's own, counted."""

        def counted(*args: Any, **options: Any) -> Any:
            self.calls[name] += 1
            return getattr(self._searcher, name)(*args, **options)

        return counted


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    """A store in which every word is common."""
    made = Room(os.fspath(tmp_path_factory.mktemp("bounded")))
    made.write(
        *(
            event(
                n, " ".join(WORDS[n % 3 :]) + f" word{n} {'x' * (n % 40)}", session_id=f"s{n % 9}"
            )
            for n in range(1, EVENTS + 1)
        )
    )
    made.settle()
    yield made
    made.close()


PIECES = st.sampled_from(
    (*WORDS, *'"-~*:() \n', " -", ' "', " ~", "* ", "role:", "kind:node ", "yesterday ", "a b c ")
)
QUESTIONS = (
    st.text(max_size=300)
    | st.lists(PIECES, max_size=60).map("".join)
    | st.tuples(st.lists(PIECES, min_size=1, max_size=6).map("".join), st.integers(1, 3_000)).map(
        lambda made: made[0] * made[1]
    )
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(QUESTIONS, st.sampled_from((0, 100)))
def test_no_question_fails_or_makes_much_work(room: Room, text: str, limit: int) -> None:
    """Any text gives an answer; what the engine is asked for has a limit, and so has the time."""
    reader = room.indexer.reader
    assert reader is not None
    counting = Counting(reader._now.searcher)
    reader._now.searcher = counting  # type: ignore[assignment]
    begin = time.thread_time()
    try:
        answer = room.search.teleport(SearchQuery(text, limit=limit))
    finally:
        reader._now.searcher = counting._searcher
    assert time.thread_time() - begin < 1.0  # of the processor, so that others do not count
    assert len(answer.hits) <= 100
    assert counting.calls["search"] <= SEARCHES
    assert counting.calls["doc"] <= READ
    assert counting.calls["terms_with_prefix"] <= 4 * (question.INEXACT_LIMIT + 1)
    assert counting.calls["doc_freq"] <= 8 * question.TERM_LIMIT
    assert not room.reports


@settings(max_examples=100, deadline=None)
@given(QUESTIONS)
def test_no_question_has_more_terms_than_it_may(text: str) -> None:
    """Terms, phrases, exclusions and what is not compared exactly are all counted."""
    asked = question.read(text)
    assert len(asked.terms) <= question.TERM_LIMIT
    assert len(asked.phrases) <= question.PHRASE_LIMIT
    assert len(asked.without) <= question.WITHOUT_LIMIT
    assert all(len(p) <= question.PHRASE_LENGTH for p in (*asked.phrases, *asked.without))
    inexact = [term for term in asked.terms if term.how is not How.EXACT]
    assert len(inexact) <= question.INEXACT_LIMIT
    for term in inexact:
        least = question.FUZZY_LEAST if term.how is How.FUZZY else question.PREFIX_LEAST
        assert len(term.token) >= least or not term.token.isascii()


@pytest.mark.parametrize(
    ("text", "found"),
    [("a* pool", How.EXACT), ("po*", How.PREFIX), ("~pol", How.EXACT), ("~poool", How.FUZZY)],
)
def test_what_is_too_short_is_meant_as_it_stands(text: str, found: How) -> None:
    """One letter is no beginning to look for, and three are no word to correct."""
    assert {term.how for term in question.read(text).terms} == {found}
