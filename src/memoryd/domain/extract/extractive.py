"""The extractive summarizer: no model, no network, the same words every time. Derived.

Owns how a segment is put into words. Every bullet is a statement of the conversation, trimmed;
its evidence is that statement, verbatim. A label such as "Asked:" says who said it, no more.
"""

import re
from collections.abc import Sequence
from typing import Final

from memoryd.domain.event import Event, EventRole
from memoryd.domain.extract.candidates import Candidate, gather
from memoryd.domain.extract.choose import FEWEST, MOST, choose, split
from memoryd.domain.extract.condense import BULLET_LIMIT, line, sentence
from memoryd.domain.extract.cues import Kind
from memoryd.domain.extract.digest import digest
from memoryd.domain.extract.keywords import Tally
from memoryd.domain.extract.outputs import PLANNING, leftovers
from memoryd.domain.extract.prose import Form, pieces, visible
from memoryd.domain.extract.terms import terms
from memoryd.domain.extract.titles import title_of
from memoryd.domain.summarize import Digest, Evidence, Point, Summary
from memoryd.domain.toc import Level, Node

SUMMARY_LIMIT: Final = 800
_MORE: Final = 4  # statements that only the summary tells
_LEADING: Final = 4  # statements that the summary tells in any case
_BEFORE_LIMIT: Final = 40  # statements of the context that novelty is measured against
_SCAN_LIMIT: Final = 8_000  # characters of one tool result that are searched for names
_EDITS: Final = re.compile(r"edit|write|patch|replace|create_file|notebook", re.IGNORECASE)
_HOME: Final = re.compile(r"/(?:Users|home)/[\w.-]+")
_FIELD: Final = re.compile(
    r"(?<![\w.])\"?(?!\w*(?:Error|Exception))[A-Za-z][\w-]*\"?:(?=[\s\"\d{\[]|$)"
)


class Extractive:
    """Summarizes by choosing. Deterministic: the same events give the same words."""

    name = "extractive/2"

    def segment(self, events: Sequence[Event], before: Sequence[Event]) -> Summary:
        """What happened in a segment; what ``before`` has said already counts less."""
        edited = _edited(events)
        picked = choose(gather(events), _context(before), MOST + _MORE)
        chosen, more = split(picked, MOST - bool(edited))
        if len(chosen) < FEWEST:
            chosen += _leftovers(events, chosen)
        points = [_point(events, c) for c in sorted(chosen, key=_order)]
        return Summary(
            title_of(chosen),
            _paragraph(chosen, more[:_MORE]),
            (*points, *edited),
            _keywords(events, chosen),
        )

    def period(self, level: Level, children: Sequence[Node]) -> Digest:
        """What happened in a period, from the nodes right below it."""
        return digest(level, children)


def _context(before: Sequence[Event]) -> list[frozenset[str]]:
    """The terms of what was said last before the segment."""
    said = [
        frozenset(terms(piece.text))
        for event in before
        if event.role in {EventRole.USER, EventRole.ASSISTANT}
        for piece in pieces(event.text)
    ]
    return said[-_BEFORE_LIMIT:]


def _leftovers(events: Sequence[Event], chosen: Sequence[Candidate]) -> list[Candidate]:
    """What fills up a summary that has too few statements: calls, or anything if there is nothing."""
    found = [
        Candidate(d.event, -place, d.piece, d.kind, d.role, frozenset(d.terms), round(d.base, 6))
        for place, d in enumerate(leftovers(events), 1)
        if not any(d.piece.text in c.piece.text or c.piece.text in d.piece.text for c in chosen)
    ]
    telling = [candidate for candidate in found if candidate.score > 0]
    picked = choose(telling if chosen or telling else found, [], FEWEST - len(chosen))
    return [choice.candidate for choice in picked]


def _order(candidate: Candidate) -> tuple[int, int]:
    """Sorts candidates in the order of speaking."""
    return candidate.event, candidate.place


def _label(event: Event, candidate: Candidate) -> str:
    """Who said it, where that is not plain."""
    if speaker := event.metadata.get("speaker", "").strip():
        return f"{speaker[:40]}: "
    if candidate.kind is Kind.FAILURE and candidate.piece.form is Form.OUTPUT:
        return "Failed: "
    if event.role == EventRole.USER:
        return "Asked: " if candidate.kind is Kind.ASK else "User: "
    return ""


def _point(events: Sequence[Event], candidate: Candidate) -> Point:
    """A chosen statement as a bullet with its evidence."""
    label = _label(events[candidate.event], candidate)
    text = line(
        candidate.piece.text,
        BULLET_LIMIT - len(label),
        case=candidate.piece.form is not Form.OUTPUT,
    )
    evidence = Evidence(candidate.event, candidate.event, candidate.piece.text)
    weight = round(min(1.0, max(0.05, candidate.score / 1.6)), 4)
    return Point(label + text, (evidence,), weight)


def _edited(events: Sequence[Event]) -> tuple[Point, ...]:
    """A bullet of the files that were changed, if the tools that change files say so."""
    evidence: dict[str, Evidence] = {}
    for number, event in enumerate(events):
        path = event.metadata.get("file_path", "")
        if (
            event.role == EventRole.TOOL
            and path
            and "error" not in event.metadata
            and _EDITS.search(event.metadata.get("tool_name", ""))
            and path in event.text
        ):
            evidence.setdefault(path, Evidence(number, number, path))
    text = "Edited: "
    kept: list[Evidence] = []
    for path, proof in evidence.items():
        name = path.rpartition("/")[2] or path
        if len(text) + len(name) + 2 > BULLET_LIMIT:
            break
        text += f"{', ' if kept else ''}{name}"
        kept.append(proof)
    return (Point(text, tuple(kept), 0.3),) if kept else ()


def _paragraph(chosen: Sequence[Candidate], more: Sequence[Candidate]) -> str:
    """The summary: the statements that matter most, and the next best, in the order of speaking."""
    kept: list[Candidate] = []
    size = 0
    for candidate in [*chosen[:_LEADING], *more, *chosen[_LEADING:]]:
        length = min(len(candidate.piece.text), BULLET_LIMIT) + 2
        if size + length <= SUMMARY_LIMIT:
            kept.append(candidate)
            size += length
    kept.sort(key=_order)
    said = [sentence(line(candidate.piece.text)) for candidate in kept]
    return " ".join(said)[:SUMMARY_LIMIT]


def _ends(text: str) -> list[str]:
    """The beginning and the end of a tool's output."""
    if len(text) > _SCAN_LIMIT:
        text = text[: _SCAN_LIMIT // 2] + "\n" + text[-_SCAN_LIMIT // 2 :]
    return [_HOME.sub(" ", _FIELD.sub(" ", part)) for part in visible(text)]


def _keywords(events: Sequence[Event], chosen: Sequence[Candidate]) -> tuple[str, ...]:
    """The names and terms of a segment; those of chosen statements count more."""
    tally = Tally(event.metadata.get("tool_name", "") for event in events)
    for event in events:
        if event.role == EventRole.TOOL:
            if not PLANNING.search(event.metadata.get("tool_name", "")):
                tally.add(_ends(event.text), spoken=False)
        else:
            factor = 0.4 if "compaction" in event.metadata else 1.0
            tally.add(visible(event.text), spoken=True, factor=factor)
    tally.add([c.piece.text for c in chosen], spoken=True, factor=1.5)
    return tally.best()
