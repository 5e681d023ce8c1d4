"""The table of contents as a tree: years to segments, each level read when it is opened.

Owns what of the tree is on the screen. What is read comes in one call for all levels that are
open, and is laid over what stands there, so that the cursor stays while the tree grows.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Final

from rich.cells import cell_len, set_cell_size
from rich.style import Style
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Tree
from textual.widgets.tree import TreeNode

from memoryd.edges.browse.words import line, short
from memoryd.edges.stats.figures import mark
from memoryd.wire import Missing

if TYPE_CHECKING:
    from memoryd.client import Client

Node = dict[str, Any]
Levels = dict[str, list[Node]]  # the children of each parent; "" is the parent of the years

_GUIDE: Final = 2
_ICON: Final = 2
_LEAST_TITLE: Final = 6


def read_levels(client: "Client", parents: Iterable[str]) -> Levels:
    """The children of parents, as far as they are still there. Raises ClientError."""
    found: Levels = {}
    for parent in parents:
        try:
            found[parent] = list(client.children(parent))
        except Missing:
            continue
    return found


def read_newest(client: "Client") -> Levels:
    """The years, and the way down to the segments of the newest day. Raises ClientError."""
    found: Levels = {}
    parent: str | None = ""
    while parent is not None:
        found |= read_levels(client, [parent])
        children = found.get(parent) or [{"level": "segment"}]
        parent = children[-1]["node_id"] if children[-1]["level"] != "segment" else None
    return found


def read_way(client: "Client", node_id: str) -> tuple[list[str], Levels]:
    """The ids from the year down to a node, and their children. Raises Missing, ClientError."""
    way = [node_id]
    while parent := client.node(way[0])["parent_id"]:
        way.insert(0, parent)
    return way, read_levels(client, ["", *way[:-1]])


class TocTree(Tree[Node]):
    """Years, months, weeks, days and segments, the oldest first."""

    ICON_NODE = "▸ "
    ICON_NODE_EXPANDED = "▾ "
    COMPONENT_CLASSES: ClassVar[set[str]] = {"toc--title", "toc--mark", "toc--open"}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select_cursor", "Open"),
        Binding("right", "into", "Into", show=False),
        Binding("left", "out_of", "Out of", show=False),
        Binding("j", "cursor_down", "Down", show=False),
        Binding("k", "cursor_up", "Up", show=False),
        Binding("g", "scroll_home", "First", show=False),
    ]

    class Entered(Message):
        """Somebody wants to read the node that is shown beside the tree."""

    class Wanted(Message):
        """The children of a node are to be read."""

        def __init__(self, parent_id: str) -> None:
            super().__init__()
            self.parent_id = parent_id

    def __init__(self) -> None:
        super().__init__("", id="toc")
        self.show_root = False
        self.guide_depth = _GUIDE
        self.auto_expand = False

    @property
    def open_parents(self) -> list[str]:
        """The ids of what is open, the parent of the years first."""
        return ["", *(_id(node) for node in self._all() if node.is_expanded and node.data)]

    def lay(self, levels: Levels) -> None:
        """Lay what was read over what is shown."""
        pending = [self.root]
        while pending:
            parent = pending.pop()
            children = levels.get(_id(parent))
            if children is not None:
                self._fill(parent, children)
            pending += parent.children

    def go(self, way: list[str], *, open_last: bool = False) -> None:
        """Open the way to a node and put the cursor on it."""
        node = self.root
        for place, node_id in enumerate(way):
            below = next((child for child in node.children if _id(child) == node_id), None)
            if below is None:
                break
            node = below
            if place < len(way) - 1 or open_last:
                node.expand()
        if node is not self.root:
            # the lines are known only after the nodes have been laid out
            self.call_after_refresh(self.move_cursor, node)

    def _fill(self, parent: TreeNode[Node], nodes: list[Node]) -> None:
        wanted = {node["node_id"] for node in nodes}
        for child in list(parent.children):
            if _id(child) not in wanted:
                child.remove()
        have = {_id(child): child for child in parent.children}
        for place, node in enumerate(nodes):
            known = have.get(node["node_id"])
            if known is None:
                before = place if place < len(parent.children) else None
                leaf = node["level"] == "segment"
                parent.add("", node, before=before, allow_expand=not leaf)
            elif known.data != node:
                known.data = node
                known.refresh()

    def _all(self) -> Iterable[TreeNode[Node]]:
        pending = [self.root]
        while pending:
            node = pending.pop()
            yield node
            pending += node.children

    def on_tree_node_expanded(self, event: Tree.NodeExpanded[Node]) -> None:
        """Have the children read, also if they are there: they may be old."""
        self.post_message(self.Wanted(_id(event.node)))

    def on_tree_node_selected(self, event: Tree.NodeSelected[Node]) -> None:
        """Open or close a period; a segment has nothing below but its words."""
        if event.node.allow_expand:
            event.node.toggle()
        else:
            self.post_message(self.Entered())

    def action_into(self) -> None:
        """Open what is closed; else go to what is shown beside it."""
        node = self.cursor_node
        if node is not None and node.allow_expand and not node.is_expanded:
            node.expand()
        else:
            self.post_message(self.Entered())

    def action_out_of(self) -> None:
        """Close what is open; else go to what it lies in."""
        node = self.cursor_node
        if node is not None and node.is_expanded and node.allow_expand:
            node.collapse()
        else:
            self.action_cursor_parent()

    def get_label_width(self, node: TreeNode[Node]) -> int:  # noqa: ARG002 - Textual's signature
        """No label is wider than the tree: it is cut where it is drawn."""
        return 1

    def render_label(self, node: TreeNode[Node], base_style: Style, style: Style) -> Text:
        """A period in one line: its name, what it is about, how much happened."""
        data = node.data
        if data is None:
            return Text("")
        depth = _depth(node)
        width = self.scrollable_content_region.width - depth * _GUIDE - _ICON - 1
        part = self.get_component_rich_style
        is_open = data["provisional"] and data["level"] == "segment"
        sign = "●" if is_open else mark(data["event_count"], _most(node))
        end = Text.assemble(
            (f" {data['event_count']:>3,} ", part("toc--title", partial=True)),
            (sign, part("toc--open" if is_open else "toc--mark", partial=True)),
        )
        icon = "  "
        if node.allow_expand:
            icon = self.ICON_NODE_EXPANDED if node.is_expanded else self.ICON_NODE
        name, room = short(data), width - cell_len(short(data)) - end.cell_len
        label = Text.assemble((icon, base_style), (name, "bold"))
        label.append(*_cut(line(data["title"]), room, part("toc--title", partial=True)))
        label.append(end)
        label.stylize(style)
        return label


def _cut(title: str, room: int, style: Style) -> tuple[str, Style]:
    """As much of a title as there is room for, and blanks for the rest of it."""
    if room < _LEAST_TITLE:
        return " " * max(0, room), style
    words = f" {title}"
    if cell_len(words) > room:
        words = set_cell_size(words, room - 1).rstrip() + "…"
    return set_cell_size(words, room), style


def _id(node: TreeNode[Node]) -> str:
    return str(node.data["node_id"]) if node.data else ""


def _depth(node: TreeNode[Node]) -> int:
    """How many nodes stand above one, without the root, which is not shown."""
    depth, above = -1, node.parent
    while above is not None:
        depth, above = depth + 1, above.parent
    return depth


def _most(node: TreeNode[Node]) -> int:
    siblings = node.parent.children if node.parent is not None else ()
    return max((int(child.data["event_count"]) for child in siblings if child.data), default=0)
