"""Checks of the disk: who may read what, how much room there is, what waits, what hooks say."""

import os
import stat
import time
from datetime import datetime
from typing import Final

from memoryd import project, spool
from memoryd.config import Settings
from memoryd.edges.cli.output import size
from memoryd.edges.cli.times import length
from memoryd.edges.doctor.finding import Finding, note, ok, problem
from memoryd.edges.hooks import trouble

LEAST_BYTES: Final = 512 * 1024 * 1024
_LEAST_FILES: Final = 1_000
_SHOWN: Final = 3
_DAY_S: Final = 86_400
_SLOW_S: Final = 10.0  # a payload is drained within a second


def permissions(settings: Settings) -> list[Finding]:
    """Whether the directories and files are this user's, and nobody else's to read."""
    data = settings.data_dir
    directories = (
        project.data_home(),
        data,
        spool.inbox(data),
        spool.aside(data),
        project.global_notes_dir(),
        settings.runtime_dir,
    )
    files = [f"{data}/token", *(f"{place}/{trouble.NAME}" for place in trouble.places())]
    found = [item for path in directories for item in _private(path, 0o700)]
    found += [item for path in files for item in _private(path, 0o600)]
    if not os.path.isdir(data):
        found.append(note("permissions", f"{data} is not there yet: the daemon makes it"))
    return found or [ok("permissions", f"{data} and the rest are yours alone")]


def _private(path: str, mode: int) -> list[Finding]:
    try:
        info = os.lstat(path)
    except FileNotFoundError:
        return []
    except OSError as error:
        how = "see who owns the directories above it"
        return [problem("permissions", f"{path}: {error.strerror}", how)]
    if info.st_uid != os.getuid():
        said = f"{path} belongs to user {info.st_uid}, not to you"
        return [problem("permissions", said, f"sudo chown -R {os.getuid()} {path}")]
    if stat.S_ISLNK(info.st_mode):
        return []
    found = []
    if stat.S_IMODE(info.st_mode) & 0o077:
        said = f"{path} is open to others (mode {stat.S_IMODE(info.st_mode):04o})"
        found.append(problem("permissions", said, f"chmod {mode:o} {path}"))
    if not os.access(path, os.R_OK | os.W_OK | (os.X_OK if stat.S_ISDIR(info.st_mode) else 0)):
        found.append(problem("permissions", f"{path} cannot be written", f"chmod {mode:o} {path}"))
    return found


def disk(settings: Settings, least: int = LEAST_BYTES) -> list[Finding]:
    """Whether the disk has room."""
    path = settings.data_dir
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    room = os.statvfs(path)
    free = room.f_bavail * room.f_frsize
    said = f"{size(free)} free for {settings.data_dir}"
    how = "make room: without it the daemon stops taking events (hooks wait in the spool)"
    if free < least:
        return [problem("disk", f"only {said}", how)]
    if room.f_files and room.f_favail < _LEAST_FILES:
        return [problem("disk", f"only {room.f_favail} more files fit on it", how)]
    return [ok("disk", said)]


def inbox(settings: Settings, *, running: bool) -> list[Finding]:
    """Whether payloads pile up, and which were set aside."""
    found = []
    directory = spool.inbox(settings.data_dir)
    waiting = spool.waiting(directory)
    age = (
        time.time() - int(waiting[0][:20] or 0) / 1e9
        if waiting and waiting[0][:20].isdecimal()
        else 0
    )
    said = f"{len(waiting):,} waiting in {directory}, the oldest for {length(int(age * 1000))}"
    if waiting and not running:
        found.append(note("spool", said, "nothing is lost: start the daemon, and it takes them in"))
    elif waiting and age > _SLOW_S:
        how = "see `memory status` for its latest errors, then restart the daemon"
        found.append(problem("spool", said, how))
    aside = spool.aside(settings.data_dir)
    bad = spool.waiting(aside)
    if bad:
        reasons = "; ".join(f"{name}: {_reason(f'{aside}/{name}')}" for name in bad[:_SHOWN])
        how = f"read them in {aside}, tell of what should have been understood, and remove them"
        found.append(problem("spool", f"{len(bad):,} payloads were set aside: {reasons}", how))
    return found or [ok("spool", "nothing waits, nothing was set aside")]


def _reason(path: str) -> str:
    try:
        with open(path + spool.REASON, encoding="utf-8", errors="replace") as file:
            return file.read(500).strip()
    except OSError:
        return "no reason is noted"


def hook_log(now_s: float) -> list[Finding]:
    """What hooks could tell nobody else: the problems of the last day, or how old the last is."""
    lines = []
    for place in trouble.places():
        for name in (f"{trouble.NAME}.1", trouble.NAME):
            lines += _lines(f"{place}/{name}")
    if not lines:
        return [ok("hook.log", "no hook has reported a problem")]
    lines.sort()
    new = [line for line in lines if now_s - _when(line) < _DAY_S]
    where = f"{trouble.places()[0]}/{trouble.NAME}"
    if not new:
        return [ok("hook.log", f"the last problem of a hook was {lines[-1][:10]}: {where}")]
    shown = "; ".join(line.rstrip() for line in new[-_SHOWN:])
    how = f"see what each line says, and {where} for all; a day without a new one clears this"
    return [problem("hook.log", f"{len(new)} problems of hooks in a day: {shown}", how)]


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return [line for line in file if line.strip()]
    except OSError:
        return []


def _when(line: str) -> float:
    """The time at the begin of a line; one that has none is as good as new."""
    try:
        return datetime.fromisoformat(line[:20]).timestamp()
    except ValueError:
        return time.time()
