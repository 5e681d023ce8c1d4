"""Waits until something arrives in a directory. Where the kernel does not tell, it looks."""

import os
import select
from contextlib import suppress
from typing import Final

_LOOK_SECONDS: Final = 0.5


class Watch:
    """One directory, watched by one thread; `wake` may be called by any."""

    def __init__(self, directory: str) -> None:
        """Begin to watch: what arrives from now on ends the next wait."""
        self._inotify = _inotify(directory)
        self._hear, self._tell = os.pipe()
        os.set_blocking(self._tell, False)
        os.set_blocking(self._hear, False)

    @property
    def told(self) -> bool:
        """Whether the kernel tells of arrivals."""
        return self._inotify is not None

    def wait(self, seconds: float) -> None:
        """Return when something may have arrived, when woken, or after so long."""
        poll = select.poll()
        poll.register(self._hear, select.POLLIN)
        if self._inotify is not None:
            poll.register(self._inotify, select.POLLIN)
        else:
            seconds = min(seconds, _LOOK_SECONDS)
        poll.poll(seconds * 1000)
        for fd in (self._hear, self._inotify):
            if fd is not None:
                with suppress(BlockingIOError):
                    os.read(fd, 64 * 1024)

    def wake(self) -> None:
        """End a wait that is going on, or the next."""
        with suppress(BlockingIOError):
            os.write(self._tell, b"x")

    def close(self) -> None:
        """Give everything back."""
        for fd in (self._hear, self._tell, self._inotify):
            if fd is not None:
                os.close(fd)


def _inotify(directory: str) -> int | None:
    """A descriptor that can be read when a file has been moved into the directory, or None."""
    try:
        from inotify_simple import INotify, flags
    except ImportError:
        return None
    try:
        inotify = INotify(nonblocking=True, closefd=False)
    except OSError:  # the user's limit of instances is reached
        return None
    try:
        inotify.add_watch(directory, flags.MOVED_TO)
    except OSError:
        os.close(inotify.fileno())
        return None
    fd: int = inotify.fileno()
    return fd
