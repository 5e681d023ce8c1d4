"""A throwaway memory with the story in it: set up, told, and gone when one leaves."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Final

from memoryd import client
from memoryd.edges.demo import story

PROJECT: Final = "harbour"
_START_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.05
_PLACES: Final = {
    "XDG_DATA_HOME": "data",
    "XDG_CONFIG_HOME": "config",
    "XDG_STATE_HOME": "state",
    "XDG_RUNTIME_DIR": "run",
}


@contextmanager
def set_up() -> Iterator[str]:
    """The directory of a project that remembers the story, with a daemon that serves it.

    The environment points there meanwhile. Raises ClientError if the daemon does not start.
    """
    base = os.path.realpath(tempfile.mkdtemp(prefix="memory-demo-"))
    project = os.path.join(base, PROJECT)
    os.makedirs(os.path.join(project, ".git"))
    os.mkdir(os.path.join(base, "run"), 0o700)
    before = dict(os.environ)
    for name in [name for name in os.environ if name.startswith("MEMORY")]:
        del os.environ[name]
    os.environ |= {name: os.path.join(base, place) for name, place in _PLACES.items()}
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    # in a session of its own: an interrupt at the keyboard is for the demo, which then ends it
    keeper = subprocess.Popen(  # noqa: S603 - ourselves
        [sys.executable, "-m", "memoryd.edges.demo.keeper", base, project],
        stdin=subprocess.PIPE,
        cwd=base,
        start_new_session=True,
    )
    try:
        _tell(project, keeper)
        yield project
    finally:
        os.environ.clear()
        os.environ.update(before)
        if keeper.stdin is not None:
            keeper.stdin.close()
        keeper.wait()
        shutil.rmtree(base, ignore_errors=True)


def _tell(project: str, keeper: subprocess.Popen[bytes]) -> None:
    """Write the story into the log, and wait until the tree and the index have it."""
    told = story.read()
    with _connected(project, keeper) as connected:
        connected.ingest(story.events(told, datetime.now().astimezone()))
        for note in story.notes(told):
            connected.note("Remember", **note)
        _await(lambda: _is_worked_in(connected), "the story was not worked in")


def _connected(project: str, keeper: subprocess.Popen[bytes]) -> client.Client:
    found: list[client.Client] = []

    def answers() -> bool:
        if keeper.poll() is not None:
            raise client.Unavailable("the daemon of the demo did not start")
        try:
            connected = client.connect(project)
            connected.status()
        except (client.NotRunning, client.Unavailable):
            return False
        found.append(connected)
        return True

    _await(answers, "the daemon of the demo did not answer")
    return found[0]


def _is_worked_in(connected: client.Client) -> bool:
    status = connected.status()
    waiting = status["pump_lag_events"] or status["toc_waiting"]
    return not waiting and bool(status["indexed_sequence"] >= status["sequence"])


def _await(done: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not done():
        if time.monotonic() > deadline:
            raise client.Unavailable(otherwise)
        time.sleep(_LOOK_SECONDS)
