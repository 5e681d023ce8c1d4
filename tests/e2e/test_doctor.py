"""`memory doctor` as people run it, on a real daemon."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.faults.driver import House

BIN = os.path.dirname(sys.executable)

pytestmark = pytest.mark.skipif(
    not os.access(f"{BIN}/memory-hook", os.X_OK), reason="memory-hook is not installed"
)


def memory(house: House, *words: str) -> subprocess.CompletedProcess[str]:
    """Run `memory` in the house's project, with the installed commands on PATH."""
    kept = {k: v for k, v in house.env.items() if not k.startswith(("CLAUDE", "CODEX", "COPILOT"))}
    return subprocess.run(
        [f"{BIN}/memory", *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        cwd=house.project,
        env=kept | {"PATH": f"{BIN}:{house.env['PATH']}"},
        text=True,
        timeout=120,
    )


def examined(house: House) -> tuple[int, dict[str, dict[str, Any]]]:
    """The exit code of the doctor, and its findings by what they are about."""
    done = memory(house, "doctor", "--json")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert rows, done.stderr
    return done.returncode, {row["check"]: row for row in rows}


def test_all_is_well_and_nothing_is_left_behind(house: House) -> None:
    """With a daemon and hooks the exit code is 0, and no probe is in the log or in the spool."""
    house.serve()
    assert memory(house, "install", "claude-code").returncode == 0
    before = json.loads(memory(house, "status").stdout)["sequence"]
    code, found = examined(house)
    assert code == 0, found
    assert "reached the daemon" in found["hooks of claude-code"]["said"]
    assert {"package", "socket", "spool", "pump", "index", "jobs", "clock", "disk"} <= set(found)
    status = json.loads(memory(house, "status").stdout)
    assert (status["sequence"], status["spool_files"]) == (before, 0)
    quiet = memory(house, "doctor", "--quiet", "--no-json")
    assert (quiet.returncode, "socket" in quiet.stdout) == (0, False)


def test_without_a_daemon_the_rest_is_checked(house: House) -> None:
    """The daemon that does not run is one problem among findings, and the exit code is 1."""
    assert memory(house, "install", "claude-code").returncode == 0
    code, found = examined(house)
    assert code == 1
    assert [name for name, row in found.items() if row["state"] == "problem"] == ["socket"]
    assert "memoryd serve" in found["socket"]["todo"]
    assert "reached the spool" in found["hooks of claude-code"]["said"]
    assert "1 problem" in memory(house, "doctor", "--no-json").stdout
