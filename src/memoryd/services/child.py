"""A process of our own: spawned, never forked, and spoken to in MessagePack over its standard streams.

Both ends of the pipe live here. A child reads until its input ends, and so ends with the daemon,
however that ends. It can say nothing but plain values: what comes back is never executed.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, BinaryIO, Final

import msgpack

from memoryd import nodump

_ENDING_SECONDS: Final = 2.0
_NICENESS: Final = 10
_LENGTH: Final = 4


class Child:
    """One process that runs a module. For one thread."""

    def __init__(
        self, module: str, arguments: Sequence[str] = (), kept: Sequence[int] = ()
    ) -> None:
        """``kept``: open files that the process gets a share of, such as a lock."""
        self._command = [sys.executable, "-m", module, *arguments]
        self._kept = tuple(kept)
        self._used = 0.0
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> bool:
        """Start the process, unless it runs; whether it is a new one."""
        if self.process is not None and self.process.poll() is None:
            return False
        self.end()
        self.process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # a Ctrl-C is for the daemon, which ends the child
            pass_fds=self._kept,
        )
        self._used = time.monotonic()
        return True

    def send(self, content: object) -> None:
        """Say something; it arrives with the next `flush`. Raises OSError or EOFError."""
        if self.process is None or self.process.stdin is None:
            raise EOFError
        send(self.process.stdin, content)  # type: ignore[arg-type]

    def flush(self) -> None:
        """Have everything that was said arrive. Raises OSError."""
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.flush()

    def receive(self) -> Any:
        """The next answer. Raises OSError, EOFError or ValueError if none comes."""
        if self.process is None or self.process.stdout is None:
            raise EOFError
        answer = receive(self.process.stdout)  # type: ignore[arg-type]
        self._used = time.monotonic()
        return answer

    def idle(self, seconds: float) -> bool:
        """Whether it runs and has not been needed for so long."""
        return self.process is not None and time.monotonic() - self._used > seconds

    def end(self) -> None:
        """End the process, if it runs."""
        process, self.process = self.process, None
        if process is None:
            return
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        try:
            process.wait(_ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def send(stream: BinaryIO, content: object) -> None:
    """Write one message."""
    data: bytes = msgpack.packb(content)
    stream.write(len(data).to_bytes(_LENGTH, "big"))
    stream.write(data)


def receive(stream: BinaryIO) -> Any:
    """Read one message. Raises EOFError if the stream ends before or within it."""
    head = stream.read(_LENGTH)
    size = int.from_bytes(head, "big")
    data = stream.read(size)
    if len(head) < _LENGTH or len(data) < size:
        raise EOFError
    return msgpack.unpackb(data)


def standard_streams() -> tuple[BinaryIO, BinaryIO]:
    """In a child: where messages come in and go out, with the processor left to others first.

    A service manager that stops the daemon may tell all its processes; the daemon still needs
    this one for its last work, and ends it.
    """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.nice(_NICENESS)
    nodump.forbid()
    return sys.stdin.buffer, sys.stdout.buffer
