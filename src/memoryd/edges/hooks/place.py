"""Where a payload goes: which project, which directory, by which transport.

Reads the environment and what the user's configuration says about hooks. It may not import a
TOML reader at every call, so it keeps what the file says in `.hook`, below the data home,
together with the size and times of the file that it was read from. Derived: it can be deleted
at any time.
"""

import os

from memoryd import project

CACHE = ".hook"  # no project's id begins with a dot

_YES = ("true", "yes", "on", "1")
_NO = ("false", "no", "off", "0")
_CACHE_LIMIT = 16 * 1024
SAID_BY = {
    "claude-code": "CLAUDE_PROJECT_DIR",
    "cursor": "CURSOR_PROJECT_DIR",  # its user's hooks run in ~/.cursor
    "gemini": "GEMINI_PROJECT_DIR",
}
# unified, data_dir, hook.transport, redact.rules, hook.inject
_DEFAULTS = ("0", "", "spool", "", "session")


class Nowhere(Exception):
    """There is no directory that could take a payload."""


class Place:
    """Where a payload goes, and what was odd on the way to that answer."""

    __slots__ = ("chosen", "cwd", "data_dir", "inject", "problems", "project", "rules", "transport")

    def __init__(self) -> None:
        self.cwd = ""
        self.project = ""
        self.chosen = False
        self.data_dir = ""
        self.transport = "spool"
        self.rules = ""
        self.inject = "session"
        self.problems: list[str] = []


def find(agent: str = "") -> Place:
    """Decide for the working directory and the environment of this process. Raises Nowhere.

    An agent that says by a variable which project it works in is believed.
    """
    place = Place()
    said, data_dir, place.transport, rules, place.inject = _configured(place.problems)
    unified = _switch("MEMORYD_UNIFIED", default=said == "1")
    place.cwd = _said_directory(agent) or _working_directory()
    _choose_project(place)
    name = project.UNIFIED if unified else place.project
    data_dir = os.path.expanduser(os.environ.get("MEMORYD_DATA_DIR") or data_dir)
    place.data_dir = data_dir or project.data_dir(name)
    if not os.path.isabs(place.data_dir):
        raise Nowhere(f"the data directory {place.data_dir} is not absolute: set HOME")
    transport = os.environ.get("MEMORYD_HOOK_TRANSPORT", "")
    if transport in {"rpc", "spool"}:
        place.transport = transport
    inject = os.environ.get("MEMORYD_HOOK_INJECT", "")
    if inject in {"session", "prompt", "off"}:
        place.inject = inject
    place.rules = os.path.expanduser(os.environ.get("MEMORYD_REDACT_RULES", rules))
    return place


def _switch(variable: str, *, default: bool) -> bool:
    said = os.environ.get(variable, "").lower()
    return said in _YES if said in _YES or said in _NO else default


def _choose_project(place: Place) -> None:
    chosen = os.environ.get("MEMORY_PROJECT_ID")
    if chosen:
        try:
            project.check_project_id(chosen)
        except ValueError as error:
            place.problems.append(f"MEMORY_PROJECT_ID: {error}")
        else:
            place.project, place.chosen = chosen, True
            return
    if not place.cwd:
        raise Nowhere("the working directory is gone, so the project is not known")
    place.project = project.id_of_root(project.project_root(place.cwd))


def _said_directory(agent: str) -> str:
    said = os.environ.get(SAID_BY.get(agent, ""), "")
    return os.path.normpath(said) if os.path.isabs(said) and os.path.isdir(said) else ""


def _working_directory() -> str:
    try:
        return os.getcwd()
    except OSError:
        said = os.environ.get("PWD", "")
        return said if os.path.isabs(said) else ""


def _configured(problems: list[str]) -> tuple[str, str, str, str, str]:
    """What the user's file says, in the order of the defaults."""
    path = project.config_file()
    try:
        found = os.stat(path)
    except OSError:
        return _DEFAULTS
    mark = f"{path}\0{found.st_mtime_ns} {found.st_ctime_ns} {found.st_size} {found.st_ino}"
    cache = f"{project.data_home()}/{CACHE}"
    kept = _read(cache).split("\n")
    if kept[0] == mark and len(kept) == 1 + len(_DEFAULTS):
        return kept[1], kept[2], kept[3], kept[4], kept[5]
    from memoryd.edges.hooks import slow

    said = slow.configured(problems) or _DEFAULTS
    slow.keep(cache, "\n".join((mark, *said)))
    return said


def _read(path: str) -> str:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return ""
    try:
        return os.fsdecode(os.read(fd, _CACHE_LIMIT))
    finally:
        os.close(fd)
