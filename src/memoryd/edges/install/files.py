"""Reads and writes settings files: whole, in one step, with a copy kept beside them.

Owns how a change reaches the disk. A link stays a link and its target is replaced; mode, byte
order mark and line ends stay. A file that may not be written, or that changed since it was read,
is refused.
"""

import difflib
import os
import stat
import time
from typing import Final, NamedTuple

from memoryd.edges.install.errors import Refused

_BOM: Final = b"\xef\xbb\xbf"
_LIMIT: Final = 4 * 1024 * 1024
_BACKUP: Final = ".memoryd-"


class Change(NamedTuple):
    """What becomes of one file. None stands for no file."""

    path: str
    before: bytes | None
    after: bytes | None

    @property
    def nothing(self) -> bool:
        """Whether the file is already as it shall be."""
        return self.before == self.after

    def diff(self) -> str:
        """The difference, as `diff -u` shows it."""
        old = "/dev/null" if self.before is None else self.path
        new = "/dev/null" if self.after is None else self.path
        lines = difflib.unified_diff(_lines(self.before), _lines(self.after), old, new, lineterm="")
        return "\n".join(lines)


def read(path: str) -> bytes | None:
    """The bytes of a file, None if there is none. Raises Refused for what cannot be settings."""
    try:
        with open(path, "rb") as file:
            content = file.read(_LIMIT + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Refused(f"{path} cannot be read: {error.strerror}") from error
    if len(content) > _LIMIT:
        raise Refused(f"{path} is larger than {_LIMIT // 1024 // 1024} MiB: these are no settings")
    return content


def text_of(path: str, content: bytes | None) -> str:
    """The text in a file's bytes, without a byte order mark. Raises Refused unless it is UTF-8."""
    try:
        return (content or b"").removeprefix(_BOM).decode()
    except UnicodeDecodeError:
        raise Refused(f"{path} is not UTF-8: it was left alone") from None


def bytes_of(text: str, before: bytes | None) -> bytes:
    """The bytes for a text, with the byte order mark that the file had before."""
    return (_BOM if (before or b"").startswith(_BOM) else b"") + text.encode()


def apply(change: Change, *, new_mode: int, keep: bool = True) -> str:
    """Write a change, or remove the file; returns the path of the copy kept, "" if none.

    Raises Refused if the file may not be changed or is no longer what the change was made from.
    """
    target = os.path.realpath(change.path)
    if read(change.path) != change.before:
        raise Refused(f"{change.path} has changed meanwhile: run the command again")
    try:
        mode = _writable(change.path, target, new_mode)
        backup = _keep(change.path, change.before) if keep and change.before is not None else ""
        if change.after is None:
            os.unlink(change.path)
        else:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            _replace(target, change.after, mode)
    except OSError as error:
        raise Refused(f"{change.path} cannot be written: {error.strerror}") from error
    return backup


def prune(directory: str, levels: int) -> None:
    """Remove a directory that is empty now, and so many levels in all, as long as they are."""
    try:
        for _ in range(levels):
            os.rmdir(directory)
            directory = os.path.dirname(directory)
    except OSError:
        return


def backups(path: str) -> list[bytes]:
    """What the copies beside a file hold, the newest first."""
    directory, name = os.path.split(path)
    try:
        names = sorted(os.listdir(directory or "."), reverse=True)
    except OSError:
        return []
    ours = [one for one in names if one.startswith(name + _BACKUP) and one.endswith(".bak")]
    held = (read(os.path.join(directory, one)) for one in ours)
    return [content for content in held if content is not None]


def _writable(path: str, target: str, new_mode: int) -> int:
    """The mode that the file shall have. Raises Refused if it is not ours to write."""
    try:
        info = os.stat(target)
    except FileNotFoundError:
        return new_mode
    if not stat.S_ISREG(info.st_mode):
        raise Refused(f"{path} is not a file")
    if info.st_uid != os.getuid():
        raise Refused(f"{path} belongs to another user")
    if not info.st_mode & stat.S_IWUSR:
        raise Refused(f"{path} is read-only: make it writable first (chmod u+w)")
    return stat.S_IMODE(info.st_mode)


def _keep(path: str, content: bytes) -> str:
    """Write a copy that only the user can read, under a name that was free."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    number = 0
    while True:
        name = f"{path}{_BACKUP}{stamp}-{number:02}.bak"
        try:
            place = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            number += 1
            continue
        with open(place, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        return name


def _replace(target: str, content: bytes, mode: int) -> None:
    part = f"{target}.{os.getpid()}.tmp"
    place = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(place, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        os.replace(part, target)
    except BaseException:
        os.unlink(part)
        raise
    directory = os.open(os.path.dirname(target), os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _lines(content: bytes | None) -> list[str]:
    return (content or b"").removeprefix(_BOM).decode(errors="replace").splitlines()
