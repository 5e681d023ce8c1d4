"""The agents: where each keeps its settings, which of its events are captured, and how.

Owns the table of agents. An event is in it if the daemon makes something of it. Events that ask
for permission are not in it (a failing hook could deny a tool), nor are those whose content a
later event repeats. Time limits are short: the hook needs a fraction of a second.
"""

import os
import shlex
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from memoryd.edges.install.merge import Hook, Wanted

_SECONDS: Final = 5
_LAST_SECONDS: Final = 1  # what an agent grants at its end


class Agent(NamedTuple):
    """One agent: its names, the programs that show it is there, its files, and what it needs."""

    name: str
    title: str
    programs: tuple[str, ...]
    home: Callable[[], str]
    user_file: str
    project_file: str
    events: tuple[str, ...]
    entry: Callable[[str, str], Mapping[str, Any]] | None
    beside: tuple[tuple[str, Any], ...] = ()
    note: str = ""

    def wanted(self, program: str) -> Wanted:
        """What its settings shall hold so that it runs ``program``."""
        make = self.entry
        if make is None:
            return Wanted(())
        return Wanted(
            tuple(Hook(event, make(program, event)) for event in self.events), self.beside
        )

    def path(self, scope: str, root: str) -> str:
        """Its settings file: the user's, or the one of the work tree ``root``."""
        if scope == "project":
            return os.path.join(root, self.project_file)
        return os.path.join(self.home(), self.user_file)

    def levels(self, scope: str) -> int:
        """How many directories above its file exist for such files alone."""
        return (self.project_file if scope == "project" else self.user_file).count("/")


def _claude(program: str, event: str) -> Mapping[str, Any]:
    """Without a shell; in the background unless it may answer, or the agent would not wait."""
    handler: dict[str, Any] = {
        "type": "command",
        "command": program,
        "args": ["--agent", "claude-code"],
        "timeout": _LAST_SECONDS if event == "SessionEnd" else _SECONDS,
    }
    if event not in {"SessionStart", "UserPromptSubmit", "SessionEnd"}:
        handler["async"] = True
    return {"hooks": [handler]}


def _codex(program: str, event: str) -> Mapping[str, Any]:
    limit = _LAST_SECONDS if event == "SessionEnd" else _SECONDS
    return {"hooks": [{"type": "command", "command": _shell(program, "codex"), "timeout": limit}]}


def _gemini(program: str, event: str) -> Mapping[str, Any]:  # noqa: ARG001 - the table's signature
    handler = {
        "type": "command",
        "name": "memoryd",
        "command": _shell(program, "gemini"),
        "timeout": _SECONDS * 1000,
    }
    return {"hooks": [handler]}


def _copilot(program: str, event: str) -> Mapping[str, Any]:
    """Its payloads do not name their event, so the command does."""
    command = _shell(program, "copilot", event)
    return {"type": "command", "bash": command, "timeoutSec": _SECONDS}


def _cursor(program: str, event: str) -> Mapping[str, Any]:  # noqa: ARG001 - the table's signature
    return {"command": _shell(program, "cursor"), "timeout": _SECONDS}


def _shell(program: str, agent: str, *more: str) -> str:
    return shlex.join((program, "--agent", agent, *more))


def _home(variable: str, name: str) -> Callable[[], str]:
    """A directory that a variable may name, else one in the user's home."""

    def directory() -> str:
        chosen = os.environ.get(variable) if variable else ""
        return os.path.abspath(os.path.expanduser(chosen or f"~/{name}"))

    return directory


def _opencode_home() -> str:
    chosen = os.environ.get("OPENCODE_CONFIG_DIR")
    base = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return os.path.abspath(os.path.expanduser(chosen or f"{base}/opencode"))


_ALL: Final = (
    Agent(
        name="claude-code",
        title="Claude Code",
        programs=("claude",),
        home=_home("CLAUDE_CONFIG_DIR", ".claude"),
        user_file="settings.json",
        project_file=".claude/settings.json",
        events=(
            "SessionStart",
            "UserPromptSubmit",
            "PostToolUse",
            "PostToolUseFailure",
            "Notification",
            "SubagentStart",
            "SubagentStop",
            "Stop",
            "StopFailure",
            "PostCompact",
            "SessionEnd",
        ),
        entry=_claude,
    ),
    Agent(
        name="codex",
        title="Codex CLI",
        programs=("codex",),
        home=_home("CODEX_HOME", ".codex"),
        user_file="hooks.json",
        project_file=".codex/hooks.json",
        events=(
            "SessionStart",
            "UserPromptSubmit",
            "PostToolUse",
            "SubagentStart",
            "SubagentStop",
            "Stop",
            "PostCompact",
            "SessionEnd",
        ),
        entry=_codex,
        note="Codex runs a new hook only once you trust it: start codex and open /hooks",
    ),
    Agent(
        name="gemini",
        title="Gemini CLI",
        programs=("gemini",),
        home=_home("", ".gemini"),
        user_file="settings.json",
        project_file=".gemini/settings.json",
        events=(
            "SessionStart",
            "BeforeAgent",
            "AfterTool",
            "AfterAgent",
            "Notification",
            "SessionEnd",
        ),
        entry=_gemini,
    ),
    Agent(
        name="copilot",
        title="Copilot CLI",
        programs=("copilot",),
        home=_home("COPILOT_HOME", ".copilot"),
        user_file="hooks/memoryd.json",
        project_file=".github/hooks/memoryd.json",
        events=(
            "sessionStart",
            "userPromptSubmitted",
            "postToolUse",
            "postToolUseFailure",
            "subagentStart",
            "subagentStop",
            "agentStop",
            "errorOccurred",
            "sessionEnd",
        ),
        entry=_copilot,
        beside=(("version", 1),),
    ),
    Agent(
        name="cursor",
        title="Cursor",
        programs=("cursor", "cursor-agent"),
        home=_home("", ".cursor"),
        user_file="hooks.json",
        project_file=".cursor/hooks.json",
        events=(
            "sessionStart",
            "beforeSubmitPrompt",
            "postToolUse",
            "postToolUseFailure",
            "afterAgentResponse",
            "subagentStop",
            "stop",
            "sessionEnd",
        ),
        entry=_cursor,
        beside=(("version", 1),),
    ),
    Agent(
        name="opencode",
        title="OpenCode",
        programs=("opencode",),
        home=_opencode_home,
        user_file="plugins/memoryd.ts",
        project_file=".opencode/plugins/memoryd.ts",
        events=(),
        entry=None,
    ),
)

AGENTS: Final[Mapping[str, Agent]] = {agent.name: agent for agent in _ALL}
