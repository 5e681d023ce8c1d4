import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.faults.driver import House

BIN = os.path.dirname(sys.executable)


def memory(house: House, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command of `memory` to its end."""
    return subprocess.run(
        [f"{BIN}/memory", *arguments],
        cwd=house.project,
        env=house.env,
        input=text,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def answer(house: House, *arguments: str) -> dict[str, Any]:
    """What a command answers in JSON."""
    done = memory(house, *arguments)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def write(house: House, first: int, count: int) -> None:
    """Have events written."""
    events = [
        {"session_id": "s", "role": "user", "text": f"event {first + n}"} for n in range(count)
    ]
    done = memory(house, "ingest", text="\n".join(map(json.dumps, events)))
    assert done.returncode == 0, done.stderr


def test_from_backup_to_restore(house: House) -> None:
    """A daemon is backed up and checked while it runs; a restored store is the older one."""
    daemon = house.serve()
    data_dir = daemon.status().data_dir
    write(house, 0, 30)
    made = answer(house, "backup", f"{house.base}/b")
    assert made["sequence"] == 30
    write(house, 30, 10)
    found = answer(house, "verify")
    assert (found["events"], found["problems"]) == (40, [])
    sizes = answer(house, "compact")
    assert min(sizes["before"], sizes["after"]) > 0
    refused = memory(house, "restore", f"{house.base}/b")
    assert refused.returncode == 1
    assert "is in use by process" in refused.stderr
    done = answer(house, "restore", f"{house.base}/b", "--stop")
    assert (done["events"], os.path.dirname(done["aside"])) == (30, os.path.dirname(data_dir))
    offline = answer(house, "verify")
    assert (offline["events"], offline["problems"]) == (30, [])
    assert house.serve().status().sequence == 30


def test_from_damage_to_repair(house: House) -> None:
    """A damaged store is found so, says what to run, and serves what is left after a repair."""
    daemon = house.serve()
    data_dir = daemon.status().data_dir
    write(house, 0, 20)
    daemon.kill()
    for name in os.listdir(f"{data_dir}/db"):
        if name.endswith(".log"):
            os.unlink(f"{data_dir}/db/{name}")
    done = memory(house, "verify", "--json")
    assert done.returncode == 1
    problem, other = json.loads(done.stdout)["problems"]
    assert "has lost its id" in other["text"]
    assert problem["text"] == "events 1 to 20 are lost: the log ends before them"
    assert "memory repair" in problem["remedy"]
    shown = memory(house, "verify", "--no-json").stdout
    assert "events: events 1 to 20 are lost" in shown
    repaired = answer(house, "repair")
    assert (repaired["events"], repaired["gone"]) == (0, [[1, 20]])
    assert house.serve().status().sequence == 20
    write(house, 0, 1)
    found = answer(house, "verify")
    assert (found["events"], found["sequence"], found["problems"]) == (1, 21, [])
    shown = memory(house, "verify", "--no-json").stdout
    assert "20 events are gone since the repair of " in shown
    assert "whole" in shown
    again = memory(house, "repair")
    assert again.returncode == 1
    assert "is in use by process" in again.stderr


def test_a_daily_backup_is_one_line(house: House) -> None:
    """With a directory in the settings there is a job that backs up to it, and keeps so many."""
    os.makedirs(f"{house.base}/c/memoryd")
    with open(f"{house.base}/c/memoryd/config.toml", "w", encoding="utf-8") as file:
        file.write(f'[backup]\ndir = "{house.base}/b"\nkeep = 2\n')
    daemon = house.serve()
    write(house, 0, 3)
    paths = [answer(house, "jobs", "run", "backup")["last_run_metadata"]["path"] for _ in range(3)]
    assert [os.path.exists(path) for path in paths] == [False, True, True]
    assert os.path.dirname(paths[0]) == f"{house.base}/b/{daemon.status().project}"
    os.unlink(f"{os.path.dirname(paths[0])}/memoryd-backups.json")
    failed = memory(house, "jobs", "run", "backup")
    assert failed.returncode != 0
    assert "holds something else" in failed.stderr
    (error, *_) = answer(house, "status")["last_errors"]
    assert (error["operation"], "holds something else" in error["message"]) == ("backup", True)


@pytest.mark.parametrize("command", ["backup", "compact"])
def test_what_needs_a_daemon_says_so(house: House, command: str) -> None:
    """Without a daemon these end with the code for that."""
    arguments = [f"{house.base}/b"] if command == "backup" else []
    done = memory(house, command, *arguments)
    assert done.returncode == 3
    assert "is not running" in done.stderr
    assert not os.path.exists(f"{house.base}/b")
