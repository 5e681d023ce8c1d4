from memoryd.domain.lookup import SearchField, search
from memoryd.domain.toc import Bullet, Level, Node


def node(name: str, title: str, *bullets: str, summary: str = "", keywords: str = "") -> Node:
    """A node with words in it."""
    return Node(
        node_id=f"toc:day:{name}",
        level=Level.DAY,
        title=title,
        summary=summary,
        bullets=tuple(Bullet(text, (f"grip:{name}",), 0.5) for text in bullets),
        keywords=tuple(keywords.split()),
        child_ids=(),
        start_ms=int(name),
        end_ms=int(name) + 1,
        version=1,
        session_ids=(),
        agents=(),
        event_count=1,
        summarizer="",
        provisional=False,
    )


NODES = [
    node("1", "Parser fixed", "The parser fails on an empty line.", keywords="parser"),
    node("2", "Sessions moved to Redis", "Refreshing tokens raced.", summary="The parser waits."),
    node("3", "Login form", "The form was restyled."),
]


def names(question: str, *fields: SearchField) -> list[str]:
    """The nodes that are found, best first."""
    wanted = frozenset(fields or SearchField)
    return [found.node.node_id[-1] for found in search(NODES, question, wanted)[0]]


def test_words_are_compared_by_their_stems() -> None:
    """A question in other forms of the words finds them."""
    assert names("which token refreshes race?") == ["2"]
    assert names("parsers failing on lines") == ["1", "2"]


def test_rare_words_count_more() -> None:
    """A word that one node has outweighs a word that most have."""
    assert names("parser redis")[0] == "2"


def test_fields_limit_where_to_look() -> None:
    """Only the parts that were asked for are searched."""
    assert names("parser", SearchField.TITLE) == ["1"]
    assert names("parser", SearchField.SUMMARY) == ["2"]
    assert names("parser", SearchField.BULLETS, SearchField.KEYWORDS) == ["1"]


def test_matches_say_where_and_how_well() -> None:
    """Each text that shares words is named, with its grips, from 0 to 1."""
    (found,), count = search(NODES, "form restyled", frozenset({SearchField.BULLETS}))
    assert count == 1
    (match,) = found.matches
    assert (match.field, match.text, match.grip_ids) == (
        SearchField.BULLETS,
        "The form was restyled.",
        ("grip:3",),
    )
    assert match.score == 1.0
    assert 0 < found.score <= 1


def test_a_question_of_small_words_finds_nothing() -> None:
    """What only holds sentences together matches nothing, and neither does an empty question."""
    assert names("what was it about?") == []
    assert names("") == []


def test_a_limit_keeps_the_best_and_counts_all() -> None:
    """With a limit the best come, and how many there are is still told."""
    found, count = search(NODES, "parser redis", limit=1)
    assert [f.node.node_id[-1] for f in found] == ["2"]
    assert count == 2


def test_unspaced_scripts_match() -> None:
    """A question in Chinese finds the node that speaks of it."""
    chinese = [node("1", "解析器在空行上失败"), node("2", "登录表单")]
    assert [f.node.node_id[-1] for f in search(chinese, "解析器")[0]] == ["1"]


def test_asking_words_do_not_count() -> None:
    """What a question asks with weighs nothing beside what it asks about; alone it is looked for."""
    asked = [node("1", "Someone decided and told"), node("2", "Redis settled")]
    assert [f.node.node_id[-1] for f in search(asked, "what did someone tell about redis?")[0]] == [
        "2"
    ]
    assert [f.node.node_id[-1] for f in search(asked, "what was told?")[0]] == ["1"]


def test_the_first_keywords_count_more() -> None:
    """Keywords stand in the order of their weight, and count so."""
    later = " ".join(f"word{n}" for n in range(40))
    nodes = [node("1", "a", keywords=f"redis {later}"), node("2", "b", keywords=f"{later} redis")]
    assert [f.node.node_id[-1] for f in search(nodes, "redis")[0]] == ["1", "2"]


def test_scores_below_different_parents_compare() -> None:
    """What a node scores does not depend on how well its siblings do, only a little on their words."""
    alone, _ = search(NODES[:1], "parser fails redis")
    among, _ = search([NODES[0], NODES[2]], "parser fails redis")
    both, _ = search(NODES, "parser fails redis")
    assert abs(alone[0].score - among[0].score) < 0.02
    assert max(found.score for found in both) < 1
