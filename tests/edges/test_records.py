import json
import os
import sqlite3
from typing import Any

import pytest
import zstandard

from memoryd.edges.importers import places, records
from memoryd.edges.importers.records import Unreadable
from memoryd.edges.importers.route import read_map
from tests.unit.capture.samples import TRANSCRIPTS


def write(path: str, values: list[Any]) -> str:
    """A file of JSON lines."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(value) + "\n" for value in values)
    return path


def test_lines_are_numbered_and_bad_ones_named(tmp_path: Any) -> None:
    """Blank lines are no records but count as lines; what is no JSON says why."""
    path = f"{tmp_path}/t.jsonl"
    with open(path, "wb") as file:
        file.write(b'\xef\xbb\xbf{"a": 1}\n\n{"a"\n\xff\n[' + b"[" * 100_000 + b"\n7")
    found = list(records.read(path))
    assert found[0] == (1, {"a": 1})
    assert [number for number, _ in found] == [1, 3, 4, 5, 6]
    reasons = [value.reason for _, value in found if isinstance(value, Unreadable)]
    assert "not JSON" in reasons[0]
    assert "not UTF-8 at byte 1" in reasons[1]
    assert len(reasons) == 3
    assert found[-1] == (6, 7)


def test_a_line_over_the_limit_is_passed_over(tmp_path: Any, monkeypatch: Any) -> None:
    """A line that is too long is reported by its number, and the next is read."""
    monkeypatch.setattr(records, "LINE_LIMIT", 10)
    path = f"{tmp_path}/t.jsonl"
    with open(path, "wb") as file:
        file.write(b'"' + b"x" * 95 + b'"\n1\n')
    first, second = records.read(path)
    assert isinstance(first[1], Unreadable)
    assert second == (2, 1)


def test_packed_lines_are_read(tmp_path: Any) -> None:
    """A .zst file of several frames is read as its text; a damaged one is refused."""
    path = f"{tmp_path}/rollout-x.jsonl.zst"
    frames = [zstandard.compress(json.dumps(n).encode() + b"\n") for n in range(3)]
    with open(path, "wb") as file:
        file.write(b"".join(frames))
    assert list(records.read(path)) == [(1, 0), (2, 1), (3, 2)]
    with open(path, "wb") as file:
        file.write(frames[0] + b"garbage that is no frame")
    with pytest.raises(ValueError, match="zstd"):
        list(records.read(path))


def test_one_object_is_read_message_by_message(tmp_path: Any) -> None:
    """Gemini's older file: what is said of the chat, then its messages."""
    path = f"{tmp_path}/session-1.json"
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"sessionId": "s", "messages": [{"id": "a"}, {"id": "b"}]}, file)
    assert list(records.read(path)) == [(1, {"sessionId": "s"}), (2, {"id": "a"}), (3, {"id": "b"})]


def database(path: str) -> sqlite3.Connection:
    """A database as OpenCode keeps it, with its writer still there."""
    db = sqlite3.connect(path)
    db.executescript("""
        PRAGMA journal_mode=WAL;
        CREATE TABLE session (id, parent_id, directory, title, time_created);
        CREATE TABLE message (id, session_id, time_created, data);
        CREATE TABLE part (id, message_id, session_id, time_created, data);
        CREATE TABLE session_message (id, session_id, type, seq, time_created, data);
        CREATE TABLE account (secret);
        INSERT INTO session VALUES ('s', NULL, '/p', 'T', 1);
        INSERT INTO message VALUES ('m', 's', 2, '{"role": "user"}');
        INSERT INTO part VALUES ('p', 'm', 's', 3, '{"type": "text", "text": "Hi"}');
        INSERT INTO session_message VALUES ('n', 's', 'user', 1, 4, '{"text": "Ho"}');
        INSERT INTO account VALUES ('hidden');
    """)
    return db


def test_a_database_is_read_while_its_owner_writes(tmp_path: Any) -> None:
    """What stands in the write-ahead log is read too; accounts are not touched."""
    path = f"{tmp_path}/opencode.db"
    owner = database(path)
    assert os.path.getsize(f"{path}-wal")
    before = os.path.getsize(path)
    rows: list[Any] = [value for _, value in records.read(path)]
    assert [row["table"] for row in rows] == ["session", "message", "part", "session_message"]
    assert "hidden" not in json.dumps(rows)
    assert os.path.getsize(path) == before
    owner.close()


def test_a_file_that_is_no_database_is_refused(tmp_path: Any) -> None:
    """The reason names what is wrong."""
    path = f"{tmp_path}/opencode.db"
    with open(path, "wb") as file:
        file.write(b"not a database, but long enough to be looked at" * 100)
    with pytest.raises(ValueError, match="database"):
        list(records.read(path))


def test_the_older_files_of_opencode_are_rows(tmp_path: Any) -> None:
    """Sessions, messages and their parts come in the order that the reader wants."""
    for name, value in (
        ("session/p/s.json", {"id": "s", "directory": "/p", "time": {"created": 1}}),
        ("message/s/m.json", {"id": "m", "sessionID": "s", "role": "user"}),
        ("part/m/t.json", {"id": "t", "messageID": "m", "type": "text", "text": "Hi"}),
    ):
        path = f"{tmp_path}/storage/{name}"
        os.makedirs(os.path.dirname(path))
        with open(path, "w", encoding="utf-8") as file:
            json.dump(value, file)
    rows: list[Any] = [value for _, value in records.read(f"{tmp_path}/storage")]
    assert [(row["table"], row["row"]["id"]) for row in rows] == [
        ("session", "s"),
        ("message", "m"),
        ("part", "t"),
    ]
    found, _ = places.find(places.AGENTS, str(tmp_path))
    assert [t.agent for t in found] == ["opencode"]


@pytest.mark.parametrize("agent", places.AGENTS)
def test_a_transcript_is_recognised_by_what_it_holds(agent: str, tmp_path: Any) -> None:
    """The first records tell whose transcript a file is."""
    assert places.guess(write(f"{tmp_path}/t.jsonl", TRANSCRIPTS[agent])) == agent


def test_a_strange_file_is_nobodys(tmp_path: Any) -> None:
    """JSON of somebody else is left out, and named."""
    path = write(f"{tmp_path}/x/t.jsonl", [{"a": 1}])
    assert places.find(places.AGENTS, f"{tmp_path}/x") == ([], [path])


def test_the_usual_places_are_searched(tmp_path: Any, monkeypatch: Any) -> None:
    """Each agent's transcripts are found where it keeps them."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    kept = {
        "claude-code": ".claude/projects/-p/s.jsonl",
        "codex": ".codex/sessions/2026/03/01/rollout-1.jsonl",
        "gemini": ".gemini/tmp/p/chats/session-1.jsonl",
        "copilot": ".copilot/session-state/s/events.jsonl",
        "cursor": ".cursor/projects/p/agent-transcripts/s.jsonl",
        "opencode": ".local/share/opencode/opencode.db",
    }
    for path in (*kept.values(), ".codex/history.jsonl", ".cursor/projects/p/other.jsonl"):
        write(f"{tmp_path}/{path}", [])
    found, _ = places.find(places.AGENTS)
    assert {t.agent: os.path.relpath(t.path, tmp_path) for t in found} == kept


def test_a_gemini_chat_knows_its_directory(tmp_path: Any) -> None:
    """By its note, or by the list of projects."""
    chat = write(f"{tmp_path}/.gemini/tmp/shop/chats/session-1.jsonl", [])
    with open(f"{tmp_path}/.gemini/projects.json", "w", encoding="utf-8") as file:
        json.dump({"projects": {"/home/ann/shop": "shop"}}, file)
    (transcript,) = places.find(("gemini",), chat)[0]
    assert places.place_of(transcript).cwd == "/home/ann/shop"
    with open(f"{tmp_path}/.gemini/tmp/shop/.project_root", "w", encoding="utf-8") as file:
        file.write("/home/ann/moved\n")
    assert places.place_of(transcript).cwd == "/home/ann/moved"


def test_a_bad_project_map_is_refused(tmp_path: Any) -> None:
    """The error names the file."""
    path = f"{tmp_path}/map.json"
    for text in ("[", "[]", '{"a": 1}'):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        with pytest.raises(ValueError, match=r"map\.json"):
            read_map(path)


def test_a_directory_gives_only_what_is_of_the_agent(tmp_path: Any) -> None:
    """Other JSON beside the transcripts is left out; a file that is named is believed."""
    own = write(f"{tmp_path}/a/t.jsonl", TRANSCRIPTS["claude-code"])
    odd = write(f"{tmp_path}/a/package.json", [{"name": "x"}])
    found, strange = places.find(("claude-code",), f"{tmp_path}/a")
    assert ([t.path for t in found], strange) == ([own], [odd])
    assert [t.path for t in places.find(("claude-code",), odd)[0]] == [odd]
