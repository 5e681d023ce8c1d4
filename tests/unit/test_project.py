import os
import stat
import subprocess

import pytest

from memoryd import project


@pytest.fixture(autouse=True)
def _no_chosen_id(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start every test without an id from outside."""
    monkeypatch.delenv("MEMORY_PROJECT_ID", raising=False)


def git(directory: str, *arguments: str) -> None:
    """Run git without anybody's configuration."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    env |= {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    identity = ("-c", "user.name=n", "-c", "user.email=e@example.org")
    command = ["git", *identity, *arguments]
    subprocess.run(command, cwd=directory, env=env, check=True, capture_output=True)


@pytest.fixture
def base(tmp_path: os.PathLike[str]) -> str:
    """An empty directory, by its real path."""
    return os.path.realpath(tmp_path)


@pytest.fixture
def repository(base: str) -> str:
    """A repository with one commit."""
    root = f"{base}/repo"
    os.makedirs(f"{root}/sub/deep")
    git(root, "init", "-q")
    git(root, "commit", "-q", "--allow-empty", "-m", "first")
    return root


def test_the_chosen_id_wins(repository: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """MEMORY_PROJECT_ID decides, whatever the directory says."""
    monkeypatch.setenv("MEMORY_PROJECT_ID", "chosen.id_1-x")
    assert project.project_id(repository) == "chosen.id_1-x"


@pytest.mark.parametrize("bad", [".", "..", ".x", "-x", "a/b", "a b", "ü", "a\nb", "x" * 65])
def test_a_bad_id_is_refused(bad: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An id that could not name a file or a service instance is refused."""
    monkeypatch.setenv("MEMORY_PROJECT_ID", bad)
    with pytest.raises(ValueError, match="not usable"):
        project.project_id("/")


def test_an_empty_chosen_id_counts_as_none(
    repository: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty MEMORY_PROJECT_ID leaves the choice to the directory."""
    monkeypatch.setenv("MEMORY_PROJECT_ID", "")
    assert project.project_id(repository) == project.id_of_root(repository)
    with pytest.raises(ValueError, match="not usable"):
        project.check_project_id("")


def test_below_the_root_the_id_is_the_same(repository: str) -> None:
    """Every directory of a repository belongs to the repository's project."""
    assert project.project_id(f"{repository}/sub/deep") == project.project_id(repository)


def test_worktrees_share_an_id(repository: str, base: str) -> None:
    """All worktrees of a repository have one id, also below their roots."""
    git(repository, "worktree", "add", "-q", f"{base}/elsewhere/tree")
    os.mkdir(f"{base}/elsewhere/tree/sub")
    assert project.project_root(f"{base}/elsewhere/tree") == repository
    assert project.project_id(f"{base}/elsewhere/tree/sub") == project.project_id(repository)


def test_worktrees_of_a_bare_repository_share_an_id(repository: str, base: str) -> None:
    """Worktrees of a bare repository have the id of the bare repository."""
    git(base, "clone", "-q", "--bare", repository, f"{base}/bare.git")
    for name in ("one", "two"):
        git(f"{base}/bare.git", "worktree", "add", "-q", "-b", name, f"{base}/{name}")
    assert project.project_root(f"{base}/one") == f"{base}/bare.git"
    assert project.project_id(f"{base}/one") == project.project_id(f"{base}/two")


@pytest.mark.parametrize("content", ["", "nonsense", "gitdir: /nowhere/at/all"])
def test_a_git_file_that_leads_nowhere_marks_a_root(base: str, content: str) -> None:
    """A broken .git file still marks the root of a project."""
    os.makedirs(f"{base}/x/sub")
    with open(f"{base}/x/.git", "w", encoding="utf-8") as file:
        file.write(content)
    assert project.project_root(f"{base}/x/sub") == f"{base}/x"


def test_the_same_basename_elsewhere_has_another_id(base: str) -> None:
    """Two directories of one name get ids that begin alike and differ."""
    os.makedirs(f"{base}/a/api")
    os.makedirs(f"{base}/b/api")
    one, two = project.project_id(f"{base}/a/api"), project.project_id(f"{base}/b/api")
    assert one != two
    assert one.startswith("api-")
    assert two.startswith("api-")


def test_a_symlink_has_the_id_of_its_target(base: str) -> None:
    """A project reached by a symlink is the same project."""
    os.mkdir(f"{base}/real")
    os.symlink(f"{base}/real", f"{base}/link")
    assert project.project_id(f"{base}/link") == project.project_id(f"{base}/real")


@pytest.mark.parametrize(
    "name", ["plain", ".hidden", "-dash", "with space", "ünï", "x" * 200, "..."]
)
def test_every_directory_has_a_usable_id(name: str) -> None:
    """Whatever a directory is called, its id can name a file."""
    project.check_project_id(project.id_of_root(f"/some/{name}"))
    project.check_project_id(project.id_of_root("/"))


def test_private_dir_makes_and_repairs(base: str) -> None:
    """A private directory is made for the owner alone, and one open to others is closed."""
    path = project.private_dir(f"{base}/made/here")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o700
    os.chmod(path, 0o755)
    assert project.private_dir(path) == path
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o700


def test_private_dir_refuses_a_symlink(base: str) -> None:
    """A symlink is refused, even one to a directory of this user."""
    os.mkdir(f"{base}/real", mode=0o700)
    os.symlink(f"{base}/real", f"{base}/link")
    with pytest.raises(PermissionError, match="not a directory of this user"):
        project.private_dir(f"{base}/link")


def test_private_dir_refuses_a_stranger(base: str) -> None:
    """A directory of somebody else is refused."""
    path = "/"
    if os.getuid() == 0:
        path = f"{base}/foreign"
        os.mkdir(path, mode=0o700)
        os.chown(path, 65534, -1)
    with pytest.raises(PermissionError, match="not a directory of this user"):
        project.private_dir(path)


def test_a_socket_path_may_have_107_bytes() -> None:
    """A socket path of exactly the limit is given, one byte more is refused with a remedy."""
    room = 107 - len("/p.sock")
    assert project.socket_path("p", "/" + "d" * (room - 1)).endswith("/p.sock")
    with pytest.raises(ValueError, match="set XDG_RUNTIME_DIR"):
        project.socket_path("p", "/" + "d" * room)
    with pytest.raises(ValueError, match="longer than 107 bytes"):
        project.socket_path("p", "/" + "ü" * (room // 2))


def test_directories_follow_xdg(monkeypatch: pytest.MonkeyPatch) -> None:
    """Absolute XDG directories are used, relative ones are not."""
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, "/x")
    assert project.data_dir("p") == "/x/memoryd/p"
    assert project.config_file() == "/x/memoryd/config.toml"
    assert project.runtime_dir() == "/x/memoryd"
    monkeypatch.setenv("HOME", "/home/u")
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, "relative")
    assert project.data_home() == "/home/u/.local/share/memoryd"
    assert project.runtime_dir() == f"/tmp/memoryd-{os.getuid()}"
