"""hook.log: what went wrong in hooks, for people and for `memory doctor`.

A hook can tell nobody when it fails, so it leaves a line: below the data home, or, where that
takes none, in the directory of the sockets. At most two files of 64 KiB. No line holds a word of
a payload.
"""

import os
import time

from memoryd import project

NAME = "hook.log"
LIMIT = 64 * 1024


def note(agent: str, event: str, error: BaseException) -> None:
    """Append one line. Raises OSError if no place takes it."""
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    line = f"{when} {_word(agent)} {_word(event)} {_said(error)}\n"
    data = line.encode("utf-8", "backslashreplace")
    for directory in places():
        try:
            project.private_dir(directory)
            _append(f"{directory}/{NAME}", data)
        except OSError:
            continue
        return


def places() -> list[str]:
    """The directories in which the log may be, best first."""
    return [d for d in (project.data_home(), project.runtime_dir()) if os.path.isabs(d)]


def _append(path: str, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    fd = os.open(path, flags, 0o600)
    try:
        if os.fstat(fd).st_size + len(data) > LIMIT:
            os.rename(path, path + ".1")
            os.close(fd)
            fd = os.open(path, flags, 0o600)
        os.write(fd, data)
    finally:
        os.close(fd)


def _said(error: BaseException) -> str:
    """What an error says, on one line; of one that nobody foresaw, only where it happened."""
    from memoryd.edges.hooks.main import Problem
    from memoryd.edges.hooks.place import Nowhere

    if isinstance(error, (Problem, Nowhere)):
        text = str(error)
    elif isinstance(error, OSError):
        text = f"{error.strerror}: {error.filename or '-'}" if error.strerror else str(error)
    else:
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        where = f"{trace.tb_frame.f_code.co_name}:{trace.tb_lineno}" if trace else "?"
        text = f"{type(error).__name__} in {where}"
    return "".join(c if c.isprintable() else "?" for c in text)[:500]


def _word(text: str) -> str:
    return "".join(c if c.isalnum() or c in "-_." else "?" for c in text[:40]) or "-"
