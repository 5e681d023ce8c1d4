"""The room of search: results as one types, filtered by kind, agent and time."""

from datetime import datetime
from typing import Any, ClassVar, Final

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.events import Click
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Input, OptionList, Static

from memoryd.edges.browse.notes import NotesRoom
from memoryd.edges.browse.rooms import Room
from memoryd.edges.browse.talk import TalkRoom
from memoryd.edges.browse.words import DIM, hit, line, listed
from memoryd.edges.cli.output import now_ms
from memoryd.edges.cli.times import parse_time
from memoryd.wire import Search

_HINT: Final = 'words, "a phrase", -without, begin*; enter goes to a result'
_PAUSE_SECONDS: Final = 0.15
_LIMIT: Final = 50
_KINDS: Final = {
    "all": (),
    "events": ("event",),
    "nodes": ("toc_node",),
    "grips": ("grip",),
    "notes": ("note",),
}
_TIMES: Final = {"any": "", "today": "today", "7 days": "7d", "30 days": "30d", "a year": "365d"}


class Chip(Static):
    """A filter with a few values; a click goes to the next."""

    class Changed(Message):
        """Another value was chosen."""

    def __init__(self, name: str, values: list[str], key: str) -> None:
        super().__init__(id=name)
        self.values = values
        self._title = f"{key} {name}"
        self._place = 0

    @property
    def value(self) -> str:
        """The value that is chosen."""
        return self.values[self._place % len(self.values)]

    def on_mount(self) -> None:
        """Draw it."""
        self.draw()

    def draw(self) -> None:
        """Show the value."""
        style = "bold $primary" if self._place % len(self.values) else ""
        self.update(Content.assemble((f"{self._title}: ", DIM), (line(self.value), style)))

    def turn(self) -> None:
        """Go to the next value."""
        self._place = (self._place + 1) % len(self.values)
        self.draw()
        self.post_message(self.Changed())

    def on_click(self, event: Click) -> None:
        """Go to the next value."""
        event.stop()
        self.turn()


class SearchRoom(Room):
    """Search."""

    NAME = "search"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "app.leave", "Back"),
        Binding("down", "move(1)", "Next", show=False),
        Binding("up", "move(-1)", "Previous", show=False),
        Binding("pagedown", "move(5)", "Further", show=False),
        Binding("pageup", "move(-5)", "Back up", show=False),
        Binding("f2", "filter('kind')", "Kind"),
        Binding("f3", "filter('agent')", "Agent"),
        Binding("f4", "filter('time')", "Time"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._timer: Timer | None = None
        self._hits: list[dict[str, Any]] = []

    def body(self) -> ComposeResult:
        """The question, the filters, what was found."""
        yield Input(placeholder=_HINT, id="query")
        with Horizontal(id="filters"):
            yield Chip("kind", list(_KINDS), "F2")
            yield Chip("agent", ["any"], "F3")
            yield Chip("time", list(_TIMES), "F4")
            yield Static(id="found")
        yield OptionList(id="hits", markup=False)

    def load(self) -> None:
        """Learn the agents, and ask again if there is a question."""
        self.query_one("#query").focus()
        self._agents()
        self._search()

    def on_screen_resume(self) -> None:
        """Go on with the question."""
        super().on_screen_resume()
        self.query_one("#query").focus()

    @work(exclusive=True, group="agents")
    async def _agents(self) -> None:
        found = await self.ask(lambda client: client.agents())
        if found is not None:
            names = [agent["agent"] for agent in found if agent["agent"]]
            self.query_one("#agent", Chip).values = ["any", *names]

    def on_input_changed(self) -> None:
        """Search when the typing pauses."""
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(_PAUSE_SECONDS, self._search)

    def on_chip_changed(self) -> None:
        """Search with the other filter."""
        self._search()

    @work(exclusive=True, group="search")
    async def _search(self) -> None:
        question = self.query_one("#query", Input).value.strip()
        which = self._which()
        told = self.query_one("#found", Static)
        if not question and which == which._replace(kinds=(), agent="", since_ms=0):
            self._show([])
            told.update("")
            return
        answer = await self.ask(lambda client: client.search(question, which))
        if answer is None:
            return
        self._show(answer["results"])
        state = answer["index_state"].replace("_", " ")
        count = len(answer["results"])
        words = "nothing found" if not count else f"{count}{'+' if count == _LIMIT else ''} found"
        told.update(Content(words if state == "ready" else f"{words}, index {state}"))

    def _which(self) -> Search:
        chips = {chip.id: chip.value for chip in self.query(Chip)}
        here = datetime.now().astimezone().utcoffset()
        since, now = _TIMES[chips["time"]], now_ms()
        return Search(
            kinds=_KINDS[chips["kind"]],
            agent="" if chips["agent"] == "any" else chips["agent"],
            since_ms=parse_time(since, now) if since else 0,
            limit=_LIMIT,
            now_ms=now,
            utc_offset_minutes=int(here.total_seconds() // 60) if here else 0,
        )

    def _show(self, hits: list[dict[str, Any]]) -> None:
        self._hits = hits
        now = now_ms()
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options(listed(hit(found, now) for found in hits))
        options.highlighted = 0 if hits else None

    def action_move(self, by: int) -> None:
        """Choose another result, while the question keeps the keyboard."""
        options = self.query_one(OptionList)
        if self._hits:
            place = (options.highlighted or 0) + by
            options.highlighted = max(0, min(len(self._hits) - 1, place))

    def action_filter(self, name: str) -> None:
        """The next value of a filter."""
        self.query_one(f"#{name}", Chip).turn()

    def on_input_submitted(self) -> None:
        """Go to the result that is chosen."""
        place = self.query_one(OptionList).highlighted
        if place is not None and place < len(self._hits):
            self._open(self._hits[place])

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Go to the result."""
        self._open(self._hits[event.option_index])

    def _open(self, found: dict[str, Any]) -> None:
        kind = found["doc_type"]
        if kind == "toc_node":
            self.browser.reveal(found["doc_id"])
        elif kind == "grip":
            self.browser.push_screen(TalkRoom.of_grips([found["doc_id"]]))
        elif kind == "note":
            self.browser.push_screen(NotesRoom(found["title"], found["scope"]))
        else:
            self.browser.push_screen(TalkRoom.of_event(found["doc_id"], found["snippet"]))
