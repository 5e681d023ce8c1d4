"""`memory stats` against a daemon, as people type it."""

import json
import xml.etree.ElementTree as ET

from tests.e2e.test_toc import Typist, typist

__all__ = ("typist",)


def test_a_year_for_people_and_programs(typist: Typist) -> None:
    """The year's days with their counts, the agents and the totals, as text and as JSON."""
    (told,) = typist.rows("stats", "--year", "2026")
    days = {day["day"]: day["events"] for day in told["days"]}
    assert set(days) == {"2026-06-01", "2026-06-02", "2026-06-03"}
    assert told["events"] == sum(days.values()) == told["total"]["events"]
    assert told["longest_streak_days"] == 3
    assert [agent["agent"] for agent in told["agents"]] == ["claude-code"]
    shown = typist.run("stats", "--year", "2026", "--no-json")
    assert "claude-code" in shown
    assert "on 3 days, most on" in shown
    assert shown.count("█") > 3
    (empty,) = typist.rows("stats", "--year", "1999")
    assert (empty["days"], empty["busiest_day"]) == ([], None)
    assert "no events in this span" in typist.run("stats", "--year", "1999", "--no-json")


def test_the_picture_goes_to_a_file_or_a_pipe(typist: Typist) -> None:
    """--svg writes a whole picture or nothing, and says what is wrong with the place."""
    path = f"{typist.house.base}/a.svg"
    assert json.loads(typist.run("stats", "--year", "2026", "--svg", path)) == {"svg": path}
    with open(path, encoding="utf-8") as file:
        picture = file.read()
    assert ET.fromstring(picture).tag.endswith("svg")
    assert typist.run("stats", "--year", "2026", "--svg", "-") == picture
    assert "cannot be written" in typist.run("stats", "--svg", "/nowhere/a.svg", code=2)
