"""`memory toc`, `show`, `timeline`, `jobs` and `rebuild` against a daemon, as people type them."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.faults.driver import House
from tests.rpc.test_toc import DAY, JOBS, MINUTE, NOON, SAID

BELL = "\x1b]0;owned\x07"


class Typist:
    """Somebody at a terminal in the project."""

    def __init__(self, house: House) -> None:
        self.house = house

    def run(self, *arguments: str, data: str = "", code: int = 0) -> str:
        """Run `memory` to its end; what it prints, or on failure what it says."""
        done = subprocess.run(
            [f"{os.path.dirname(sys.executable)}/memory", *arguments],
            cwd=self.house.project,
            env=self.house.env | {"TZ": "UTC", "COLUMNS": "200"},
            input=data,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == code, done.stderr
        return done.stdout if code == 0 else done.stderr

    def rows(self, *arguments: str) -> list[dict[str, Any]]:
        """The lines of JSON that a command prints."""
        return [json.loads(line) for line in self.run(*arguments, "--json").splitlines()]


@pytest.fixture(scope="module")
def typist() -> Iterator[Typist]:
    """A daemon that has worked in three days, one of them with an escape sequence in its words."""
    house = House()
    house.env["TZ"] = "UTC"
    house.serve()
    typist = Typist(house)
    lines = [
        json.dumps(
            {
                "event_id": f"e{day}-{place}",
                "session_id": f"s{day}",
                "timestamp_ms": NOON + day * DAY + place * MINUTE,
                "event_type": "user_message" if place % 2 == 0 else "assistant_message",
                "text": text.replace("parser", f"parser {BELL}") if day == 2 else text,
                "agent": "claude-code",
            }
        )
        for day in range(3)
        for place, text in enumerate(SAID)
    ]
    typist.run("ingest", data="\n".join(lines))
    for job in JOBS:
        typist.run("jobs", "run", job)
    yield typist
    house.close()


def test_the_tree_for_people(typist: Typist) -> None:
    """The tree shows years, months, weeks and days with titles, and segments if asked."""
    shown = typist.run("toc", "--no-json")
    assert "2026" in shown
    assert "June 2026" in shown
    assert "week 23" in shown
    assert "Mon 01 Jun 2026" in shown
    assert "10:00-10:03" not in shown
    assert "10:00-10:03" in typist.run("toc", "--depth", "5", "--no-json")


def test_the_tree_for_programs(typist: Typist) -> None:
    """As JSON each node is a line, each before its children; a span leaves the rest out."""
    rows = typist.rows("toc", "--depth", "5")
    assert [row["depth"] for row in rows] == [1, 2, 3, 4, 5, 4, 5, 4, 5]
    assert rows[0]["level"] == "year"
    some = typist.rows("toc", "--depth", "5", "--since", "2026-06-03")
    assert [row["depth"] for row in some] == [1, 2, 3, 4, 5]


def test_nothing_from_the_log_is_obeyed(typist: Typist) -> None:
    """An escape sequence in a conversation is shown, in every command, and never sent."""
    (day,) = [r for r in typist.rows("toc") if r["node_id"] == "toc:day:2026-06-03"]
    grip = day["bullets"][0]["grip_ids"][0]
    for arguments in (("toc",), ("show", day["node_id"]), ("show", grip), ("timeline",)):
        shown = typist.run(*arguments, "--no-json")
        assert "\x1b]" not in shown
        assert "\x07" not in shown


def test_show_opens_nodes_grips_and_events(typist: Typist) -> None:
    """A node shows its summary, bullets and children; a grip its excerpt in the conversation."""
    (day,) = [r for r in typist.rows("toc") if r["node_id"] == "toc:day:2026-06-01"]
    shown = typist.run("show", day["node_id"], "--no-json")
    assert day["bullets"][0]["grip_ids"][0] in shown
    assert day["child_node_ids"][0] in shown
    grip = day["bullets"][0]["grip_ids"][0]
    (found,) = typist.rows("show", grip, "--before", "1", "--after", "0")
    assert len(found["events_before"]) <= 1
    assert found["events_after"] == []
    excerpt = found["grip"]["excerpt"]
    assert any(excerpt in event["text"] for event in found["excerpt_events"])
    words = re.sub(r"\s+", " ", typist.run("show", grip, "--no-json"))
    assert re.sub(r"\s+", " ", excerpt) in words
    assert typist.rows("show", "e0-0")[0]["text"] == SAID[0]
    assert "no node" in typist.run("show", "toc:day:1999-01-01", code=1)


def test_a_timeline_fits(typist: Typist) -> None:
    """A span of one day is told by its segment; a small budget tells less."""
    (line,) = typist.rows("timeline", "--since", "2026-06-02", "--until", "2026-06-02")
    assert [n["session_ids"] for n in line["nodes"]] == [["s1"]]
    (short,) = typist.rows("timeline", "--tokens", "1")
    assert short["level"] == "year"
    assert "Jun 2026" in typist.run("timeline", "--level", "day", "--no-json")


def test_jobs_are_listed_paused_and_resumed(typist: Typist) -> None:
    """A job can be told to wait and to go on; one that there is not is refused."""
    assert "rollup-month" in typist.run("jobs", "list", "--no-json")
    typist.run("jobs", "pause", "compact")
    (paused,) = [row["job_name"] for row in typist.rows("jobs", "list") if row["is_paused"]]
    assert paused == "compact"
    assert "paused" in typist.run("jobs", "list", "--no-json")
    typist.run("jobs", "resume", "compact")
    assert not any(row["is_paused"] for row in typist.rows("jobs", "list"))
    assert "there are rollup-day" in typist.run("jobs", "pause", "nope", code=1)


def test_rebuilding_changes_nothing(typist: Typist) -> None:
    """After `memory rebuild toc` the tree is what it was."""
    before = typist.rows("toc", "--depth", "5")
    assert "9 nodes from 12 events" in typist.run("rebuild", "toc", "--no-json")
    assert typist.rows("rebuild", "toc")[-1]["finished"]
    after = typist.rows("toc", "--depth", "5")
    for row in (*before, *after):
        row.pop("version")
    assert after == before
