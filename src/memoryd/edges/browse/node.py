"""One node, beside the tree: title, summary, and bullets that open their evidence."""

from typing import Any, ClassVar, Final

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.events import Click
from textual.message import Message
from textual.widgets import Static

from memoryd.edges.browse.words import DIM, bullet_line, line, node_head, shown

_KEYWORDS: Final = 12


class Bullet(Static, can_focus=True):
    """One thing that happened; Enter or a click opens the evidence."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "open", "Evidence")]

    class Opened(Message):
        """The evidence of a bullet is wanted."""

        def __init__(self, grip_ids: list[str]) -> None:
            super().__init__()
            self.grip_ids = grip_ids

    def __init__(self, bullet: dict[str, Any]) -> None:
        super().__init__(Content(bullet_line(bullet)))
        self.grip_ids: list[str] = bullet["grip_ids"]

    def action_open(self) -> None:
        """Open the evidence."""
        self.post_message(self.Opened(self.grip_ids))

    def on_click(self, event: Click) -> None:
        """Open the evidence."""
        event.stop()
        self.focus()
        self.action_open()


class NodePane(VerticalScroll):
    """What one node says."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "step(1)", "Next", show=False),
        Binding("up,k", "step(-1)", "Previous", show=False),
        Binding("left,escape", "leave", "Tree"),
        Binding("o", "conversation", "Conversation"),
    ]

    class Left(Message):
        """Back to the tree."""

    class Conversation(Message):
        """The conversation of a segment is wanted."""

        def __init__(self, node: dict[str, Any]) -> None:
            super().__init__()
            self.node = node

    def __init__(self) -> None:
        super().__init__(id="node")
        self.node: dict[str, Any] | None = None
        self._drawn: dict[str, Any] | None = None

    def compose(self) -> ComposeResult:
        """The parts that every node has."""
        yield Static(id="head")
        yield Static(id="summary")
        yield Static(id="keywords")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A segment has one conversation; longer periods have many."""
        del parameters
        is_segment = self.node is not None and self.node["level"] == "segment"
        return action != "conversation" or is_segment

    @work(exclusive=True, group="node")
    async def show(self, node: dict[str, Any]) -> None:
        """Show a node instead of what is shown."""
        same = self.node is not None and self.node["node_id"] == node["node_id"]
        self.node = node
        if self._drawn == node:
            return
        self._drawn = None  # until all is drawn: the next node may come in between
        focused = next((n for n, b in enumerate(self.query(Bullet)) if b.has_focus), None)
        self.query_one("#head", Static).update(node_head(node))
        summary = self.query_one("#summary", Static)
        summary.update(Content(shown(node["summary"])))
        summary.display = bool(node["summary"].strip())
        keywords = self.query_one("#keywords", Static)
        keywords.update(
            Content.styled(line(", ".join(node["keywords"][:_KEYWORDS])), f"italic {DIM}")
        )
        keywords.display = bool(node["keywords"])
        await self.query(Bullet).remove()
        bullets = [Bullet(bullet) for bullet in node["bullets"]]
        await self.mount(*bullets, before=keywords)
        if not same:
            self.scroll_home(animate=False)
        elif focused is not None and bullets:
            bullets[min(focused, len(bullets) - 1)].focus()
        self._drawn = node
        self.refresh_bindings()

    def enter(self) -> None:
        """Put the focus on the first bullet, or on the text if there is none."""
        bullets = self.query(Bullet)
        (bullets.first() if bullets else self).focus()

    def action_step(self, by: int) -> None:
        """Go to the next or previous bullet; where there is none, scroll."""
        bullets = list(self.query(Bullet))
        place = next((n for n, bullet in enumerate(bullets) if bullet.has_focus), None)
        if place is not None and 0 <= place + by < len(bullets):
            bullets[place + by].focus()
        elif place is None and bullets and by > 0:
            bullets[0].focus()
        elif by > 0:
            self.scroll_down()
        else:
            self.scroll_up()

    def action_leave(self) -> None:
        """Back to the tree."""
        self.post_message(self.Left())

    def action_conversation(self) -> None:
        """Open the conversation of a segment where the segment begins."""
        if self.node is not None:
            self.post_message(self.Conversation(self.node))
