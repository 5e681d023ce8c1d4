import json
import os
import stat
from typing import Any

import pytest

from tests.e2e.test_cli import BIN, House, home, house

__all__ = ("home", "house")


def editor(home: House, script: str) -> str:
    """A program that changes a file as an editor would."""
    path = f"{home.base}/editor"
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\n{script}\n")
    os.chmod(path, stat.S_IRWXU)
    return path


def row(home: House, *args: str) -> dict[str, Any]:
    """The one JSON object that a command prints."""
    (found,) = home.rows(*args)
    return found


def test_notes_from_the_command_line(home: House) -> None:
    """A note is written, added to, found, shown, forgotten and restored."""
    first = row(home, "remember", "deploy", "Run make ship.", "--tag", "ops", "--alias", "ship it")
    assert (first["created"], first["note"]["revision"]) == (True, 1)
    again = row(home, "remember", "deploy", "Run  make ship.\nThen rest.", "--author", "me")
    assert (again["dropped_lines"], again["note"]["author"]) == (1, "me")
    assert row(home, "notes", "show", "ship it")["content"] == "Run make ship.\nThen rest."
    assert row(home, "recall", "mak*")["note"]["name"] == "deploy"
    assert home.memory("recall", "nothing").stdout == ""
    done = home.memory("remember", "big", "--overwrite", "-", data="x" * 70_000)
    assert (done.returncode, "over the limit of 64 KiB" in done.stderr) == (1, True)
    home.memory("remember", "long", "-", data="from stdin", scope="")
    assert [n["name"] for n in home.rows("notes")] == ["deploy", "long"]
    assert row(home, "notes", "list", "--tag", "ops", "--count") == {"count": 1}
    assert row(home, "forget", "deploy")["forgotten"]
    assert home.memory("notes", "show", "deploy").returncode == 1
    assert row(home, "notes", "restore", "deploy", "--revision", "1")["content"] == "Run make ship."
    assert [r["action"] for r in home.rows("notes", "history", "deploy")] == [
        "restore",
        "forget",
        "remember",
        "remember",
    ]
    assert row(home, "notes", "aliases", "deploy")["aliases"] == []
    shared = row(home, "remember", "style", "short", "--scope", "global", "--pin")
    assert (shared["note"]["scope"], shared["note"]["pinned"]) == ("global", True)
    for wrong in (["remember", "x"], ["remember", "x", "--overwrite", "--tag", "t"]):
        assert home.memory(*wrong).returncode == 2


def test_people_get_text(home: House) -> None:
    """Without JSON the commands answer in words, and control characters are not obeyed."""
    home.memory("remember", "n", "a\x1b[31m\nb", "--tag", "t")
    for args, part in (
        (("remember", "n", "a\x1b[31m"), "n: unchanged, revision 1, 1 lines were there already"),
        (("recall", "b"), "n  project note"),
        (("notes",), "project"),
        (("notes", "show", "n"), "revision"),
        (("notes", "history", "n"), "remember"),
        (("notes", "aliases", "n", "m"), "n: changed, revision 2"),
        (("todo",), "nothing is open"),
        (("todo", "add", "one"), "SCRATCHPAD: created, revision 1"),
        (("todo", "list"), "1 [ ] one"),
        (("todo", "done", "1"), "done: one"),
        (("daily", "add", "hello"), "created, revision 1"),
        (("daily", "show"), "hello"),
        (("forget", "m"), "n: forgotten"),
        (("notes", "restore", "n"), "n: restored, revision 4"),
    ):
        done = home.memory("--no-json", *args)
        assert part in done.stdout, (args, done)
        assert "\x1b[31m" not in done.stdout


def test_the_scratchpad(home: House) -> None:
    """Items are added once, listed by number, and ticked by number or words."""
    for text in ("Rename the flag", "write docs", "Rename the flag"):
        home.memory("todo", "add", text)
    assert home.rows("todo") == [
        {"number": 1, "text": "Rename the flag", "done": False},
        {"number": 2, "text": "write docs", "done": False},
    ]
    assert row(home, "todo", "done", "RENAME") == {"text": "Rename the flag", "done": True}
    assert [i["number"] for i in home.rows("todo", "list")] == [2]
    assert [i["done"] for i in home.rows("todo", "list", "--all")] == [True, False]
    assert row(home, "todo", "done", "1", "--undo")["done"] is False
    for wrong in ("7", "e", "nothing"):
        done = home.memory("todo", "done", wrong)
        assert done.returncode == 1, done
    assert home.memory("todo", "add", " ").returncode == 2


def test_the_log_of_a_day(home: House) -> None:
    """Entries of a day stand in one log, each under its time and heading."""
    home.memory("daily", "add", "first", "--heading", "Plan")
    home.memory("daily", "add", "-", data="second\n")
    log = row(home, "daily", "show")
    assert log["content"].startswith(f"# {log['name']}\n\n## ")
    assert "Plan\n\nfirst\n\n## " in log["content"]
    assert log["content"].endswith("second\n")
    assert home.memory("daily", "show", "2001-01-01").returncode == 1
    assert home.memory("daily", "show", "whenever").returncode == 2


def test_a_session_is_archived(home: House) -> None:
    """The summary of a session is kept once, and stands in the log of the day."""
    args = ("notes", "archive", "s1", "We fixed it.", "--messages", "12")
    first = row(home, *args)
    assert (first["created"], first["archive"]["kind"]) == (True, "archive")
    assert not row(home, *args)["created"]
    assert "compaction summary (12 msgs)" in row(home, "daily", "show")["content"]
    assert home.memory("--no-json", *args).stdout.endswith(": unchanged\n")


def test_a_note_in_an_editor(home: House) -> None:
    """What the editor leaves becomes the next revision; without a change there is none."""
    program = editor(home, 'echo "more" >> "$1"')
    home.memory("remember", "n", "text", "--tag", "t")
    changed = json.loads(home.memory("edit", "n", EDITOR=program).stdout)
    assert (changed["revision"], changed["content"]) == (2, "text\nmore")
    shown = row(home, "notes", "show", "n")
    assert (shown["content"], shown["tags"], shown["action"]) == ("text\nmore", ["t"], "edit")
    assert home.memory("edit", "n", EDITOR="true").returncode == 0
    assert row(home, "notes", "show", "n")["revision"] == 2
    home.memory("edit", "new", EDITOR=program)
    assert row(home, "notes", "show", "new")["content"] == "\nmore"
    program = editor(home, "sed -i 's/<dd>t</<dd>u</' \"$1\"")
    home.memory("edit", "n", "--all", EDITOR=program)
    assert row(home, "notes", "show", "n")["tags"] == ["u"]
    program = editor(home, "sed -i 's/<dd>n</<dd>m</' \"$1\"")
    done = home.memory("edit", "n", "--all", EDITOR=program)
    assert (done.returncode, "cannot be changed" in done.stderr) == (1, True)
    for bad in ("false", "/does/not/exist"):
        assert home.memory("edit", "n", EDITOR=bad).returncode == 1


def test_an_editor_overwrites_nobody(home: House) -> None:
    """If the note has changed meanwhile, the text is kept in a file and nothing is overwritten."""
    home.memory("remember", "n", "text")
    memory = f"{BIN}/memory"
    program = editor(home, f'{memory} remember n faster >/dev/null; echo mine >> "$1"')
    done = home.memory("edit", "n", EDITOR=program)
    assert done.returncode == 1
    assert "has another revision 2" in done.stderr
    kept = done.stderr.split("kept in ")[1].splitlines()[0]
    with open(kept, encoding="utf-8") as file:
        assert file.read() == "text\nmine\n"
    os.unlink(kept)
    assert row(home, "notes", "show", "n")["content"] == "text\nfaster"


@pytest.mark.parametrize("command", ["remember", "recall", "forget", "notes", "edit", "todo"])
def test_help_has_examples(house: House, command: str) -> None:
    """Every command's help shows how it is used."""
    assert "Example" in house.memory(command, "--help").stdout
