"""`memory wipe`: removes everything that memoryd keeps of one project.

Owns the order: first what is seen and typed, then the daemon's end, then the files, under the lock
of the data directory, so that no daemon can start in between.
"""

import fcntl
import os
import shutil
import signal
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import click

from memoryd.edges.cli import output as out
from memoryd.edges.cli.output import Output, warn
from memoryd.wire import Refused

_LOOK_SECONDS: Final = 0.05
_LEAVING: Final = ".wiping"
# what makes a directory one of ours; anything else is not removed
_OURS: Final = ("LOCK", "HIGHWATER", "db", "spool")
_HELP = """\b
Examples:
  memory wipe --dry-run
  memory wipe
  memory wipe --yes api-3f2a91c0 --backup ~/backups/api
"""


@click.command(epilog=_HELP)
@click.option("--dry-run", is_flag=True, help="Only show what would go.")
@click.option("--yes", "given", default="", metavar="NAME", help="The project's name, typed ahead.")
@click.option(
    "--wait",
    "seconds",
    default=20.0,
    show_default=True,
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    help="How long the daemon may take to end.",
)
@click.option(
    "--backup",
    "backups",
    multiple=True,
    type=click.Path(exists=True, file_okay=False),
    help="Also remove this directory of backups. May be repeated.",
)
@out.common
def wipe(
    output: Output, given: str, seconds: float, backups: tuple[str, ...], *, dry_run: bool
) -> None:
    """Remove all that memoryd remembers of this project: log, notes, index, inbox, socket.

    Stops the daemon. The notes that all projects share stay, and so do other projects, exported
    copies, and backups that are not named.
    """
    from memoryd import client

    settings, _ = client.load(output.start_dir)
    name, data_dir = settings.project, settings.data_dir
    places = [data_dir, *map(os.path.abspath, backups)]
    if not os.path.isdir(data_dir):
        raise Refused(f"there is nothing of project {name}: {data_dir} does not exist")
    _check(data_dir, backups)
    sizes = {place: _size(place) for place in places}
    if not output.as_json or dry_run:
        _show(output, name, sizes)
    if dry_run:
        return
    _ask(name, given)
    with _locked(data_dir, name, seconds):
        with suppress(FileNotFoundError):
            if stat.S_ISSOCK(os.lstat(settings.socket_path).st_mode):
                os.unlink(settings.socket_path)
        for place in places:
            _remove(place)
    if output.as_json:
        output.line({"project": name, "removed": places})
    else:
        output.show(f"project {name} is forgotten")


def _check(data_dir: str, backups: tuple[str, ...]) -> None:
    """Raise Refused for a directory that is not what it is taken for."""
    if os.path.islink(data_dir) or not any(os.path.exists(f"{data_dir}/{n}") for n in _OURS):
        raise Refused(f"{data_dir} is not a data directory of memoryd: nothing was removed")
    if os.lstat(data_dir).st_uid != os.getuid():
        raise Refused(f"{data_dir} belongs to somebody else: nothing was removed")
    inside = os.path.realpath(data_dir)
    for place in backups:
        real = os.path.realpath(place)
        if real in {"/", os.path.realpath(os.path.expanduser("~"))} or inside.startswith(real):
            raise Refused(f"{place} is more than a directory of backups: nothing was removed")


def _size(place: str) -> int:
    total = 0
    for folder, _, names in os.walk(place):
        for name in names:
            with suppress(OSError):
                total += os.lstat(f"{folder}/{name}").st_size
    return total


def _show(output: Output, name: str, sizes: dict[str, int]) -> None:
    if output.as_json:
        output.line({"project": name, "places": sizes})
        return
    output.show(f"project {name}:")
    for place, size in sizes.items():
        output.show(f"  {place}  {out.size(size)}")


def _ask(name: str, given: str) -> None:
    """Have the name typed. Raises Refused unless it is the project's."""
    if not given:
        if not sys.stdin.isatty():
            raise Refused(f"nothing was removed: nobody can be asked here; take --yes {name}")
        warn("This cannot be undone.")
        given = click.prompt("Type the name of the project", default="", show_default=False)
    if given.strip() != name:
        raise Refused(f"nothing was removed: the name of the project is {name}")


@contextmanager
def _locked(data_dir: str, name: str, seconds: float) -> Iterator[None]:
    """Stop the daemon and hold its lock. Raises Refused if it does not end."""
    path = f"{data_dir}/LOCK"
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + seconds
        told = 0
        while not _taken(fd):
            pid = os.pread(fd, 32, 0).strip()
            if pid.isdigit() and int(pid) != told:
                told = int(pid)
                with suppress(ProcessLookupError):
                    _terminate(told, name)
            if time.monotonic() > deadline:
                raise Refused(
                    f"nothing was removed: the daemon of {name} (process {told or 'unknown'}) has "
                    f"not ended after {seconds:.0f} s; if systemd starts it again, run "
                    "`memory service uninstall` first"
                )
            time.sleep(_LOOK_SECONDS)
        yield
    finally:
        os.close(fd)


def _taken(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _terminate(pid: int, name: str) -> None:
    try:
        os.kill(pid, signal.SIGTERM)
    except PermissionError:
        raise Refused(
            f"nothing was removed: the daemon of {name} (process {pid}) is somebody else's"
        ) from None


def _remove(place: str) -> None:
    """Delete a directory; first it leaves its name, so that nobody can begin in what is left."""
    leaving = f"{place}{_LEAVING}"
    shutil.rmtree(leaving, ignore_errors=True)  # of a run that was cut off
    os.rename(place, leaving)
    shutil.rmtree(leaving, ignore_errors=True)
    if os.path.lexists(leaving):
        raise Refused(f"not everything could be removed: look at {leaving}")
