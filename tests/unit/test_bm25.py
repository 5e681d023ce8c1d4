from collections import Counter
from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.domain import bm25
from memoryd.domain.bm25 import Ranked, parse, words


def search(ranked: Ranked[str], text: str, limit: int = 10) -> list[tuple[str, float]]:
    """Everything that fits, equals in the order of their keys."""
    return ranked.search(parse(text), limit, lambda key: key)


def filled(**texts: str) -> Ranked[str]:
    """Documents by their keys."""
    ranked: Ranked[str] = Ranked()
    for key, text in texts.items():
        ranked.put(key, Counter(words(text)))
    return ranked


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Deploy the_API, v2!", ["deploy", "the", "api", "v2"]),
        ("Größe GRÖSSE", ["grösse", "grösse"]),
        ("ﬁne", ["fine"]),
        ("東京都へ行く", ["東京", "京都", "都へ", "へ行", "行く"]),
        ("v2版 本", ["v2", "版", "本"]),
        ("don't", ["don", "t"]),
        ("", []),
    ],
)
def test_words_are_folded(text: str, expected: list[str]) -> None:
    """Case, width and punctuation do not count; dense scripts come in pairs."""
    assert list(words(text)) == expected


def test_a_query_has_words_and_beginnings() -> None:
    """A star makes a beginning of the word before it, and stands for nothing alone."""
    assert parse("Deploy* the deploy the") == (("the", "deploy"), ("deploy",))
    assert parse("api-v* * -") == (("api",), ("v",))


def test_rare_words_and_short_documents_come_first() -> None:
    """A rare word weighs more than a common one, a short document more than a long one."""
    ranked = filled(
        a="deploy with make", b="make make tests", c="make " * 50, d="deploy " + "filler " * 60
    )
    assert search(ranked, "deploy make")[0][0] == "a"
    assert [key for key, _ in search(ranked, "deploy")] == ["a", "d"]
    assert search(ranked, "nothing") == []


def test_beginnings_count_as_one_word() -> None:
    """A beginning finds every word that has it, also words that come later."""
    ranked = filled(a="deployment plan", b="redeploy", c="deploys deploy")
    assert {key for key, _ in search(ranked, "deploy*")} == {"a", "c"}
    ranked.put("d", {"deployer": 1})
    assert {key for key, _ in search(ranked, "deploy*")} == {"a", "c", "d"}


def test_equals_are_ordered_and_the_unwanted_left_out() -> None:
    """Documents of equal score come in the given order; a filter and a limit apply."""
    ranked = filled(b="word", a="word", c="word")
    assert [key for key, _ in search(ranked, "word", 2)] == ["a", "b"]
    found = ranked.search(parse("word"), 5, lambda key: key, lambda key: key != "a")
    assert [key for key, _ in found] == ["b", "c"]


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from("abcdef"),
        st.none() | st.lists(st.sampled_from(["x", "xy", "xyz", "y", "z"]), max_size=5),
    ),
    max_size=40,
)


@given(OPERATIONS, st.sampled_from(["x", "xy y", "z x", "x*", "xy* z"]))
def test_scores_are_those_of_the_formula(
    operations: list[tuple[str, list[str] | None]], text: str
) -> None:
    """After any changes the scores are BM25 over the documents that are there now."""
    old, bm25._SWEEP = bm25._SWEEP, 2  # type: ignore[misc]
    try:
        ranked: Ranked[str] = Ranked()
        documents: dict[str, Counter[str]] = {}
        for key, content in operations:
            if content is None:
                ranked.remove(key)
                documents.pop(key, None)
            else:
                documents[key] = Counter(content)
                ranked.put(key, documents[key])
        assert len(ranked) == len(documents)
        expected = formula(documents, text)
        found = dict(search(ranked, text))
        assert found == pytest.approx(expected)
    finally:
        bm25._SWEEP = old  # type: ignore[misc]


def formula(documents: dict[str, Counter[str]], text: str) -> dict[str, float]:
    """BM25 by the book."""
    whole, prefixes = parse(text)
    total = len(documents)
    mean = sum(c.total() for c in documents.values()) / max(total, 1)
    scores: dict[str, float] = {}
    for part in (*whole, *(f"{p}*" for p in prefixes)):
        counts = {}
        for key, has in documents.items():
            fits = [w for w in has if (w.startswith(part[:-1]) if part[-1] == "*" else w == part)]
            if fits:
                counts[key] = sum(has[w] for w in fits)
        rarity = log(1 + (total - len(counts) + 0.5) / (len(counts) + 0.5))
        for key, count in counts.items():
            norm = 1.2 * (0.25 + 0.75 * documents[key].total() / max(mean, 1e-9))
            scores[key] = scores.get(key, 0) + rarity * count * 2.2 / (count + norm)
    return scores
