"""The records of a transcript, one at a time, whatever file or database holds them.

Owns the opening of transcripts, always for reading only. A 500 MB file is never in memory at
once: lines come one by one, rows by a cursor. What cannot be read is given as `Unreadable`.
"""

import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import IO, Any, Final, NamedTuple
from urllib.parse import quote

LINE_LIMIT: Final = 64 * 1024 * 1024
FILE_LIMIT: Final = 256 * 1024 * 1024

_SESSION: Final = ("id", "parent_id", "directory", "title", "time_created")
_MESSAGE: Final = ("id", "session_id", "time_created", "data")
_SECOND: Final = ("id", "session_id", "type", "time_created", "data")

Advance = Callable[[int], None]


class Unreadable(NamedTuple):
    """Stands for a record that cannot be read."""

    reason: str


Record = tuple[int, object]


def read(path: str, advance: Advance = lambda _: None) -> Iterator[Record]:
    """The records of a transcript with their numbers; ``advance`` is told the bytes read.

    Raises OSError if the file cannot be opened, ValueError if it is not what its name says.
    """
    if os.path.isdir(path):
        return _storage(path, advance)
    if path.endswith(".db"):
        return _database(path, advance)
    if path.endswith(".json"):
        return _document(path, advance)
    return _lines(path, advance)


def _lines(path: str, advance: Advance) -> Iterator[Record]:
    with open(path, "rb") as file:
        source: Any = _unpacked(file) if path.endswith(".zst") else file
        position = number = 0
        while line := source.readline(LINE_LIMIT + 1):
            number += 1
            yield from _line(number, line, source)
            now = file.tell()
            advance(now - position)
            position = now


def _line(number: int, line: bytes, source: Any) -> Iterator[Record]:
    if len(line) > LINE_LIMIT:
        while line and not line.endswith(b"\n"):
            line = source.readline(LINE_LIMIT)
        yield number, Unreadable(f"longer than {LINE_LIMIT // 1024 // 1024} MiB")
    elif line.strip():
        yield number, decode(line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line)


def decode(data: bytes) -> object:
    """The value of some JSON, or why it is none."""
    try:
        return json.loads(data.decode())
    except UnicodeDecodeError as error:
        return Unreadable(f"not UTF-8 at byte {error.start + 1}")
    except json.JSONDecodeError as error:
        return Unreadable(f"not JSON: {error.msg} at column {error.colno}")
    except (ValueError, RecursionError) as error:
        return Unreadable(f"not JSON that can be read: {error}")


def _unpacked(file: IO[bytes]) -> Any:
    """The text of a file that zstd has packed. Raises ValueError if it is damaged."""
    import io

    import zstandard

    class Checked(io.BufferedReader):
        def readline(self, size: int | None = -1, /) -> bytes:
            try:
                return super().readline(-1 if size is None else size)
            except zstandard.ZstdError as error:
                msg = f"not a sound zstd file: {error}"
                raise ValueError(msg) from None

    reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
    return Checked(reader)


def _document(path: str, advance: Advance) -> Iterator[Record]:
    """A conversation in one JSON object: what is said of it, then its messages."""
    size = os.path.getsize(path)
    if size > FILE_LIMIT:
        msg = f"larger than {FILE_LIMIT // 1024 // 1024} MiB, too large for one JSON object"
        raise ValueError(msg)
    with open(path, "rb") as file:
        value = decode(file.read())
    advance(size)
    if not isinstance(value, dict) or not isinstance(value.get("messages"), list):
        yield 1, value if isinstance(value, Unreadable) else Unreadable("no list of messages")
        return
    yield 1, {name: field for name, field in value.items() if name != "messages"}
    yield from enumerate(value["messages"], 2)


def _database(path: str, advance: Advance) -> Iterator[Record]:
    """The rows of an OpenCode database, sessions first. Only the tables of conversations."""
    try:
        with closing(sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True)) as db:
            db.row_factory = sqlite3.Row
            tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master")}
            yield from enumerate(_rows(db, tables), 1)
    except sqlite3.Error as error:
        msg = f"not a database that can be read: {error}"
        raise ValueError(msg) from None
    advance(os.path.getsize(path))


def _rows(db: sqlite3.Connection, tables: set[str]) -> Iterator[dict[str, Any]]:
    for table in ("session", "session_v2"):
        if table in tables:
            yield from _table(db, table, _SESSION, "ORDER BY time_created, id")
    if "message" in tables and "part" in tables:
        for message in _table(db, "message", _MESSAGE, "ORDER BY session_id, time_created, id"):
            yield message
            named = (message["row"]["id"],)
            yield from _table(db, "part", _MESSAGE, "WHERE message_id = ? ORDER BY id", named)
    if "session_message" in tables:
        yield from _table(db, "session_message", _SECOND, "ORDER BY session_id, seq")


def _table(
    db: sqlite3.Connection, table: str, columns: tuple[str, ...], rest: str, values: Any = ()
) -> Iterator[dict[str, Any]]:
    query = f"SELECT {', '.join(columns)} FROM {table} {rest}"  # noqa: S608 - names of our own
    for row in db.execute(query, values):
        yield {"table": table, "row": dict(row)}


def _storage(path: str, advance: Advance) -> Iterator[Record]:
    """The files of OpenCode before its database, as rows."""
    number = 0
    for name in _files(f"{path}/session"):
        number += 1
        yield number, _row("session", name, advance)
    for session in _folders(f"{path}/message"):
        for name in _files(session):
            number += 1
            yield number, _row("message", name, advance)
            message = os.path.basename(name).removesuffix(".json")
            for part in _files(f"{path}/part/{message}"):
                number += 1
                yield number, _row("part", part, advance)


def _row(table: str, path: str, advance: Advance) -> object:
    with open(path, "rb") as file:
        raw = file.read(LINE_LIMIT)
    advance(len(raw))
    data = decode(raw)
    if not isinstance(data, dict):
        return data
    times = data.get("time")
    row = {
        "id": data.get("id"),
        "session_id": data.get("sessionID"),
        "parent_id": data.get("parentID"),
        "directory": data.get("directory"),
        "title": data.get("title"),
        "time_created": times.get("created") if isinstance(times, dict) else None,
        "data": data,
    }
    return {"table": table, "row": row}


def _files(folder: str) -> Iterator[str]:
    for root, folders, names in os.walk(folder):
        folders.sort()
        yield from (f"{root}/{name}" for name in sorted(names) if name.endswith(".json"))


def _folders(folder: str) -> list[str]:
    if not os.path.isdir(folder):
        return []
    return [
        entry.path for entry in sorted(os.scandir(folder), key=lambda e: e.name) if entry.is_dir()
    ]
