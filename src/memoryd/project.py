"""Which project a directory belongs to, and where that project's files are.

Owns the project id and every path that follows from it. The hook, the client and the
daemon must agree on both, so all three ask here. It imports nothing but ``os`` and a hash:
the hook's start-up time is the time of this module's imports.
"""

import os
import stat
from _blake2 import blake2b

UNIFIED = "unified"
GLOBAL_NOTES = "global-notes"

_SAFE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
_NAME_LIMIT = 40
_ID_LIMIT = 64
_SOCKET_LIMIT = 107


def project_root(start: str) -> str:
    """The directory that stands for the project of ``start``.

    The git common directory's working tree, so that all worktrees of a repository share one
    memory; outside of git, ``start`` itself.
    """
    start = os.path.realpath(start)
    here = start
    while True:
        dot_git = here + "/.git"
        if os.path.isdir(dot_git):
            return here
        if os.path.isfile(dot_git):
            return _worktree_root(dot_git) or here
        parent = os.path.dirname(here)
        if parent == here:
            return start
        here = parent


def project_id(start: str) -> str:
    """``MEMORY_PROJECT_ID``, or ``<basename>-<8 hex of the hash of the full path>``."""
    chosen = os.environ.get("MEMORY_PROJECT_ID")
    if chosen:
        check_project_id(chosen)
        return chosen
    return id_of_root(project_root(start))


def id_of_root(root: str) -> str:
    """The id that the path of a project root stands for."""
    name = "".join(c if c in _SAFE else "_" for c in os.path.basename(root)[:_NAME_LIMIT])
    digest = blake2b(os.fsencode(root), digest_size=4).hexdigest()
    return f"{name.lstrip('.-') or 'root'}-{digest}"


def check_project_id(project: str) -> None:
    """Raise ValueError unless ``project`` can name a file and a service instance."""
    if (
        not project
        or len(project) > _ID_LIMIT
        or project[0] in ".-"
        or project == GLOBAL_NOTES
        or not _SAFE.issuperset(project)
    ):
        msg = (
            f"project id {project!r} is not usable: take 1 to {_ID_LIMIT} letters, digits, '.', '_' and "
            f"'-', not beginning with '.' or '-', and not {GLOBAL_NOTES}"
        )
        raise ValueError(msg)


def data_home() -> str:
    """Where every project's data directory is, by default."""
    return _xdg("XDG_DATA_HOME", ".local/share")


def global_notes_dir() -> str:
    """Where the notes are that all projects share."""
    return f"{data_home()}/{GLOBAL_NOTES}"


def config_file() -> str:
    """The user's configuration file."""
    return _xdg("XDG_CONFIG_HOME", ".config") + "/config.toml"


def data_dir(project: str) -> str:
    """The default data directory of a project."""
    return f"{data_home()}/{project}"


def runtime_dir() -> str:
    """Where the sockets are: ``$XDG_RUNTIME_DIR/memoryd``, or a private directory below /tmp."""
    base = os.environ.get("XDG_RUNTIME_DIR")
    if base and os.path.isabs(base):
        return f"{base}/memoryd"
    return f"/tmp/memoryd-{os.getuid()}"  # noqa: S108 - private_dir() refuses a stranger's


def socket_path(project: str, directory: str | None = None) -> str:
    """The project's unix socket. Raises ValueError if its path is too long to bind."""
    path = f"{directory or runtime_dir()}/{project}.sock"
    if len(os.fsencode(path)) > _SOCKET_LIMIT:
        msg = (
            f"socket path {path} is longer than {_SOCKET_LIMIT} bytes: set XDG_RUNTIME_DIR "
            "(or MEMORYD_RUNTIME_DIR) to a shorter directory"
        )
        raise ValueError(msg)
    return path


def private_dir(path: str) -> str:
    """Make ``path`` a directory that only this user can enter, and return it.

    Raises PermissionError if it belongs to somebody else, so that nobody can lie in wait under
    a name in /tmp.
    """
    os.makedirs(path, mode=0o700, exist_ok=True)
    info = os.lstat(path)
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid():
        msg = f"{path} is not a directory of this user: remove it, or choose another place"
        raise PermissionError(msg)
    if stat.S_IMODE(info.st_mode) & 0o077:
        os.chmod(path, 0o700)
    return path


def _xdg(variable: str, fallback: str) -> str:
    base = os.environ.get(variable)
    if not base or not os.path.isabs(base):
        base = f"{os.path.expanduser('~')}/{fallback}"
    return f"{base}/memoryd"


def _worktree_root(dot_git: str) -> str | None:
    """The main working tree behind a ``.git`` file, or None if it leads nowhere."""
    try:
        with open(dot_git, encoding="utf-8", errors="surrogateescape") as file:
            line = file.read(4096).strip()
    except OSError:
        return None
    if not line.startswith("gitdir:"):
        return None
    git_dir = os.path.join(os.path.dirname(dot_git), line[len("gitdir:") :].strip())
    try:
        with open(git_dir + "/commondir", encoding="utf-8", errors="surrogateescape") as file:
            common = os.path.join(git_dir, file.read(4096).strip())
    except OSError:
        return None  # a submodule or --separate-git-dir: a project of its own
    common = os.path.realpath(common)
    return os.path.dirname(common) if os.path.basename(common) == ".git" else common
