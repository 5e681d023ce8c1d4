"""`memory demo` and `memory browse` as people start them: in a terminal and without one."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from tests.faults.driver import House

MEMORY = f"{os.path.dirname(sys.executable)}/memory"
SECONDS = 60


@pytest.fixture
def empty() -> Iterator[House]:
    """A house without a daemon; what is temporary stays in it."""
    made = House()
    os.mkdir(f"{made.base}/t")
    made.env["TMPDIR"] = f"{made.base}/t"
    made.env["TERM"] = "xterm-256color"
    yield made
    made.close()


def run(house: House, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run `memory` without a terminal."""
    done = subprocess.run(
        [MEMORY, *arguments],
        cwd=house.project,
        env=house.env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done


class Terminal:
    """A terminal in which `memory` runs."""

    def __init__(self, house: House, *arguments: str) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(house.project)
            os.execve(MEMORY, [MEMORY, *arguments], house.env)
        self.seen = b""

    def until(self, words: bytes) -> None:
        """Read until words have been printed."""
        deadline = time.monotonic() + SECONDS
        while words not in self.seen:
            assert time.monotonic() < deadline, self.seen[-2000:]
            if select.select([self.fd], [], [], 0.2)[0]:
                self.seen += os.read(self.fd, 65536)

    def press(self, key: bytes) -> None:
        """Press a key."""
        os.write(self.fd, key)

    def end(self) -> int:
        """Read to the end; the exit code."""
        while True:
            try:
                if not os.read(self.fd, 65536):
                    break
            except OSError:
                break
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def left(house: House) -> list[str]:
    """What of the demo is still there."""
    return [name for name in os.listdir(f"{house.base}/t") if name.startswith("memory-demo-")]


def test_without_a_terminal_the_tree_is_printed(empty: House) -> None:
    """The story's tree, how to go on, and nothing left behind."""
    done = run(empty, "demo")
    assert "The retry in gateway.py is dropped for good" in done.stdout
    assert "memory browse" in done.stderr
    assert left(empty) == []
    assert os.listdir(f"{empty.base}/d") == []
    rows = [json.loads(line) for line in run(empty, "demo", "--json").stdout.splitlines()]
    assert {row["level"] for row in rows} == {"year", "month", "week", "day", "segment"}
    assert left(empty) == []


def test_in_a_terminal_the_browser_opens_and_leaves_nothing(empty: House) -> None:
    """Q ends it; the daemon and its directory are gone with it."""
    terminal = Terminal(empty, "demo")
    terminal.until(b"live")
    assert len(left(empty)) == 1
    terminal.press(b"q")
    assert terminal.end() == 0
    assert left(empty) == []


def test_a_killed_demo_leaves_nothing(empty: House) -> None:
    """Whoever keeps the daemon notices that the demo is gone, and cleans up."""
    terminal = Terminal(empty, "demo")
    terminal.until(b"live")
    assert len(left(empty)) == 1
    os.kill(terminal.pid, signal.SIGKILL)
    assert terminal.end() == -signal.SIGKILL
    deadline = time.monotonic() + SECONDS
    while left(empty):
        assert time.monotonic() < deadline, "the demo was not cleaned up"
        time.sleep(0.1)


def test_the_browser_needs_a_terminal_and_no_daemon(empty: House) -> None:
    """Without a terminal it says what to use instead; without a daemon it starts and says so."""
    assert "needs a terminal" in run(empty, "browse", code=2).stderr
    terminal = Terminal(empty, "browse", "--light")
    terminal.until(b"is not running")
    terminal.press(b"q")
    assert terminal.end() == 0
