import json
import os
import subprocess
import sys
import time
from typing import Any

import pytest

from memoryd import spool
from memoryd.project import id_of_root
from tests.faults.driver import House
from tests.unit.capture.samples import TRANSCRIPTS, claude

MEMORY = f"{os.path.dirname(sys.executable)}/memory"
T = 1_772_359_200_000  # 2026-03-01T10:00:00Z, second 0 of the samples
TURN: list[tuple[str, float, dict[str, Any]]] = [
    ("UserPromptSubmit", 0.9, {"prompt": "Why is the cart empty?"}),
    (
        "PostToolUse",
        5.2,
        {
            "tool_name": "Bash",
            "tool_input": {"command": "make"},
            "tool_use_id": "u1",
            "tool_response": {"stdout": "ok"},
        },
    ),
    ("Stop", 6.8, {"last_assistant_message": "Fixed."}),
    ("PostCompact", 8.0, {"compact_summary": "So far: the cart."}),
]


def write(house: House, name: str, values: list[Any], cwd: str = "") -> str:
    """A transcript in its usual place, of a project."""
    path = f"{house.base}/.claude/projects/-p/{name}.jsonl"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        for value in values:
            line = json.dumps(value).replace("/home/ann/shop", cwd or house.project)
            print(line, file=file)
    return path


def memory(house: House, *args: str, code: int = 0) -> list[Any]:
    """What a command prints, which must end with the code."""
    done = subprocess.run(
        [MEMORY, *args, "--json"],
        cwd=house.project,
        env=house.env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def counts(report: Any, agent: str = "claude-code") -> tuple[int, int, int]:
    """New, known and not sent."""
    account = report["agents"][agent]
    return account["new"], account["known"], account["not_sent"]


def tell(house: House, count: int | None = None) -> None:
    """Leave a turn in the inbox as hooks do, a little later than the transcript; wait for it."""
    inbox = spool.inbox(f"{house.env['XDG_DATA_HOME']}/memoryd/{id_of_root(house.project)}")
    for number, (name, second, fields) in enumerate(TURN[:count]):
        payload = {"session_id": "s-1", "hook_event_name": name, "cwd": house.project} | fields
        envelope = spool.Envelope(
            json.dumps(payload).encode(),
            agent="claude-code",
            time_ms=T + int(second * 1000),
            cwd=house.project,
        )
        spool.put(inbox, spool.file_name(number, 1), spool.encode(envelope))
    deadline = time.monotonic() + 60
    while spool.waiting(inbox):
        assert time.monotonic() < deadline, "the inbox is not emptied"
        time.sleep(0.02)


@pytest.fixture
def home(house: House, monkeypatch: pytest.MonkeyPatch) -> House:
    """A home with a daemon, whose places the test's own client finds too."""
    for name in ("XDG_RUNTIME_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, house.env[name])
    house.serve()
    return house


def test_importing_twice_adds_nothing(home: House) -> None:
    """The second import knows every event; what the log holds stays as it is."""
    write(home, "s-1", TRANSCRIPTS["claude-code"])
    (first,) = memory(home, "import")
    log = memory(home, "events")
    (second,) = memory(home, "import", "claude-code")
    assert counts(first) == (5, 0, 0)
    assert counts(second) == (0, 5, 0)
    assert memory(home, "events") == log
    assert log[0]["text"] == "Why is the cart empty?"
    assert first["agents"]["claude-code"]["records_unexplained"] == 0


def test_a_session_that_goes_on_is_imported_from_there(home: House) -> None:
    """A transcript that has grown adds what is new; a call in flight comes with its result."""
    records = TRANSCRIPTS["claude-code"]
    write(home, "s-1", records[:5])
    assert counts(memory(home, "import")[0]) == (2, 0, 0)
    write(home, "s-1", records)
    assert counts(memory(home, "import")[0]) == (3, 2, 0)


@pytest.mark.parametrize("imported_first", [False, True])
def test_live_and_imported_give_each_turn_once(home: House, *, imported_first: bool) -> None:
    """Whichever comes first, hooks and transcript make one conversation."""
    write(home, "s-1", TRANSCRIPTS["claude-code"])
    steps = [lambda: tell(home), lambda: memory(home, "import")]
    for step in reversed(steps) if imported_first else steps:
        step()
    texts = [row["text"] for row in memory(home, "events")]
    assert sorted(texts) == sorted(
        [
            "Why is the cart empty?",
            "I look.",
            "Bash: make\n\nok",
            "Fixed.",
            "So far: the cart.",
        ]
    )
    assert counts(memory(home, "import")[0])[0] == 0


def test_a_dry_run_writes_nothing(home: House) -> None:
    """It counts what would be new."""
    write(home, "s-1", TRANSCRIPTS["claude-code"])
    assert counts(memory(home, "import", "--dry-run")[0]) == (5, 0, 0)
    assert memory(home, "events") == []


def test_each_conversation_goes_to_its_project(home: House) -> None:
    """A project without a daemon is named, with how to start it; the others go on."""
    other = f"{home.base}/other"
    os.mkdir(other)
    write(home, "s-1", TRANSCRIPTS["claude-code"])
    write(home, "s-2", [claude(9, "user", "Elsewhere", sessionId="s-2")], cwd=other)
    (report,) = memory(home, "import", code=3)
    assert counts(report) == (5, 0, 1)
    (lost,) = [place for place in report["projects"] if place["problem"]]
    assert lost["project"].startswith("other-")
    assert f"`memoryd serve` in {other}" in lost["problem"]
    (report,) = memory(home, "import", "--into-this-project")
    assert counts(report) == (1, 5, 0)
    assert memory(home, "events", "--session", "s-2")[0]["project"].startswith("other-")


def test_a_project_that_is_gone_is_named(home: House) -> None:
    """A directory that is not there cannot have a daemon: the remedy is another."""
    write(home, "s-1", [claude(1, "user", "Hi")], cwd="/gone/for/good")
    (report,) = memory(home, "import", code=3)
    assert "--project-map" in report["projects"][0]["problem"]


def test_a_moved_project_is_found_by_its_map(home: House) -> None:
    """The map says where a directory is now, also for what lies below it."""
    os.mkdir(f"{home.project}/.git")
    path = f"{home.base}/map.json"
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"/old": home.project}, file)
    write(home, "s-1", [claude(1, "user", "Hi")], cwd="/old/src")
    assert counts(memory(home, "import", "--project-map", path)[0]) == (1, 0, 0)


def test_a_conversation_stays_in_the_project_it_began_in(home: House) -> None:
    """An agent that changes its directory takes the conversation nowhere else."""
    moved = claude(2, "user", "There", cwd=f"{home.project}/deep")
    write(home, "s-1", [claude(1, "user", "Here"), moved])
    assert counts(memory(home, "import")[0]) == (2, 0, 0)


def test_since_leaves_out_what_is_older(home: House) -> None:
    """Only events from T on are imported."""
    write(home, "s-1", TRANSCRIPTS["claude-code"])
    (report,) = memory(home, "import", "--since", "2026-03-01T10:00:06Z")
    assert counts(report) == (2, 0, 0)
    assert report["agents"]["claude-code"]["before_since"] == 3


def test_bad_lines_are_named_and_the_rest_goes_on(home: House) -> None:
    """Each record that cannot be read is reported with its line and the reason."""
    path = write(home, "s-1", [claude(1, "user", "Hi"), 42, claude(3, "user", "Ho")])
    with open(path, "a", encoding="utf-8") as file:
        file.write("{broken\n")
    (report,) = memory(home, "import")
    assert counts(report) == (2, 0, 0)
    assert [(p["line"], p["reason"].split(":")[0]) for p in report["problems"]] == [
        (2, "record is a number, not an object"),
        (4, "not JSON"),
    ]


@pytest.mark.parametrize("agent", ["codex", "gemini", "copilot", "cursor", "opencode"])
def test_a_path_is_imported_whatever_the_agent(home: House, agent: str) -> None:
    """A file is recognised by what it holds; importing it twice adds nothing."""
    path = f"{home.base}/t.jsonl"
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(record) + "\n" for record in TRANSCRIPTS[agent])
    (first,) = memory(home, "import", path, "--into-this-project")
    (second,) = memory(home, "import", path, "--into-this-project")
    new, known, lost = counts(first, agent)
    assert new > 2
    assert (known, lost) == (0, 0)
    assert counts(second, agent) == (0, new, 0)


def test_coverage_names_the_gaps_and_heals_them(home: House) -> None:
    """What hooks missed is named, imported by --heal, and nothing is missing then."""
    write(home, "s-1", TRANSCRIPTS["claude-code"])
    tell(home, 2)
    (row,) = memory(home, "coverage")
    assert (row["session_id"], row["captured"], row["expected"]) == ("s-1", 0, 1)
    assert [gap["words"] for gap in row["gaps"]] == ["Fixed."]
    (healed,) = memory(home, "coverage", "--heal")
    assert counts(healed) == (3, 2, 0)
    (row,) = memory(home, "coverage")
    assert (row["captured"], row["expected"], row["gaps"]) == (1, 1, [])


def test_a_turn_that_hooks_told_is_covered(home: House) -> None:
    """Replies in between are told by transcripts alone, and are no gap."""
    write(home, "s-1", TRANSCRIPTS["claude-code"])
    tell(home)
    (row,) = memory(home, "coverage")
    assert (row["captured"], row["expected"]) == (1, 1)


@pytest.mark.parametrize(
    "args", [("import", "nonsense"), ("import", "codex", "/nowhere"), ("coverage", "a", "b", "c")]
)
def test_wrong_usage_is_named(home: House, args: tuple[str, ...]) -> None:
    """What is neither an agent nor a path ends with 2."""
    memory(home, *args, code=2)
