import json
import os
import re
import subprocess
import sys
import time
from typing import Any

import pytest

from memoryd.edges.install.agents import AGENTS
from tests.faults.driver import House

BIN = os.path.dirname(sys.executable)

pytestmark = pytest.mark.skipif(
    not os.access(f"{BIN}/memory-hook", os.X_OK), reason="memory-hook is not installed"
)


def memory(house: House, *arguments: str) -> str:
    """What `memory` prints in the project, where it must succeed."""
    kept = {k: v for k, v in house.env.items() if not k.startswith(("CLAUDE", "CODEX", "COPILOT"))}
    done = subprocess.run(
        [f"{BIN}/memory", *arguments],
        cwd=house.project,
        env=kept,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def session_in(output: str) -> str:
    """The session of the test payload that install speaks of."""
    found = re.search(r"memoryd-install-probe-[0-9a-f]{16}", output)
    assert found, output
    return found[0]


def events(house: House, session: str) -> list[dict[str, Any]]:
    """The events of a session."""
    lines = memory(house, "events", "--session", session).splitlines()
    return [json.loads(line) for line in lines]


def test_every_agent_is_installed_and_found_in_the_log(house: House) -> None:
    """What each agent would run reaches the log of the project; uninstall leaves no trace."""
    house.serve()
    for name in AGENTS:
        output = memory(house, "install", name)
        assert "has reached the log" in output
        (event,) = events(house, session_in(output))
        assert (event["agent"], event["event_type"]) == (name, "session_start")
        memory(house, "uninstall", name)
        assert not os.path.exists(AGENTS[name].path("project", house.project))


def test_without_a_daemon_the_test_waits(house: House) -> None:
    """With no daemon the payload waits in the spool, and the next daemon takes it into the log."""
    output = memory(house, "install", "claude-code", "--project")
    assert "waits in the spool" in output
    assert "memoryd serve" in output
    house.serve()
    deadline = time.monotonic() + 30
    while not (found := events(house, session_in(output))) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [event["agent"] for event in found] == ["claude-code"]
