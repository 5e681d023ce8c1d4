import json
import os

import pytest

from tests.soak.catalogue import ASKED, FAULTS
from tests.soak.outcome import BEGIN, END, Outcome, write_report

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def test_a_report_replaces_only_what_was_run(tmp_path: os.PathLike[str]) -> None:
    """Rows of other faults and the text around the table stay, a fault that could not run too."""
    path = f"{os.fspath(tmp_path)}/page.md"
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"before\n{BEGIN}\n{END}\nafter\n")
    write_report(path, [Outcome("stop", 1, 5), Outcome("kill", 1, 10, {"lost": 0})], ASKED)
    write_report(path, [Outcome("kill", 2, 20), Outcome("stop", 2, skipped="no root")], ASKED)
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    assert (lines[0], lines[-1]) == ("before", "after")
    rows = [line.split(" | ") for line in lines if line.startswith("| kill") or "| stop" in line]
    assert [(row[0], row[2], row[3], row[4]) for row in rows] == [
        ("| kill", "20", "2", "held"),
        ("| stop", "5", "1", "held"),
    ]


def test_a_page_without_marks_is_left_alone(tmp_path: os.PathLike[str]) -> None:
    """A report goes only where there is a place for it."""
    path = f"{os.fspath(tmp_path)}/page.md"
    with open(path, "w", encoding="utf-8") as file:
        file.write("nothing\n")
    with pytest.raises(ValueError, match="has no line"):
        write_report(path, [Outcome("kill", 1)], ASKED)


def test_a_line_says_whether_it_held() -> None:
    """What was lost fails, what was slow is late, and each is told."""
    late = Outcome("kill", 1)
    late.bound("reopen max s", 2.5, 2)
    assert json.loads(late.line())["verdict"] == "late"
    failed = Outcome("kill", 1, problems=["a: lost"])
    assert json.loads(failed.line())["verdict"] == "FAILED"
    assert json.loads(failed.line())["problems_first"] == ["a: lost"]


def test_every_fault_is_documented() -> None:
    """The page on reliability says of every fault how it is simulated."""
    with open(f"{ROOT}/docs/reliability.md", encoding="utf-8") as file:
        page = file.read()
    assert [name for name in FAULTS if f"\n| `{name}` |" not in page] == []
    assert BEGIN in page
    assert END in page
