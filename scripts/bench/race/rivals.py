"""What a user would take instead: SQLite with FTS5, ripgrep over transcripts; and the raw engines.

Each is used as its documentation advises, by the same process that measures, so that none of
them pays for a socket.
"""

import os
import resource
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterable, Sequence
from typing import Final

import tantivy
from rocksdict import Options, Rdict, WriteBatch, WriteOptions

from race.corpus import Said, session

TOP: Final = 10


class Sqlite:
    """A table with two indices and a full-text index beside it, written ahead and synced."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.executescript(
            """
            PRAGMA journal_mode = WAL;
            PRAGMA synchronous = FULL;
            CREATE TABLE IF NOT EXISTS events (
                id TEXT UNIQUE, session TEXT, time INTEGER, role TEXT, agent TEXT, text TEXT);
            CREATE INDEX IF NOT EXISTS by_time ON events (time);
            CREATE INDEX IF NOT EXISTS by_session ON events (session, time);
            CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (
                text, content = 'events', content_rowid = 'rowid', tokenize = 'porter unicode61');
            CREATE TRIGGER IF NOT EXISTS put AFTER INSERT ON events BEGIN
                INSERT INTO words (rowid, text) VALUES (new.rowid, new.text);
            END;
            """
        )

    def write(self, events: Sequence[Said]) -> None:
        """One transaction."""
        self._db.execute("BEGIN")
        self._db.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", events)
        self._db.execute("COMMIT")

    def last(self, count: int) -> int:
        """The newest events."""
        return len(
            self._db.execute("SELECT * FROM events ORDER BY time DESC LIMIT ?", (count,)).fetchall()
        )

    def session(self, number: int) -> int:
        """All events of one session."""
        wanted = "SELECT * FROM events WHERE session = ? ORDER BY time"
        return len(self._db.execute(wanted, (session(number),)).fetchall())

    def day(self, between: tuple[int, int]) -> int:
        """All events of one day."""
        wanted = "SELECT * FROM events WHERE time BETWEEN ? AND ? ORDER BY time"
        return len(self._db.execute(wanted, between).fetchall())

    def around(self, number: int) -> int:
        """An event with three before and three after it in its session."""
        wanted = "SELECT * FROM events WHERE session = ? ORDER BY time LIMIT 7 OFFSET 97"
        return len(self._db.execute(wanted, (session(number),)).fetchall())

    def search(self, words: str) -> int:
        """The ten best for any of the words."""
        asked = " OR ".join(f'"{word}"' for word in words.split())
        wanted = (
            "SELECT events.id, events.text FROM words JOIN events ON events.rowid = words.rowid "
            "WHERE words MATCH ? ORDER BY rank LIMIT ?"
        )
        return len(self._db.execute(wanted, (asked, TOP)).fetchall())

    def close(self) -> None:
        """Let go of the file."""
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._db.close()


def sqlite_memory(path: str, questions: Iterable[str]) -> float:
    """Megabytes that a process of its own needs at most to search."""
    command = [sys.executable, "-c", _ASK, path, *questions]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(answer.stdout) / 1024


_ASK: Final = """
import resource, sqlite3, sys
db = sqlite3.connect(sys.argv[1])
for words in sys.argv[2:]:
    asked = " OR ".join(f'"{word}"' for word in words.split())
    db.execute("SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank LIMIT 10", (asked,)).fetchall()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


class Ripgrep:
    """One file of JSON lines, searched by ripgrep where it is installed."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.program = shutil.which("rg")

    def write(self, events: Iterable[Said]) -> None:
        """Append to the file."""
        with open(self.path, "a", encoding="utf-8") as file:
            file.writelines(said.line() for said in events)

    def search(self, words: str) -> int:
        """The lines with any of the words; ripgrep does not rank, so all are counted."""
        patterns = [part for word in words.split() for part in ("-e", word)]
        command = [self.program or "rg", "--count", "-iwF", *patterns, self.path]
        answer = subprocess.run(command, check=False, capture_output=True, text=True)
        return int(answer.stdout or 0)

    def memory(self, words: str) -> float:
        """Megabytes that it needs at most."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        self.search(words)
        return max(before, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) / 1024


class Rocks:
    """Bare rocksdict: one put for each event, its text as the value."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._db = Rdict(path, Options(raw_mode=True))
        self._sync = WriteOptions()
        self._sync.sync = True

    @staticmethod
    def ready(events: Iterable[Said]) -> list[tuple[bytes, bytes]]:
        """What the engine is given, made before the clock runs."""
        return [
            (said.time_ms.to_bytes(8, "big") + said.event_id.encode(), said.line().encode())
            for said in events
        ]

    def write(self, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        """One synced batch."""
        batch = WriteBatch(raw_mode=True)
        for key, value in pairs:
            batch.put(key, value)
        self._db.write(batch, self._sync)

    def range(self, start_ms: int, count: int) -> int:
        """So many events from a moment on."""
        cursor = self._db.iter()
        cursor.seek(start_ms.to_bytes(8, "big"))
        seen = 0
        while seen < count and cursor.valid():
            cursor.key()
            cursor.value()
            cursor.next()
            seen += 1
        return seen

    def close(self) -> None:
        """Let go of the files."""
        self._db.close()


class Tantivy:
    """A bare index of the words as they are."""

    def __init__(self, path: str) -> None:
        os.mkdir(path)
        made = tantivy.SchemaBuilder()
        made.add_text_field("text", tokenizer_name="whitespace", index_option="freq")
        made.add_text_field("id", stored=True, tokenizer_name="raw", index_option="basic")
        self._schema = made.build()
        self._index = tantivy.Index(self._schema, path)
        self._writer = self._index.writer(48_000_000, 1)

    def write(self, events: Iterable[Said]) -> None:
        """Put texts in."""
        for said in events:
            fields = {"text": said.text, "id": said.event_id}
            self._writer.add_document(tantivy.Document.from_dict(fields, self._schema))

    def commit(self) -> None:
        """Make everything searchable, in one part."""
        self._writer.commit()
        self._writer.wait_merging_threads()
        self._index.reload()
        self._writer = self._index.writer(48_000_000, 1)

    def search(self, words: str) -> int:
        """The ten best for any of the words."""
        searcher = self._index.searcher()
        terms = [
            (tantivy.Occur.Should, tantivy.Query.term_query(self._schema, "text", word, "freq"))
            for word in words.split()
        ]
        hits = searcher.search(tantivy.Query.boolean_query(terms), TOP, count=False).hits
        return len([searcher.doc(address)["id"] for _, address in hits])
