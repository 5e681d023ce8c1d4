"""Checks of the hooks: whether each agent that is here is captured, by sending a probe through.

A probe is the start of a session whose id says what it is. The daemon tells that it came and
writes it nowhere; without a daemon it is taken out of the spool again.
"""

import os
import time
from contextlib import suppress
from typing import Final

from memoryd import client, spool
from memoryd.config import Settings
from memoryd.edges.doctor.finding import Finding, note, ok, problem
from memoryd.edges.install import files, jsonc, plan, probe
from memoryd.edges.install.agents import AGENTS, Agent
from memoryd.edges.install.errors import Refused

_ARRIVAL_S: Final = 10.0
_PAUSE_S: Final = 0.05


def hooks(settings: Settings, start_dir: str, *, running: bool) -> list[Finding]:
    """Every agent that is on this machine or has our hooks."""
    root = plan.work_tree(start_dir)
    found = []
    for agent in AGENTS.values():
        paths = list(dict.fromkeys(agent.path(scope, root) for scope in ("user", "project")))
        ours = [path for path in paths if plan.installed(agent, path)]
        if ours or plan.is_here(agent):
            found += _agent(settings, agent, paths, ours, start_dir, running=running)
    return found or [
        note("hooks", "no agent is on this machine", "`memory install` looks for them")
    ]


def _agent(
    settings: Settings,
    agent: Agent,
    paths: list[str],
    ours: list[str],
    start_dir: str,
    *,
    running: bool,
) -> list[Finding]:
    check = f"hooks of {agent.name}"
    if not ours:
        return [_absent(agent, check, paths)]
    if len(ours) > 1:
        how = f"`memory uninstall {agent.name} --project`"
        return [problem(check, f"{' and '.join(ours)} both have them: all comes twice", how)]
    path = ours[0]
    flag = " --project" if path != paths[0] else ""
    again = f"`memory install {agent.name}{flag}`"
    try:
        text = files.text_of(path, files.read(path))
        found = [
            problem(check, said, "turn them on again")
            for said in plan.warnings(agent, path, text)
            if said != agent.note
        ]
        session = probe.send(agent, text, start_dir, prefix=spool.PROBE, transport="spool")
        arrived = _arrived(settings, session, running=running)
        if _stale(agent, path, text):
            found.append(note(check, f"{path} lacks hooks of this version", again))
    except (Refused, jsonc.Broken) as error:
        return [problem(check, f"{path}: {error}", again)]
    if not arrived:
        how = f"see hook.log above; {again} writes them anew"
        found.append(problem(check, "the probe did not arrive", how))
    return found or [ok(check, f"a probe through {path} reached {arrived}")]


def _absent(agent: Agent, check: str, paths: list[str]) -> Finding:
    """What to say of an agent without our hooks."""
    for path in paths:
        try:
            text = files.text_of(path, files.read(path))
            if agent.entry is not None:
                plan.commands_in(text)
            if plan.plugin_enabled(agent, text):
                return ok(check, f"the plugin captures ({path})")
        except (Refused, jsonc.Broken) as error:
            return problem(check, f"{path} cannot be read: {error}", f"repair {path}")
    return note(check, f"{agent.title} is here and not captured", f"`memory install {agent.name}`")


def _stale(agent: Agent, path: str, text: str) -> bool:
    """Whether installing again would change the file."""
    lines = plan.commands_in(text) if agent.entry is not None else []
    return bool(lines) and not plan.installing(agent, path, lines[0][0]).nothing


def _arrived(settings: Settings, session: str, *, running: bool) -> str:
    """How far a probe came: to the daemon or to the spool; "" if it is nowhere."""
    if running:
        deadline = time.monotonic() + _ARRIVAL_S
        with suppress(client.ClientError), client.Client(settings) as daemon:
            while time.monotonic() < deadline:
                if session in daemon.status()["probes"]:
                    return "the daemon"
                time.sleep(_PAUSE_S)
        return ""
    directory = spool.inbox(settings.data_dir)
    name = probe.waits(directory, session)
    if name:
        with suppress(OSError):
            os.unlink(f"{directory}/{name}")
    return "the spool" if name else ""
