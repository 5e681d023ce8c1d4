"""The room that one begins in: the tree on the left, the node on the right."""

from typing import Any, ClassVar, Final

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.timer import Timer
from textual.widgets import Static, Tree

from memoryd.edges.browse import tree as toc
from memoryd.edges.browse.node import Bullet, NodePane
from memoryd.edges.browse.rooms import Room
from memoryd.edges.browse.talk import TalkRoom
from memoryd.edges.browse.tree import TocTree

# the daemon works events into segments within a second, and into longer periods when it is quiet
_LOOK_SOON: Final = 0.9
_LOOK_AGAIN: Final = (2.8, 4.0, 8.0)
_EMPTY: Final = (
    "Nothing is remembered yet.\n\n"
    "memory install    lets agents tell what they do\n"
    "memory import     takes in the conversations that are on disk\n"
    "memory demo       shows it all with a story that comes with it\n\n"
    "What comes in appears here by itself."
)


class TreeRoom(Room):
    """The table of contents."""

    NAME = "table of contents"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "tree", "Tree", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._looks: list[Timer] = []

    def body(self) -> ComposeResult:
        """Tree and node, side by side."""
        with Horizontal():
            yield TocTree()
            yield NodePane()
        yield Static(Content(_EMPTY), id="empty")

    def load(self) -> None:
        """Read the years, and the way to the newest day; or anew what is open."""
        if self._tree.root.children:
            self._refresh()
        else:
            self._begin()

    def heard(self, events: list[dict[str, Any]]) -> None:
        """Look at the tree again once the events have been worked in."""
        del events
        self.load_soon(_LOOK_SOON)
        for timer in self._looks:
            timer.stop()
        self._looks = [self.set_timer(seconds, self.load) for seconds in _LOOK_AGAIN]

    def reveal(self, node_id: str) -> None:
        """Open the way to a node."""
        self._reveal(node_id)

    @property
    def _tree(self) -> TocTree:
        return self.query_one(TocTree)

    @work(exclusive=True, group="tree")
    async def _begin(self) -> None:
        levels = await self.ask(toc.read_newest)
        if levels is None:
            return
        self._lay(levels)
        way, parent = [], ""
        while levels.get(parent) and levels[parent][-1]["level"] != "segment":
            parent = levels[parent][-1]["node_id"]
            way.append(parent)
        self._tree.go(way, open_last=True)
        self._tree.focus()

    @work(exclusive=True, group="tree")
    async def _refresh(self) -> None:
        wanted = self._tree.open_parents
        levels = await self.ask(lambda client: toc.read_levels(client, wanted))
        if levels is not None:
            self._lay(levels)

    @work(group="children")
    async def _read(self, parent_id: str) -> None:
        levels = await self.ask(lambda client: toc.read_levels(client, [parent_id]))
        if levels is not None:
            self._lay(levels)

    @work(exclusive=True, group="tree")
    async def _reveal(self, node_id: str) -> None:
        found = await self.ask(lambda client: toc.read_way(client, node_id))
        if found is None:
            return
        way, levels = found
        # a parent must be there before its children can be laid below it
        for parent in ("", *way[:-1]):
            self._tree.lay({parent: levels.get(parent, [])})
        self._tree.go(way)
        self._tree.focus()

    def _lay(self, levels: toc.Levels) -> None:
        self._tree.lay(levels)
        self.query_one("#empty").display = not self._tree.root.children
        self.query_one(Horizontal).display = bool(self._tree.root.children)
        node = self._tree.cursor_node
        if node is not None and node.data:
            self.query_one(NodePane).show(node.data)

    def on_tree_node_highlighted(self, event: Tree.NodeHighlighted[dict[str, Any]]) -> None:
        """Show the node under the cursor."""
        if event.node.data:
            self.query_one(NodePane).show(event.node.data)

    def on_toc_tree_wanted(self, event: TocTree.Wanted) -> None:
        """Read the children of what was opened."""
        self._read(event.parent_id)

    def on_toc_tree_entered(self) -> None:
        """From the tree to the words."""
        self.query_one(NodePane).enter()

    def on_node_pane_left(self) -> None:
        """From the words to the tree."""
        self._tree.focus()

    def on_bullet_opened(self, event: Bullet.Opened) -> None:
        """Open the evidence in its conversation."""
        if event.grip_ids:
            self.browser.push_screen(TalkRoom.of_grips(event.grip_ids))

    def on_node_pane_conversation(self, event: NodePane.Conversation) -> None:
        """Open the conversation where the segment begins."""
        self.browser.push_screen(TalkRoom.of_segment(event.node))

    def action_tree(self) -> None:
        """Back to the tree."""
        self._tree.focus()
