import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryd.domain.extract.condense import headline
from memoryd.domain.extract.extractive import Extractive
from memoryd.domain.summarize import Digest
from memoryd.domain.toc import Bullet, Level, Node
from tests.unit.talks import node

EXTRACTIVE = Extractive()
PLANTS = ("roses", "ferns", "maples", "lilies", "cacti", "mosses")
PERIODS = (Level.DAY, Level.WEEK, Level.MONTH, Level.YEAR)
WEEK = [
    node(
        1,
        "Fixed the refresh-token race",
        [
            "The refresh token was rotated twice under load.",
            "Fixed the refresh-token race with a lock.",
        ],
        ["refresh-token", "lock", "auth.py"],
        count=40,
    ),
    node(
        2, "Moved sessions to Redis", ["Moved sessions to Redis."], ["redis", "sessions"], count=30
    ),
    node(3, "Read the changelog", ["Read: CHANGELOG.md"], ["CHANGELOG.md"], count=1),
]


def told(level: Level, children: list[Node]) -> Digest:
    """The digest of a period, after what holds for every digest."""
    digest = EXTRACTIVE.period(level, children)
    known = {bullet for child in children for bullet in child.bullets}
    assert set(digest.bullets) <= known
    assert len(set(digest.bullets)) == len(digest.bullets) <= (7 if level >= Level.WEEK else 9)
    assert len(digest.title) <= 80
    assert len(digest.summary) <= 800
    return digest


def test_the_title_names_what_mattered_most() -> None:
    """Two things of weight stand in one line, and no date."""
    assert told(Level.DAY, WEEK).title == "Fixed the refresh-token race; Moved sessions to Redis"


def test_bullets_keep_their_grips_and_the_order_of_time() -> None:
    """A digest's bullets are its children's, unchanged."""
    bullets = told(Level.WEEK, WEEK).bullets
    assert [bullet.grip_ids[0] for bullet in bullets] == sorted(b.grip_ids[0] for b in bullets)
    assert {bullet.grip_ids[0].split(":")[1] for bullet in bullets} == {"1", "2", "3"}


def test_no_day_is_drowned_by_a_busy_one() -> None:
    """Each child has a bullet and keywords before any child has its second share."""
    busy = node(
        1,
        "Busy",
        [f"Changed the {word} of the engine." for word in "abcdefghi"],
        [f"busy{n}" for n in range(200)],
        900,
    )
    quiet = [
        node(n, f"Quiet {n}", [f"Watered {PLANTS[n - 2]} and pruned it."], [f"quiet{n}"], 2)
        for n in range(2, 8)
    ]
    for level in PERIODS:
        digest = told(level, [busy, *quiet])
        assert {b.grip_ids[0].split(":")[1] for b in digest.bullets} == set("1234567")
        assert {f"quiet{n}" for n in range(2, 8)} <= set(digest.keywords)


def test_what_several_days_say_is_told_once() -> None:
    """Bullets that say the same are one bullet, titles that say the same are one sentence."""
    same = [
        node(n, "Tuned the query planner", ["Tuned the query planner for joins."], ["planner"])
        for n in range(5)
    ]
    digest = told(Level.MONTH, same)
    assert len(digest.bullets) == 1
    assert digest.summary == "Tuned the query planner."
    assert digest.keywords == ("planner",)


def test_the_summary_tells_the_titles_in_the_order_of_time() -> None:
    """The story goes from the first to the last."""
    assert (
        told(Level.DAY, WEEK).summary
        == "Fixed the refresh-token race. Moved sessions to Redis. Read the changelog."
    )


def test_a_period_without_children_says_so() -> None:
    """Nothing below is no error."""
    assert told(Level.DAY, []) == Digest("Nothing was said", "", (), ())


TEXT = st.text(max_size=90)
NODES = st.lists(
    st.builds(
        lambda title, bullets, keywords, count: Node(
            "n",
            Level.DAY,
            title[:80],
            title,
            bullets,
            keywords,
            (),
            0,
            0,
            1,
            (),
            (),
            count,
            "",
            provisional=False,
        ),
        TEXT,
        st.lists(
            st.builds(Bullet, TEXT, st.tuples(st.uuids().map(str)), st.floats(0, 1)), max_size=7
        ).map(tuple),
        st.lists(TEXT, max_size=30).map(tuple),
        st.integers(0, 1000),
    ),
    max_size=12,
)


@given(st.sampled_from(PERIODS), NODES)
@settings(deadline=None)
def test_any_children_give_a_bounded_digest_of_their_bullets(
    level: Level, children: list[Node]
) -> None:
    """Whatever the children say, bullets are theirs, sizes are bounded and nothing changes on repeating."""
    assert told(level, children) == told(level, children)


def test_what_came_of_it_is_the_title() -> None:
    """An outcome stands above a question, an announcement, and what an agent says of agents."""
    titles = (
        "Why does the importer lose rows?",
        "I'm checking the importer's log",
        "The reviewing agent has completed its analysis",
        "Rows created while the importer waits",
        "Fixed the importer's row count",
    )
    children = [node(n, title, [f"{title}."], ["importer"]) for n, title in enumerate(titles)]
    assert told(Level.WEEK, children).title.startswith("Fixed the importer's row count")


def test_a_weak_second_part_is_left_out() -> None:
    """A title is not filled up with what hardly mattered."""
    weak = Bullet("Listed the files.", ("grip:9:0",), 0.05)
    files = node(9, "List the files in src/", [], ["src"], count=1)._replace(bullets=(weak,))
    strong = Bullet("Fixed the race.", ("grip:1:0",), 1.0)
    race = node(1, "Fixed the race", [], ["race"], count=90)._replace(bullets=(strong,))
    assert told(Level.MONTH, [race, files]).title == "Fixed the race"


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("As you can see, the cache is now warm at start", "The cache is now warm at start"),
        ("Approach: track all session files", "Track all session files"),
        (
            "Read the docs](https://example.org/very/long/path) on caching",
            "Read the docs on caching",
        ),
    ],
)
def test_a_headline_begins_with_the_matter(said: str, title: str) -> None:
    """Fillers, labels and the rests of links are left out of a headline."""
    assert headline(said) == title
