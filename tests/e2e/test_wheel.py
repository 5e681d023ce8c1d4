import glob
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from memoryd import __version__

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SOURCES = (
    "src",
    "systemd",
    "plugin",
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "requirements.lock",
)
UNREACHABLE = ("No matching distribution", "Max retries", "Could not fetch", "ConnectionError")


def run(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a program outside of the repository, so that only what is installed can be found."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MEMORY", "PYTHON"))}
    return subprocess.run(
        command, capture_output=True, check=False, cwd=cwd, env=env, text=True, timeout=240
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The wheel, built from a copy, so that a build leaves nothing in the repository."""
    base = tmp_path_factory.mktemp("wheel")
    for name in SOURCES:
        path = f"{ROOT}/{name}"
        if os.path.isdir(path):
            ignore = shutil.ignore_patterns("__pycache__")
            shutil.copytree(path, base / "source" / name, ignore=ignore)
        else:
            shutil.copy(path, base / "source" / name)
    built = run(
        sys.executable,
        *("-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet"),
        *("--disable-pip-version-check", "--wheel-dir", str(base), str(base / "source")),
        cwd=base,
    )
    assert built.returncode == 0, built.stderr
    (path,) = glob.glob(f"{base}/memoryd-*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` of a new environment with the locked dependencies and the wheel in it."""
    base = tmp_path_factory.mktemp("venv")
    venv.create(base / "env", with_pip=True)
    python = str(base / "env/bin/python")
    pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    locked = run(*pip, "--require-hashes", "-r", f"{ROOT}/requirements.lock", cwd=base)
    if locked.returncode and any(sign in locked.stderr for sign in UNREACHABLE):
        pytest.skip("pip cannot reach a package index")
    assert locked.returncode == 0, locked.stderr
    done = run(*pip, "--no-deps", wheel, cwd=base)
    assert done.returncode == 0, done.stderr
    return base / "env/bin"


def test_wheel_holds_the_unit_templates(wheel: str) -> None:
    """The wheel carries the unit templates, byte for byte, for `memory service install`."""
    with zipfile.ZipFile(wheel) as archive:
        for name in ("memoryd@.service", "memoryd@.path"):
            with open(f"{ROOT}/systemd/{name}", "rb") as file:
                assert archive.read(f"memoryd/systemd/{name}") == file.read()


def test_wheel_holds_the_plugins(wheel: str) -> None:
    """The wheel carries every plugin file, byte for byte, hidden ones too."""
    names = [
        os.path.relpath(os.path.join(directory, name), ROOT)
        for directory, _, found in os.walk(f"{ROOT}/plugin")
        for name in found
    ]
    assert "plugin/.claude-plugin/plugin.json" in names
    with zipfile.ZipFile(wheel) as archive:
        for name in names:
            with open(f"{ROOT}/{name}", "rb") as file:
                assert archive.read(f"memoryd/{name}") == file.read()


def test_wheel_is_typed(wheel: str) -> None:
    """The wheel tells type checkers that it has types."""
    with zipfile.ZipFile(wheel) as archive:
        assert "memoryd/py.typed" in archive.namelist()


def test_daemon_starts_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    """`memoryd --version` of an empty environment names the version."""
    done = run(str(installed / "memoryd"), "--version", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"memoryd {__version__}\n"), done.stderr


def test_client_starts_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    """`memory --help` of an empty environment lists its commands."""
    done = run(str(installed / "memory"), "--help", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "ingest" in done.stdout


def test_hook_works_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    """`memory-hook` of an empty environment leaves a payload in the inbox of its project."""
    env = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data")}
    done = subprocess.run(
        [str(installed / "memory-hook"), "--agent", "cursor"],
        input=b'{"conversation_id": "c"}',
        capture_output=True,
        check=True,
        cwd=tmp_path,
        env=env,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == (b"{}\n", b"")
    assert len(list(tmp_path.glob("data/memoryd/*/spool/0*"))) == 1


def test_hook_is_no_generated_wrapper(wheel: str) -> None:
    """The command is the wheel's own script, which installers leave as it is but for its first line."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".data/scripts/memory-hook"))
        assert archive.read(name).startswith(b"#!python\n")


def test_dependencies_are_complete(installed: Path, tmp_path: Path) -> None:
    """The lock file holds all that the wheel says it needs."""
    done = run(str(installed / "python"), "-m", "pip", "check", cwd=tmp_path)
    assert done.returncode == 0, done.stdout


def test_installed_client_finds_the_templates(installed: Path, tmp_path: Path) -> None:
    """The installed package renders both units without the repository beside it."""
    script = (
        "from memoryd.edges.cli.service import render\n"
        "for name in ('memoryd@.service', 'memoryd@.path'):\n"
        "    print(render(name, '/opt/bin/memoryd', '/data/memoryd', '/config'))\n"
    )
    done = run(str(installed / "python"), "-c", script, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "/opt/bin/memoryd" in done.stdout
    assert "/data/memoryd/%i/spool" in done.stdout
