"""Outputs: what can be quoted of tool calls and their results. Pure."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from memoryd.domain.event import Event, EventRole
from memoryd.domain.extract.cues import FAILED, OUTCOME, Kind
from memoryd.domain.extract.prose import Form, Piece, shortened, visible
from memoryd.domain.extract.statements import CONTENT_MIN, Draft
from memoryd.domain.extract.terms import terms

OUTPUT_LIMIT: Final = 12_000  # characters of one result that are searched for outcomes
OUTPUT_LINES: Final = 4  # outcomes taken from one result
_LEFTOVERS: Final = 40
_LINE_MIN: Final = 8
_TELLING: Final = 3  # terms that a line of output must have

# Tools by what they do: plan, report what another agent did, or look at things.
PLANNING: Final = re.compile(r"todo|plan", re.IGNORECASE)
REPORTING: Final = re.compile(r"Task|Agent|TaskOutput|AgentOutputTool|wait_agent")
_LOOKING: Final = re.compile(
    r"read|grep|glob|^ls$|list|search|find|view|fetch|open|cat|write|edit|patch|replace|notebook",
    re.IGNORECASE,
)
_PURPOSE: Final = re.compile(r"^description: (.{8,200})$", re.MULTILINE)


def outcomes(number: int, event: Event) -> Iterator[Draft]:
    """What a tool's output says went wrong, or how it ended; and what the call was for."""
    tool = event.metadata.get("tool_name", "")
    if PLANNING.search(tool):
        return
    failing = "error" in event.metadata
    call, _, output = event.text[:OUTPUT_LIMIT].partition("\n\n")
    if purpose := _PURPOSE.search(call):
        yield _output(number, event.role, Piece(purpose[1].strip(), Form.OUTPUT), Kind.FACT, 0.1)
    if _LOOKING.search(tool) and not failing:
        return
    if len(event.text) > OUTPUT_LIMIT:
        output += "\n" + event.text[-OUTPUT_LIMIT:]
    count = 0
    for found in OUTCOME.finditer(output or call):
        line = shortened(found.group().strip(), 300)
        if len(line) < _LINE_MIN or line not in event.text:
            continue
        if len(terms(line)) < _TELLING:
            continue
        failed = FAILED.search(line) is not None
        kind = Kind.FAILURE if failed else Kind.FACT
        base = 0.1 + 0.25 * (failed and failing)
        yield _output(number, event.role, Piece(line, Form.OUTPUT), kind, base)
        count += 1
        if count >= OUTPUT_LINES:
            return


def _output(number: int, role: int, piece: Piece, kind: Kind, base: float) -> Draft:
    held = tuple(dict.fromkeys(terms(piece.text)))
    return Draft(number, piece, kind, role, held, base)


def leftovers(events: Sequence[Event]) -> list[Draft]:
    """Whatever can be quoted from a segment that says nothing in sentences: its first lines.

    A tool call begins with what was called on what; the rest is worth nothing beside it.
    """
    found: list[Draft] = []
    seen: set[str] = set()
    for number, event in enumerate(events):
        if len(found) >= _LEFTOVERS:
            break
        text = _first_line(event.text)
        if not text or text in seen:
            continue
        seen.add(text)
        failing = "error" in event.metadata
        size = len(terms(text))
        worth = 0.1 * failing + 0.02 * min(size, 6)
        tool = event.metadata.get("tool_name", "")
        if size < CONTENT_MIN or event.role != EventRole.TOOL or PLANNING.search(tool):
            worth = 0.0
        kind = Kind.FAILURE if failing else Kind.FACT
        found.append(Draft(number, Piece(text, Form.OUTPUT), kind, event.role, (text,), worth))
    return found


def _first_line(text: str) -> str:
    """The first line that holds a letter or a digit, or else anything at all; bounded."""
    lines = [line for part in visible(text[:OUTPUT_LIMIT]) for line in part.splitlines()]
    best = next((line for line in lines if any(map(str.isalnum, line))), text[:OUTPUT_LIMIT])
    return shortened(best.strip(), 200).strip()
