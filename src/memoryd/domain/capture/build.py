"""Makes events of what parsers found. Pure.

Owns what all captured events have in common: their metadata keys, their bounds and their ids.

Metadata: ``cwd``, ``hook`` (the hook event it came by), ``model``; of tool calls ``tool_name``,
``tool_use_id``, ``duration_ms``, ``error``, ``file_path``; of subagents ``subagent`` (its kind, or
"true") and ``agent_id``; ``compaction`` "true" for a summary that an agent goes on with;
``notification``; ``part`` "2/3" for a text that was too long for one event; of imported events
``source_ids`` (ids of the records, or "line N", joined by commas) and ``source_file``.

A tool call's id follows from agent, session and tool_use_id alone, so that the call that a hook
told of and the one in a transcript meet under one id, whatever else differs.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from memoryd.domain import ids
from memoryd.domain.capture import render
from memoryd.domain.capture.harness import is_own_tool, strip_ours
from memoryd.domain.capture.render import Call
from memoryd.domain.event import TEXT_LIMIT, Event, EventRole, EventType, checked

# below the log's limit, because redaction may make a text a little longer
PART_LIMIT: Final = TEXT_LIMIT - 1024 * 1024
VALUE_LIMIT: Final = 4096
_LONG_ID: Final = 20
_SURROGATES: Final = dict.fromkeys(range(0xD800, 0xE000), "\ufffd")


class Source(NamedTuple):
    """Where and when something happened."""

    agent: str
    session_id: str
    time_ms: int
    turn_id: str = ""
    parent_id: str = ""
    metadata: Mapping[str, str] = {}


class Used(NamedTuple):
    """What is known of a tool call besides its words."""

    tool_use_id: str = ""
    duration_ms: int | None = None
    failed: bool = False


def said(
    source: Source,
    type_: EventType,
    text: str,
    metadata: Mapping[str, str] | None = None,
    *,
    role: int = 0,
    event_id: str = "",
) -> list[Event]:
    """One event, or several if the text is longer than one may be. Raises InvalidInput.

    The block that memoryd injects is left out, by whatever way it comes back.
    """
    clean = _unicode(strip_ours(text))
    parts = list(split(clean))
    events = []
    for number, part in enumerate(parts, 1):
        marked = dict(source.metadata) | dict(metadata or {})
        if len(parts) > 1:
            marked["part"] = f"{number}/{len(parts)}"
        events.append(
            checked(
                Event(
                    event_id=part_id(event_id, number),
                    session_id=source.session_id,
                    time_ms=source.time_ms,
                    type=int(type_),
                    role=int(role),
                    text=part,
                    metadata=_bounded(marked),
                    agent=source.agent,
                    project="",
                    parent_id=source.parent_id,
                    turn_id=source.turn_id,
                )
            )
        )
    return events


def compaction(source: Source, summary: str, event_id: str = "") -> list[Event]:
    """The summary that an agent goes on with: words of the system, marked."""
    return said(
        source,
        EventType.ASSISTANT_MESSAGE,
        summary,
        {"compaction": "true"},
        role=EventRole.SYSTEM,
        event_id=event_id,
    )


def used(source: Source, call: Call, use: Used, event_id: str = "") -> list[Event]:
    """One tool call with its result; of memoryd's own tools the call alone."""
    metadata = {
        "tool_name": call.name,
        "tool_use_id": use.tool_use_id,
        "file_path": render.file_path(call.input),
    }
    if use.duration_ms is not None:
        metadata["duration_ms"] = str(use.duration_ms)
    if call.error or use.failed:
        metadata["error"] = call.error.strip().partition("\n")[0][:200] or "true"
    if use.tool_use_id:
        event_id = tool_event_id(source.agent, source.session_id, use.tool_use_id)
    text = render.call_text(call._replace(output=None) if is_own_tool(call.name) else call)
    return said(source, EventType.TOOL_RESULT, text, metadata, event_id=event_id)


def tool_event_id(agent: str, session_id: str, tool_use_id: str) -> str:
    """The id of the event of a tool call, the same by every way that it is captured.

    A long id is unique by itself, also where a continued session replays it under another name.
    """
    scope = session_id if len(tool_use_id) < _LONG_ID else ""
    return ids.from_content(0, ("tool", agent, scope, tool_use_id))


def part_id(event_id: str, number: int) -> str:
    """The id of one part of an event that was split; the first keeps the id."""
    if not event_id or number == 1:
        return event_id
    return ids.from_content(0, ("part", event_id, str(number)))


def split(text: str, limit: int = PART_LIMIT) -> Iterator[str]:
    """The text in parts of at most ``limit`` bytes, all but the first marked as continued."""
    if len(text) <= limit // 4:
        yield text
        return
    data = text.encode()
    start = 0
    while start < len(data) or not start:
        end = min(start + limit, len(data))
        while end < len(data) and data[end] & 0xC0 == 0x80:  # noqa: PLR2004 - inside of a character
            end -= 1
        part = data[start:end].decode()
        yield f"[continued]\n{part}" if start else part
        start = end


def _bounded(metadata: Mapping[str, str]) -> dict[str, str]:
    """Metadata without empty values, every value cut to what metadata has room for."""
    kept = {}
    for key, value in metadata.items():
        if value:
            clean = _unicode(value)
            kept[key] = clean if len(clean) <= VALUE_LIMIT else f"{clean[:VALUE_LIMIT]} [cut]"
    return kept


def _unicode(text: str) -> str:
    """The text with lone surrogates, which JSON can hold and UTF-8 cannot, replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.translate(_SURROGATES)
    return text
