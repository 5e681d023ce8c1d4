"""How a daemon and the processes it has started are doing: memory, threads, open files."""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple


class Vitals(NamedTuple):
    """Sums over the daemon and its children."""

    rss_mib: float
    children_mib: float
    threads: int
    files: int


def look(pid: int) -> Vitals:
    """What the kernel says of a daemon now. Raises OSError if it is gone."""
    own, threads = _status(pid)
    below = 0.0
    for child in children(pid):
        with suppress(OSError):
            rss, more = _status(child)
            below += rss
            threads += more
    return Vitals(own, below, threads, len(os.listdir(f"/proc/{pid}/fd")))


def children(pid: int) -> list[int]:
    """The processes that a process has started and that still run; none of one that is gone."""
    found: list[int] = []
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return found
    for task in tasks:
        with suppress(OSError), open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
            found += [int(word) for word in file.read().split()]
    return found


def wait_gone(pids: list[int], seconds: float = 10.0) -> None:
    """Wait until processes have ended, at most so long."""
    deadline = time.monotonic() + seconds
    while any(map(_runs, pids)) and time.monotonic() < deadline:
        time.sleep(0.01)


def _runs(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def processes(home: str) -> Iterator[int]:
    """The processes that run in a home, known by their environment."""
    mark = b"HOME=" + home.encode() + b"\0"
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            with suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:
                if mark in file.read() + b"\0":
                    yield int(name)


def slope(points: list[tuple[float, float]]) -> float:
    """The rise of a straight line through points, by least squares."""
    if len(points) < 3:
        return 0.0
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0


def _status(pid: int) -> tuple[float, int]:
    fields = {}
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        for line in file:
            name, _, value = line.partition(":")
            fields[name] = value.split()
    return int(fields["VmRSS"][0]) / 1024, int(fields["Threads"][0])
