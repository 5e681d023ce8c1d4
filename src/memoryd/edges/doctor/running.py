"""Checks of the daemon: its service, its socket, what it says of itself, and the clock."""

import os
import shutil
import stat
import time
from typing import Any, Final

from memoryd import __version__, client
from memoryd.config import Settings
from memoryd.edges.cli import service as units
from memoryd.edges.cli.times import ago, length, stamp
from memoryd.edges.doctor.finding import Finding, note, ok, problem

START: Final = "start it with `memoryd serve`, or for good with `memory service install`"
_LAG_MS: Final = 5 * 60_000
_AHEAD_MS: Final = 5 * 60_000
_JUMP_MS: Final = 2 * 60_000
_TIMEOUT_S: Final = 5.0
_INDEX_S: Final = 3.0
_ERROR_MS: Final = 3_600_000


def service(settings: Settings) -> list[Finding]:
    """What systemd makes of the daemon, where there is a systemd."""
    unit = f"memoryd@{settings.project}.service"
    if not shutil.which("systemctl"):
        return [ok("service", "no systemd here: the daemon runs when you start it")]
    if unit not in units.enabled():
        how = "`memory service install` starts it with your session and after a crash"
        return [note("service", f"{unit} is not installed", how)]
    state = units.systemctl("is-active", unit).stdout.strip()
    if state == "active":
        return [ok("service", f"{unit} is active")]
    how = f"see `journalctl --user -u {unit} -n 20`, then `systemctl --user restart {unit}`"
    return [problem("service", f"{unit} is {state or 'not known to systemd'}", how)]


def socket(settings: Settings) -> tuple[dict[str, Any] | None, list[Finding]]:
    """What the daemon answers over its socket, if it does, and what is wrong with the socket."""
    path = settings.socket_path
    found = []
    try:
        info = os.lstat(path)
    except OSError:
        info = None
    if info and info.st_uid != os.getuid():
        how = "find out who it is: your agents would talk to a stranger"
        return None, [problem("socket", f"{path} belongs to user {info.st_uid}", how)]
    if info and stat.S_IMODE(info.st_mode) & 0o077:
        said = f"{path} is open to others (mode {stat.S_IMODE(info.st_mode):04o})"
        found.append(problem("socket", said, f"chmod 600 {path}"))
    try:
        with client.Client(settings, timeout=_TIMEOUT_S) as daemon:
            client.listening(settings)
            answer = daemon.status()
    except client.NotRunning:
        said = f"the daemon of project {settings.project} is not running"
        rest = f", and has left {path} behind" if info else ""
        return None, [*found, problem("socket", said + rest, START)]
    except client.ClientError as error:
        how = "restart the daemon: `memoryd stop`, then `memoryd serve`"
        return None, [*found, problem("socket", str(error), how)]
    said = f"pid {answer['pid']} answers at {path}"
    return answer, found or [ok("socket", said)]


def daemon(answer: dict[str, Any], now_ms: int) -> list[Finding]:
    """Whether the daemon is of this version, takes events, and has had no errors lately."""
    found = []
    if answer["version"] != __version__:
        said = f"the daemon is version {answer['version']}, this is {__version__}"
        found.append(problem("daemon", said, "restart the daemon"))
    if not answer["writable"]:
        how = "repair what it says; hooks wait in the spool meanwhile"
        found.append(problem("daemon", f"it takes no events: {answer['write_error']}", how))
    late = [e for e in answer["last_errors"] if now_ms - e["time_ms"] < _ERROR_MS]
    if late:
        last = late[0]
        said = f"{len(late)} errors in an hour, the last: {last['operation']}: {last['message']}"
        found.append(note("daemon", said, f"its log has more under {last['error_id']}"))
    return found or [ok("daemon", f"version {answer['version']}, up {length(answer['uptime_ms'])}")]


def lag(answer: dict[str, Any]) -> list[Finding]:
    """Whether what was written is worked in soon."""
    waiting, since = answer["pump_lag_events"], answer["pump_lag_ms"]
    if not waiting or since < _LAG_MS:
        said = f"{waiting:,} events wait" if waiting else "everything is worked in"
        return [ok("pump", said)]
    said = f"{waiting:,} events wait to be worked in, the oldest for {length(since)}"
    return [
        problem("pump", said, "see `memory status` for errors; `memory rebuild toc` starts over")
    ]


def index(daemon_: "client.Client") -> list[Finding]:
    """Whether search sees everything that the log holds."""
    deadline = time.monotonic() + _INDEX_S
    while True:
        seen = daemon_.index_status()
        behind = seen["log_sequence"] - seen["sequence"]
        if seen["state"] == "ready" and behind <= 0:
            return [
                ok("index", f"{seen['documents']:,} documents, up to event {seen['sequence']:,}")
            ]
        if time.monotonic() > deadline:
            break
        time.sleep(0.1)
    state = seen["state"].replace("_", " ")
    why = f" ({seen['reason']})" if seen["reason"] else ""
    said = f"search is {state}{why}, {max(0, behind):,} events behind the log"
    if seen["state"] in {"rebuilding", "catching_up"}:
        return [note("index", said, "wait: it is at work")]
    return [problem("index", said, "`memory reindex` makes it anew from the log")]


def jobs(found: list[dict[str, Any]]) -> list[Finding]:
    """Whether what runs by the clock succeeds."""
    failed = [job for job in found if job["last_error"]]
    paused = [job["job_name"] for job in found if job["is_paused"]]
    said = [
        problem(
            "jobs",
            f"{job['job_name']} failed: {job['last_error']}",
            f"`memory jobs run {job['job_name']}` tries it again",
        )
        for job in failed
    ]
    if paused:
        how = f"`memory jobs resume {paused[0]}`"
        said.append(note("jobs", f"paused: {', '.join(paused)}", how))
    return said or [ok("jobs", f"{len(found)} jobs, none has failed")]


def clock(answer: dict[str, Any], now_ms: int, began_ms: int | None) -> list[Finding]:
    """Whether the clock fits what is known: the newest event, and how long the daemon has run."""
    found = []
    newest = answer["last_event_ms"]
    if newest > now_ms + _AHEAD_MS:
        said = f"the newest event is of {stamp(newest)}, {ago(newest, now_ms)}"
        how = "see `date`: the clock is wrong now, or was when that event came"
        found.append(problem("clock", said, how))
    if began_ms is not None and abs(began_ms - answer["started_ms"]) > _JUMP_MS:
        jump = length(abs(began_ms - answer["started_ms"]))
        said = f"the clock has jumped by {jump} since the daemon started"
        how = "see `date` and `timedatectl`; events keep the times that they were given"
        found.append(problem("clock", said, how))
    return found or [ok("clock", f"it is {stamp(now_ms)}")]


def began(pid: int, now_ms: int) -> int | None:
    """When a process began, by the clock as it goes now; None where the system does not tell."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            ticks = int(file.read().rpartition(")")[2].split()[19])
        up = time.clock_gettime(time.CLOCK_BOOTTIME)
    except (OSError, ValueError, IndexError, AttributeError):
        return None
    return now_ms - int((up - ticks / os.sysconf("SC_CLK_TCK")) * 1000)
