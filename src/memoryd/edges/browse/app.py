"""The application: its rooms, its keys, and one place where calls are made off the screen's thread."""

import asyncio
import os
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from textual.app import App
from textual.binding import Binding, BindingType
from textual.reactive import reactive
from textual.screen import Screen

from memoryd.config import ConfigError
from memoryd.edges.browse import theme
from memoryd.edges.browse.contents import TreeRoom
from memoryd.edges.browse.link import Link, Listener, brief
from memoryd.edges.browse.notes import NotesRoom
from memoryd.edges.browse.rooms import Help, Room
from memoryd.edges.browse.search import SearchRoom
from memoryd.edges.browse.status import StatusRoom
from memoryd.edges.browse.timeline import TimelineRoom
from memoryd.edges.browse.words import shown
from memoryd.edges.stats.figures import counted
from memoryd.wire import ClientError, NotRunning, Unavailable

if TYPE_CHECKING:
    from memoryd.client import Client

_T = TypeVar("_T")

PULSE_SECONDS: Final = 60
_POLL_SECONDS: Final = 0.25
_RETRY_SECONDS: Final = 3.0
_ROOMS: Final[dict[str, type[Room]]] = {
    "search": SearchRoom,
    "timeline": TimelineRoom,
    "notes": NotesRoom,
    "status": StatusRoom,
}


class Browser(App[None]):
    """`memory browse`."""

    CSS_PATH = "browse.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "go('search')", "Search", key_display="/"),
        Binding("t", "go('timeline')", "Time"),
        Binding("n", "go('notes')", "Notes"),
        Binding("s", "go('status')", "Status"),
        Binding("b", "home", "Tree", show=False),
        Binding("l", "look", "Light/dark", show=False),
        Binding("question_mark", "help", "Help", key_display="?"),
        Binding("q,ctrl+c", "quit", "Quit", key_display="q"),
    ]
    lost: reactive[str] = reactive("")

    def __init__(
        self,
        connect: "Callable[[], Client]",
        project: str,
        *,
        note_project: str = "",
        look: str = "",
    ) -> None:
        """``note_project`` is whose notes count, in a store that several projects share."""
        # without colours there are only the terminal's own
        super().__init__(ansi_color=bool(os.environ.get("NO_COLOR")))
        self.project = project
        self.note_project = note_project
        self.link = Link(connect)
        self.listener = Listener(connect)
        self.pulse: deque[int] = deque([0] * PULSE_SECONDS, maxlen=PULSE_SECONDS)
        self._second = int(time.monotonic())
        self._look = look

    @property
    def pulse_words(self) -> str:
        """How much came in during the last minute."""
        total = sum(self.pulse)
        return f"{counted(total, 'event')} in the last minute" if total else ""

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """The variables that no theme of Textual's own has."""
        return theme.PLAIN

    def get_default_screen(self) -> Screen[Any]:
        """The tree."""
        return TreeRoom()

    def on_mount(self) -> None:
        """Take the look that fits, and begin to listen."""
        if not self.native_ansi_color:
            for look in (theme.DARK, theme.LIGHT):
                self.register_theme(look)
            self.theme = self._look or theme.first_theme(os.environ)
        self.listener.start()
        self.set_interval(_POLL_SECONDS, self._poll)

    def on_unmount(self) -> None:
        """Let the daemon go."""
        self.listener.end()
        self.link.end()

    async def ask(self, call: "Callable[[Client], _T]") -> _T | None:
        """What the daemon answers, without holding up the screen; None if it does not answer."""
        try:
            return await asyncio.to_thread(self.link.ask, call)
        except NotRunning:
            pass  # the listener meets the same, and says so until it is over
        except (ClientError, ConfigError) as error:
            if not self.lost:
                self.notify(shown(brief(error)), severity="error", markup=False)
                if isinstance(error, Unavailable) and isinstance(self.screen, Room):
                    self.screen.load_soon(_RETRY_SECONDS)  # it is only slow, or at a limit
        return None

    def _poll(self) -> None:
        heard = self.listener.take()
        now = int(time.monotonic())
        for _ in range(min(now - self._second, PULSE_SECONDS)):
            self.pulse.append(0)
        ticked, self._second = now != self._second, now
        self.pulse[-1] += heard.total
        self.lost = heard.lost
        rooms = [room for room in self.screen_stack if isinstance(room, Room)]
        if heard.events:
            for room in rooms:
                room.heard(heard.events)
        if ticked and isinstance(self.screen, Room):
            self.screen.tell()

    def watch_lost(self, before: str, after: str) -> None:
        """Tell every room; when the daemon is back, have each read anew."""
        for room in self.screen_stack:
            if isinstance(room, Room) and room.is_mounted:
                room.tell()
                if before and not after:
                    room.load()

    def reveal(self, node_id: str) -> None:
        """Go to a node in the tree."""
        self.action_home()
        tree = self.screen_stack[0]
        if isinstance(tree, TreeRoom):
            tree.reveal(node_id)

    def action_home(self) -> None:
        """Back to the tree."""
        while len(self.screen_stack) > 1:
            self.pop_screen()

    def action_leave(self) -> None:
        """To the room before."""
        if len(self.screen_stack) > 1:
            self.pop_screen()

    def action_go(self, name: str) -> None:
        """Into another room; never one upon the other without end."""
        if isinstance(self.screen, _ROOMS[name]):
            return
        self.action_home()
        self.push_screen(_ROOMS[name]())

    def action_help(self) -> None:
        """Show the keys."""
        self.push_screen(Help())

    def action_look(self) -> None:
        """Light or dark."""
        if not self.native_ansi_color:
            self.theme = theme.other(self.theme)
