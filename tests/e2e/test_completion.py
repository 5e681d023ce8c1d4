"""Completion in shells: really in bash, and by what zsh and fish ask for."""

import json
import os
import pty
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from tests.faults.driver import House

BIN = os.path.dirname(sys.executable)


@pytest.fixture(scope="module")
def talk() -> Iterator[House]:
    """A daemon with an event, a note and a node."""
    house = House()
    house.serve()
    line = {"session_id": "5f1c-api", "agent": "codex", "role": "user", "text": "Hello"}
    line |= {"event_id": "01AA0000000000000000000001", "timestamp": "2026-06-01T10:00:00Z"}
    env = house.env | {"PATH": f"{BIN}:{house.env['PATH']}"}
    for command, data in (
        (["ingest"], json.dumps(line)),
        (["remember", "deploy", "-"], "Run make ship."),
        (["jobs", "run", "rollup-day"], ""),
    ):
        run = [f"{BIN}/memory", *command]
        subprocess.run(run, input=data, cwd=house.project, env=env, text=True, check=True)
    house.env = env
    yield house
    house.close()


def script_of(house: House) -> str:
    """The file with the script for bash, made once."""
    path = f"{house.base}/completion.bash"
    if not os.path.exists(path):
        with open(path, "wb") as file:
            subprocess.run(
                [f"{BIN}/memory", "completion", "bash"], env=house.env, stdout=file, check=True
            )
    return path


def completed(house: House, *words: str) -> list[str]:
    """What bash offers for the last of the words."""
    line = " ".join(f"'{word}'" for word in ("memory", *words))
    script = (
        f"source {script_of(house)}\n"
        f"COMP_WORDS=({line}); COMP_CWORD={len(words)}\n"
        '_memory_completion memory\nprintf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        cwd=house.project,
        env=house.env,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_commands_and_options_are_completed(talk: House) -> None:
    """Commands, commands of a group, options and their choices."""
    assert completed(talk, "ev") == ["event", "events"]
    assert "history" in completed(talk, "notes", "")
    assert "--since" in completed(talk, "events", "--s")
    assert completed(talk, "events", "--role", "us") == ["user"]


def test_names_are_completed_by_the_daemon(talk: House) -> None:
    """Agents, sessions, notes, jobs, and ids with colons in them."""
    assert completed(talk, "events", "--agent", "co") == ["codex"]
    assert completed(talk, "events", "--session", "") == ["5f1c-api"]
    assert completed(talk, "events", "--session", "5f") == ["5f1c-api"]
    assert completed(talk, "notes", "show", "de") == ["deploy"]
    assert completed(talk, "jobs", "run", "rollup-d") == ["rollup-day"]
    assert completed(talk, "show", "toc:day:") == ["toc:day:2026-06-01"]
    assert completed(talk, "event", "01A") == ["01AA0000000000000000000001"]


def test_without_a_daemon_names_are_not_completed(house: House) -> None:
    """Nothing is offered and nothing is printed; commands still are."""
    house.env["PATH"] = f"{BIN}:{house.env['PATH']}"
    assert completed(house, "events", "--agent", "co") == []
    assert completed(house, "show", "toc:") == []
    assert completed(house, "tod") == ["todo"]


def test_tab_works_in_an_interactive_bash(talk: House) -> None:
    """A person types the begin of a command, and Tab writes the rest."""
    parent, child = pty.openpty()
    shell = subprocess.Popen(
        ["bash", "--norc", "--noprofile", "-i"],
        stdin=child,
        stdout=child,
        stderr=child,
        start_new_session=True,
        cwd=talk.project,
        env=talk.env | {"TERM": "dumb", "PS1": "$ "},
    )
    os.close(child)
    try:
        os.write(parent, b'eval "$(memory completion bash)"; echo rea""dy\n')
        _until(parent, "\nready")
        os.write(parent, b"memory timel\t")
        _until(parent, "memory timeline")
        os.write(parent, b" --lev\t")
        _until(parent, "--level")
    finally:
        shell.kill()
        shell.wait()
        os.close(parent)


def _until(terminal: int, words: str) -> None:
    """Read a terminal until some words stand there."""
    said, deadline = "", time.monotonic() + 60
    while words not in said.replace("\r", ""):
        assert time.monotonic() < deadline, said
        if select.select([terminal], [], [], 1)[0]:
            said += os.read(terminal, 4096).decode(errors="replace")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_their_script(talk: House, shell: str) -> None:
    """The script is the shell's own, and what it asks us for is answered."""
    made = subprocess.run(
        [f"{BIN}/memory", "completion", shell],
        env=talk.env,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "_MEMORY_COMPLETE" in made
    asked = {"_MEMORY_COMPLETE": f"{shell}_complete", "COMP_CWORD": "2"}
    asked["COMP_WORDS"] = "memory events --ro"
    if shell == "fish":
        asked["COMP_CWORD"] = "--ro"
    told = subprocess.run(
        [f"{BIN}/memory"],
        cwd=talk.project,
        env=talk.env | asked,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "--role" in told.stdout
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=made, text=True, check=True)
