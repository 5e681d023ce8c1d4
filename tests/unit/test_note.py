from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.domain import notepage, notetext
from memoryd.domain.errors import InvalidInput
from memoryd.domain.note import CONTENT_LIMIT, Note, Place, checked, note_id

PRINTABLE = st.text(st.characters(exclude_categories=["Cs"]).filter(str.isprintable), min_size=1)
NAMES = PRINTABLE.map(str.strip).filter(lambda s: s and len(s.encode()) <= 256)
WORDS = NAMES.filter(lambda s: " " not in s and len(s.encode()) <= 64)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
LOOKALIKE = st.sampled_from(
    ['<dl class="memoryd-note">', "</dl>", "<dt>name</dt><dd>x</dd>", "", "\r", "```", "- [ ] a"]
)
CONTENTS = TEXTS | st.lists(TEXTS | LOOKALIKE, max_size=6).map("\n".join)


@st.composite
def notes(draw: st.DrawFn) -> Note:
    """Any note that is allowed."""
    scope = draw(st.sampled_from(["session", "project", "global"]))
    return checked(
        Note(
            name=draw(NAMES),
            content=draw(CONTENTS),
            aliases=tuple(draw(st.lists(NAMES, max_size=3))),
            kind=draw(st.sampled_from(["note", "archive", "scratchpad", "daily"])),
            category=draw(st.just("") | WORDS),
            scope=scope,
            session_id=draw(NAMES if scope == "session" else st.just("") | NAMES),
            tags=tuple(draw(st.lists(WORDS, max_size=3))),
            created_ms=draw(st.integers(0, 9_223_372_036_854)),
            changed_ms=draw(st.integers(0, 9_223_372_036_854)),
            author=draw(st.just("") | NAMES),
            provenance=tuple(draw(st.lists(NAMES, max_size=3))),
            pinned=draw(st.booleans()),
        )
    )


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"name": ""}, "name is empty"),
        ({"name": "a\nb"}, "name holds characters"),
        ({"name": " a"}, "begins or ends with a space"),
        ({"name": "é" * 129}, "name has 258 bytes"),
        ({"kind": "memo"}, "kind 'memo' is not known: take one of note, archive"),
        ({"scope": "all"}, "scope 'all' is not known"),
        ({"scope": "session"}, "session_id is empty"),
        ({"category": "two words"}, "category 'two words' is not one word"),
        ({"tags": ("x" * 65,)}, "a tag 'xxx"),
        ({"aliases": ("a", "")}, "an entry of aliases is empty"),
        ({"tags": tuple(f"t{n}" for n in range(65))}, "tags has 65 entries"),
        ({"content": "x" * (CONTENT_LIMIT + 1)}, "content has 1048577 bytes"),
        ({"content": "\ud800"}, "content is not valid Unicode"),
        ({"created_ms": -1}, "created_ms -1 is out of range"),
        ({"author": "\x1b"}, "author holds characters"),
    ],
)
def test_a_note_that_breaks_a_limit_is_refused(change: dict[str, Any], named: str) -> None:
    """Every limit is checked, and the refusal names the field."""
    with pytest.raises(InvalidInput, match=named.replace("(", r"\(")):
        checked(Note("n")._replace(**change))


def test_a_note_is_completed() -> None:
    """The category follows from the kind, and lists hold each entry once."""
    made = checked(Note("n", aliases=("a", "n", "a"), tags=("t", "t"), kind="archive"))
    assert (made.aliases, made.tags, made.category) == (("a",), ("t",), "conversation")
    assert checked(Note("n", kind="daily")).category == "daily"
    assert checked(Note("n")).category == "core"
    assert checked(Note("n", category="recipes")).category == "recipes"


def test_names_are_unique_in_their_place() -> None:
    """A session counts for notes of a session alone; the id follows from place, name and time."""
    assert Note("n", session_id="s").place == Place("project")
    assert Note("n", scope="session", session_id="s").place == Place("session", "", "s")
    assert Note("n", scope="global", project="p").place == Place("global")
    same = {note_id(Note("n", text, created_ms=5)) for text in ("a", "b")}
    other = {note_id(Note("n", created_ms=6)), note_id(Note("m", created_ms=5))}
    assert len(same) == 1
    assert len(same | other) == 3


def test_appending_leaves_out_what_is_there() -> None:
    """Lines that differ in nothing but spaces are there already, and are counted."""
    old = "- use uv\n- tests live in tests/"
    assert notetext.append(old, "-  use   uv\n- new") == (f"{old}\n- new", 1)
    assert notetext.append(old, "- use uv") == (old, 1)
    assert notetext.append(old, "a\n\n\nb\n") == (f"{old}\na\n\n\nb\n", 0)
    assert notetext.append("", "a\na") == ("a\na", 0)
    assert notetext.append("a\n", "b\n\na\n\nc\n") == ("a\nb\n\nc\n", 1)


def test_appending_breaks_no_code() -> None:
    """A block of code stays whole, or is left out whole."""
    old = "```sh\nmake\n}\n```"
    other = "text\n```sh\nmake test\n}\n```\n"
    assert notetext.append(old, other) == (f"{old}\n{other}", 0)
    assert notetext.append(old, f"new\n{old}") == (f"{old}\nnew", 4)
    assert notetext.append(old, "~~~\n```\n}") == (f"{old}\n~~~\n```\n}}", 0)


@given(CONTENTS, CONTENTS)
def test_appending_twice_is_appending_once(old: str, new: str) -> None:
    """What has been appended is there: appending it again adds no line that says something."""
    once = notetext.append(old, new).text
    assert once.startswith(old)
    if "```" not in old + new and "~~~" not in old + new:
        assert notetext.append(once, new).text.split() == once.split()


def test_an_edit_needs_one_place() -> None:
    """A text that occurs once is replaced; none, two and overlapping places are refused."""
    assert notetext.edit("a b c", "b", "x\ny") == "a x\ny c"
    for text, old, reason in (
        ("a", "b", "does not occur"),
        ("b b", "b", "more than once"),
        ("aaa", "aa", "more than once"),
        ("a", "", "is empty"),
    ):
        with pytest.raises(InvalidInput, match=reason):
            notetext.edit(text, old, "x")


def test_a_checklist_is_read_and_ticked() -> None:
    """Open and done entries are found by their lines and change in place."""
    text = "# todo\n- [ ] one\n  * [x] two\n- [] no\ntext\n- [X] three"
    assert notetext.items(text) == [(1, "one", False), (2, "two", True), (5, "three", True)]
    assert notetext.tick(text, 1) == text.replace("- [ ] one", "- [x] one")
    assert notetext.tick(text, 2, done=False) == text.replace("[x] two", "[ ] two")
    for line in (0, 3, 99, -1):
        with pytest.raises(InvalidInput):
            notetext.tick(text, line)
    assert notetext.todo(" buy milk ") == "- [ ] buy milk"
    with pytest.raises(InvalidInput):
        notetext.todo("a\nb")


def test_a_day_gets_one_log() -> None:
    """The first entry begins the log with the day; later ones follow under their time."""
    first = notetext.daily_entry("", "2026-11-18", "09:05", "Plan", "ship it\n")
    assert first == "# 2026-11-18\n\n## 09:05 Plan\n\nship it\n"
    second = notetext.daily_entry(first, "2026-11-18", "10:00", "", "more")
    assert second == f"{first}\n## 10:00\n\nmore\n"
    with pytest.raises(InvalidInput):
        notetext.daily_entry("", "2026-11-18", "10:00", "a\nb", "")


def test_archives_are_the_same_for_the_same_summary() -> None:
    """Name and text follow from what was said, and from nothing else."""
    name = notetext.archive_name("s1", 12, "we did")
    assert name == notetext.archive_name("s1", 12, "we did")
    assert name != notetext.archive_name("s1", 13, "we did")
    assert name.startswith("archive s1 ")
    assert len(notetext.archive_name("é" * 128, 1, "x").encode()) <= 256
    text = notetext.archive_text(
        "s1", "2026-11-18", "10:00", notetext.compaction_heading(12), "we did"
    )
    assert text == "# compaction summary (12 msgs)\n\nsession s1, 2026-11-18 10:00\n\nwe did\n"


@given(notes())
def test_a_page_comes_back_exactly(note: Note) -> None:
    """Reading a written page gives every field and the content, character by character."""
    fields, content = notepage.read(notepage.write(note))
    assert fields is not None
    assert Note(**fields, content=content) == note
    assert notepage.write(Note(**fields, content=content)) == notepage.write(note)


@given(CONTENTS.filter(lambda text: not text.startswith("<dl class")))
def test_a_page_without_fields_is_all_content(text: str) -> None:
    """Anybody's Markdown is taken as it is."""
    assert notepage.read(text) == (None, text)


def test_a_page_may_have_been_edited() -> None:
    """Windows line ends, a mark of byte order and a missing blank line do no harm."""
    page = '\ufeff<dl class="memoryd-note">\r\n<dt>name</dt><dd>a &amp; b</dd>\r\n</dl>\r\ntext\r\n'
    assert notepage.read(page) == ({"name": "a & b"}, "text\r")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("<dt>nome</dt><dd>x</dd>", "line 2: .* is no field of a note"),
        ("name: x", "line 2: 'name: x' is no field"),
        ("<dt>created_ms</dt><dd>noon</dd>", "line 2: created_ms has a value"),
        ("<dt>pinned</dt><dd>maybe</dd>", "line 2: pinned has a value"),
        ("<dt>name</dt><dd>a</dd><dd>b</dd>", "line 2: name has a value"),
    ],
)
def test_fields_that_make_no_sense_are_named(line: str, reason: str) -> None:
    """A broken list is an error that names the line."""
    with pytest.raises(ValueError, match=reason):
        notepage.read(f'<dl class="memoryd-note">\n{line}\n</dl>\n')
    with pytest.raises(ValueError, match="line 2: the list of fields has no end"):
        notepage.read('<dl class="memoryd-note">\n<dt>name</dt><dd>x</dd>')
