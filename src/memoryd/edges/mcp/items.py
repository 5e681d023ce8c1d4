"""What the client gives, as items of an answer: an id, where it comes from, and its words. Pure.

Every item says who said it: recalled text may come from a tool's output or a web page, and whoever
reads it has to know.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from memoryd.domain.origin import MARK, PARTLY, from_tool
from memoryd.edges.cli import times
from memoryd.wire import KEYWORDS_SHOWN

NEAR: Final = 600  # characters kept on each side of an excerpt
BEGIN: Final = 300  # characters kept of what stands around an event
_CUT: Final = "[...]"


class Item(NamedTuple):
    """One thing that was found: what opens it, when it was, who said it, and its words."""

    id: str
    kind: str
    when: str = ""
    origin: str = ""
    session: str = ""
    text: str = ""


def of_event(event: Mapping[str, Any], *, text: str | None = None) -> Item:
    """An event, with its text or with a part of it."""
    return Item(
        id=event["event_id"],
        kind=event["event_type"],
        when=moment(event["timestamp_ms"]),
        origin=_marked(
            _speaker(event["agent"], event["role"], event["metadata"].get("tool_name", "")),
            less=event["role"] == "tool",
        ),
        session=event["session_id"],
        text="[erased]" if event["erased_ms"] else event["text"] if text is None else text,
    )


def beginning(text: str) -> str:
    """How a text begins, all of it if it is short."""
    return text if len(text) <= BEGIN else text[:BEGIN] + _CUT


def of_hit(found: Mapping[str, Any]) -> Item:
    """A result of a search."""
    said = found["origin"] or found["doc_type"]
    if found["doc_type"] == "event":  # as an opened one names it
        said = _speaker(found["agent"], said.removeprefix(found["agent"]).strip())
    return Item(
        id=found["doc_id"],
        kind=found["doc_type"],
        when=moment(found["timestamp_ms"]),
        origin=_marked(said, less=found["less_trusted"]),
        session=found["session_id"],
        text=found["snippet"],
    )


def of_node(node: Mapping[str, Any], *, bullets: bool = False, evidence: bool = False) -> Item:
    """A node: its title, if asked its bullets, and the grips behind them."""
    partly = f", {PARTLY}" if node["less_trusted"] else ""
    lines = [f"{node['title'] or 'untitled'} ({node['event_count']} events{partly})"]
    if evidence and node["summary"]:
        lines.append(node["summary"])
    if bullets:
        for bullet in node["bullets"]:
            grips = "".join(f" [{grip}]" for grip in bullet["grip_ids"][:1] if evidence)
            mark = MARK if bullet["less_trusted"] else ""
            lines.append(f"- {mark}{bullet['text']}{grips}")
    if evidence and node["keywords"]:
        lines.append(f"keywords: {', '.join(node['keywords'][:KEYWORDS_SHOWN])}")
    return Item(
        id=node["node_id"],
        kind=node["level"],
        when=_period(node),
        origin=f"summary by {node['summarizer'] or 'memoryd'}",
        text="\n".join(lines),
    )


def of_grip(found: Mapping[str, Any]) -> list[Item]:
    """A grip, then the conversation around it, which is all of its session."""
    grip = found["grip"]
    said = grip["excerpt"]
    around = (
        *map(of_event, found["events_before"]),
        *(of_event(event, text=_around(event["text"], said)) for event in found["excerpt_events"]),
        *map(of_event, found["events_after"]),
    )
    first = Item(
        id=grip["grip_id"],
        kind="grip",
        when=moment(grip["timestamp_ms"]),
        origin=_marked(grip["source"], less=from_tool(grip["source"])),
        session=grip["session_id"],
        text=said,
    )
    return [first, *(event._replace(session="") for event in around)]


def of_session(session: Mapping[str, Any], opening: Mapping[str, Any] | None) -> Item:
    """A session: how much it holds, and what its user asked first."""
    first, last = moment(session["first_event_ms"]), moment(session["last_event_ms"])
    words = opening["text"] if opening else ""
    return Item(
        id=session["session_id"],
        kind="session",
        when=f"{first} to {last}",
        origin=_speaker(", ".join(session["agents"]), "user" if opening else ""),
        text=f"{session['event_count']} events. {words}".strip(),
    )


def moment(time_ms: int) -> str:
    """A moment as local date and time, to the minute; "" for none."""
    return times.stamp(time_ms)[:16] if time_ms else ""


def _marked(said: str, *, less: bool) -> str:
    return f"{said} {MARK}".strip() if less else said


def _speaker(agent: str, role: str, tool: str = "") -> str:
    said = "/".join(part for part in (agent, role) if part)
    return f"{said} {tool}" if tool else said


def _period(node: Mapping[str, Any]) -> str:
    """When a node was: from when to when for a segment, else the name of its period."""
    if node["level"] != "segment":
        name: str = node["node_id"].rpartition(":")[2]
        return name
    return f"{moment(node['start_time_ms'])} to {moment(node['end_time_ms'])[11:]}"


def _around(text: str, words: str) -> str:
    """The text near some words, all of it if it is short."""
    place = text.find(words)
    if len(text) <= 2 * NEAR or place < 0:
        return text
    start, end = max(0, place - NEAR), min(len(text), place + len(words) + NEAR)
    return (_CUT if start else "") + text[start:end] + (_CUT if end < len(text) else "")
