"""``memory service``: puts the daemon of a project under the user's systemd, and takes it off.

Owns the installed copies of the unit templates, and the note in a project's data directory
(``ROOT``) from which a unit that knows only the id finds the project. The templates are shared
by all projects, so the last uninstall removes them; a project's data is never touched.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from importlib import resources
from typing import Any, TypeVar

import click

from memoryd import config, project
from memoryd.edges.cli import output as out
from memoryd.edges.cli.examples import shared
from memoryd.edges.cli.output import Output, say

_TEMPLATES = ("memoryd@.service", "memoryd@.path")
_COMMAND_LIMIT_S = 90.0
_NOT_IN_A_PROGRAM = frozenset("\"'\\")

_HELP = """\b
Examples:
  memory service install
  memory service install --project ~/src/api --no-start
  memory service status
  memory service uninstall
"""
_F = TypeVar("_F", bound=Callable[..., Any])

_DIRECTORY_OPTION = click.option(
    "--project",
    "directory",
    type=click.Path(exists=True, file_okay=False),
    default=".",
    show_default="the current directory",
    metavar="DIR",
    help="A directory of the project.",
)


@dataclass(frozen=True, slots=True)
class _Instance:
    """One project, as systemd sees it."""

    project: str
    root: str

    @property
    def units(self) -> tuple[str, str]:
        """The path unit comes first: stopped second, it would start the service again."""
        return f"memoryd@{self.project}.path", f"memoryd@{self.project}.service"


def _told(command: _F) -> _F:
    """With --json, what was said becomes one line in the end, however the command ends."""

    @wraps(command)
    def run(output: Output, directory: str, **options: Any) -> None:
        try:
            command(directory, **options)
        finally:
            if output.json:
                output.line({"project": _instance(directory).project, "said": output.said})

    return run  # type: ignore[return-value]


@click.group(epilog=_HELP)
def service() -> None:
    """Run the daemon of a project as a systemd user service."""
    if sys.platform == "darwin":
        raise click.ClickException(
            "systemd is not on macOS: use launchd, with docs/memoryd.plist, which says how"
        )


@service.command()
@_DIRECTORY_OPTION
@click.option("--no-start", is_flag=True, help="Write the files; enable and start nothing.")
@out.common
@_told
def install(directory: str, *, no_start: bool) -> None:
    """Install, enable and start the service. Does no harm when done again."""
    instance = _instance(directory, to_run=True)
    program = _program()
    try:
        for name in _TEMPLATES:
            text = render(name, program, project.data_home(), _config_home())
            _write(os.path.join(_unit_dir(), name), text)
        data_dir = project.private_dir(project.data_dir(instance.project))
        project.private_dir(os.path.join(data_dir, "spool"))
        say(f"data directory is {data_dir}")
        if instance.root:
            _write(os.path.join(data_dir, config.ROOT_FILE), f"{instance.root}\n")
    except OSError as error:
        raise click.ClickException(str(error)) from None
    enable = ("enable", "--now", *instance.units)
    if no_start:
        say("nothing is enabled; to enable and start it, run:")
        say(_by_hand(("daemon-reload",), enable))
        return
    _all(("daemon-reload",), enable)
    say(f"enabled and started {' and '.join(instance.units)}")


@service.command()
@_DIRECTORY_OPTION
@out.common
@_told
def uninstall(directory: str) -> None:
    """Stop and disable the service. The project's data stays."""
    instance = _instance(directory)
    templates = [os.path.join(_unit_dir(), name) for name in _TEMPLATES]
    present = [path for path in templates if os.path.exists(path)]
    if not present and not enabled() & set(instance.units):
        say("not installed: nothing to do")
        return
    _all(("disable", "--now", *instance.units))
    say(f"stopped and disabled {' and '.join(instance.units)}")
    others = sorted(enabled() - set(instance.units))
    if others:
        say(f"the templates stay, for {', '.join(others)}")
        return
    for path in present:
        os.unlink(path)
        say(f"removed {path}")
    _all(("daemon-reload",))
    say(f"the data stays in {project.data_dir(instance.project)}")


@service.command()
@_DIRECTORY_OPTION
@out.common
@_told
def status(directory: str) -> None:
    """Show what systemd says about the service; its exit code is systemctl's."""
    instance = _instance(directory)
    if not os.path.exists(os.path.join(_unit_dir(), _TEMPLATES[0])):
        say("not installed: run `memory service install`")
        sys.exit(1)
    if not enabled() & set(instance.units):
        say(f"not installed for project {instance.project}: run `memory service install` there")
        sys.exit(1)
    done = systemctl("status", "--no-pager", "--lines=0", *instance.units)
    say(done.stdout.rstrip("\n"))
    click.echo(done.stderr, nl=False, err=True)
    sys.exit(done.returncode)


def render(name: str, program: str, data_home: str, _config_home: str) -> str:
    """Fill in a template: the daemon's path, and the directories that it works in.

    Raises ClickException if a path cannot stand in a unit file.
    """
    lines = [
        _filled(line, program, data_home, _config_home) for line in _template(name).splitlines()
    ]
    return "\n".join(lines) + "\n"


def _filled(line: str, program: str, data_home: str, _config_home: str) -> str:
    key, _, value = line.partition("=")
    match key, value.partition("=")[0]:
        case "ExecStart", _:
            return f"{key}={_quoted(program)} {value.partition(' ')[2]}"
        case "Environment", "XDG_DATA_HOME":
            return f"{key}={_quoted('XDG_DATA_HOME=' + os.path.dirname(data_home))}"
        case "Environment", "XDG_CONFIG_HOME":
            return f"{key}={_quoted('XDG_CONFIG_HOME=' + _config_home)}"
        case "ReadWritePaths", _:
            return f"{key}={_quoted(data_home)}"
        case "DirectoryNotEmpty", _:
            # The rest of this line is one path: systemd takes quotes here for part of it.
            return f"{key}={_specifiers(data_home)}/%i/spool"
    return line


def _specifiers(path: str) -> str:
    if not path.isprintable():
        raise click.ClickException(f"{path!r} cannot stand in a unit file: use another path")
    return path.replace("%", "%%")


def _quoted(word: str) -> str:
    escaped = _specifiers(word).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _template(name: str) -> str:
    packaged = resources.files("memoryd").joinpath("systemd", name)
    if packaged.is_file():
        return packaged.read_text(encoding="utf-8")
    checkout = os.path.dirname(os.path.dirname(str(resources.files("memoryd"))))
    try:
        with open(os.path.join(checkout, "systemd", name), encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        raise click.ClickException(
            f"the template {name} is missing: install memoryd again"
        ) from None


def _instance(directory: str, *, to_run: bool = False) -> _Instance:
    """Find the project of a directory; ``to_run`` refuses what the unit would not honour."""
    try:
        settings, values = config.load(directory)
    except config.ConfigError as error:
        raise click.ClickException(str(error)) from None
    fixed = {"data_dir": project.data_dir(settings.project), "runtime_dir": project.runtime_dir()}
    for value in values:
        if to_run and value.value != fixed.get(value.key, value.value):
            raise click.ClickException(
                f"{value.key} is set to {value.value} ({value.source}), where the service may not "
                f"write: it uses {fixed[value.key]}"
            )
    root = "" if settings.unified else project.project_root(directory)
    return _Instance(settings.project, root)


def _program() -> str:
    """Find the daemon: beside this Python, as in a virtual environment, or on PATH."""
    beside = os.path.join(os.path.dirname(os.path.abspath(sys.executable)), "memoryd")
    found = beside if os.access(beside, os.X_OK) else shutil.which("memoryd")
    if not found:
        raise click.ClickException(
            f"the program memoryd is neither {beside} nor on PATH: install memoryd again"
        )
    if set(found) & _NOT_IN_A_PROGRAM:
        raise click.ClickException(
            f"systemd starts no program with a quote or a backslash in its path: {found}"
        )
    return os.path.abspath(found)


def _config_home() -> str:
    return os.path.dirname(os.path.dirname(project.config_file()))


def _unit_dir() -> str:
    return os.path.join(_config_home(), "systemd", "user")


def enabled() -> set[str]:
    """Name the units of all projects that start with the session."""
    try:
        names = os.listdir(os.path.join(_unit_dir(), "default.target.wants"))
    except FileNotFoundError:
        return set()
    return {name for name in names if name.startswith("memoryd@")}


def _write(path: str, text: str) -> None:
    """Replace a file in one step, unless it is right already; say which."""
    content = os.fsencode(text)
    try:
        with open(path, "rb") as file:
            if file.read() == content:
                say(f"already right: {path}")
                return
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
    part = f"{path}.{os.getpid()}.tmp"
    with open(part, "wb") as file:
        file.write(content)
    os.replace(part, path)
    say(f"wrote {path}")


def systemctl(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run systemctl for the user's manager; not to be there is a failure like others."""
    command = ["systemctl", "--user", *arguments]
    try:
        return subprocess.run(  # noqa: S603 - no shell
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            text=True,
            timeout=_COMMAND_LIMIT_S,
        )
    except FileNotFoundError:
        problem = "systemctl is missing"
    except subprocess.TimeoutExpired:
        problem = f"no answer for {_COMMAND_LIMIT_S:.0f} seconds"
    return subprocess.CompletedProcess(command, 1, "", f"{problem}\n")


def _all(*commands: tuple[str, ...]) -> None:
    """Run systemctl for each; at the first failure say what is left to do by hand."""
    for index, command in enumerate(commands):
        done = systemctl(*command)
        if done.returncode:
            said = (done.stderr or done.stdout).strip() or f"exit code {done.returncode}"
            raise click.ClickException(
                f"systemctl --user {' '.join(command)} failed: {said}\n"
                f"To go on by hand, run:\n{_by_hand(*commands[index:])}"
            )


def _by_hand(*commands: tuple[str, ...]) -> str:
    return "\n".join(f"  systemctl --user {' '.join(command)}" for command in commands)


shared(service)
