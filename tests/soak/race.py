"""Daemons, hooks and commands that all start at once on one store: never two owners.

An owner is a process that has files of the database open. A watcher looks at all processes of the
house all the time; it has seen two owners when a first had such a file open both before and after
a second had one.
"""

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

from tests.faults.driver import Daemon, House, read_all
from tests.soak.kill import verify
from tests.soak.outcome import Order, Outcome
from tests.soak.vitals import processes

_BIN = os.path.dirname(sys.executable)
_PATIENCE = 60.0
_SERVE = [sys.executable, "-m", "memoryd.daemon"]


class Watcher:
    """Looks for two owners until it is closed."""

    def __init__(self, house: House) -> None:
        self._home = house.base
        self._files = f"{house.base}/d/"
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.problems: list[str] = []
        self.looks = 0
        self.owners: set[int] = set()
        self._thread.start()

    def close(self) -> None:
        """End the watch."""
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(0.002):
            self.looks += 1
            owners = [pid for pid in processes(self._home) if self._owns(pid)]
            # between fork and exec a child of the owner has the owner's files
            owners = [pid for pid in owners if _parent(pid) not in owners]
            self.owners.update(owners)
            if len(owners) > 1 and self._owns(owners[0]):
                self.problems.append(f"two owners at once: {owners}")

    def _owns(self, pid: int) -> bool:
        with suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/fd"):
                with suppress(OSError):
                    path = os.readlink(f"/proc/{pid}/fd/{name}")
                    if path.startswith(self._files) and "/db/" in path:
                        return True
        return False


def _parent(pid: int) -> int:
    with suppress(OSError), open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return int(file.read().rpartition(")")[2].split()[1])
    return 0


def race(order: Order) -> Outcome:
    """Start everything at once, round after round; the owner is killed, stopped or left."""
    outcome = Outcome("race", order.seed)
    chance = random.Random(order.seed)
    house = House()
    said: list[str] = []
    house.serve().terminate()
    watcher = Watcher(house)
    try:
        for number in range(order.cycles):
            outcome.problems += _round(house, chance, number, said)
            outcome.cycles += 1
            order.say(f"{outcome.cycles} of {order.cycles} rounds")
        outcome.problems += _end(house, said)
    finally:
        watcher.close()
        house.close()
    outcome.problems += watcher.problems
    outcome.figures |= {
        "two owners": len(watcher.problems),
        "owners one after the other": len(watcher.owners),
        "looks": watcher.looks,
        "taken in": len(said),
        "lost or doubled": len(outcome.problems),
    }
    return outcome


def _round(house: House, chance: random.Random, number: int, said: list[str]) -> list[str]:
    """One race; what went wrong in it."""
    commands = [
        [*_SERVE, "verify"],
        [*_SERVE, "status"],
        [f"{_BIN}/memory", "status"],
        [*_SERVE, "stop"],
    ]
    began: list[subprocess.Popen[bytes]] = []
    daemons: list[Daemon] = []
    hooks = [f"round {number} hook {n}" for n in range(3)]
    written = [f"round {number} command {n}" for n in range(2)]
    starts: list[tuple[str, list[str] | str]] = [("daemon", "")] * chance.randint(2, 5)
    starts += [("run", command) for command in chance.sample(commands, 2)]
    starts += [("hook", text) for text in hooks] + [("ingest", text) for text in written]
    chance.shuffle(starts)
    ingests: dict[str, subprocess.Popen[bytes]] = {}
    for kind, what in starts:
        time.sleep(chance.uniform(0, 0.05))
        if kind == "daemon":
            daemons.append(house.spawn())
        elif isinstance(what, list):
            began.append(_start(house, what, b""))
        elif kind == "hook":
            began.append(
                _start(house, [f"{_BIN}/memory-hook", "--agent", "claude-code"], _hook(what))
            )
            said.append(what)
        else:
            ingests[what] = _start(house, [f"{_BIN}/memory", "ingest"], _line(what))
    problems = [f"round {number}: {p}" for p in _ended([*began, *ingests.values()])]
    said += [text for text, process in ingests.items() if process.returncode == 0]
    alive = _survivors(daemons)
    if len(alive) > 1:
        problems.append(f"round {number}: {len(alive)} daemons go on")
    _leave(chance, alive)
    return problems


def _start(house: House, command: list[str], given: bytes) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        command,
        cwd=house.project,
        env=house.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin is not None
    with suppress(BrokenPipeError):
        process.stdin.write(given)
        process.stdin.close()
    return process


def _hook(prompt: str) -> bytes:
    fields = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": prompt}
    return json.dumps(fields).encode()


def _line(text: str) -> bytes:
    return json.dumps({"session_id": "s", "role": "user", "text": text}).encode() + b"\n"


def _ended(running: list[subprocess.Popen[bytes]]) -> Iterator[str]:
    for process in running:
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            yield f"{process.args!r} hangs"


def _survivors(daemons: list[Daemon]) -> list[Daemon]:
    """The daemons that go on, once each has either ended or serves."""
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        alive = [daemon for daemon in daemons if daemon.process.poll() is None]
        if len(alive) <= 1:
            break
        time.sleep(0.02)
    return alive


def _leave(chance: random.Random, alive: list[Daemon]) -> None:
    """Kill or stop the owner, at once or when it serves, or leave it to the next round."""
    for daemon in alive:
        end = chance.choice(("kill", "kill early", "stop", "leave"))
        if end in {"stop", "leave"}:
            with suppress(RuntimeError):  # an earlier owner may have it still
                daemon.wait_ready()
        if end.startswith("kill"):
            time.sleep(0 if end == "kill early" else 0.2)
            daemon.kill()
        elif end == "stop" and daemon.process.poll() is None:
            daemon.terminate()


def _end(house: House, said: list[str]) -> list[str]:
    """Everything taken in is in the log, once, and the store is whole."""
    house.stop_all()
    daemon = house.serve()
    deadline = time.monotonic() + _PATIENCE
    while daemon.status().spool_files and time.monotonic() < deadline:
        time.sleep(0.1)
    texts = [event.text for event in read_all(daemon.stub)]
    problems = [f"{text}: {texts.count(text)} times" for text in said if texts.count(text) != 1]
    daemon.terminate()
    return problems + verify(house)
