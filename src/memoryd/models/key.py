"""The key to a provider: from a variable of the environment, or from a file that is private."""

import os
import stat
from collections.abc import Mapping
from typing import Final

from memoryd.models.client import Unready

_KEY_LIMIT: Final = 4096


def read_key(key_file: str, key_env: str, environ: Mapping[str, str]) -> str:
    """The key that the file holds, if one is named, else the variable; empty if it is not set.

    Raises Unready if the file cannot be used, or others may read it; no message holds the key.
    """
    source = key_file or f"the environment's {key_env}"
    key = (_from_file(key_file) if key_file else environ.get(key_env, "")).strip()
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise Unready(f"{source} does not hold a key: it must be one line of ASCII without blanks")
    return key


def _from_file(path: str) -> str:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise Unready(f"model.key_file {path} cannot be read: {error.strerror}") from None
    try:
        state = os.fstat(fd)
        if not stat.S_ISREG(state.st_mode):
            raise Unready(f"model.key_file {path} is not a regular file")
        if state.st_mode & 0o077 or state.st_uid not in {0, os.geteuid()}:
            raise Unready(f"others may read model.key_file {path}: run `chmod 600 {path}`")
        return os.read(fd, _KEY_LIMIT).decode("utf-8", "replace")
    finally:
        os.close(fd)
