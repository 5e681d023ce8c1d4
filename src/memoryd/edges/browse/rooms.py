"""What all rooms of the browser share: the top line, the banner, the keys, questions and calls."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen, Screen
from textual.timer import Timer
from textual.widgets import Footer, Input, Static

from memoryd.edges.browse.words import DIM, line

if TYPE_CHECKING:
    from memoryd.client import Client
    from memoryd.edges.browse.app import Browser

_T = TypeVar("_T")

HELP: Final = (
    ("Everywhere", ""),
    ("/", "search, as you type"),
    ("t  n  s", "timeline, notes, status"),
    ("escape  b", "back; back to the tree"),
    ("l  ?  q", "light or dark; this page; quit"),
    ("Tree", ""),
    ("↑ ↓  j k", "move"),
    ("→ ←", "open and close; into the words and back (or tab)"),
    ("enter", "open; on a bullet: its evidence in its conversation"),
    ("o", "on the words of a segment: its whole conversation"),
    ("Conversation", ""),
    ("↑ ↓  PgUp PgDn", "scroll; more is read at both ends"),
    ("g  [ ]", "back to the mark; other evidence of the bullet"),
    ("x", "long texts whole, or cut"),
    ("Search", ""),
    ("↑ ↓  enter", "choose a result; go to it"),
    ("F2  F3  F4", "filter by kind, agent, time"),
    ("Notes", ""),
    ("w  e  d", "write a new one; edit in $EDITOR; forget"),
    ("Timeline, status", ""),
    ("← →", "another span; another year"),
)


class Room(Screen[None]):
    """A screen of the browser."""

    NAME: ClassVar[str] = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "app.leave", "Back"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._soon: Timer | None = None

    @property
    def browser(self) -> "Browser":
        """The application."""
        return cast("Browser", self.app)

    def compose(self) -> ComposeResult:
        """The top line, the banner, what the room has, the keys."""
        yield Static(id="top")
        yield Static(id="banner")
        yield from self.body()
        yield Footer(show_command_palette=False, compact=True)

    def body(self) -> ComposeResult:
        """What the room shows."""
        yield from ()

    def on_mount(self) -> None:
        """Fill the room."""
        self.tell()
        self.load()

    def on_screen_resume(self) -> None:
        """Say what has become of the daemon meanwhile."""
        self.tell()

    def tell(self) -> None:
        """Say where one is, and whether the daemon is there."""
        if not self.query("#top"):  # one can be on the screen before one's parts are
            return
        lost = self.browser.lost
        state = ("○ offline", "$error") if lost else ("● live", "$success")
        name = line(self.browser.project)
        left = Content.assemble(("memory", "bold $primary"), f"  {name}  ", (self.NAME, DIM))
        right = Content.assemble((self.browser.pulse_words, DIM), " ", state)
        gap = max(1, self.browser.size.width - 2 - left.cell_length - right.cell_length)
        self.query_one("#top", Static).update(left + " " * gap + right)
        banner = self.query_one("#banner", Static)
        banner.display = bool(lost)
        banner.update(Content(line(f"{lost} (trying again)") if lost else ""))

    def load(self) -> None:
        """Read what the room shows, also again: the daemon may have been away."""

    def load_soon(self, seconds: float) -> None:
        """Read it in a while. Not put off by being called again: events may come without end."""
        if self._soon is None:
            self._soon = self.set_timer(seconds, self._load_now)

    def _load_now(self) -> None:
        self._soon = None
        self.load()

    def heard(self, events: list[dict[str, Any]]) -> None:
        """New events are in the log."""

    async def ask(self, call: "Callable[[Client], _T]") -> _T | None:
        """What the daemon answers; None if it does not, which the user is told."""
        return await self.browser.ask(call)


class Help(ModalScreen[None]):
    """The keys."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,enter,space", "dismiss", "Close")
    ]

    def compose(self) -> ComposeResult:
        """A page of keys, in groups."""
        with VerticalScroll(id="help"):
            for keys, words in HELP:
                if words:
                    yield Static(Content.assemble((f"  {keys:<15}", "bold $primary"), words))
                else:
                    yield Static(Content.styled(keys, "bold"), classes="group")


class Question(ModalScreen[bool]):
    """Asks before something is done: y or n."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes"),
        Binding("n,escape,enter", "answer(False)", "No"),
    ]

    def __init__(self, words: str) -> None:
        super().__init__()
        self._words = words

    def compose(self) -> ComposeResult:
        """The question, and how to answer."""
        with Vertical(id="question"):
            yield Static(Content(self._words))
            yield Static(
                Content.assemble(("y", "bold $primary"), " yes   ", ("n", "bold $primary"), " no")
            )

    def action_answer(self, answer: bool) -> None:  # noqa: FBT001 - Textual's actions
        """Answer."""
        self.dismiss(answer)


class Naming(ModalScreen[str]):
    """Asks for a name; empty if none was given."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss('')", "Cancel")]

    def __init__(self, words: str) -> None:
        super().__init__()
        self._words = words

    def compose(self) -> ComposeResult:
        """A line to write in."""
        with Vertical(id="question"):
            yield Static(Content(self._words))
            yield Input(max_length=200)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take the name."""
        self.dismiss(event.value.strip())
