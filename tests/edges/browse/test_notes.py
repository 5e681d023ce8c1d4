"""Notes in the browser: read, write and edit in an editor, forget."""

import os
from contextlib import nullcontext

import pytest
from textual.widgets import Input, OptionList

from memoryd.edges.browse import editor
from memoryd.edges.browse.notes import NotesRoom
from memoryd.edges.browse.rooms import Naming, Question
from memoryd.wire import Missing
from tests.edges.browse.conftest import Sitting, sit
from tests.faults.driver import House

pytestmark = pytest.mark.usefixtures("harbour")


@pytest.fixture
def pen(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> str:
    """An editor that adds a line to whatever it is given."""
    path = f"{tmp_path}/pen"
    with open(path, "w", encoding="utf-8") as file:
        file.write('#!/bin/sh\necho "[b]a line[/b]" >> "$1"\n')
    os.chmod(path, 0o755)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return path


def left_over(pen: str) -> list[str]:
    """The files that were left in the temporary directory."""
    return [name for name in os.listdir(os.path.dirname(pen)) if name.startswith("memory-")]


async def open_notes(you: Sitting) -> NotesRoom:
    """Go to the notes; the test's terminal cannot really be left to an editor."""
    you.app.suspend = nullcontext  # type: ignore[method-assign, assignment]
    await you.press("n")
    await you.sees("outbox", "Never send without the key")
    room = you.app.screen
    assert isinstance(room, NotesRoom)
    return room


def test_notes_are_listed_and_read(harbour: House) -> None:
    """What is pinned stands first; the cursor shows the note under it."""

    async def walk(you: Sitting) -> None:
        room = await open_notes(you)
        assert room.chosen
        assert room.chosen["name"] == "outbox"
        await you.sees("★ outbox", "tags decision, sms")
        await you.press("j", "j", "k")
        await you.until(lambda: room.chosen and room.chosen["name"] != "outbox", "another note")

    sit(harbour, walk)


def test_a_note_is_written_edited_and_forgotten(harbour: House, pen: str) -> None:
    """A name, the editor, a new revision; then a question, and only yes forgets."""

    async def walk(you: Sitting) -> None:
        room = await open_notes(you)
        await you.press("w")
        await you.enters(Naming)
        await you.press("escape")
        await you.press("w")
        await you.enters(Naming)
        await you.focuses(Input)
        await you.types("tide tables")
        await you.press("enter")
        await you.sees("tide tables", "revision 1")
        await you.sees("[b]a line[/b]")
        await you.press("e")
        await you.sees("revision 2")
        for key in ("n", "y"):
            await you.press("d")
            await you.enters(Question)
            await you.sees("Forget the note tide tables?")
            with you.client() as connected:
                assert connected.note("Get", name="tide tables")["note"]["revision"] == 2
            await you.press(key)
        await you.until(lambda: "tide tables" not in you.text, "it is forgotten")
        assert room.query_one(OptionList).option_count >= 4
        with you.client() as connected, pytest.raises(Missing):
            connected.note("Get", name="tide tables")
        assert left_over(pen) == []

    sit(harbour, walk)


def test_what_somebody_else_changed_is_not_overwritten(harbour: House, pen: str) -> None:
    """The text of the editor is kept in a file, and the other's revision stays."""

    async def walk(you: Sitting) -> None:
        room = await open_notes(you)
        with you.client() as connected:
            connected.note("Remember", name="outbox", content="Said meanwhile.", scope="project")
        await you.press("e")
        await you.hears("your text is kept in")
        assert len(left_over(pen)) == 1
        assert room.chosen
        with you.client() as connected:
            content = connected.note("Get", name="outbox")["note"]["content"]
        assert "Said meanwhile." in content
        assert "a line" not in content

    sit(harbour, walk)


def test_an_editor_that_fails_changes_nothing(
    harbour: House, pen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An editor that ends badly, or is not there, is named; nothing is left."""
    monkeypatch.setenv("EDITOR", "false")

    async def walk(you: Sitting) -> None:
        await open_notes(you)
        await you.press("e")
        await you.hears("nothing was changed")

    sit(harbour, walk)
    with pytest.raises(editor.EditorFailed, match="set EDITOR"):
        editor.changed("text", {"EDITOR": "/nowhere/ed"})
    assert left_over(pen) == []
    assert editor.changed("text", {"EDITOR": "true"})[0] == "text"
