"""The room of a conversation: evidence marked in what was said around it, to be read both ways."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.events import Click
from textual.widgets import Static

from memoryd.edges.browse import conversation
from memoryd.edges.browse.conversation import Conversation
from memoryd.edges.browse.rooms import Room
from memoryd.edges.browse.words import DIM, event_head, line, marked, shown

if TYPE_CHECKING:
    from memoryd.client import Client

_NEAR_END: Final = 3  # lines from an end at which more is read
_ROOM: Final = {"tool": (8, 1_000)}  # lines and characters that are shown at first
_ROOM_DEFAULT: Final = (40, 4_000)
_MOST_LINES: Final = 2_000
_MOST_CHARACTERS: Final = 200_000

Opening = Callable[["Client"], Conversation]


class Turn(Static):
    """One event: who said it, when, and the words."""

    def __init__(self, event: dict[str, Any], words: str, *, evidence: bool, whole: bool) -> None:
        super().__init__(classes=f"turn {event['role']}")
        self.set_class(evidence, "evidence")
        self.event = event
        self.whole = whole
        self._words = words

    def on_mount(self) -> None:
        """Draw it."""
        self.draw()

    def draw(self) -> None:
        """Draw it anew: whole, or what is left of a long text."""
        head = event_head(self.event)
        text = self.event["text"].strip("\n")
        if not text.strip():
            gone = ("\n[erased]", f"italic {DIM}") if self.event["erased_ms"] else ""
            self.update(Content.assemble(head, gone))
            return
        text, rest = cut(text, self._words, self.event["role"], whole=self.whole)
        body = marked(text, self._words) if self._words else Content(shown(text))
        parts: list[Any] = [head, "\n", body]
        if rest:
            parts.append((f"\n… {rest} (x)", f"italic {DIM}"))
        self.update(Content.assemble(*parts))

    def on_click(self, event: Click) -> None:
        """Show it whole, or cut."""
        event.stop()
        self.whole = not self.whole
        self.draw()


def cut(text: str, words: str, role: str, *, whole: bool) -> tuple[str, str]:
    """As much of a text as is shown at first, with the words in it, and what is left out."""
    place = max(0, text.find(words))
    most, room = (_MOST_LINES, _MOST_CHARACTERS) if whole else _ROOM.get(role, _ROOM_DEFAULT)
    lines = text.split("\n")
    height = words.count("\n") + 1
    most = max(most, height + 2)
    first = 0
    if len(lines) > most + 1:
        at = text.count("\n", 0, place)
        first = max(0, at - (most - height) // 2) if at + height > most else 0
        place -= len("\n".join([*lines[:first], ""]))
        lines, rest = lines[first : first + most], len(lines) - most
        left = f"{max(1, rest):,} more lines"
    else:
        left = ""
    kept = "\n".join(lines)
    start = 0
    if len(kept) > max(room, len(words)):
        start = max(0, place - room // 2) if place + len(words) > room else 0
        left = left or f"{len(kept) - room:,} more characters"
        kept = kept[start : start + max(room, len(words) + place - start)]
    return ("…" if first or start else "") + kept, left


class TalkRoom(Room):
    """A conversation."""

    NAME = "conversation"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,backspace", "app.leave", "Back"),
        Binding("g", "evidence", "Mark"),
        Binding("left_square_bracket", "other(-1)", "Evidence before", show=False),
        Binding("right_square_bracket", "other(1)", "Other evidence", key_display="]"),
        Binding("x", "whole", "Long"),
        Binding("down,j", "scroll(1)", "Down", show=False),
        Binding("up,k", "scroll(-1)", "Up", show=False),
    ]

    def __init__(self, openings: list[Opening]) -> None:
        super().__init__()
        self._openings = openings
        self._which = 0
        self._talk: Conversation | None = None
        self._busy = False
        self._whole = False

    @classmethod
    def of_grips(cls, grip_ids: list[str]) -> "TalkRoom":
        """The conversations around grips, one at a time."""

        def opening(grip_id: str) -> Opening:
            return lambda client: conversation.of_grip(client, grip_id)

        return cls([opening(grip_id) for grip_id in grip_ids])

    @classmethod
    def of_event(cls, event_id: str, words: str) -> "TalkRoom":
        """The conversation around an event."""
        return cls([lambda client: conversation.of_event(client, event_id, words)])

    @classmethod
    def of_segment(cls, node: dict[str, Any]) -> "TalkRoom":
        """The conversation from where a segment begins."""
        return cls([lambda client: conversation.of_segment(client, node)])

    def body(self) -> ComposeResult:
        """Whose conversation it is, and the conversation."""
        yield Static(id="whose")
        yield VerticalScroll(id="talk")

    def on_mount(self) -> None:
        """Read on when somebody comes near an end."""
        super().on_mount()
        self.watch(self._scroll, "scroll_y", self._near_end, init=False)
        self._scroll.focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Other evidence is there only if there is more than one."""
        del parameters
        return action != "other" or len(self._openings) > 1

    def load(self) -> None:
        """Read the conversation, unless it is there."""
        if self._talk is None:
            self._open()
        else:
            self._more(older=False)

    def heard(self, events: list[dict[str, Any]]) -> None:
        """Go on with the conversation if something was said in it."""
        talk = self._talk
        if talk is not None and any(e["session_id"] == talk.session_id for e in events):
            if talk.at_end:
                talk.at_end = False
            self._near_end()

    @property
    def _scroll(self) -> VerticalScroll:
        return self.query_one("#talk", VerticalScroll)

    @work(exclusive=True, group="talk")
    async def _open(self) -> None:
        self._busy = True
        talk = await self.ask(self._openings[self._which])
        if talk is None:
            self._busy = False
            return
        self._talk = talk
        self._tell_whose()
        await self._scroll.remove_children()
        await self._scroll.mount(*map(self._turn, talk.events))
        self.call_after_refresh(self._settle)

    def _settle(self) -> None:
        self.action_evidence()
        self._busy = False
        self.call_after_refresh(self._near_end)

    def _tell_whose(self) -> None:
        talk = self._talk
        if talk is None:
            return
        many = len(self._openings)
        which = f"evidence {self._which + 1} of {many}  " if many > 1 else ""
        day = event_head(talk.events[0], day=True).plain[:10] if talk.events else ""
        self.query_one("#whose", Static).update(
            Content.assemble(
                (which, "bold"),
                (line(talk.source), "bold $accent"),
                (f"  {day}  session {line(talk.session_id)}", DIM),
            )
        )

    def _turn(self, event: dict[str, Any]) -> Turn:
        talk = self._talk
        evidence = talk is not None and event["event_id"] in talk.evidence
        words = talk.words if talk is not None and evidence else ""
        return Turn(event, words, evidence=evidence, whole=self._whole)

    def _near_end(self) -> None:
        scroll, talk = self._scroll, self._talk
        if talk is None or self._busy:
            return
        if scroll.scroll_y <= _NEAR_END and not talk.at_start:
            self._more(older=True)
        elif scroll.scroll_y >= scroll.max_scroll_y - _NEAR_END and not talk.at_end:
            self._more(older=False)

    @work(exclusive=True, group="talk")
    async def _more(self, *, older: bool) -> None:
        talk, scroll = self._talk, self._scroll
        if talk is None:
            return
        self._busy = True
        found = await self.ask(lambda client: talk.more(client, older=older))
        gone = {event["event_id"] for event in talk.let_go(newest=older)} if found else set()
        anchor = self._anchor()
        offset = anchor.virtual_region.y - scroll.scroll_y if anchor else 0
        if found:
            turns = list(map(self._turn, found))
            await scroll.mount(*turns, before=0 if older and scroll.children else None)
            await scroll.remove_children(
                [turn for turn in scroll.query(Turn) if turn.event["event_id"] in gone]
            )
        self.call_after_refresh(self._keep, anchor, offset, again=bool(found))

    def _anchor(self) -> Turn | None:
        """The first turn on the screen."""
        top = self._scroll.scroll_y
        turns = self._scroll.query(Turn)
        return next((turn for turn in turns if turn.virtual_region.bottom > top), None)

    def _keep(self, anchor: Turn | None, offset: float, *, again: bool) -> None:
        """Leave what is on the screen where it is, whatever came above it."""
        if anchor is not None and anchor.is_attached:
            self._scroll.scroll_to(y=anchor.virtual_region.y - offset, animate=False, force=True)
        self._busy = False
        if again:
            self.call_after_refresh(self._near_end)

    def action_evidence(self) -> None:
        """Go to what is marked."""
        marks = self._scroll.query(".evidence")
        if marks:
            self._scroll.scroll_to_widget(marks.first(), animate=False, center=True, force=True)

    def action_other(self, by: int) -> None:
        """To the next or previous evidence of the same bullet."""
        self._which = (self._which + by) % len(self._openings)
        self._open()

    def action_whole(self) -> None:
        """Show long texts whole, or cut."""
        self._whole = not self._whole
        anchor = self._anchor()
        offset = anchor.virtual_region.y - self._scroll.scroll_y if anchor else 0
        for turn in self._scroll.query(Turn):
            turn.whole = self._whole
            turn.draw()
        self.call_after_refresh(self._keep, anchor, offset, again=False)

    def action_scroll(self, by: int) -> None:
        """Scroll by lines."""
        self._scroll.scroll_relative(y=2 * by, animate=False)
