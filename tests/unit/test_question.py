import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.domain import analyze
from memoryd.domain.question import PART, TERM_LIMIT, WEAK, WHOLE, How, Question, Term, read


def word(token: str, weight: float = 1.0) -> Term:
    """A plain term."""
    return Term(token, weight)


TABLE = {
    "why did the pool close": Question((word("pool"), word("close"))),
    "what": Question((word("what"),)),
    "find the pool": Question((word("find", WEAK), word("pool"))),
    "get_user": Question(
        (
            Term("getus", WHOLE, How.EXACT, name=False),
            Term("get", PART, How.EXACT, name=False),
            Term("user", PART, How.EXACT, name=False),
        )
    ),
    '"pool was closed"': Question((word("pool"), word("close")), (("pool", "close"),)),
    "pool -test": Question((word("pool"),), without=(("test",),)),
    'pool -"unit test"': Question((word("pool"),), without=(("unit", "test"),)),
    "pool role:user agent:codex": Question(
        (word("pool"),), fields=(("role", "user"), ("agent", "codex"))
    ),
    'session:"a b"': Question((), fields=(("session", "a b"),)),
    "anal*": Question((Term("anal", 1.0, How.PREFIX, name=False),)),
    "~recieve": Question((Term("reciev", 1.0, How.FUZZY, name=False),)),
    "": Question(()),
    '"" - -- : * ~ ""': Question(()),
}


@pytest.mark.parametrize("text", TABLE)
def test_questions_mean_this(text: str) -> None:
    """Words, phrases, exclusions, fields, beginnings and misspellings are read so."""
    assert read(text) == TABLE[text]


def test_an_unknown_field_is_two_words() -> None:
    """What looks like a field and is none is looked for as it stands."""
    assert {"foo", "bar"} <= {term.token for term in read("foo:bar").terms}
    assert not read("https://example.org").fields


@given(st.text(max_size=400) | st.text(alphabet='"-~*: ab()[]\\/', max_size=200))
def test_nothing_is_a_syntax_error(text: str) -> None:
    """Any text is a question, of bounded size and made of tokens."""
    found = read(text)
    assert len(found.terms) <= TERM_LIMIT
    assert all(0 < len(term.token) <= analyze.TOKEN_LIMIT for term in found.terms)
    assert all(token for phrase in (*found.phrases, *found.without) for token in phrase)


def test_a_question_as_long_as_a_book_is_cut() -> None:
    """However long a question is, it has a bounded number of terms."""
    text = " ".join(f"word{number}" for number in range(100_000))
    assert len(read(text).terms) == TERM_LIMIT
    assert read("(" * 100_000 + '"' * 100_001) == Question(())
