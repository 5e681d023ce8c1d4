"""The room of time: what happened in a span, in as much detail as fits a page or two."""

from typing import Any, ClassVar, Final

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import OptionList, Static

from memoryd.edges.browse.rooms import Room
from memoryd.edges.browse.words import DIM, bullet_line, line, listed, period
from memoryd.edges.cli.output import now_ms
from memoryd.edges.cli.times import parse_time
from memoryd.edges.stats.figures import counted

_SPANS: Final = {
    "today": "today",
    "since yesterday": "yesterday",
    "the last 7 days": "7d",
    "the last 30 days": "30d",
    "the last year": "365d",
    "everything": "",
}
_AGAIN_SECONDS: Final = 3.0
_FIRST: Final = 2
_TOKENS: Final = 3_000
_BULLETS: Final = 5


class TimelineRoom(Room):
    """The timeline."""

    NAME = "timeline"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "span(-1)", "Shorter", priority=True),
        Binding("right", "span(1)", "Longer", priority=True),
        Binding("j", "down", "Down", show=False),
        Binding("k", "up", "Up", show=False),
        Binding("escape", "app.leave", "Back"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._place = _FIRST
        self._told_nodes: list[dict[str, Any]] = []

    def body(self) -> ComposeResult:
        """The span, and what happened in it."""
        yield Static(id="span")
        yield OptionList(id="nodes", markup=False)

    def load(self) -> None:
        """Read the span."""
        self._read()
        self.query_one(OptionList).focus()

    def heard(self, events: list[dict[str, Any]]) -> None:
        """Read it again."""
        del events
        self.load_soon(_AGAIN_SECONDS)

    @work(exclusive=True, group="timeline")
    async def _read(self) -> None:
        name = list(_SPANS)[self._place]
        since = parse_time(_SPANS[name], now_ms()) if _SPANS[name] else 0
        found = await self.ask(lambda client: client.timeline(since_ms=since, tokens=_TOKENS))
        if found is None:
            return
        newest_first = list(reversed(found["nodes"]))
        level = f"by {found['level']}" if newest_first else "nothing happened"
        more = ", more before" if found["truncated"] else ""
        self.query_one("#span", Static).update(
            Content.assemble((f"◂ {name} ▸", "bold $primary"), (f"   {level}{more}", DIM))
        )
        options = self.query_one(OptionList)
        same = [n["node_id"] for n in self._told_nodes] == [n["node_id"] for n in newest_first]
        kept = options.highlighted if same else 0
        self._told_nodes = newest_first
        options.clear_options()
        options.add_options(listed(map(_told, newest_first)))
        options.highlighted = kept if newest_first else None

    def action_span(self, by: int) -> None:
        """A shorter or longer span."""
        self._place = max(0, min(len(_SPANS) - 1, self._place + by))
        self._read()

    def action_down(self) -> None:
        """Down."""
        self.query_one(OptionList).action_cursor_down()

    def action_up(self) -> None:
        """Up."""
        self.query_one(OptionList).action_cursor_up()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Go to the node in the tree."""
        self.browser.reveal(self._told_nodes[event.option_index]["node_id"])


def _told(node: dict[str, Any]) -> Content:
    """A node with its first bullets."""
    parts: list[Any] = [
        (period(node), "$primary"),
        (f"  {counted(int(node['event_count']), 'event')}", DIM),
        (f"\n{line(node['title']) or '(no words)'}", "bold"),
    ]
    parts += [f"\n  • {bullet_line(bullet)}" for bullet in node["bullets"][:_BULLETS]]
    return Content.assemble(*parts)
