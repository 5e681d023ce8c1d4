"""How the daemon is doing: figures that are cheap to have, and the latest errors."""

import os
import resource
import sys
import threading
import uuid
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from memoryd import spool
from memoryd.domain.calendar import PERIODS
from memoryd.storage.committer import Committer
from memoryd.storage.store import Store

_ERRORS_KEPT: Final = 20
_PROBES_KEPT: Final = 100


class ErrorReport(NamedTuple):
    """One error, for people who look for it."""

    time_ms: int
    error_id: str
    operation: str
    message: str


class ErrorBook:
    """The latest errors, newest first, and the latest probes. Holds no text of events."""

    def __init__(self, clock_ms: Callable[[], int]) -> None:
        self._clock_ms = clock_ms
        self._kept: deque[ErrorReport] = deque(maxlen=_ERRORS_KEPT)
        self._probes: deque[str] = deque(maxlen=_PROBES_KEPT)
        self._lock = threading.Lock()

    def probed(self, session_id: str) -> None:
        """Note that a probe has come through the spool."""
        with self._lock:
            self._probes.append(session_id)

    def probes(self) -> list[str]:
        """The sessions of the latest probes, newest last."""
        with self._lock:
            return list(self._probes)

    def add(self, operation: str, message: str) -> str:
        """Note an error; return the id under which it can be found."""
        error_id = uuid.uuid4().hex[:12]
        with self._lock:
            self._kept.appendleft(ErrorReport(self._clock_ms(), error_id, operation, message))
        return error_id

    def latest(self) -> list[ErrorReport]:
        """The errors, newest first."""
        with self._lock:
            return list(self._kept)


class Figures(NamedTuple):
    """What changes from one look to the next."""

    sequence: int
    sessions: int
    agents: int
    first_event_ms: int
    last_event_ms: int
    disk_bytes: int
    memory_bytes: int
    pump_lag_events: int
    pump_lag_ms: int
    commits: int
    write_error: str
    spool_files: int
    spool_bad: int
    redactions: dict[str, int]
    toc_waiting: int


def figures(store: Store, committer: Committer, now_ms: int) -> Figures:
    """Look once."""
    log = store.log
    first, last = log.span()
    waiting, since_ms = log.pending()
    return Figures(
        sequence=committer.synced,
        sessions=log.session_count,
        agents=len(log.agents()),
        first_event_ms=first,
        last_event_ms=last,
        disk_bytes=disk_bytes(store.data_dir),
        memory_bytes=memory_bytes(),
        pump_lag_events=waiting,
        pump_lag_ms=max(0, now_ms - since_ms) if waiting else 0,
        commits=committer.commits,
        write_error=str(committer.fault) if committer.fault else "",
        spool_files=len(spool.waiting(spool.inbox(store.data_dir))),
        spool_bad=len(spool.waiting(spool.aside(store.data_dir))),
        redactions=log.redactions(),
        toc_waiting=sum(len(store.nodes.dirty(level)) for level in PERIODS),
    )


def disk_bytes(directory: str) -> int:
    """The size of all files below a directory; files that vanish meanwhile count nothing."""
    total = 0
    for folder, _, files in os.walk(directory):
        for name in files:
            try:
                total += os.lstat(f"{folder}/{name}").st_size
            except FileNotFoundError:
                continue
    return total


def memory_bytes() -> int:
    """Resident memory of this process; where the system does not tell, its highest."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
