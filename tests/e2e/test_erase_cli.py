import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from memoryd import project
from tests.faults.driver import House

MEMORY = f"{os.path.dirname(sys.executable)}/memory"
SECRET = "the orchard gate opens with a clarinet"


def memory(house: House, *arguments: str, data: str = "") -> subprocess.CompletedProcess[str]:
    """Run `memory` to its end."""
    return subprocess.run(
        [MEMORY, *arguments],
        cwd=house.project,
        env=house.env,
        input=data,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


def typed(house: House, answer: str, *arguments: str) -> tuple[int, str]:
    """Run `memory` at a terminal, answer its question, and see what it shows."""
    main, other = pty.openpty()
    env = house.env | {"TERM": "dumb", "COLUMNS": "200"}
    process = subprocess.Popen(
        [MEMORY, *arguments], cwd=house.project, env=env, stdin=other, stdout=other, stderr=other
    )
    os.close(other)
    os.write(main, answer.encode() + b"\n")
    shown = b""
    while True:
        try:
            chunk = os.read(main, 4096)
        except OSError:
            break
        if not chunk:
            break
        shown += chunk
    os.close(main)
    return process.wait(90), shown.decode()


@pytest.fixture
def house() -> Iterator[House]:
    """A home with a daemon that was told five things, two of them secret."""
    made = House()
    made.env["TZ"] = "UTC"
    made.serve()
    lines = []
    for number in range(5):
        text = f"{SECRET}, {number}" if number in {1, 3} else f"ordinary line {number}"
        event: dict[str, object] = {
            "event_id": f"e{number}",
            "session_id": f"s{number % 2}",
            "role": "user",
        }
        event |= {"timestamp_ms": 1_769_860_800_000 + number * 60_000, "text": text}
        lines.append(json.dumps(event))
    assert memory(made, "ingest", data="\n".join(lines)).returncode == 0
    yield made
    made.close()


def test_events_are_shown_then_erased(house: House) -> None:
    """A dry run changes nothing, nothing goes unasked, and what was asked for goes."""
    day = ("--between", "2026-01-31", "2026-01-31", "--matching", "CLARINET")
    dry = memory(house, "forget-events", *day, "--dry-run")
    plan = json.loads(dry.stdout)
    assert (plan["count"], [e["event_id"] for e in plan["events"]]) == (2, ["e1", "e3"])
    assert "clarinet" not in dry.stdout
    unasked = memory(house, "forget-events", *day)
    assert unasked.returncode == 1
    assert "--yes" in unasked.stderr
    code, shown = typed(house, "no", "forget-events", *day)
    assert code == 1
    assert "2 events of 1 session" in shown
    assert "the orchard gate" in shown
    assert "backups" in shown
    assert "nothing was erased" in shown
    assert SECRET in memory(house, "event", "e1").stdout
    code, shown = typed(house, "2", "forget-events", *day, "--reason", "a neighbour asked")
    assert code == 0, shown
    assert "erased: 2 events, receipt 1" in shown
    assert "None of their words is left" in shown
    event = json.loads(memory(house, "event", "e1").stdout)
    assert (event["text"], event["sequence"]) == ("", 2)
    assert event["erased_ms"]
    assert "erased" in memory(house, "events", "--no-json").stdout
    (receipt,) = [json.loads(line) for line in memory(house, "receipts").stdout.splitlines()]
    assert (receipt["events"], receipt["reason"]) == (2, "a neighbour asked")
    assert (receipt["uid"], receipt["outcome"]["remains"]) == (os.getuid(), [])
    named = [json.loads(line) for line in memory(house, "receipts", "1").stdout.splitlines()]
    assert [e["event_id"] for e in named] == ["e1", "e3"]


def test_scripts_say_yes_and_name_what_there_is(house: House) -> None:
    """--yes asks nothing; an unknown event, no filter and nothing found erase nothing."""
    assert memory(house, "forget-events", "--yes").returncode == 2
    missing = memory(house, "forget-events", "--event", "nobody", "--yes")
    assert (missing.returncode, "nobody" in missing.stderr) == (1, True)
    assert memory(house, "forget-events", "--session", "s9", "--yes").returncode == 0
    assert memory(house, "receipts").stdout == ""
    done = memory(house, "forget-events", "--event", "e0", "--event", "e1", "--yes")
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["erased"], answer["remains"]) == (0, 2, [])
    assert answer["receipt"] == 1


def test_a_copy_carries_the_erasure(house: House) -> None:
    """An erased event is in an exported copy without its words, and stays so when restored."""
    memory(house, "forget-events", "--event", "e1", "--yes")
    copy = f"{house.base}/copy.jsonl"
    assert memory(house, "export", "--jsonl", copy).returncode == 0
    with open(copy, encoding="utf-8") as file:
        text = file.read()
    assert f"{SECRET}, 1" not in text
    assert f"{SECRET}, 3" in text
    again = json.loads(memory(house, "import", "--jsonl", copy).stdout)
    assert again["refused"] == 0


def test_wipe_removes_one_project(house: House) -> None:
    """After its name was typed, a project's data and socket are gone, and the others are there."""
    name = project.id_of_root(os.path.realpath(house.project))
    home = f"{house.base}/d/memoryd"
    os.makedirs(f"{home}/neighbour-0a0b0c0d/db")
    os.makedirs(f"{house.base}/b/kept")
    dry = json.loads(memory(house, "wipe", "--dry-run").stdout)
    assert list(dry["places"]) == [f"{home}/{name}"]
    assert memory(house, "wipe").returncode == 1
    wrong = memory(house, "wipe", "--yes", "neighbour-0a0b0c0d")
    assert (wrong.returncode, name in wrong.stderr) == (1, True)
    assert memory(house, "wipe", "--yes", name, "--backup", house.base).returncode == 1
    assert memory(house, "status").returncode == 0
    code, shown = typed(house, name, "wipe", "--backup", f"{house.base}/b/kept")
    assert code == 0, shown
    assert sorted(os.listdir(home)) == ["neighbour-0a0b0c0d"]
    assert os.listdir(f"{house.base}/b") == []
    assert house.socket == ""
    assert memory(house, "status").returncode == 3
    assert memory(house, "wipe", "--yes", name).returncode == 1
    house.serve()
    assert json.loads(memory(house, "status").stdout)["sequence"] == 0


def test_wipe_refuses_if_the_daemon_does_not_end(house: House) -> None:
    """A daemon that cannot be stopped keeps its data."""
    name = project.id_of_root(os.path.realpath(house.project))
    pid = json.loads(memory(house, "status").stdout)["pid"]
    os.kill(pid, signal.SIGSTOP)  # it holds the lock and hears nothing
    try:
        done = memory(house, "wipe", "--yes", name, "--wait", "1")
    finally:
        os.kill(pid, signal.SIGCONT)
    assert done.returncode == 1
    assert "nothing was removed" in done.stderr
    assert os.path.exists(f"{house.base}/d/memoryd/{name}/db/CURRENT")


def test_the_token_is_rotated_by_hand(house: House) -> None:
    """Without TCP the command says that there is no token."""
    done = memory(house, "token", "rotate")
    assert (done.returncode, "not turned on" in done.stderr) == (1, True)
