"""The erasing half of the daemon: the eraser, who asks it, and the token for TCP.

Part of the wiring.
"""

import os
import pwd
import secrets
from collections.abc import Callable
from contextlib import ExitStack, suppress

from memoryd.config import Settings
from memoryd.domain.erasure import Who
from memoryd.domain.errors import StoreError
from memoryd.rpc.erasure import ErasureServicer
from memoryd.rpc.interceptors import Guard
from memoryd.scheduler import failpoint
from memoryd.services.erasure import Eraser, Parts
from memoryd.services.indexer import Indexer
from memoryd.services.ingest import Ingest
from memoryd.services.rollup import Steps
from memoryd.services.status import ErrorBook


def eraser_of(
    parts: Parts, ingest: Ingest, errors: ErrorBook, clock_ms: Callable[[], int]
) -> Eraser:
    """An eraser that has taken out what an erasure that was cut off had left to read.

    From now on nothing that was erased is taken in again.
    """
    eraser = Eraser(parts._replace(steps=Steps(failpoint(), errors.add)), clock_ms, _who)
    eraser.finish_bodies()
    ingest.erased = eraser.erased
    return eraser


def servicer(eraser: Eraser, settings: Settings, guard: Guard) -> ErasureServicer:
    """What answers calls."""
    return ErasureServicer(eraser, rotation(settings, guard))


def start(stack: ExitStack, indexer: Indexer, eraser: Eraser) -> None:
    """Start the index and go on with what was cut off, and arrange for the end of both."""
    indexer.start()
    stack.callback(indexer.stop)
    stack.callback(eraser.stop)
    eraser.start()


def token_of(settings: Settings) -> str | None:
    """The token for TCP, made on first use, readable by its owner only; None if none is needed."""
    if not (settings.listen and settings.token):
        return None
    path = token_path(settings)
    if not os.path.exists(path):
        _write_token(path)
    os.chmod(path, 0o600)
    with open(path, encoding="ascii") as file:
        return file.read().strip()


def rotation(settings: Settings, guard: Guard) -> Callable[[], str]:
    """How to have a new token hold: first on the disk, then for every call from now on."""

    def rotate() -> str:
        if not (settings.listen and settings.token):
            raise StoreError("TCP with a token is not turned on: there is no token to rotate")
        path = token_path(settings)
        guard.take(_write_token(path))
        return path

    return rotate


def token_path(settings: Settings) -> str:
    """Where the token is."""
    return f"{settings.data_dir}/token"


def _write_token(path: str) -> str:
    """A new token in the place of the old one, whole or not at all."""
    token = secrets.token_hex(32)
    temporary = f"{path}.new"
    with suppress(FileNotFoundError):
        os.unlink(temporary)
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "w", encoding="ascii") as file:
        file.write(token + "\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return token


def _who(reason: str) -> Who:
    """The user of this process: by the socket's mode nobody else can ask."""
    uid = os.getuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = str(uid)
    return Who(uid, name, reason)
