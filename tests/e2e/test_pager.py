"""Long answers through a pager, on a real terminal."""

import json
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from tests.faults.driver import House

BIN = os.path.dirname(sys.executable)
LINES = 200


@pytest.fixture(scope="module")
def talk() -> Iterator[House]:
    """A daemon whose newest events fill several screens."""
    house = House()
    house.serve()
    now = time.time_ns() // 1_000_000
    lines = [
        {"session_id": "s", "role": "user", "text": f"line {n}", "timestamp_ms": now - LINES + n}
        for n in range(LINES)
    ]
    done = subprocess.run(
        [f"{BIN}/memory", "ingest"],
        input="\n".join(map(json.dumps, lines)),
        cwd=house.project,
        env=house.env,
        text=True,
        check=False,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    yield house
    house.close()


def at_a_terminal(house: House, *words: str, keys: bytes = b"", **env: str) -> tuple[int, str]:
    """The exit code of `memory` in a terminal of its own, and what is on it then."""
    parent, child = pty.openpty()
    kept = {k: v for k, v in house.env.items() if k not in {"PAGER", "LESS", "NO_COLOR"}}
    run = subprocess.Popen(
        [f"{BIN}/memory", *words],
        stdin=child,
        stdout=child,
        stderr=child,
        start_new_session=True,
        cwd=house.project,
        env=kept | {"TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"} | env,
    )
    os.close(child)
    said = b""
    while select.select([parent], [], [], 30)[0]:
        try:
            said += os.read(parent, 65536)
        except OSError:
            break
        if keys and b"line 151" in said:
            os.write(parent, keys)
            keys = b""
    os.close(parent)
    return run.wait(30), said.decode()


def test_people_get_their_pager(talk: House) -> None:
    """What a command prints goes through $PAGER, which is told LESS=FRX."""
    code, said = at_a_terminal(talk, "events", PAGER="sh -c 'echo [$LESS]; sed s/^/paged:/'")
    assert code == 0
    assert "[FRX]" in said
    assert said.count("paged:") > 50
    assert "\x1b[" not in said  # nobody knows whether this pager lets colours through


def test_less_waits_with_the_first_screen(talk: House) -> None:
    """Less shows the begin, in colour, and quitting it ends the command well."""
    code, said = at_a_terminal(talk, "events", keys=b"q", PAGER="less")
    assert code == 0
    assert "line 151" in said
    assert "line 199" not in said
    assert "\x1b[" in said


def test_a_short_answer_is_not_held_back(talk: House) -> None:
    """An answer that fits on the screen is printed and the command ends by itself."""
    code, said = at_a_terminal(talk, "events", "--limit", "2")
    assert code == 0
    assert "line 199" in said


@pytest.mark.parametrize(
    ("words", "pager"),
    [
        (("events", "--no-pager"), "false"),
        (("--no-pager", "events"), "false"),
        (("events",), "cat"),
        (("events",), ""),
        (("events",), "no-such-pager"),
        (("events", "--json"), "false"),
    ],
)
def test_who_wants_no_pager_gets_none(talk: House, words: tuple[str, ...], pager: str) -> None:
    """--no-pager, PAGER=cat, an empty or a missing one, and JSON: all is printed at once."""
    code, said = at_a_terminal(talk, *words, PAGER=pager)
    assert code == 0
    assert "line 199" in said


def test_a_pager_that_ends_early_does_no_harm(talk: House) -> None:
    """The reader has seen enough."""
    assert at_a_terminal(talk, "events", "--limit", "0", PAGER="head -1")[0] == 0


def test_no_color_holds_in_the_pager_too(talk: House) -> None:
    """NO_COLOR takes the colours away, also on the way through less."""
    _, said = at_a_terminal(talk, "events", keys=b"q", PAGER="less", NO_COLOR="1")
    assert "line 151" in said
    assert "36m" not in said


def test_a_pipe_is_never_paged(talk: House) -> None:
    """What is piped goes to the pipe, as JSON."""
    done = subprocess.run(
        [f"{BIN}/memory", "events", "--limit", "1"],
        cwd=talk.project,
        env=talk.env | {"PAGER": "false"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert json.loads(done.stdout)["text"] == "line 199"
