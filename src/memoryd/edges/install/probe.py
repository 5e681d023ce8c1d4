"""Sends one harmless payload through the installed command, as the agent would, and looks for it.

Owns the payload: the start of a session whose id says what it is. It reads the log by the client,
and, if no daemon runs, only whether the payload waits in the spool.
"""

import json
import os
import secrets
import subprocess
import time
from typing import Any, Final

from memoryd import client, project, spool
from memoryd.edges.hooks import place
from memoryd.edges.install import merge, opencode
from memoryd.edges.install.agents import Agent
from memoryd.edges.install.errors import Refused

PREFIX: Final = "memoryd-install-probe-"
_COMMAND_LIMIT_S: Final = 20.0
_LOG_LIMIT_S: Final = 10.0
_PAUSE_S: Final = 0.1
_START: Final = frozenset(("SessionStart", "sessionStart"))


def send(
    agent: Agent, text: str, start_dir: str, *, prefix: str = PREFIX, transport: str = ""
) -> str:
    """Run the command that a settings text holds for the start of a session, with a payload.

    Returns the session's id, which begins with ``prefix``. Raises Refused if there is none, or it
    fails.
    """
    session = prefix + secrets.token_hex(8)
    payload = json.dumps(_payload(agent.name, session, os.path.realpath(start_dir)))
    command = _command(agent, text)
    try:
        done = subprocess.run(  # noqa: S603 - the command is the one just installed
            command,
            input=payload.encode(),
            capture_output=True,
            check=False,
            cwd=start_dir,
            env=_environment(transport),
            timeout=_COMMAND_LIMIT_S,
        )
    except OSError as error:
        raise Refused(f"{command[0]} cannot be run: {error.strerror}") from error
    except subprocess.TimeoutExpired:
        msg = f"{' '.join(command)} did not end within {_COMMAND_LIMIT_S:.0f} seconds"
        raise Refused(msg) from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()
        raise Refused(f"{' '.join(command)} ended with {done.returncode}: {said[:500]}")
    return session


def arrived(session: str, start_dir: str) -> str:
    """Where the payload is: "log" or "spool". Raises Refused if it is nowhere."""
    settings, _ = client.load(start_dir)
    try:
        with client.connect(start_dir) as daemon:
            deadline = time.monotonic() + _LOG_LIMIT_S
            while time.monotonic() < deadline:
                if list(daemon.events(client.Filter(session_id=session), limit=1)):
                    return "log"
                time.sleep(_PAUSE_S)
    except client.NotRunning:
        pass
    else:
        msg = f"the payload of the test did not reach the log within {_LOG_LIMIT_S:.0f} seconds"
        raise Refused(f"{msg}: see `memory status`")
    inbox = spool.inbox(settings.data_dir)
    if waits(inbox, session):
        return "spool"
    msg = f"the payload of the test is not in the spool {inbox}"
    raise Refused(f"{msg}: {project.data_home()}/hook.log may say why")


def _environment(transport: str) -> dict[str, str]:
    """Where no agent looks, and none says in which project it works."""
    said = frozenset(place.SAID_BY.values())
    kept = {name: value for name, value in os.environ.items() if name not in said}
    chosen = {"MEMORYD_HOOK_TRANSPORT": transport} if transport else {}
    return kept | chosen | {"MEMORYD_HOOK_INJECT": "off"}


def waits(inbox: str, session: str) -> str:
    """The name of the file in the spool that holds a session's payload; "" if there is none."""
    for name in reversed(spool.waiting(inbox)):
        try:
            with open(f"{inbox}/{name}", "rb") as file:
                if session.encode() in file.read():
                    return name
        except OSError:
            continue
    return ""


def _command(agent: Agent, text: str) -> list[str]:
    """What the agent runs when a session starts: without a shell, or by the shell it uses."""
    if agent.entry is None:
        return [opencode.program_in(text), "--agent", agent.name, "session.start"]
    for hook in merge.hooks_in(text):
        if hook.event not in _START:
            continue
        for handler in merge.handlers(hook.entry):
            if "args" in handler:
                return merge.command_line(handler)
            shell = "bash" if "bash" in handler else "/bin/sh"
            return [shell, "-c", str(handler.get("command", handler.get("bash")))]
    raise Refused(f"no hook for the start of a session is installed for {agent.title}")


def _payload(agent: str, session: str, cwd: str) -> dict[str, Any]:
    now_ms = time.time_ns() // 1_000_000
    match agent:
        case "copilot":
            return {"sessionId": session, "timestamp": now_ms, "cwd": cwd, "source": "new"}
        case "cursor":
            return {
                "conversation_id": session,
                "generation_id": "",
                "hook_event_name": "sessionStart",
                "workspace_roots": [cwd],
                "session_id": session,
            }
        case "opencode":
            return {
                "event": "session.start",
                "sessionID": session,
                "directory": cwd,
                "time": now_ms,
            }
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(now_ms / 1000))
    common = {"session_id": session, "cwd": cwd, "hook_event_name": "SessionStart"}
    return common | {"source": "startup", "timestamp": stamp}
