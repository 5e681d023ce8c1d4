"""What a hook says to an agent: the context block, in the form that the agent takes it.

Loaded only when a session begins, or with a prompt where the user has asked for that, because it
needs gRPC. The payload is in the inbox by then. Whatever goes wrong here, there is no block.
"""

import json
import os
from typing import Any

from memoryd.client import ClientError, NotRunning, connect
from memoryd.config import ConfigError
from memoryd.domain.capture import harness
from memoryd.edges.hooks.main import PROMPTS, STARTS, Problem
from memoryd.spool import Envelope

SECONDS = 0.3  # for the daemon to answer
QUERY_LIMIT = 2_000
PROMPT_BYTES = 4 * 1024
PROMPT_SECTIONS = ("since", "hits")  # a prompt comes after a start, which has told the rest
_SESSIONS = ("session_id", "sessionId", "conversation_id")


def answer(envelope: Envelope, moment: str) -> str:
    """What to print so that the agent is given the block; "" if there is none."""
    try:
        fields = json.loads(envelope.payload)
    except (ValueError, RecursionError):
        return ""
    name = {"session": STARTS, "prompt": PROMPTS}[moment][envelope.agent]
    if not isinstance(fields, dict) or fields.get("hook_event_name", name) != name:
        return ""
    request = _request(envelope, fields, moment)
    if not request["session_id"]:
        return ""
    text = _asked(request, envelope)
    return _spoken(envelope.agent, name, text) if text else ""


def _request(envelope: Envelope, fields: dict[str, Any], moment: str) -> dict[str, Any]:
    """The question, with the fields of the contract."""
    names = reversed(_SESSIONS) if envelope.agent == "cursor" else _SESSIONS
    found = (fields[name] for name in names if isinstance(fields.get(name), str))
    request = {"session_id": next(found, ""), "agent": envelope.agent, "inject": True}
    if moment == "prompt":
        prompt = fields.get("prompt")
        said = harness.words(prompt).text if isinstance(prompt, str) else ""
        request |= {"query": said[:QUERY_LIMIT], "budget_bytes": PROMPT_BYTES}
        request |= {"sections": PROMPT_SECTIONS}
    return request


def _asked(request: dict[str, Any], envelope: Envelope) -> str:
    """The block that the daemon gives; "" if none runs. Raises Problem if it does not answer."""
    os.dup2(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC), 2)  # gRPC speaks up on stderr
    try:
        with connect(envelope.cwd or ".", timeout=SECONDS) as client:
            if client.settings.unified:
                request["project"] = envelope.project
            text: str = client.context(**request)["text"]
            return text
    except NotRunning:
        return ""
    except (ClientError, ConfigError) as error:
        raise Problem(f"no context block: {error}") from None


def _spoken(agent: str, event: str, text: str) -> str:
    said: dict[str, Any]
    if agent == "cursor":
        said = {"additional_context": text}
    elif agent == "copilot":
        said = {"additionalContext": text}
    else:
        said = {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}
    return json.dumps(said, ensure_ascii=False) + "\n"
