"""`memory install` and `memory uninstall`: the hooks of agents, shown before they are written."""

import os
import sys
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

import click

from memoryd.edges.cli import output as out
from memoryd.edges.cli.output import Output, say, visible
from memoryd.edges.install import files, plan, probe
from memoryd.edges.install.agents import AGENTS, Agent
from memoryd.edges.install.errors import Refused
from memoryd.edges.install.files import Change

_F = TypeVar("_F", bound=Callable[..., Any])
_MODES: Final = {"user": 0o600, "project": 0o644}
_OTHER: Final = {"user": "project", "project": "user"}


def _options(command: _F) -> _F:
    for option in (
        click.option("--yes", "-y", is_flag=True, help="Do not ask."),
        click.option("--dry-run", is_flag=True, help="Show the difference; write nothing."),
        click.option(
            "--project", "scope", flag_value="project", help="In the settings of this work tree."
        ),
        click.option(
            "--user",
            "scope",
            flag_value="user",
            default="user",
            help="In your own settings, for every project.  [default]",
        ),
        click.argument("agents", nargs=-1, type=click.Choice(list(AGENTS)), metavar="[AGENT]..."),
    ):
        command = option(command)
    return command


@click.command(
    epilog=f"\b\nAgents:\n  {', '.join(AGENTS)}\n\n\b\nExamples:\n  memory install\n"
    "  memory install claude-code\n  memory install codex --project --dry-run"
)
@_options
@out.common
def install(
    output: Output, agents: tuple[str, ...], scope: str, *, dry_run: bool, yes: bool
) -> None:
    """Have agents tell memoryd what happens. Without AGENT: find those on this machine.

    Shows what changes in an agent's settings, keeps a copy of them, writes, and sends a test
    payload through the installed command. Does no harm when done again.
    """
    root = plan.work_tree(output.start_dir)
    names = agents or _offered(
        "install", scope, (a for a in AGENTS.values() if plan.is_here(a)), yes=yes, dry_run=dry_run
    )
    _each(
        output, names, lambda agent: _install(output, agent, scope, root, dry_run=dry_run, yes=yes)
    )


@click.command(
    epilog=f"\b\nAgents:\n  {', '.join(AGENTS)}\n\n\b\nExamples:\n"
    "  memory uninstall codex\n  memory uninstall claude-code --project"
)
@_options
@out.common
def uninstall(
    output: Output, agents: tuple[str, ...], scope: str, *, dry_run: bool, yes: bool
) -> None:
    """Take our entries out of agents' settings, and nothing else. What was captured stays."""
    root = plan.work_tree(output.start_dir)
    there = (a for a in AGENTS.values() if plan.installed(a, a.path(scope, root)))
    names = agents or _offered("uninstall", scope, there, yes=yes, dry_run=dry_run)
    _each(output, names, lambda agent: _uninstall(agent, scope, root, dry_run=dry_run, yes=yes))


def _offered(
    what: str, scope: str, agents: Iterable[Agent], *, yes: bool, dry_run: bool
) -> list[str]:
    """Those that the user wants, asked one by one; in a pipe, how to get them."""
    found = list(agents)
    if not found:
        where = "is on this machine" if what == "install" else f"has our hooks ({scope})"
        say(f"none of {', '.join(AGENTS)} {where}")
        return []
    if yes or dry_run:
        return [agent.name for agent in found]
    flag = " --project" if scope == "project" else ""
    if not sys.stdin.isatty() or not sys.stdout.isatty():
        for agent in found:
            say(f"{agent.title}: memory {what} {agent.name}{flag}")
        say(f"all of them: memory {what}{flag} --yes")
        return []
    return [a.name for a in found if click.confirm(f"{what} for {a.title}?", default=True)]


def _each(output: Output, names: Iterable[str], run: Callable[[Agent], None]) -> None:
    """One agent that is refused does not keep the others from their turn."""
    failed = False
    for name in dict.fromkeys(names):
        refused = ""
        try:
            run(AGENTS[name])
        except Refused as error:
            failed, refused = True, str(error)
            click.echo(visible(f"memory: {AGENTS[name].title}: {error}"), err=True)
        if output.json:
            output.line({"agent": name, "refused": refused, "said": output.said})
            output.said = []
    if output.said:
        output.line({"agent": "", "refused": "", "said": output.said})
    if failed:
        sys.exit(1)


def _install(
    output: Output, agent: Agent, scope: str, root: str, *, dry_run: bool, yes: bool
) -> None:
    path = agent.path(scope, root)
    change = plan.installing(agent, path, plan.program())
    if change.nothing:
        say(f"{agent.title}: already installed in {path}")
        return
    text = files.text_of(path, change.after)
    _refuse_twice(agent, scope, root, text)
    if not _written(agent, change, scope, dry_run=dry_run, yes=yes):
        return
    for line in plan.warnings(agent, path, text):
        say(f"note: {line}")
    if scope == "project":
        say(f"note: {path} names a program of this machine: think before you commit it")
    _verify(agent, text, output.start_dir)


def _refuse_twice(agent: Agent, scope: str, root: str, text: str) -> None:
    """An agent runs the hooks of all its settings, so one more place would mean every event twice."""
    if plan.plugin_enabled(agent, text):
        raise Refused("its plugin memoryd is enabled and captures already; nothing was changed")
    other = agent.path(_OTHER[scope], root)
    if other != agent.path(scope, root) and plan.installed(agent, other):
        flag = " --project" if scope == "user" else ""
        raise Refused(
            f"{other} has our hooks already, and every event would come twice: "
            f"run `memory uninstall {agent.name}{flag}` first"
        )


def _uninstall(agent: Agent, scope: str, root: str, *, dry_run: bool, yes: bool) -> None:
    path = agent.path(scope, root)
    change = plan.uninstalling(agent, path)
    if change.nothing:
        say(f"{agent.title}: nothing of ours in {path}")
        return
    _written(agent, change, scope, dry_run=dry_run, yes=yes)


def _written(agent: Agent, change: Change, scope: str, *, dry_run: bool, yes: bool) -> bool:
    """Show a change and write it, unless it is only to be shown or the user says no."""
    say(change.diff())
    if dry_run:
        say(f"{agent.title}: nothing was written")
        return False
    # in a pipe nobody can be asked, and naming the agent says enough
    ask = not yes and sys.stdin.isatty() and sys.stdout.isatty()
    if ask and not click.confirm(f"write {change.path}?", default=True):
        say(f"{agent.title}: nothing was written")
        return False
    keep = plan.worth_keeping(agent, change)
    backup = files.apply(change, new_mode=_MODES[scope], keep=keep)
    if change.after is None:
        files.prune(os.path.dirname(change.path), agent.levels(scope))
    say(f"{'wrote' if change.after is not None else 'removed'} {change.path}")
    if backup:
        say(f"the file as it was is kept in {backup}")
    return True


def _verify(agent: Agent, text: str, start_dir: str) -> None:
    session = probe.send(agent, text, start_dir)
    if probe.arrived(session, start_dir) == "log":
        say(f"{agent.title}: installed; a test payload ({session}) has reached the log")
        return
    say(f"{agent.title}: installed; a test payload ({session}) waits in the spool, because the")
    say("daemon of this project is not running: start it with `memoryd serve`")
