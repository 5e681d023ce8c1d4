"""What is shown, as text with styles: nodes, events, hits. Pure.

Words from the log are data: they go in as text, never as markup, and their control characters are
shown as signs (`visible`), so that nothing in a conversation can speak to the terminal.
"""

from collections.abc import Iterable
from datetime import date
from typing import Any, Final

from textual.content import Content

from memoryd.domain.origin import MARK
from memoryd.edges.cli import times
from memoryd.edges.cli.output import one_line, visible
from memoryd.edges.stats.figures import counted

ROLE_STYLES: Final = {
    "user": "$primary",
    "assistant": "$success",
    "tool": "$warning",
    "system": "$secondary",
}
MARKED: Final = "bold $text on $warning 35%"
DIM: Final = "$quiet"
_TAB: Final = 4
_HIT_NAME: Final = 40


def shown(text: str) -> str:
    """The text as it may be shown, over as many lines as it has."""
    return visible(text.replace("\r\n", "\n")).expandtabs(_TAB)


def line(text: str) -> str:
    """The text as it may be shown, in one line."""
    return one_line(" ".join(text.split()))


def short(node: dict[str, Any]) -> str:
    """The name of a node's period below its parent's."""
    name, level = node["node_id"].rpartition(":")[2], node["level"]
    try:
        if level == "segment":
            return times.clock(node["start_time_ms"])[:5]
        if level == "day":
            return date.fromisoformat(name).strftime("%a %d")
        if level == "month":
            return date.fromisoformat(f"{name}-01").strftime("%B")
    except ValueError:
        return line(name)
    return f"week {name[6:].lstrip('0')}" if level == "week" else line(name)


def period(node: dict[str, Any]) -> str:
    """The name of a node's period, whole."""
    name, level = node["node_id"].rpartition(":")[2], node["level"]
    start, end = node["start_time_ms"], node["end_time_ms"]
    if level == "segment":
        day = date.fromisoformat(times.stamp(start)[:10])
        return f"{day:%a %d %b %Y}, {times.clock(start)[:5]} to {times.clock(end)[:5]}"
    try:
        if level == "day":
            return f"{date.fromisoformat(name):%A %d %B %Y}"
        if level == "month":
            return f"{date.fromisoformat(f'{name}-01'):%B %Y}"
        if level == "week":
            monday = date.fromisoformat(f"{name}-1")
            return f"week {name[6:].lstrip('0')} of {name[:4]}, from {monday:%d %b}"
    except ValueError:
        pass
    return line(name)


def node_head(node: dict[str, Any]) -> Content:
    """The title of a node, and when, how much and by whom."""
    told = [period(node), counted(int(node["event_count"]), "event")]
    if node["agents"]:
        told.append(line(", ".join(agent or "(unnamed)" for agent in node["agents"])))
    parts: list[Any] = [
        (line(node["title"]) or "(no words)", "bold $primary"),
        "\n",
        (" · ".join(told), DIM),
    ]
    if node["provisional"] and node["level"] == "segment":
        parts.append((" · still open", "$success"))
    return Content.assemble(*parts)


def event_head(event: dict[str, Any], *, day: bool = False) -> Content:
    """When something was said, and who said it."""
    role = str(event["role"])
    when = times.stamp(event["timestamp_ms"])
    kind = str(event["event_type"]).replace("_", " ")
    plain = kind in {"user message", "assistant message", "tool result"}
    parts: list[Any] = [
        (when[:16] if day else when[11:], DIM),
        " ",
        (role, f"bold {ROLE_STYLES.get(role, DIM)}"),
    ]
    if not plain:
        parts.append((f" {kind}", DIM))
    if tool := event["metadata"].get("tool_name", ""):
        parts.append((f" {line(tool)}", DIM))
    return Content.assemble(*parts)


def marked(text: str, words: str) -> Content:
    """The text with the place of some words marked; all of it plain if they are not in it."""
    place = text.find(words) if words else -1
    if place < 0:
        return Content(shown(text))
    end = place + len(words)
    return Content.assemble(
        shown(text[:place]), (shown(text[place:end]), MARKED), shown(text[end:])
    )


def bullet_line(bullet: dict[str, Any]) -> str:
    """A bullet in one line, marked if a tool said it."""
    return f"{MARK if bullet['less_trusted'] else ''}{line(bullet['text'])}"


def hit_kind(found: dict[str, Any]) -> str:
    """Who spoke; of what nobody spoke, what it is: the level of a node, grip or note."""
    kind = str(found["doc_type"])
    if kind == "event":
        return str(found["role"])
    return str(found["doc_id"]).split(":")[1] if kind == "toc_node" else kind


def hit(found: dict[str, Any], now_ms: int) -> Content:
    """A search result in two lines or three: when, what and where; the words that fit."""
    kind = hit_kind(found)
    where = found["title"] or found["agent"] or ""
    head: list[Any] = [
        (f"{times.ago(found['timestamp_ms'], now_ms):<8} ", DIM),
        (f"{kind:<9} ", f"bold {ROLE_STYLES.get(kind, '$accent')}"),
        (line(where)[:_HIT_NAME], "bold" if found["title"] else DIM),
        (f"  {MARK.strip()}" if found["less_trusted"] else "", "$warning"),
        "\n",
    ]
    return Content.assemble(*head, snippet(found))


def snippet(found: dict[str, Any]) -> Content:
    """The piece of text that fits, in one paragraph, its words marked."""
    text, parts, behind = found["snippet"], [], 0
    for mark in found["highlights"]:
        parts.append((_flat(text[behind : mark["start"]]), ""))
        parts.append((_flat(text[mark["start"] : mark["end"]]), "bold $warning"))
        behind = mark["end"]
    parts.append((_flat(text[behind:]), ""))
    return Content.assemble(*parts)


def listed(contents: Iterable[Content]) -> list[Content | None]:
    """Contents for a list, with a line between each two."""
    return [part for content in contents for part in (content, None)][:-1]


def _flat(text: str) -> str:
    return one_line("".join(" " if sign in "\n\t\r" else sign for sign in text))
