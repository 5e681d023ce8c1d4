import os
import shutil
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoryd.domain import analyze
from memoryd.domain.document import ROLE_NAMES, Document, Kind
from memoryd.domain.errors import IndexDoubt
from memoryd.domain.event import EventRole
from memoryd.domain.question import read
from memoryd.index import files
from memoryd.index.reader import Filters, Reader
from memoryd.index.schema import State
from tests.index import corpus
from tests.index.conftest import Shelf

Shelve = Callable[[list[Document]], Shelf]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    """The corpus, indexed."""
    return Shelf(f"{tmp_path_factory.mktemp('library')}/index", corpus.documents())


@pytest.mark.parametrize("text", corpus.QUESTIONS)
def test_engineers_find_what_they_look_for(library: Shelf, text: str) -> None:
    """What an engineer types brings what is meant among the first three."""
    assert corpus.QUESTIONS[text] in library.find(text)[:3]


def test_there_are_sixty_questions() -> None:
    """The table is as long as it is meant to be, and asks for texts that exist."""
    assert len(corpus.QUESTIONS) >= 60
    assert set(corpus.QUESTIONS.values()) <= set(corpus.TEXTS)


def test_phrases_must_be_there_and_exclusions_not(library: Shelf) -> None:
    """A phrase is a condition, and so is its absence."""
    assert library.find('"denied access"') == []
    assert "hex" in library.find('"access denied"')
    assert "npm" not in library.find("denied -npm")
    assert "npm" not in library.find('denied -"permission denied"')


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=200) | st.text(alphabet='"-~*: abe()[]\\/', max_size=100))
def test_no_question_fails(library: Shelf, text: str) -> None:
    """Any text can be asked, with and without a filter."""
    library.find(text)
    library.find(text, Filters(roles=("user",), from_ms=1))


@pytest.mark.parametrize(
    "text", ["(" * 5_000, "NOT " * 5_000, "a " * 20_000, "*" * 9_000, "~" * 9_000, '"' * 9_999]
)
def test_questions_that_kill_parsers_do_nothing(library: Shelf, text: str) -> None:
    """What is known to kill the engine's own parser is harmless."""
    library.find(text)


DOCUMENTS = st.lists(
    st.tuples(
        st.sampled_from(("red", "red pool", "pool blue", "blue")),
        st.sampled_from(("a", "b")),
        st.integers(1, 4),
        st.integers(1, 9),
        st.sampled_from(("x", "y")),
        st.sampled_from(list(Kind)),
    ),
    min_size=1,
    max_size=12,
)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    DOCUMENTS,
    st.sampled_from(("red", "pool blue", "")),
    st.sampled_from(("", "a")),
    st.sampled_from(((), (1,), (2, 4))),
    st.tuples(st.integers(0, 9), st.integers(0, 9)),
    st.sampled_from(((), (Kind.EVENT,), (Kind.NODE, Kind.NOTE))),
)
def test_filters_never_leak(
    tmp_path: os.PathLike[str],
    rows: list[tuple[str, str, int, int, str, Kind]],
    text: str,
    session: str,
    roles: tuple[int, ...],
    times: tuple[int, int],
    kinds: tuple[Kind, ...],
) -> None:
    """Nothing that a filter forbids is found, not even as a neighbour of what is."""
    made = {
        f"{n}": Document(kind, f"{n}", words, n, time, name, n, "codex", role, project)
        for n, (words, name, role, time, project, kind) in enumerate(rows, 1)
    }
    shelf = Shelf(f"{os.fspath(tmp_path)}/leak", made.values())
    filters = Filters(
        kinds=kinds,
        roles=tuple(ROLE_NAMES[EventRole(role)] for role in roles),
        session=session,
        project="x",
        from_ms=times[0],
        to_ms=times[1],
    )
    found = shelf.find(text, filters) or [
        head.id for head in shelf.reader.newest(read(text), filters, 20)
    ]
    for document in (made[id_] for id_ in found):
        assert document.project == "x"
        assert not session or document.session == session
        assert not roles or document.role in roles
        assert not kinds or document.kind in kinds
        assert document.time_ms >= times[0]
        assert not times[1] or document.time_ms <= times[1]
    if not text:
        assert len(found) == shelf.reader.count(filters)


def test_a_subtree_holds_what_lies_in_it(shelve: Shelve) -> None:
    """The filter by node finds what has the node in its path, and a hit tells its path."""
    path = ("2026", "2026-05", "2026-05-11")
    shelf = shelve(
        [
            Document(Kind.EVENT, "in", "red pool", 1, 1, "s", 1, path=path),
            Document(Kind.EVENT, "out", "red pool", 2, 2, "t", 1, path=("2026", "2026-06")),
        ]
    )
    assert shelf.find("pool", Filters(node="2026-05")) == ["in"]
    assert sorted(shelf.find("pool", Filters(node="2026"))) == ["in", "out"]
    assert shelf.reader.pool(read("pool"), Filters(node="2026-05")).candidates[0].head.path == path


def test_a_document_replaces_the_one_before(shelve: Shelve) -> None:
    """Putting a node again leaves one of it, with its new words."""
    node = Document(Kind.NODE, "day", "red pool", 1, 1)
    shelf = shelve([node])
    shelf.writer.put([node._replace(text="blue lake")], replacing=True)
    shelf.commit({"log": 1})
    nodes = Filters(kinds=(Kind.NODE,))
    assert shelf.find("pool", nodes) == []
    assert shelf.find("lake", nodes) == ["day"]
    assert shelf.find("lake") == []
    shelf.writer.remove(Kind.NODE, ["day"])
    shelf.commit({"log": 1})
    assert shelf.find("lake") == []


def test_the_state_arrives_with_its_documents(shelve: Shelve) -> None:
    """A commit carries how far the sources were taken in; what was not committed is not there."""
    shelf = shelve(corpus.documents()[:5])
    shelf.writer.put(corpus.documents()[5:9], replacing=False)
    shelf.writer.close()
    reader = Reader(files.open_existing(shelf.path))
    words = sum(len(analyze.tokens(document.text)) for document in corpus.documents()[:5])
    assert reader.state() == State("store", {"log": 1}, 5, words=words)
    assert reader.count(Filters(kinds=(Kind.EVENT,))) == 5


def test_a_writer_goes_on_after_an_error(shelve: Shelve) -> None:
    """A document that cannot be indexed takes its batch back; the next batch is indexed."""
    shelf = shelve([])
    bad = Document(Kind.EVENT, "bad", "red", 1, 2**70, "s", 1)
    with pytest.raises(IndexDoubt):
        shelf.writer.put([corpus.documents()[0], bad], replacing=False)
    assert shelf.writer.waiting == 0
    shelf.writer.put(corpus.documents()[:3], replacing=False)
    shelf.commit({"log": 3})
    assert shelf.reader.count(Filters(kinds=(Kind.EVENT,))) == 3
    shelf.writer.rest()
    shelf.writer.put(corpus.documents()[3:4], replacing=False)
    shelf.commit({"log": 4})
    assert shelf.reader.state().events == 4


def test_an_index_without_meta_is_not_taken_for_a_new_one(shelve: Shelve) -> None:
    """A lost meta.json is a doubt, and so is a directory that is not there."""
    shelf = shelve(corpus.documents())
    os.unlink(f"{shelf.path}/meta.json")
    with pytest.raises(IndexDoubt, match=r"meta\.json is gone"):
        files.open_existing(shelf.path)
    with pytest.raises(IndexDoubt, match="no index yet"):
        files.open_existing(f"{shelf.path}-nowhere")


def test_every_flipped_bit_is_noticed(shelve: Shelve) -> None:
    """A file of a segment that is not what was written fails the check, whichever it is."""
    shelf = shelve(corpus.documents())
    shelf.writer.rest()
    files.check_files(shelf.path)
    names = [n for n in os.listdir(shelf.path) if n.partition(".")[0] and "meta" not in n]
    assert {"idx", "term", "store", "pos", "fast", "fieldnorm"} <= {
        n.rpartition(".")[2] for n in names
    }
    for name in names:
        path = f"{shelf.path}/{name}"
        shutil.copy(path, f"{shelf.path}.kept")
        with open(path, "r+b") as file:
            byte = file.read(1)[0]
            file.seek(0)
            file.write(bytes((byte ^ 1,)))
        with pytest.raises(IndexDoubt):
            files.check_files(shelf.path)
        shutil.copy(f"{shelf.path}.kept", path)
    files.check_files(shelf.path)
    os.truncate(f"{shelf.path}/{names[0]}", 3)
    with pytest.raises(IndexDoubt):
        files.check_files(shelf.path)


def test_many_common_terms_give_one_figure(shelve: Shelve, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where asking term by term would be slow, candidates still come, and in a sensible order."""
    monkeypatch.setattr("memoryd.index.reader._COSTLY", 0)
    shelf = shelve(corpus.documents())
    pool = shelf.reader.pool(read("connection pool closed"), Filters())
    assert pool.tokens == ()
    assert shelf.find("connection pool closed")[0] == "pool"


def test_nodes_do_not_change_how_events_are_weighed(shelve: Shelve) -> None:
    """The figures of events stay nearly what they were when nodes with the same words come in."""
    events = [Document(Kind.EVENT, f"{n}", f"word{n % 7} in the pool", n, n) for n in range(1, 60)]
    asked, shelf = read("pool word3"), shelve(events)
    before = {c.head.id: c.fits for c in shelf.reader.pool(asked, Filters()).candidates}
    nodes = [Document(Kind.NODE, f"n{n}", "pool word3 " * 9, n, n) for n in range(60)]
    shelf.writer.put(nodes, replacing=True)
    shelf.commit({"log": 1})
    after = {c.head.id: c.fits for c in shelf.reader.pool(asked, Filters()).candidates}
    assert after.keys() == before.keys()
    for id_, fits in before.items():
        assert after[id_] == pytest.approx(fits, rel=0.05)
