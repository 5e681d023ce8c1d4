import json
import os
import time
from typing import Any

import pytest

from memoryd.domain.context import BEGIN, END
from memoryd.pb import memory_pb2 as pb
from memoryd.pb import note_pb2, note_pb2_grpc
from tests.e2e.test_hook import Done, environment, hook, log_text, spooled, until
from tests.faults.driver import Daemon, House, read_all

EMPTY = {"claude-code": b"", "codex": b"", "gemini": b"{}\n", "copilot": b"{}\n", "cursor": b"{}\n"}
TRIES = 20  # on a busy machine a block may be late


def start(agent: str, session: str) -> bytes:
    """The payload with which a session of an agent begins."""
    fields: dict[str, Any] = {"session_id": session, "hook_event_name": "SessionStart"}
    if agent == "copilot":
        fields = {"sessionId": session, "timestamp": 1_780_308_000_000, "source": "new"}
    if agent == "cursor":
        fields = {"conversation_id": session, "hook_event_name": "sessionStart"}
    return json.dumps(fields).encode()


def begin(house: House, agent: str, session: str, **changes: str) -> Done:
    """Run the hook of a session that begins."""
    event = ("sessionStart",) if agent == "copilot" else ()
    env = environment(house, **changes)
    return hook(house, "--agent", agent, *event, payload=start(agent, session), env=env)


def block_in(agent: str, printed: bytes) -> str:
    """The block in what an agent reads."""
    said = json.loads(printed)
    if agent in {"copilot", "cursor"}:
        text = said["additional_context" if agent == "cursor" else "additionalContext"]
    else:
        assert said["hookSpecificOutput"]["hookEventName"] == "SessionStart"
        text = said["hookSpecificOutput"]["additionalContext"]
    assert isinstance(text, str)
    return text


def remember(daemon: Daemon, name: str, content: str) -> None:
    """Write a note."""
    request = note_pb2.RememberRequest(name=name, content=content)
    note_pb2_grpc.NoteServiceStub(daemon.channel).Remember(request, timeout=30)


def insisted(house: House, agent: str, **changes: str) -> tuple[str, bytes]:
    """Begin sessions until one is given a block; its id, and what was printed."""
    for number in range(TRIES):
        session = f"{agent}-{number}"
        done = begin(house, agent, session, **changes)
        assert done.stderr == b""
        if done.stdout != EMPTY[agent]:
            return session, done.stdout
        time.sleep(0.2)
    pytest.fail(f"no block in {TRIES} sessions: {log_text(house)}")


@pytest.mark.parametrize("agent", EMPTY)
def test_without_a_daemon_there_is_no_block_and_nothing_is_lost(house: House, agent: str) -> None:
    """The agent reads what it always reads, and the event waits in the spool."""
    done = begin(house, agent, "s")
    assert (done.stdout, done.stderr) == (EMPTY[agent], b"")
    assert [envelope.payload for envelope in spooled(house)] == [start(agent, "s")]
    assert log_text(house) == ""


def test_nothing_to_say_prints_nothing(house: House, daemon: Daemon) -> None:
    """With a daemon that remembers nothing, the agent reads what it always reads."""
    for agent, answer in EMPTY.items():
        assert begin(house, agent, "s").stdout == answer


def test_a_session_begins_with_the_block(house: House, daemon: Daemon) -> None:
    """Every agent gets the block in its own form, and what it was given can be seen again."""
    remember(daemon, "deploy", "Run make ship, n\u00e9.")
    for agent in EMPTY:
        session, printed = insisted(house, agent)
        text = block_in(agent, printed)
        assert text.startswith(BEGIN + "\n")
        assert text.endswith(END + "\n")
        assert "- [deploy] Run make ship, n\u00e9." in text
        again = daemon.stub.GetContext(pb.GetContextRequest(as_of_session=session), timeout=30)
        assert again.text == text


def test_a_block_that_comes_back_is_not_stored(house: House, daemon: Daemon) -> None:
    """A prompt that repeats the block is stored without it."""
    remember(daemon, "deploy", "Run make ship.")
    session, printed = insisted(house, "claude-code")
    text = block_in("claude-code", printed)
    fields = {"hook_event_name": "UserPromptSubmit", "session_id": session}
    hook(house, payload=json.dumps(fields | {"prompt": text + "and now?"}).encode())
    until(lambda: any(event.text == "and now?" for event in read_all(daemon.stub)))
    assert not any("make ship" in event.text for event in read_all(daemon.stub))


def test_injecting_can_be_turned_off(house: House, daemon: Daemon) -> None:
    """With hook.inject = "off" no session is given anything, and none counts as having looked."""
    remember(daemon, "deploy", "Run make ship.")
    os.makedirs(f"{house.base}/c/memoryd")
    with open(f"{house.base}/c/memoryd/config.toml", "w", encoding="utf-8") as file:
        file.write('[hook]\ninject = "off"\n')
    for agent, answer in EMPTY.items():
        assert begin(house, agent, f"off-{agent}").stdout == answer
    assert insisted(house, "gemini", MEMORYD_HOOK_INJECT="session")


def test_a_prompt_is_answered_if_that_is_wanted(house: House, daemon: Daemon) -> None:
    """With hook.inject = "prompt" a prompt brings what was said about it, and no notes."""
    remember(daemon, "deploy", "Run make ship.")
    event = pb.Event(session_id="old", role=pb.EVENT_ROLE_USER, text="The zeppelin has landed.")
    daemon.stub.IngestEvent(pb.IngestEventRequest(event=event), timeout=30)
    fields = {"hook_event_name": "UserPromptSubmit", "prompt": "what of the zeppelin?"}
    for number in range(TRIES):
        payload = json.dumps(fields | {"session_id": f"p-{number}"}).encode()
        assert hook(house, payload=payload).stdout == b""
        done = hook(house, payload=payload, env=environment(house, MEMORYD_HOOK_INJECT="prompt"))
        if b"has landed" in done.stdout:
            break
        time.sleep(0.2)
    said = json.loads(done.stdout)["hookSpecificOutput"]
    assert said["hookEventName"] == "UserPromptSubmit"
    assert "make ship" not in said["additionalContext"]
