import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

import pytest

BIN = os.path.dirname(sys.executable)
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BLOCK = re.compile(r"<!-- tour: (\w+) -->\n```sh\n(.*?)```", re.DOTALL)


def tour() -> dict[str, str]:
    """The shell blocks of the README's tour, by their marks."""
    with open(f"{ROOT}/README.md", encoding="utf-8") as file:
        return dict(BLOCK.findall(file.read()))


class Stage:
    """A clone as the tour's reader has it: a project with `.venv` and `scripts` in it."""

    def __init__(self, base: str) -> None:
        self.project = f"{base}/memoryd"
        os.makedirs(f"{self.project}/.git")
        os.makedirs(f"{self.project}/scripts")
        os.symlink(os.path.dirname(BIN), f"{self.project}/.venv")
        # the set-up of .venv would touch the one that runs this test; all else is as it stands
        shutil.copy(f"{ROOT}/scripts/run", f"{self.project}/scripts/run")
        with open(f"{self.project}/scripts/setup", "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n")
        os.chmod(f"{self.project}/scripts/setup", 0o755)
        self._log = f"{base}/log"
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("MEMORY", "XDG_"))}
        self._env = kept | {
            "HOME": base,
            "XDG_RUNTIME_DIR": f"{base}/r",
            "XDG_DATA_HOME": f"{base}/d",
            "XDG_CONFIG_HOME": f"{base}/c",
        }

    def shell(self, script: str) -> subprocess.CompletedProcess[str]:
        """Run a block as pasted into a shell that stops at the first failure."""
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            capture_output=True,
            check=False,
            cwd=self.project,
            env=self._env,
            text=True,
            timeout=60,
        )

    def start(self, script: str) -> subprocess.Popen[bytes]:
        """Run the daemon's block in a terminal of its own, until the daemon answers."""
        with open(self._log, "wb") as log:
            daemon = subprocess.Popen(
                ["bash", "-c", f"exec {script}"], cwd=self.project, env=self._env, stderr=log
            )
        deadline = time.monotonic() + 30
        while self.shell(".venv/bin/memory status").returncode:
            if daemon.poll() is not None or time.monotonic() > deadline:
                daemon.kill()
                daemon.wait()
                with open(self._log, encoding="utf-8") as file:
                    pytest.fail(f"the daemon did not start: {file.read()}")
            time.sleep(0.05)
        return daemon


@pytest.fixture
def stage() -> Iterator[Stage]:
    """A stage with a path short enough for a socket."""
    base = tempfile.mkdtemp(prefix="md", dir="/tmp")
    try:
        yield Stage(base)
    finally:
        shutil.rmtree(base, ignore_errors=True)


@pytest.fixture
def running(stage: Stage) -> Iterator[Stage]:
    """A stage on which the tour's daemon runs."""
    daemon = stage.start(tour()["daemon"])
    try:
        yield stage
    finally:
        daemon.terminate()
        daemon.wait(20)


def test_tour_is_complete() -> None:
    """The README marks every block of its tour, in the order in which they are pasted."""
    assert list(tour()) == ["daemon", "client", "find", "grpcurl", "end"]


def test_client_block_writes_and_reads(running: Stage) -> None:
    """The tour's client commands all succeed, and show what was written."""
    done = running.shell(tour()["client"])
    assert done.returncode == 0, done.stderr
    assert '{"created":2,"known":0,"refused":0}' in done.stdout
    assert done.stdout.count("Why is the build red?") == 2
    assert done.stdout.count("A test needs a newer Python.") == 1
    assert '"event_count":2' in done.stdout
    assert '"writable":true' in done.stdout


def test_find_block_finds_what_was_written(running: Stage) -> None:
    """A little later the tour's events are found by their words, and a note is recalled."""
    assert running.shell(tour()["client"]).returncode == 0
    deadline = time.monotonic() + 60
    while True:
        done = running.shell(tour()["find"])
        assert done.returncode == 0, done.stderr
        if "toc:segment:" in done.stdout and "Why is the build red?" in done.stdout:
            break
        assert time.monotonic() < deadline, done.stdout
        time.sleep(0.5)
    assert "Tests need Python 3.11." in done.stdout


def test_grpcurl_block_speaks_over_the_socket(running: Stage) -> None:
    """The tour's grpcurl commands work over the unix socket by reflection alone."""
    if not shutil.which("grpcurl"):
        pytest.skip("grpcurl is not installed")
    done = running.shell(tour()["grpcurl"])
    assert done.returncode == 0, done.stderr
    assert "memory.MemoryService" in done.stdout
    assert "Hello from grpcurl" in done.stdout
    assert '"status": "SERVING"' in done.stdout


def test_end_block_stops_and_verifies(running: Stage) -> None:
    """The tour's last commands stop the daemon and find its log whole."""
    assert running.shell(tour()["client"]).returncode == 0
    done = running.shell(tour()["end"])
    assert done.returncode == 0, done.stderr
    assert "has stopped" in done.stdout
    assert "2 events, whole" in done.stdout


def test_configuration_table_names_every_key() -> None:
    """The README's table of settings has exactly the keys that can be set."""
    from memoryd import config

    with open(f"{ROOT}/README.md", encoding="utf-8") as file:
        section = file.read().partition("## Configuration")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `([\w.]+)` \|", section, re.MULTILINE) == list(config._KEYS)
