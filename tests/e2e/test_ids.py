"""Shortened ids on the command line, with a real daemon."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.faults.driver import House

BIN = os.path.dirname(sys.executable)
EVENTS = [
    ("01AA0000000000000000000001", "5f1c-api", "Why is the upload slow?"),
    ("01AA0000000000000000000002", "5f1c-api", "Please measure the upload."),
    ("01BB0000000000000000000003", "5f99-web", "The page is blank."),
]


def memory(house: House, *words: str, data: str = "") -> subprocess.CompletedProcess[str]:
    """Run `memory` in the house's project."""
    command = [f"{BIN}/memory", *words]
    return subprocess.run(
        command,
        input=data,
        capture_output=True,
        check=False,
        cwd=house.project,
        env=house.env,
        text=True,
        timeout=60,
    )


def rows(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    """The JSON lines of a command that must succeed."""
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def talk() -> Iterator[House]:
    """A daemon that holds two sessions and two notes."""
    house = House()
    house.serve()
    lines = [
        {
            "event_id": i,
            "session_id": s,
            "role": "user",
            "text": t,
            "timestamp_ms": 1_780_000_000_000 + n,
        }
        for n, (i, s, t) in enumerate(EVENTS)
    ]
    assert memory(house, "ingest", data="\n".join(map(json.dumps, lines))).returncode == 0
    for name in ("deploy", "deploy-old", "style"):
        assert memory(house, "remember", name, "Run make ship.").returncode == 0
    yield house
    house.close()


def test_events_open_by_their_beginning(talk: House) -> None:
    """`memory event` and `memory show` take what is unique of an id."""
    assert rows(memory(talk, "event", "01B"))[0]["text"] == "The page is blank."
    assert rows(memory(talk, "show", "01B"))[0]["event_id"] == EVENTS[2][0]


def test_sessions_filter_by_their_beginning(talk: House) -> None:
    """--session takes what is unique of a session's id."""
    assert len(rows(memory(talk, "events", "--session", "5f1"))) == 2
    assert rows(memory(talk, "events", "--session", "nobody")) == []


def test_ambiguous_id_lists_the_candidates(talk: House) -> None:
    """Several ids with one beginning are an error that names them."""
    done = memory(talk, "show", "01AA")
    assert done.returncode == 1
    assert EVENTS[0][0] in done.stderr
    assert EVENTS[1][0] in done.stderr
    done = memory(talk, "events", "--session", "5f")
    assert "5f1c-api" in done.stderr
    assert "5f99-web" in done.stderr
    assert done.returncode == 1


def test_notes_are_read_by_their_beginning(talk: House) -> None:
    """A note's whole name comes first; what is unique of another's is enough to read it."""
    assert rows(memory(talk, "notes", "show", "deploy"))[0]["name"] == "deploy"
    assert rows(memory(talk, "notes", "show", "st"))[0]["name"] == "style"
    assert rows(memory(talk, "notes", "history", "st"))[0]["name"] == "style"
    done = memory(talk, "notes", "show", "dep")
    assert done.returncode == 1
    assert "deploy-old" in done.stderr


def test_nothing_is_forgotten_by_a_beginning(talk: House) -> None:
    """`memory forget` wants the whole name, and says which there are."""
    done = memory(talk, "forget", "sty")
    assert done.returncode == 1
    assert "did you mean style?" in done.stderr
    assert rows(memory(talk, "notes", "show", "style"))


def test_a_piece_of_a_note_is_replaced(talk: House) -> None:
    """`memory notes replace` changes what occurs once, and refuses what does not occur."""
    changed = rows(memory(talk, "notes", "replace", "deploy-old", "make ship", "make go"))
    assert changed[0]["content"] == "Run make go."
    assert memory(talk, "notes", "replace", "deploy-old", "nothing", "x").returncode == 1


def test_related_and_sessions_are_found(talk: House) -> None:
    """`memory related` takes a short id; `memory search --sessions` gives sessions with turns."""
    rows(memory(talk, "related", "01AA0000000000000000000001"))
    found = rows(memory(talk, "search", "--sessions", "upload"))
    assert [hit["session"]["session_id"] for hit in found] == ["5f1c-api"]
    assert found[0]["results"]
