"""Plans what installing or uninstalling does to an agent's file, and writes nothing.

Owns the way back: if a file is exactly what installing makes of one of the copies kept beside it,
that copy is what it becomes; else our entries are taken out of it as it is.
"""

import os
import shutil
import sys
import tomllib
from typing import Any

from memoryd.edges.install import files, jsonc, merge, opencode
from memoryd.edges.install.agents import Agent
from memoryd.edges.install.errors import Refused
from memoryd.edges.install.files import Change


def program() -> str:
    """The `memory-hook` of this installation: beside this Python, else on PATH. Raises Refused."""
    beside = os.path.join(os.path.dirname(os.path.abspath(sys.executable)), merge.PROGRAM)
    found = beside if os.access(beside, os.X_OK) else shutil.which(merge.PROGRAM)
    if not found:
        raise Refused(
            f"the program {merge.PROGRAM} is neither {beside} nor on PATH: install memoryd again"
        )
    found = os.path.abspath(found)
    try:
        found.encode()
    except UnicodeEncodeError:
        raise Refused(f"the path {found!r} is not UTF-8 and cannot stand in settings") from None
    return found


def work_tree(start: str) -> str:
    """The directory whose settings an agent reads that is started in ``start``."""
    start = here = os.path.realpath(start)
    while not os.path.exists(f"{here}/.git"):
        parent = os.path.dirname(here)
        if parent == here:
            return start
        here = parent
    return here


def is_here(agent: Agent) -> bool:
    """Whether this machine has the agent: its directory, or a program of its."""
    return os.path.isdir(agent.home()) or any(map(shutil.which, agent.programs))


def installing(agent: Agent, path: str, command: str) -> Change:
    """The change that puts ``command`` into a file. Raises Refused."""
    before = files.read(path)
    text = files.text_of(path, before)
    if agent.entry is None:
        if before is not None and not opencode.is_ours(text):
            raise Refused(f"{path} is not a file of memoryd's: move it away first")
        after = opencode.rendered(command, opencode.major_version()).encode()
        return Change(path, before, after)
    made = _said_of(path, lambda: merge.merged(text, agent.wanted(command)))
    return Change(path, before, before if made == text else files.bytes_of(made, before))


def uninstalling(agent: Agent, path: str) -> Change:
    """The change that takes our entries out of a file. Raises Refused."""
    before = files.read(path)
    if before is None:
        return Change(path, None, None)
    text = files.text_of(path, before)
    if agent.entry is None:
        return Change(path, before, None if opencode.is_ours(text) else before)
    commands = _said_of(path, lambda: commands_in(text))
    if not commands:
        return Change(path, before, before)
    wanted = agent.wanted(commands[0][0])
    for original in [*files.backups(path), None]:
        if _makes(original, before, wanted):
            return Change(path, before, original)
    made = _said_of(path, lambda: merge.without(text, wanted))
    return Change(path, before, files.bytes_of(made, before))


def worth_keeping(agent: Agent, change: Change) -> bool:
    """Whether the file as it was holds more than installing would write again."""
    if change.after is not None:
        return True
    if agent.entry is not None:
        return False  # settings are removed only if installing made all of them
    text = files.text_of(change.path, change.before)
    command = opencode.program_in(text)
    return text not in {opencode.rendered(command, major) for major in (1, 2)}


def installed(agent: Agent, path: str) -> bool:
    """Whether a file holds something of ours; one that cannot be read holds nothing."""
    try:
        text = files.text_of(path, files.read(path))
        return bool(text) and (
            opencode.is_ours(text) if agent.entry is None else bool(merge.hooks_in(text))
        )
    except (Refused, jsonc.Broken):
        return False


def commands_in(text: str) -> list[list[str]]:
    """The command lines of our entries. Raises like `merge.hooks_in`."""
    found = []
    for hook in merge.hooks_in(text):
        lines = map(merge.command_line, merge.handlers(hook.entry))
        found += [line for line in lines if line and os.path.basename(line[0]) == merge.PROGRAM]
    return found


def warnings(agent: Agent, path: str, text: str) -> list[str]:
    """What stands in the way of the hooks that were just installed, or is worth knowing."""
    said = [agent.note] if agent.note else []
    if agent.entry is None:
        return said
    settings: Any = jsonc.plain(jsonc.parse(text)) if text.strip() else {}
    if agent.name == "claude-code" and settings.get("disableAllHooks") is True:
        said.append(f"{path} has disableAllHooks set: no hook will run")
    if agent.name == "gemini" and _at(settings, "hooksConfig", "enabled") is False:
        said.append(f"{path} has hooksConfig.enabled off: no hook will run")
    if agent.name == "codex" and _codex_off(os.path.dirname(path)):
        said.append("config.toml has the feature hooks off: no hook will run")
    return said


def plugin_enabled(agent: Agent, text: str) -> bool:
    """Whether Claude Code's settings enable the plugin of memoryd, which captures by itself."""
    if agent.name != "claude-code" or not text.strip():
        return False
    plugins = _at(jsonc.plain(jsonc.parse(text)), "enabledPlugins")
    if not isinstance(plugins, dict):
        return False
    return any(name.partition("@")[0] == "memoryd" and on is True for name, on in plugins.items())


def _makes(original: bytes | None, result: bytes, wanted: merge.Wanted) -> bool:
    """Whether installing into ``original``, which holds nothing of ours, gives ``result``."""
    try:
        text = files.text_of("", original)
        if merge.hooks_in(text):
            return False
        return files.bytes_of(merge.merged(text, wanted), original) == result
    except (Refused, jsonc.Broken):
        return False


def _said_of(path: str, make: Any) -> Any:
    try:
        return make()
    except jsonc.Broken as error:
        raise Refused(f"{path} is not JSON ({error}): repair it first") from None
    except Refused as error:
        raise Refused(f"{path}: {error}") from None


def _at(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _codex_off(directory: str) -> bool:
    try:
        with open(os.path.join(directory, "config.toml"), "rb") as file:
            features = tomllib.load(file).get("features")
    except (OSError, ValueError):
        return False
    return _at(features, "hooks") is False or _at(features, "codex_hooks") is False
