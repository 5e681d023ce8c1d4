"""The table of contents as pages: years, months, weeks, and days with their segments.

Owns the layout below ``toc/``. Every bullet links to its evidence, which is quoted at the end of
the page: the words, who said them when, and the events they stand in. Nothing on a page depends
on when or by whom it was written. What conversations say is escaped: a page shows it and does
not obey it.
"""

import os
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from memoryd.domain.origin import MARK
from memoryd.edges.page import Page, escaped, escaped_lines
from memoryd.wire import KEYWORDS_SHOWN, Missing

if TYPE_CHECKING:
    from memoryd.client import Client

PART: Final = "Table of contents"

_FOLDER: Final = "toc"
_GRIPS_KEPT: Final = 10_000
_DAY: Final = timedelta(days=1)

Node = dict[str, Any]
Find = Callable[[str], dict[str, Any] | None]


def toc_pages(client: "Client", project: str) -> Iterator[Page]:
    """A page for each year, month, week and day.

    None for one of several projects that share a store: what is said there is said of all.
    """
    if not project:
        find = lru_cache(_GRIPS_KEPT)(lambda grip_id: grip(client, grip_id))
        days: dict[str, str] = {}
        for year in client.children(""):
            yield from _pages(client, find, year, _FOLDER, days)


def grip(client: "Client", grip_id: str) -> dict[str, Any] | None:
    """A grip by its id; None if it has been derived anew since somebody spoke of it."""
    try:
        found: dict[str, Any] = client.expand(grip_id, before=0, after=0)["grip"]
    except Missing:
        return None
    return found


def _pages(
    client: "Client", find: Find, node: Node, folder: str, days: dict[str, str]
) -> Iterator[Page]:
    """The pages below a node, and then its own; ``days`` gathers where segments are told."""
    name = _name(node)
    path = f"{folder}/{name}.md"
    evidence = _Evidence(find, path, days)
    lines = [f"# {_heading(node)}", "", *_words(node, evidence)]
    children = list(client.children(node["node_id"]))
    if node["level"] == "day":
        clock = _clock(node)
        for segment in children:
            days[segment["node_id"]] = path
            lines += _segment(segment, clock, evidence)
    else:
        lines += ["## Contents", ""]
        for child in children:
            yield from _pages(client, find, child, f"{folder}/{name}", days)
            lines.append(f"- [{_heading(child)}]({name}/{_name(child)}.md)")
        lines.append("")
    lines += evidence.lines()
    depth = path.count("/") - 1
    yield Page(path, "\n".join(lines), PART, f"{name} {' '.join(node['title'].split())}", depth)


def _words(node: Node, evidence: "_Evidence") -> Iterator[str]:
    """What a node says: summary, bullets with their links, keywords."""
    yield from escaped_lines(node["summary"])
    if node["summary"].strip():
        yield ""
    for bullet in node["bullets"]:
        mark = MARK if bullet["less_trusted"] else ""
        words = [escaped(f"{mark}{bullet['text']}"), *evidence.links(bullet["grip_ids"])]
        yield f"- {' '.join(words)}"
    if node["bullets"]:
        yield ""
    if node["keywords"]:
        yield f"*{escaped(', '.join(node['keywords'][:KEYWORDS_SHOWN]))}*"
        yield ""


def _segment(node: Node, clock: Callable[[int], str], evidence: "_Evidence") -> Iterator[str]:
    when = f"{clock(node['start_time_ms'])} to {clock(node['end_time_ms'])}"
    yield f'<a id="{_name(node)}"></a>'
    yield ""
    yield f"## {when}: {escaped(node['title']) or 'no words'}"
    yield ""
    agents = f"{escaped(', '.join(node['agents']))}, " if node["agents"] else ""
    count = node["event_count"]
    yield f"{agents}{count} event{'s' if count != 1 else ''}"
    yield ""
    yield from _words(node, evidence)


class _Evidence:
    """The grips that one page speaks of, numbered in the order of their first mention."""

    def __init__(self, find: Find, path: str, days: dict[str, str]) -> None:
        self._find = find
        self._folder = os.path.dirname(path)
        self._path = path
        self._days = days
        self._numbers: dict[str, int] = {}

    def links(self, grip_ids: list[str]) -> Iterator[str]:
        """A link for each grip that can be found."""
        for grip_id in grip_ids:
            if self._find(grip_id) is not None:
                number = self._numbers.setdefault(grip_id, len(self._numbers) + 1)
                yield f"[[{number}]](#{_anchor(grip_id)})"

    def lines(self) -> Iterator[str]:
        """What the links lead to."""
        if self._numbers:
            yield "## Evidence"
            yield ""
        for grip_id, number in self._numbers.items():
            found = self._find(grip_id)
            if found is not None:
                yield from self._quoted(found, number)

    def _quoted(self, found: dict[str, Any], number: int) -> Iterator[str]:
        when = datetime.fromtimestamp(found["timestamp_ms"] / 1000, UTC)
        first, last = escaped(found["event_id_start"]), escaped(found["event_id_end"])
        events = f"event {first}" if first == last else f"events {first} to {last}"
        session = f"session {escaped(found['session_id'])}"
        yield f'<a id="{_anchor(found["grip_id"])}"></a>'
        yield ""
        yield (
            f"**{number}.** {escaped(found['source'])}, {when:%Y-%m-%d %H:%M:%S} UTC, "
            f"{session}, {events}{self._day(found['node_id'])}"
        )
        yield ""
        yield "\\\n".join(f"> {line}" for line in escaped_lines(found["excerpt"]) if line)
        yield ""
        yield f"`memory show {found['grip_id']}`"
        yield ""

    def _day(self, segment_id: str) -> str:
        path = self._days.get(segment_id, self._path)
        if path == self._path:
            return ""
        link = f"{os.path.relpath(path, self._folder)}#{segment_id.rpartition(':')[2]}"
        return f", [in its day]({link})"


def _anchor(grip_id: str) -> str:
    return grip_id.replace(":", "-")


def _name(node: Node) -> str:
    name: str = node["node_id"].rpartition(":")[2]
    return name


def _heading(node: Node) -> str:
    title = escaped(node["title"])
    return f"{_name(node)}: {title}" if title else _name(node)


def _clock(day: Node) -> Callable[[int], str]:
    """What clocks showed on a day, of which the bounds tell the zone; UTC where it changed."""
    first = date.fromisoformat(_name(day))
    before, after = _midnight(first) - day["start_time_ms"], _midnight(first + _DAY)
    after -= day["end_time_ms"]
    offset, zone = (before, "") if before == after else (0, " UTC")

    def clock(time_ms: int) -> str:
        return f"{datetime.fromtimestamp((time_ms + offset) / 1000, UTC):%H:%M}{zone}"

    return clock


def _midnight(day: date) -> int:
    return (day - date(1970, 1, 1)) // _DAY * 86_400_000
