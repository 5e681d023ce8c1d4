"""Gemini CLI: payloads of its hooks. Pure.

They have Claude Code's common fields and an ISO ``timestamp``. AfterAgent repeats the prompt; it
is taken from BeforeAgent alone.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

from memoryd.domain.capture import build, claude_code, harness
from memoryd.domain.capture.build import Source, Used
from memoryd.domain.capture.render import Call, value_text
from memoryd.domain.capture.shape import Json, Received, number, required, text, time_ms
from memoryd.domain.event import Event, EventType

_SHELL: Final = re.compile(
    r"\A(?:Command: (?:(?!\nDirectory: ).)*\n)?Directory: [^\n]*\n(?:Stdout|Output): ", re.DOTALL
)
_FOOTER: Final = re.compile(
    r"(?:Exit Code|Signal|Background PIDs|Process Group PGID): [^\n]*"
    r"|(?:Stderr|Error): (?:\(none\)|\(empty\))"
)
_FOOTERS: Final = 6
_CODE: Final = "Exit Code: "


def from_hook(received: Received, event: str, payload: Json) -> list[Event]:
    """The events of a payload; none if it carries nothing to remember. Raises InvalidInput."""
    handler = _HANDLERS.get(event)
    if handler is None:
        return []
    source = claude_code.source_of(received, event, payload)
    at = time_ms(payload, "timestamp", received.time_ms)
    return handler(source._replace(time_ms=at), payload)


def _replied(source: Source, payload: Json) -> list[Event]:
    words = harness.strip_ours(text(payload, "prompt_response"))
    return build.said(source, EventType.ASSISTANT_MESSAGE, words) if words.strip() else []


def _tool_used(source: Source, payload: Json) -> list[Event]:
    response = payload.get("tool_response")
    error, output = "", response
    if isinstance(response, dict):
        failure = response.get("error")
        error = value_text(failure).strip()
        output = response.get("llmContent")
        if output in (None, "", []):
            output = response.get("returnDisplay")
    if isinstance(output, str):
        output, code = shell_output(output)
        error = error or code
    call = Call(required(payload, "tool_name"), payload.get("tool_input"), output, error)
    use = Used(text(payload, "tool_use_id"), number(payload, "duration_ms"), bool(error))
    return build.used(source, call, use)


def shell_output(said: str) -> tuple[str, str]:
    """What a command printed and how it failed, without the form that Gemini fills in."""
    head = _SHELL.match(said)
    if head is None:
        return said, ""
    body, code = said[head.end() :].rstrip(), ""
    for _ in range(_FOOTERS):
        rest, _newline, line = body.rpartition("\n")
        if not _FOOTER.fullmatch(line):
            break
        if line.startswith(_CODE):
            code = line.removeprefix(_CODE).strip()
        body = rest
    failed = code.lstrip("-").isdecimal() and code != "0"
    shown = "" if body.strip() in ("(empty)", "(none)") else body
    return shown, f"exit code {code}" if failed else ""


_HANDLERS: Final[Mapping[str, Callable[[Source, Json], list[Event]]]] = {
    "SessionStart": claude_code.session_started,
    "BeforeAgent": claude_code.prompt,
    "AfterAgent": _replied,
    "AfterTool": _tool_used,
    "Notification": claude_code.notified,
    "SessionEnd": claude_code.session_ended,
}
