"""Where the agents keep their transcripts, and whose transcript a file is.

Owns the usual places and the recognition of a file by its first records.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple

from memoryd.domain.capture.transcripts import READERS, Place
from memoryd.edges.importers import records

AGENTS: Final = tuple(READERS)

_SNIFFED: Final = 50
_ENDINGS: Final = (".jsonl", ".jsonl.zst", ".json", ".db")
_CLAUDE: Final = frozenset(("user", "assistant", "summary", "system", "progress", "attachment"))
_CLAUDE_FIELDS: Final = frozenset(("uuid", "leafUuid", "sessionId"))
_CLAUDE_ALONE: Final = frozenset(("file-history-snapshot", "queue-operation"))


class Transcript(NamedTuple):
    """One file, directory or database that holds conversations of an agent."""

    agent: str
    path: str
    size: int
    changed_ms: int


def usual(agent: str) -> list[str]:
    """The files of an agent in their usual places."""
    home = os.path.expanduser("~")
    environ = os.environ.get
    if agent == "claude-code":
        folder = environ("CLAUDE_CONFIG_DIR") or f"{home}/.claude"
        return _walk(f"{folder}/projects", lambda name: name.endswith(".jsonl"))
    if agent == "codex":
        folder = environ("CODEX_HOME") or f"{home}/.codex"
        folders = (f"{folder}/sessions", f"{folder}/archived_sessions")
        return [path for place in folders for path in _walk(place, _is_rollout)]
    if agent == "gemini":
        return _walk(f"{home}/.gemini/tmp", lambda name: name.startswith("session-"))
    if agent == "copilot":
        return _walk(f"{home}/.copilot/session-state", lambda name: name.endswith(".jsonl"))
    if agent == "cursor":
        found = _walk(f"{home}/.cursor/projects", lambda name: name.endswith(".jsonl"))
        return [path for path in found if "/agent-transcripts/" in path]
    folder = f"{environ('XDG_DATA_HOME') or home + '/.local/share'}/opencode"
    found = _walk(folder, lambda name: name.startswith("opencode") and name.endswith(".db"))
    storage = f"{folder}/storage"
    return [*found, storage] if os.path.isdir(f"{storage}/message") else found


def find(agents: Iterable[str], path: str = "") -> tuple[list[Transcript], list[str]]:
    """The transcripts of some agents, oldest first, and the files that are nobody's.

    Without ``path`` in their usual places; with it in that file or below that directory, where
    each file's agent is found out from what it holds. Raises OSError if ``path`` is not there.
    """
    wanted = tuple(agents)
    if not path:
        found = [_transcript(agent, file) for agent in wanted for file in usual(agent)]
        return sorted(found, key=lambda t: (t.changed_ms, t.path)), []
    os.stat(path)
    found, strange = [], []
    path = os.path.abspath(path)
    for file in _candidates(path):
        agent = guess(file) or (wanted[0] if len(wanted) == 1 and file == path else "")
        if agent in wanted:
            found.append(_transcript(agent, file))
        elif not agent:
            strange.append(file)
    return sorted(found, key=lambda t: (t.changed_ms, t.path)), strange


def guess(path: str) -> str:
    """The agent whose transcript a file is, "" if it is none."""
    if os.path.isdir(path) or path.endswith(".db"):
        return "opencode"
    try:
        first = [value for _, value in islice(records.read(path), _SNIFFED)]
    except (OSError, ValueError):
        return ""
    for value in first:
        if isinstance(value, dict) and (agent := _agent_of(value)):
            return agent
    return ""


def place_of(transcript: Transcript) -> Place:
    """What is known of a transcript from where it lies."""
    path = transcript.path
    name = os.path.basename(path)
    for ending in _ENDINGS:
        name = name.removesuffix(ending)
    if transcript.agent == "copilot" and name == "events":
        name = os.path.basename(os.path.dirname(path))
    cwd = _gemini_root(path) if transcript.agent == "gemini" else ""
    return Place(name, path, cwd, transcript.changed_ms)


def _agent_of(record: Mapping[str, Any]) -> str:
    kind = record.get("type")
    if "table" in record and "row" in record:
        return "opencode"
    if "$set" in record or "projectHash" in record:
        return "gemini"
    if isinstance(record.get("payload"), dict) and isinstance(kind, str):
        return "codex"
    if isinstance(kind, str) and isinstance(record.get("data"), dict) and "." in kind:
        return "copilot"
    if kind in _CLAUDE_ALONE or (kind in _CLAUDE and _CLAUDE_FIELDS & record.keys()):
        return "claude-code"
    return "cursor" if "role" in record and isinstance(record.get("message"), dict) else ""


def _candidates(path: str) -> Iterator[str]:
    if os.path.isfile(path):
        yield path
    elif os.path.isdir(f"{path}/storage/message"):
        yield f"{path}/storage"
        yield from _walk(path, lambda name: name.endswith(".db"))
    elif os.path.isdir(f"{path}/message") and os.path.isdir(f"{path}/part"):
        yield path
    else:
        yield from _walk(path, lambda name: name.endswith(_ENDINGS))


def _transcript(agent: str, path: str) -> Transcript:
    info = os.stat(path)
    size = info.st_size
    if os.path.isdir(path):
        size = sum(os.path.getsize(f) for f in _walk(path, lambda name: name.endswith(".json")))
    return Transcript(agent, path, size, info.st_mtime_ns // 1_000_000)


def _walk(folder: str, wanted: Callable[[str], bool]) -> list[str]:
    return [
        f"{root}/{name}"
        for root, _, names in os.walk(folder)
        for name in names
        if wanted(name) and os.path.isfile(f"{root}/{name}")
    ]


def _is_rollout(name: str) -> bool:
    return name.startswith("rollout-") and name.endswith((".jsonl", ".jsonl.zst"))


def _gemini_root(path: str) -> str:
    """The directory of a Gemini chat: its own note, the list of projects, or a known hash."""
    folder = os.path.dirname(os.path.dirname(path))
    try:
        with open(f"{folder}/.project_root", encoding="utf-8") as file:
            return file.read(4096).strip()
    except (OSError, UnicodeDecodeError):
        pass
    name = os.path.basename(folder)
    known = _gemini_projects(os.path.dirname(os.path.dirname(folder)))
    here = os.getcwd()
    for root in (*known, here, os.path.realpath(here)):
        if name in (known.get(root), hashlib.sha256(os.fsencode(root)).hexdigest()):
            return root
    return ""


def _gemini_projects(folder: str) -> dict[str, str]:
    try:
        with open(f"{folder}/projects.json", encoding="utf-8") as file:
            listed = json.load(file).get("projects")
    except (OSError, ValueError, AttributeError):
        return {}
    if not isinstance(listed, dict):
        return {}
    return {root: name for root, name in listed.items() if isinstance(name, str)}
