"""The sections of a block that come from notes: open items, what is pinned or core, daily logs."""

from collections.abc import Callable
from typing import Final

from memoryd.domain import context, notetext
from memoryd.domain.context import Item, Section
from memoryd.domain.note import Revision
from memoryd.services.context import Ask
from memoryd.services.note_query import Filter, NoteQuery

_CORE: Final = "core"
_MOST: Final = 100  # notes that are read; more than a block could hold


class NoteSections:
    """Reads the heads of all notes once, and the content of those that matter."""

    names = (context.SCRATCHPAD, context.NOTES, context.DAILY)

    def __init__(self, notes: NoteQuery, day: Callable[[int], str]) -> None:
        """``day`` tells the local day of a moment, by which daily logs are named."""
        self._notes = notes
        self._day = day

    def gather(self, ask: Ask) -> list[Section]:
        """Three sections at most. Session notes count for their own session alone."""
        heads = [
            head
            for head in self._notes.heads(Filter(project=ask.project))
            if head.note.scope != "session" or head.note.session_id == ask.session_id
        ]
        made = (
            Section(context.SCRATCHPAD, "Open items", self._open(heads)),
            Section(context.NOTES, "Notes", self._kept(heads)),
            Section(context.DAILY, "Daily log", self._days(heads, self._day(ask.now_ms))),
        )
        return [section for section in made if section.items]

    def _open(self, heads: list[Revision]) -> tuple[Item, ...]:
        """What is still to do, of each scratchpad."""
        found = []
        for head in _some([h for h in heads if h.note.kind == "scratchpad"]):
            entries = notetext.items(self._notes.whole(head).content)
            lines = [f"- [ ] {entry.text}" for entry in entries if not entry.done]
            if lines:
                found.append(Item(head.note.name, "\n".join(lines)))
        return tuple(found)

    def _kept(self, heads: list[Revision]) -> tuple[Item, ...]:
        """Pinned notes by name, then core notes, the latest changed first."""
        plain = [h for h in heads if h.note.kind in {"note", "archive"}]
        pinned = sorted((h for h in plain if h.note.pinned), key=lambda h: h.note.name)
        core = [h for h in plain if not h.note.pinned and h.note.category == _CORE]
        core.sort(key=lambda h: (-h.note.changed_ms, h.note.name))
        return self._items(pinned + core)

    def _days(self, heads: list[Revision], today: str) -> tuple[Item, ...]:
        """Today's log, and the latest before it."""
        logs = [h for h in heads if h.note.kind == "daily" and h.note.name <= today]
        days = sorted({h.note.name for h in logs}, reverse=True)[: 2 if _has(logs, today) else 1]
        wanted = [h for h in logs if h.note.name in days]
        return self._items(sorted(wanted, key=lambda h: h.note.name, reverse=True))

    def _items(self, heads: list[Revision]) -> tuple[Item, ...]:
        """Notes with their content; those behind what a block could hold only by name."""
        items: list[Item] = []
        size = 0
        for head in heads[:_MOST]:
            if size > context.BUDGET_LIMIT:
                items.append(Item(head.note.name, ""))
                continue
            note = self._notes.whole(head)
            size += len(note.content)
            if note.content.strip():
                items.append(Item(note.name, note.content))
        return tuple(items)


def _some(heads: list[Revision]) -> list[Revision]:
    return sorted(heads, key=lambda h: (h.note.scope, h.note.name))[:_MOST]


def _has(heads: list[Revision], name: str) -> bool:
    return any(head.note.name == name for head in heads)
