"""What came of one fault: a line for machines, a row for people, a table kept in a document."""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

BEGIN = "<!-- results: written by scripts/soak --report -->"
END = "<!-- end of results -->"
HEAD = ("| fault | asked for | cycles | seed | result | figures |", "|---|---|---|---|---|---|")

Figure = int | float | str


class Order(NamedTuple):
    """What is asked of a fault: how often, by which chance, and who hears how it goes."""

    cycles: int
    seed: int
    say: Callable[[str], None] = lambda _words: None


class CannotRun(Exception):
    """This machine cannot simulate the fault; says what it lacks."""


@dataclass
class Outcome:
    """What a fault has shown.

    ``problems`` are wrong whatever the machine: something lost, torn, doubled, silent, hung for
    good. ``late`` are bounds of time or memory that were missed, which a busy machine can cause.
    """

    fault: str
    seed: int
    cycles: int = 0
    figures: dict[str, Figure] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    skipped: str = ""

    @property
    def verdict(self) -> str:
        """In one word."""
        if self.skipped:
            return "not run"
        return "FAILED" if self.problems else "late" if self.late else "held"

    def bound(self, name: str, value: float, limit: float) -> None:
        """Note a figure that has to stay within a limit."""
        self.figures[name] = round(value, 3)
        if value > limit:
            self.late.append(f"{name}: {value:.2f}, over {limit:g}")

    def line(self) -> str:
        """One line of JSON."""
        said: dict[str, object] = {
            "fault": self.fault,
            "verdict": self.verdict,
            "seed": self.seed,
            "cycles": self.cycles,
            **self.figures,
        }
        for name in ("problems", "late"):
            found: list[str] = getattr(self, name)
            said[name] = len(found)
            if found:
                said[f"{name}_first"] = found[:3]
        if self.skipped:
            said["skipped"] = self.skipped
        return json.dumps(said, ensure_ascii=False)

    def row(self, asked: str) -> str:
        """A row of the table."""
        figures = "; ".join(f"{name} {_figure(value)}" for name, value in self.figures.items())
        if self.late:
            figures += f"; late: {', '.join(self.late[:3])}"
        cells = (self.fault, asked, f"{self.cycles:,}", str(self.seed), self.verdict, figures)
        return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def table(outcomes: Sequence[Outcome], asked: dict[str, str]) -> str:
    """All rows under a head."""
    return "\n".join([*HEAD, *(outcome.row(asked[outcome.fault]) for outcome in outcomes)])


def write_report(path: str, outcomes: Sequence[Outcome], asked: dict[str, str]) -> None:
    """Put the rows of what was run between the two marks of a document; other rows stay.

    Raises ValueError if the document has no marks.
    """
    with open(path, encoding="utf-8") as file:
        text = file.read()
    before, begin, rest = text.partition(BEGIN)
    old, end, after = rest.partition(END)
    if not begin or not end:
        msg = f"{path} has no line {BEGIN!r} with a line {END!r} after it"
        raise ValueError(msg)
    rows = {}
    for line in old.strip().splitlines()[len(HEAD) :]:
        rows[line.split("|")[1].strip()] = line
    rows |= {o.fault: o.row(asked[o.fault]) for o in outcomes if not o.skipped}
    body = "\n".join([*HEAD, *(rows[name] for name in asked if name in rows)])
    temporary = f"{path}.tmp"
    with open(temporary, "w", encoding="utf-8") as file:
        file.write(f"{before}{BEGIN}\n{body}\n{END}{after}")
    os.replace(temporary, path)


def _figure(value: Figure) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"
