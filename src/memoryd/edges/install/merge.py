"""Merges our hooks into the text of a settings file, and takes exactly them out again.

Owns which entries are ours: those whose program is called `memory-hook`. Pure. Every result is
parsed and compared with what it came from; if anything but our entries differs, it is refused.
"""

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from memoryd.edges.install import edit, jsonc
from memoryd.edges.install.errors import Refused
from memoryd.edges.install.jsonc import Node

PROGRAM: Final = "memory-hook"
_UNSAFE: Final = "it cannot be changed without touching other entries: edit it by hand"
_GROUP: Final = frozenset(("hooks", "matcher"))


class Hook(NamedTuple):
    """One entry of ours: the event, and what stands in that event's list."""

    event: str
    entry: Mapping[str, Any]


class Wanted(NamedTuple):
    """What a settings file shall hold: entries under ``hooks``, and what must stand beside it."""

    hooks: tuple[Hook, ...]
    beside: tuple[tuple[str, Any], ...] = ()

    def document(self) -> dict[str, Any]:
        """A whole file with nothing else in it."""
        lists: dict[str, list[Any]] = {}
        for hook in self.hooks:
            lists.setdefault(hook.event, []).append(hook.entry)
        return {**dict(self.beside), "hooks": lists}


class _Step(NamedTuple):
    """One level of the way down to an entry: a container, and the place of a child in it."""

    container: Node
    place: int


def merged(text: str, wanted: Wanted) -> str:
    """The text with exactly the wanted entries of ours. Raises Refused, jsonc.Broken."""
    if not text.strip():
        return edit.rendered(wanted.document()) + "\n"
    root = _root(text)
    if hooks_in(text) == sorted(wanted.hooks, key=_by_event) and not _missing(root, wanted):
        return text
    try:
        made = _stripped(text)
        for key, value in _missing(_root(made), wanted):
            made = edit.inserted(made, _root(made), key, value)
        made = _with_hooks(made, wanted.hooks)
        _check(text, made, wanted)
        if hooks_in(made) != sorted(wanted.hooks, key=_by_event):
            raise Refused(_UNSAFE)
    except jsonc.Broken:
        raise Refused(_UNSAFE) from None
    return made


def without(text: str, wanted: Wanted) -> str:
    """The text without our entries; lists that only they filled go too. Raises like `merged`."""
    if not text.strip():
        return text
    _root(text)
    try:
        made = _stripped(text)
        _check(text, made, wanted)
    except jsonc.Broken:
        raise Refused(_UNSAFE) from None
    return made


def hooks_in(text: str) -> list[Hook]:
    """Our entries in a text, by event. Raises Refused, jsonc.Broken."""
    if not text.strip():
        return []
    found = []
    for _, event, element in _elements(_root(text)):
        entry = jsonc.plain(element)
        if _mine(entry):
            found.append(Hook(event, entry))
    return sorted(found, key=_by_event)


def handlers(entry: Any) -> list[Mapping[str, Any]]:
    """The commands in one element of an event's list, be it a group of them or a single one."""
    if not isinstance(entry, dict):
        return []
    inner = entry.get("hooks")
    if isinstance(inner, list):
        return [handler for handler in inner if isinstance(handler, dict)]
    return [entry]


def command_line(handler: Mapping[str, Any]) -> list[str]:
    """The words of a handler's command, as the agent's shell would split them."""
    command = handler.get("command", handler.get("bash"))
    if not isinstance(command, str):
        return []
    arguments = handler.get("args")
    if isinstance(arguments, list):
        return [command, *map(str, arguments)]
    try:
        return shlex.split(command)
    except ValueError:
        return []


def _ours(handler: Any) -> bool:
    words = command_line(handler) if isinstance(handler, dict) else []
    return bool(words) and os.path.basename(words[0]) == PROGRAM and "--agent" in words


def _mine(entry: Any) -> bool:
    return any(_ours(handler) for handler in handlers(entry))


def _by_event(hook: Hook) -> str:
    return hook.event


def _root(text: str) -> Node:
    root = jsonc.parse(text)
    if root.kind != "object":
        raise Refused("it does not hold an object")
    return root


def _only(node: Node, key: str, kind: str) -> _Step | None:
    """The one child of that name. Raises Refused if there are several, or it is of another kind."""
    places = node.named(key)
    if not places:
        return None
    if len(places) > 1:
        raise Refused(f"it has {key} more than once: remove one")
    if node.children[places[0]].node.kind != kind:
        raise Refused(f"its {key} is not {'an object' if kind == 'object' else 'a list'}")
    return _Step(node, places[0])


def _child(step: _Step) -> Node:
    return step.container.children[step.place].node


def _elements(root: Node) -> list[tuple[list[_Step], str, Node]]:
    """Every element of every list under ``hooks``, with the way to it."""
    hooks = _only(root, "hooks", "object")
    if hooks is None:
        return []
    found = []
    for place, child in enumerate(_child(hooks).children):
        for inner, element in enumerate(child.node.children if child.node.kind == "list" else ()):
            way = [hooks, _Step(_child(hooks), place), _Step(child.node, inner)]
            found.append((way, child.key or "", element.node))
    return found


def _stripped(text: str) -> str:
    """Takes our commands out one by one, each time on a fresh tree."""
    while True:
        way = _first_of_ours(_root(text))
        if way is None:
            return text
        # a list or group that holds nothing else goes with it, but never the outermost object
        while len(way) > 1 and _alone(way[-1]):
            way.pop()
        text = edit.removed(text, way[-1].container, way[-1].place)


def _alone(step: _Step) -> bool:
    children = step.container.children
    if len(children) == 1:
        return True
    keys = {child.key for child in children}
    return children[step.place].key == "hooks" and keys <= _GROUP and len(children) == len(keys)


def _first_of_ours(root: Node) -> list[_Step] | None:
    for way, _, element in _elements(root):
        entry = jsonc.plain(element)
        if not _mine(entry):
            continue
        if not isinstance(entry.get("hooks"), list):
            return way
        inner = _only(element, "hooks", "list")
        for place, child in enumerate(_child(inner).children if inner else ()):
            if inner and _ours(jsonc.plain(child.node)):
                return [*way, inner, _Step(_child(inner), place)]
    return None


def _with_hooks(text: str, hooks: Sequence[Hook]) -> str:
    step = _only(_root(text), "hooks", "object")
    if step is None:
        return edit.inserted(text, _root(text), "hooks", Wanted(tuple(hooks)).document()["hooks"])
    for hook in hooks:
        root = _root(text)
        step = _only(root, "hooks", "object")
        if step is None:  # cannot be: nothing was taken out
            raise Refused("its hooks are gone")
        event = _only(_child(step), hook.event, "list")
        if event is None:
            text = edit.inserted(text, _child(step), hook.event, [hook.entry])
        else:
            text = edit.inserted(text, _child(event), None, hook.entry)
    return text


def _missing(root: Node, wanted: Wanted) -> list[tuple[str, Any]]:
    return [(key, value) for key, value in wanted.beside if not root.named(key)]


def _check(before: str, after: str, wanted: Wanted) -> None:
    """Raise Refused unless both texts say the same, our entries aside."""
    same = _foreign(_root(before), wanted) == _foreign(_root(after), wanted)
    if not same or (_is_json(before) and not _is_json(after)):
        raise Refused(_UNSAFE)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _foreign(root: Node, wanted: Wanted) -> Any:
    """What a file says besides our entries; lists and objects that are empty without them count not."""
    beside = dict(wanted.beside)
    said: list[Any] = []
    for child in root.children:
        if child.key == "hooks":
            events = [(event.key, _others(event.node)) for event in child.node.children]
            kept = [(event, inner) for event, inner in events if inner != ("list", ())]
            if kept:
                said.append((child.key, tuple(kept)))
        elif child.key not in beside or jsonc.plain(child.node) != beside[child.key]:
            said.append((child.key, jsonc.exact(child.node)))
    return tuple(said)


def _others(event: Node) -> Any:
    """An event's list without our commands, and without groups that hold nothing else."""
    if event.kind != "list":
        return jsonc.exact(event)
    rests = [_rest(child.node) for child in event.children]
    return "list", tuple((None, rest) for rest in rests if rest is not None)


def _rest(element: Node) -> Any:
    """What an element says without our commands; None if they were all of it."""
    entry = jsonc.plain(element)
    if not _mine(entry):
        return jsonc.exact(element)
    if not isinstance(entry.get("hooks"), list):
        return None
    said = {child.key: jsonc.exact(child.node) for child in element.children}
    inner = [child.node for child in element.children if child.key == "hooks"][-1].children
    kept = tuple((None, jsonc.exact(c.node)) for c in inner if not _ours(jsonc.plain(c.node)))
    if not kept and said.keys() <= _GROUP:
        return None
    return "object", tuple((said | {"hooks": ("list", kept)}).items())
