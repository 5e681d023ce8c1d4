"""memory-hook: takes one payload from an agent, leaves it for the daemon, and is gone.

Always ends with 0, prints only what the agent expects, waits for nobody and starts nothing. On
the usual way it imports nothing but what a bare interpreter has loaded and a few small modules
of memoryd; what is rarely needed is in `slow`, `direct` and `trouble`, imported when needed.
"""

import _signal
import os
import sys
import time

from memoryd import spool
from memoryd.domain.gate import suspicious

# what an agent wants to read on stdout when a hook has nothing to say
ANSWERS = {
    "claude-code": b"",
    "codex": b"",
    "gemini": b"{}\n",
    "copilot": b"{}\n",
    "cursor": b"{}\n",
    "opencode": b"",
}
USAGE = (
    "usage: memory-hook --agent " + "|".join(ANSWERS) + " [EVENT] [JSON]\n\n"
    "Run by a coding agent. Reads one payload from stdin, or takes it as the last argument, and\n"
    "leaves it for the daemon of the working directory's project. MEMORYD_HOOK=off turns it off.\n"
)
READ_LIMIT = 64 * 1024 * 1024
# events at which an agent takes a context block: when a session begins, and with a prompt
STARTS = {
    "claude-code": "SessionStart",
    "codex": "SessionStart",
    "gemini": "SessionStart",
    "copilot": "sessionStart",
    "cursor": "sessionStart",
}
# the daemon looks for the replies when it drains these
SPOOLED = {("copilot", "agentStop"), ("copilot", "sessionEnd")}
PROMPTS = {
    "claude-code": "UserPromptSubmit",
    "codex": "UserPromptSubmit",
    "gemini": "BeforeAgent",
}

_ALARM_SECONDS = 10
_CHUNK = 1024 * 1024
_HEAD = 8 * 1024  # bytes in which a payload names its event
_BLOCK_SECONDS = 1.0  # for gRPC to load and the daemon to answer, together


class Problem(Exception):
    """The payload cannot be taken; says why, without a word of it."""


def main() -> None:
    """Run, and end the process with 0 whatever happens."""
    began_ns = time.time_ns()
    words = ["", "", ""]  # agent, event, and what is still to be printed
    try:
        os.umask(0o077)
        _signal.signal(_signal.SIGINT, _signal.SIG_IGN)  # meant for the agent; this ends at once
        _signal.signal(_signal.SIGALRM, lambda _number, _frame: _give_up(words))
        _signal.alarm(_ALARM_SECONDS)
        _run(sys.argv[1:], began_ns, words)
    except BaseException as error:  # noqa: BLE001 - an agent must never see this fail
        _note(words, error)
    _answer(words)
    os._exit(0)  # nothing is buffered, and taking the interpreter down costs as much as the rest


def _run(arguments: list[str], began_ns: int, words: list[str]) -> None:
    """``words`` receives agent and event, for the log, and the answer until it is printed."""
    if not arguments or arguments[0] in {"-h", "--help"}:
        os.write(1, USAGE.encode())
        return
    agent, event, payload = _parse(arguments)
    words[:2] = agent, event
    if agent not in ANSWERS:
        raise Problem(f"agent {agent[:40]!r} is not known: take one of {', '.join(ANSWERS)}")
    words[2] = ANSWERS[agent].decode()
    if agent not in STARTS:
        _answer(words)
    if payload is None:
        if os.isatty(0):  # a person is trying it out
            os.write(2, USAGE.encode())
            return
        payload = _stdin()
    moment = _moment(agent, event, payload)
    if not moment:
        _answer(words)
    if os.environ.get("MEMORYD_HOOK", "").lower() in {"off", "0", "no", "false"}:
        return
    if not payload.strip():
        raise Problem("the payload is empty")
    _signal.alarm(_ALARM_SECONDS + len(payload) // _CHUNK)  # what is long takes longer
    _keep(agent, event, payload, began_ns, words, moment)


def _parse(arguments: list[str]) -> tuple[str, str, bytes | None]:
    """Agent, event, and the payload if it is an argument."""
    agent, event, payload = "", "", None
    rest = iter(arguments)
    for argument in rest:
        if argument == "--agent":
            agent = next(rest, "")
        elif argument.startswith("--agent="):
            agent = argument[len("--agent=") :]
        elif argument.lstrip()[:1] == "{":
            payload = os.fsencode(argument)
        elif argument[:1] != "-":
            event = argument
    return agent, event, payload


def _moment(agent: str, event: str, payload: bytes) -> str:
    """Whether a payload seems to be a "session" that begins or a "prompt"; "" if neither."""
    head = payload[:_HEAD]
    for moment, names in (("session", STARTS), ("prompt", PROMPTS)):
        name = names.get(agent)
        if name and (event == name or (not event and b'"%s"' % name.encode() in head)):
            return moment
    return ""


def _answer(words: list[str]) -> None:
    """Print what is to be printed, once, as soon as nothing that comes after can change it."""
    answer, words[2] = words[2].encode(), ""
    try:
        while answer:
            answer = answer[os.write(1, answer) :]
    except OSError as error:
        _note(words, error)


def _stdin() -> bytes:
    """All of stdin. Raises Problem if it is closed or beyond all measure."""
    if sys.stdin is None:
        raise Problem("stdin is closed")
    chunks, size = [], 0
    while chunk := os.read(0, _CHUNK):
        size += len(chunk)
        if size <= READ_LIMIT:
            chunks.append(chunk)
        else:
            chunks.clear()  # read on: an agent may not like a pipe that breaks
    if size > READ_LIMIT:
        raise Problem(f"the payload has {size} bytes, over the limit of {READ_LIMIT}")
    return b"".join(chunks)


def _keep(
    agent: str, event: str, payload: bytes, began_ns: int, words: list[str], moment: str
) -> None:
    from memoryd.edges.hooks import place

    where = place.find(agent)
    if moment != "session" and where.inject != "prompt":
        moment = ""
        _answer(words)
    for problem in where.problems:
        _note(words, Problem(problem))
    payload = _fit(payload, where.rules)
    envelope = spool.Envelope(
        payload,
        agent=agent,
        event=event,
        time_ms=began_ns // 1_000_000,
        cwd=where.cwd,
        project=where.project,
        chosen=where.chosen,
    )
    name = spool.file_name(began_ns, os.getpid())
    direct_call = where.transport == "rpc" and (agent, event) not in SPOOLED
    if direct_call:
        from memoryd.edges.hooks import direct

        problem = direct.send(envelope, name, where.cwd)
        if problem:
            _note(words, Problem(problem))
    if not direct_call or problem:
        _spool(where.data_dir, name, spool.encode(envelope))
    if moment and where.inject != "off":
        _inject(envelope, moment, words)


def _inject(envelope: spool.Envelope, moment: str, words: list[str]) -> None:
    """Ask the daemon for a context block and have it printed; without one, what is usual."""
    from memoryd.edges.hooks import inject

    _signal.signal(_signal.SIGALRM, lambda _number, _frame: _late(words))
    _signal.setitimer(_signal.ITIMER_REAL, _BLOCK_SECONDS)
    answer = inject.answer(envelope, moment)
    _signal.signal(_signal.SIGALRM, lambda _number, _frame: _give_up(words))
    _signal.alarm(_ALARM_SECONDS)
    words[2] = answer or words[2]


def _fit(payload: bytes, rules: str) -> bytes:
    """The payload as it may be written: without secrets, and not too long."""
    try:
        if rules or suspicious(payload):  # the gate does not know the user's own rules
            from memoryd.edges.hooks import slow

            payload = slow.redacted(payload, rules)
        if len(payload) > spool.PAYLOAD_LIMIT:
            from memoryd.edges.hooks import slow

            payload = slow.shortened(payload, spool.PAYLOAD_LIMIT)
    except ValueError as error:
        raise Problem(str(error)) from None
    return payload


def _spool(data_dir: str, name: str, data: bytes) -> None:
    directory = spool.inbox(data_dir)
    try:
        spool.put(directory, name, data)
    except FileNotFoundError:
        from memoryd.project import private_dir

        private_dir(data_dir)
        private_dir(directory)
        spool.put(directory, name, data)


def _late(words: list[str]) -> None:
    _note(words, Problem(f"no context block: it was not there within {_BLOCK_SECONDS:.0f} s"))
    _answer(words)
    os._exit(0)


def _give_up(words: list[str]) -> None:
    _note(words, Problem("given up: stdin or the disk does not answer, or the machine is too busy"))
    _answer(words)
    os._exit(0)


def _note(words: list[str], error: BaseException) -> None:
    """Write a problem down, if there is any place for it."""
    try:
        from memoryd.edges.hooks import trouble

        trouble.note(words[0], words[1], error)
    except BaseException:  # noqa: BLE001 - then nobody can be told
        return
