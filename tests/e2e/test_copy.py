"""A readable copy: what is exported comes back, byte for byte, and nothing else is touched."""

import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoryd.client import Client
from memoryd.domain.errors import MemorydError
from memoryd.domain.note import Note
from memoryd.domain.redact import Redactor
from memoryd.edges import export
from memoryd.edges.importers import notes as importer
from memoryd.rpc.notes import NoteServicer
from memoryd.services.note_query import NoteQuery
from memoryd.services.note_stores import Stores
from memoryd.services.notes import Notes
from memoryd.storage.committer import Committer
from memoryd.storage.global_notes import GlobalNotes
from memoryd.storage.notes import ProjectNotes
from memoryd.storage.store import Store
from tests.e2e.test_cli import House, event, home, house
from tests.rpc.test_toc import DAY, JOBS, MINUTE, NOON, SAID
from tests.unit.test_note import notes

__all__ = ("home", "house")

NOW = 1_800_000_000_000


class Direct(Client):
    """A client that calls the service without a server between."""

    def __init__(self, servicer: NoteServicer) -> None:
        self._servicer = servicer
        self.settings = cast("Any", type("Settings", (), {"project": "p-1", "unified": False}))

    def children(self, parent_id: str) -> Iterator[dict[str, Any]]:
        """No table of contents: nothing has happened."""
        return iter(())

    def _call_notes(self, method: str, request: object) -> Any:
        call: Callable[..., Any] = getattr(self._servicer, method)
        return call(request, None)


@contextmanager
def empty() -> Iterator[Direct]:
    """A client of stores that hold nothing."""
    with tempfile.TemporaryDirectory() as directory:
        store = Store(f"{directory}/data")
        committer = Committer(store, lambda: NOW)
        committer.start()
        shared = GlobalNotes(f"{directory}/global")
        stores = Stores(ProjectNotes(store, committer), shared, "p-1")
        local = lambda _: ("2026-11-18", "10:00")  # noqa: E731 - a clock that stands
        service = Notes(stores, lambda: NOW, local, Redactor())
        yield Direct(NoteServicer(service, NoteQuery(stores)))
        committer.stop()
        store.close()
        shared.close()


def tree(directory: str) -> dict[str, bytes]:
    """Every file below a directory."""
    found = {}
    for folder, _, files in os.walk(directory):
        for name in files:
            path = f"{folder}/{name}"
            with open(path, "rb") as file:
                found[os.path.relpath(path, directory)] = file.read()
    return found


def put(client: Client, *sent: Note) -> int:
    """Write notes; those whose names are taken are left out. How many were written."""
    count = 0
    for note in sent:
        fields = {f: v for f, v in note._asdict().items() if f != "project"}
        try:
            client.note("ImportNotes", notes=[fields])
        except MemorydError:
            continue
        count += 1
    return count


def bring(client: Client, directory: str, *, replace: bool = False) -> dict[str, int]:
    """Import a directory; how often each action was taken."""
    source = importer.read(directory)
    assert source.problems == []
    steps = importer.plan(client, source, "", NOW, replace=replace)
    importer.apply(client, steps)
    actions = [step.action for step in steps]
    return {action: actions.count(action) for action in set(actions)}


def write(directory: str, **files: str) -> None:
    """Write files; two underscores stand for a slash."""
    for name, text in files.items():
        path = f"{directory}/{name.replace('__', '/')}.md"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(notes(), max_size=6, unique_by=lambda n: (n.scope, n.session_id, n.name)))
def test_there_and_back_is_byte_identical(made: list[Note]) -> None:
    """Export, import into empty stores, export: the same tree, whatever names and texts."""
    with tempfile.TemporaryDirectory() as base:
        with empty() as first:
            count = put(first, *made)
            export.write_tree(first, f"{base}/a", "")
            assert bring(first, f"{base}/a").get("unchanged", 0) == count
        with empty() as second:
            assert bring(second, f"{base}/a").get("create", 0) == count
            export.write_tree(second, f"{base}/b", "")
        assert tree(f"{base}/a") == tree(f"{base}/b")


def test_the_tree_is_a_book(tmp_path: os.PathLike[str]) -> None:
    """Each kind and scope has its place, SUMMARY.md links to all of them, book.toml is seeded."""
    base = os.fspath(tmp_path)
    with empty() as client:
        put(
            client,
            Note("MEMORY", "- long"),
            Note("SCRATCHPAD", "- [ ] a", kind="scratchpad"),
            Note("deploy", "x"),
            Note("Deploy [v2]", "x"),
            Note("deploy", "x", scope="global"),
            Note("deploy", "x", scope="session", session_id="s 1"),
            Note("2026-11-18", "x", kind="daily"),
            Note("archive s1 abc", "x", kind="archive"),
        )
        done = export.write_tree(client, base, "")
    files = tree(base)
    assert len(done.written) == 9
    assert {"MEMORY.md", "SCRATCHPAD.md", "notes/deploy.md", "daily/2026-11-18.md"} < set(files)
    assert {"notes/global/deploy.md", "book.toml", "SUMMARY.md"} < set(files)
    summary = files["SUMMARY.md"].decode()
    assert r"  - [Deploy \[v2\]](notes/Deploy_v2_-" in summary
    assert "\n- [Notes]()\n" in summary
    for path in files.keys() - {"SUMMARY.md", "book.toml", export.MANIFEST}:
        assert f"]({path})" in summary
    assert b'title = "Memory of p-1"' in files["book.toml"]


def test_only_our_files_are_touched(tmp_path: os.PathLike[str]) -> None:
    """Stale pages go; what users wrote or edited stays, and edits are reported."""
    base = os.fspath(tmp_path)
    with empty() as client:
        put(client, Note("a", "x"), Note("b", "x"), Note("c", "x"), Note("d", "x", kind="archive"))
        export.write_tree(client, base, "")
        write(base, README="mine", notes__mine="mine", notes__b="edited", notes__c="edited")
        with open(f"{base}/book.toml", "a", encoding="utf-8") as file:
            file.write("# mine\n")
        for name in ("a", "b", "d"):
            client.note("Forget", name=name)
        client.note("Remember", name="c", content="y")
        done = export.write_tree(client, base, "")
        assert done.removed == ["archives/d.md", "notes/a.md"]
        assert done.edited == ["notes/c.md", "notes/b.md"]
        assert not os.path.exists(f"{base}/archives")
        files = tree(base)
        assert files["README.md"] == files["notes/mine.md"] == b"mine"
        assert files["notes/b.md"] == files["notes/c.md"] == b"edited"
        assert files["book.toml"].endswith(b"# mine\n")
        assert export.write_tree(client, base, "").edited == ["notes/c.md", "notes/b.md"]
        done = export.write_tree(client, base, "", force=True)
        assert (done.written, done.removed, done.edited) == (["notes/c.md"], ["notes/b.md"], [])
        assert tree(base)["notes/mine.md"] == b"mine"


def test_edited_pages_are_taken_and_old_ones_are_not(tmp_path: os.PathLike[str]) -> None:
    """An edit becomes a revision; a page that the store has gone beyond changes nothing."""
    base = os.fspath(tmp_path)
    with empty() as client:
        put(client, Note("a", "one", tags=("t",), created_ms=5, changed_ms=5), Note("b", "one"))
        export.write_tree(client, base, "")
        page = tree(base)["notes/a.md"].decode()
        write(base, notes__a=page.replace("one", "two"))
        client.note("Remember", name="b", content="two")
        assert bring(client, base) == {"change": 1, "older": 1}
        found = client.note("Get", name="a")["note"]
        assert (found["content"], found["tags"], found["revision"]) == ("two", ["t"], 2)
        assert (found["created_ms"], found["changed_ms"]) == (5, NOW)
        assert client.note("Get", name="b")["note"]["content"] == "one\ntwo"
        assert bring(client, base, replace=True) == {"change": 2}
        assert client.note("Get", name="b")["note"]["content"] == "one"


def test_replacing_forgets_what_is_not_there(tmp_path: os.PathLike[str]) -> None:
    """A tree replaces notes of all scopes, a plain directory those of the project alone."""
    base = os.fspath(tmp_path)
    with empty() as client:
        put(client, Note("a", "x"), Note("g", "x", scope="global"))
        export.write_tree(client, f"{base}/tree", "")
        put(client, Note("b", "x"), Note("h", "x", scope="global"))
        write(f"{base}/plain", MEMORY="- plain\n")
        assert bring(client, f"{base}/tree", replace=True) == {"unchanged": 2, "forget": 2}
        assert bring(client, f"{base}/plain", replace=True) == {"create": 1, "forget": 1}
        assert [n["name"] for n in client.notes()] == ["MEMORY", "g"]


def test_a_directory_of_markdown_is_taken(tmp_path: os.PathLike[str]) -> None:
    """MEMORY.md, a scratchpad and daily files come in by their places, and are merged."""
    base = os.fspath(tmp_path)
    write(base, MEMORY="- a\n- b\n", SCRATCHPAD="- [ ] x\n", daily__2026_01_31="", README="no")
    write(base, **{"2026-01-30": "log", "memory__2026-01-29": "log", "notes__how": "text"})
    with empty() as client:
        client.note("Remember", name="MEMORY", content="- b\n- c")
        assert bring(client, base) == {"change": 1, "create": 5}
        found = {n["name"]: n for n in client.notes()}
        assert found["MEMORY"]["content"] == "- b\n- c\n- a"
        assert found["SCRATCHPAD"]["kind"] == "scratchpad"
        assert {n for n, note in found.items() if note["kind"] == "daily"} == {
            "2026_01_31",
            "2026-01-30",
            "2026-01-29",
        }
        assert found["how"]["content"] == "text"
        assert bring(client, base) == {"unchanged": 6}


def test_timestamped_notes_are_taken_line_by_line(tmp_path: os.PathLike[str]) -> None:
    """Good lines of a notes.jsonl become notes named by their time; bad ones are named."""
    path = f"{os.fspath(tmp_path)}/notes.jsonl"
    lines = [
        '{"at": 1700000000000, "text": "one"}',
        "nonsense",
        '{"at": 1700000000000, "text": "2"}',
    ]
    lines += ['{"at": "x", "text": "3"}', "", '{"at": 1700000000000, "text": "one"}']
    lines += ['{"at": 99999999999999999, "text": "late"}', '{"at": 5, "text": "\\ud800"}']
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines))
    source = importer.read(path)
    assert [found.note.name for found in source.found] == [
        "2023-11-14T22:13:20.000Z",
        "2023-11-14T22:13:20.000Z (2)",
    ]
    assert [problem.split(": ")[1] for problem in source.problems] == [
        "line 2",
        "line 4",
        "line 7",
        "line 8",
    ]
    assert importer.read(os.fspath(tmp_path)).problems == source.problems


def test_bad_pages_are_reported_and_left_out(tmp_path: os.PathLike[str]) -> None:
    """A page that makes no sense is named with its line; links are not followed."""
    base = os.fspath(tmp_path)
    block = '<dl class="memoryd-note">\n<dt>name</dt><dd>same</dd>\n</dl>\n\nx\n'
    write(base, notes__a='<dl class="memoryd-note">\nwhat\n</dl>\n', notes__same=block)
    write(base, notes__other=block, notes__kind=block.replace("name", "kind"))
    with open(f"{base}/notes/bytes.md", "wb") as file:
        file.write(b"fine\n\xff\n")
    os.symlink("/etc/passwd", f"{base}/notes/link.md")
    source = importer.read(base)
    assert [found.source for found in source.found] == ["notes/other.md"]
    assert sorted(source.problems) == [
        "notes/a.md: line 2: 'what' is no field of a note",
        "notes/bytes.md: line 2: not UTF-8",
        "notes/kind.md: kind 'same' is not known: take one of note, archive, scratchpad, daily",
        "notes/same.md: notes/other.md is the same note: left out",
    ]


def test_the_commands(home: House) -> None:
    """Export, a look at the difference, import and its refusals, from the command line."""
    home.memory("remember", "deploy", "Run make ship.")
    done = home.memory("export", f"{home.base}/out")
    assert json.loads(done.stdout) == {"written": 2, "unchanged": 0, "removed": 0, "edited": 0}
    home.memory("remember", "extra", "x")
    page = f"{home.base}/out/notes/deploy.md"
    with open(page, "a", encoding="utf-8") as file:
        file.write("Rest.\n")
    rows = home.rows("import-notes", f"{home.base}/out", "--dry-run", "--replace")
    assert [(r["action"], r["name"]) for r in rows] == [("forget", "extra"), ("change", "deploy")]
    assert "Rest." not in home.rows("notes", "show", "deploy")[0]["content"]
    text = home.memory("--no-json", "import-notes", f"{home.base}/out", "--dry-run").stdout
    assert "~ deploy  (project)" in text
    (counts,) = home.rows("import-notes", f"{home.base}/out")
    assert (counts["change"], counts["forget"]) == (1, 0)
    assert home.rows("notes", "show", "deploy")[0]["content"] == "Run make ship.\nRest."
    with open(f"{home.base}/out/notes/bad.md", "wb") as file:
        file.write(b"\xff")
    done = home.memory("import-notes", f"{home.base}/out", "--replace")
    assert (done.returncode, "nothing was changed" in done.stderr) == (1, True)
    done = home.memory("import-notes", f"{home.base}/out")
    assert (done.returncode, done.stderr) == (1, "notes/bad.md: line 1: not UTF-8\n")
    assert home.memory("export").returncode == 2


def talk(home: House, words: str = "parser") -> None:
    """Have three days of conversation worked in, and a compaction on the last."""
    for day in range(3):
        said = [text.replace("parser", words) for text in SAID]
        home.say(
            *(
                event(
                    text,
                    event_id=f"e{day}-{place}",
                    session_id=f"s{day}",
                    timestamp_ms=NOON + day * DAY + place * MINUTE,
                    role="assistant" if place % 2 else "user",
                    agent="claude-code",
                )
                for place, text in enumerate(said)
            )
        )
        home.memory("remember", f"n{day}", "one")
    summed = event("we did", event_id="c1", timestamp_ms=NOON + 2 * DAY + 9 * MINUTE)
    home.say(summed | {"session_id": "s2", "metadata": {"compaction": "true"}})
    settle(home)


def settle(home: House) -> None:
    """Have everything worked in that waits."""
    for job in JOBS:
        assert home.memory("jobs", "run", job).returncode == 0


def test_the_table_of_contents_is_in_the_book(home: House) -> None:
    """A page for each period, bullets that lead to evidence; notes are taken in without it."""
    talk(home, "parser <script>alert(1)</script> {{#include /etc/passwd}}")
    base = f"{home.base}/out"
    assert home.memory("export", base).returncode == 0
    files = {path: data.decode() for path, data in tree(base).items()}
    week = "toc/2026/2026-06/2026-W23"
    days = {f"{week}/2026-06-0{day}.md" for day in (1, 2, 3)}
    pages = {path for path in files if path.startswith("toc/")}
    assert pages == days | {f"{week}.md", "toc/2026/2026-06.md", "toc/2026.md"}
    chapters = re.findall(r"^( *)- \[[^\n]+\]\((toc/[^)]+)\)$", files["SUMMARY.md"], re.MULTILINE)
    assert {path: len(indent) // 2 for indent, path in chapters} == {
        path: path.count("/") for path in pages
    }
    for path in pages:
        text = files[path]
        assert set(re.findall(r"(?<!\\)<[^i>]*", text)) <= {"<a ", "</a"}
        assert "{{#" not in text
        bullets = [line for line in text.splitlines() if line.startswith("- ") and "](#" in line]
        assert bullets
        for file, anchor in re.findall(r"(?<!\\)\]\(([^)#]*)#?([^)]*)\)", text):
            target = os.path.normpath(f"{os.path.dirname(path)}/{file}") if file else path
            assert not anchor or f'<a id="{anchor}"></a>' in files[target]
            assert target in files
    day = files[f"{week}/2026-06-01.md"]
    assert "## 10:00 to 10:03: " in day
    assert re.search(r"claude-code \w+, 2026-06-01 10:0\d:00 UTC, session s0, events? e0-\d", day)
    assert "\n> Fixed: the refresh now takes a lock" in day
    assert home.rows("export", base)[0]["written"] == 0
    assert tree(base) == {path: text.encode() for path, text in files.items()}
    (counts,) = home.rows("import-notes", base, "--replace")
    assert (counts["create"], counts["change"], counts["forget"]) == (0, 0, 0)


def test_a_summary_of_a_compaction_is_a_note(home: House) -> None:
    """It is archived as it comes in, once, and stands in the log of its day."""
    talk(home)
    again = event("we did", event_id="c1", timestamp_ms=NOON + 2 * DAY + 9 * MINUTE)
    home.say(again | {"session_id": "s2", "metadata": {"compaction": "true"}})
    (archive,) = home.rows("notes", "list", "--kind", "archive")
    assert archive["provenance"] == ["c1"]
    assert archive["name"].startswith("archive s2 ")
    (log,) = home.rows("daily", "show", "2026-06-03")
    assert log["content"] == "# 2026-06-03\n\n## 10:09 compaction summary\n\nwe did\n"


@pytest.mark.parametrize("through", ["file", "pipe"])
def test_json_lines_restore_everything(home: House, through: str) -> None:
    """Events and all revisions of notes come back with their ids, and the rest follows."""
    talk(home)
    home.memory("remember", "n", "one", "--alias", "a")
    home.memory("remember", "n", "two")
    home.memory("remember", "g", "shared", "--scope", "global")
    home.memory("forget", "n")
    path = f"{home.base}/all.jsonl"
    (counts,) = home.rows("export", "--jsonl", path)
    assert (counts["events"], counts["notes"], counts["nodes"] > 6) == (13, 9, True)
    assert counts["grips"] > 0
    before = home.rows("export", "--jsonl", "-")
    home.stop()
    for name in "dr":
        os.rename(f"{home.base}/{name}", f"{home.base}/{name}-old")
    os.mkdir(f"{home.base}/r", 0o700)
    home.serve()
    with open(path, encoding="utf-8") as file:
        content = file.read()
    source = path if through == "file" else "-"
    done = home.memory("import", "--jsonl", source, data=content + 'nonsense\n{"type": "new"}\n')
    if through == "pipe":
        line = content.count("\n") + 1
        assert (done.returncode, done.stderr) == (1, f"line {line}: not JSON in UTF-8\n")
    found = json.loads(done.stdout)
    assert (found["events"], found["notes"], found["known"]) == (13, 9, 0)
    assert found["derived"] == counts["nodes"] + counts["grips"]
    settle(home)
    after = home.rows("export", "--jsonl", "-")
    for record in (*before, *after):
        record.pop("store_id", None)
        record.pop("arrival_ms", None)
    assert after == before
    again = home.rows("import", "--jsonl", path)[0]
    assert (again["known"], again["refused"]) == (22, 0)
    assert home.memory("import", "--jsonl", path, "--dry-run").returncode == 2
