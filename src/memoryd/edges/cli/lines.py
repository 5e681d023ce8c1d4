"""Lines from a file or a pipe, of any length and at any pace.

Owns the cutting of bytes into numbered lines. A line over the limit is reported without being
held in memory; a source that pauses is reported too, so that what has gathered can be sent.
"""

import os
import select
from collections.abc import Iterator
from typing import Final, NamedTuple

LINE_LIMIT: Final = 64 * 1024 * 1024
PAUSE_SECONDS: Final = 0.2

_CHUNK: Final = 1024 * 1024


class Line(NamedTuple):
    """One line without its end; ``data`` is None if it was longer than the limit."""

    number: int
    data: bytes | None


def read_lines(
    source: int, *, limit: int = LINE_LIMIT, pause: float = PAUSE_SECONDS
) -> Iterator[Line | None]:
    """The lines of a file descriptor; None whenever nothing has come for ``pause`` seconds."""
    number = 1
    parts: list[bytes] = []
    held = 0
    while True:
        if not select.select([source], [], [], pause)[0]:
            yield None
            select.select([source], [], [])
        chunk = os.read(source, _CHUNK)
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            whole = held + len(piece) <= limit
            yield Line(number, b"".join((*parts, piece)) if whole else None)
            number, held = number + 1, 0
            parts.clear()
        held += len(rest)
        if held > limit:
            parts.clear()
        elif rest:
            parts.append(rest)
        if not chunk:
            break
    if held:
        yield Line(number, b"".join(parts) if held <= limit else None)
