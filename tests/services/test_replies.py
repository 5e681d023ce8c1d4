import json
import os

import pytest

from memoryd.domain.capture.transcripts import READERS, Place, from_transcript
from memoryd.services.replies import Replies
from memoryd.spool import Envelope
from tests.unit.capture.samples import TRANSCRIPTS

SESSION = "s-1"
MORE = [
    {
        "type": "assistant.message",
        "id": f"more{n}",
        "timestamp": "2026-03-01T10:05:00Z",
        "data": {"content": "Done.", "parentToolCallId": parent},
    }
    for n, parent in enumerate(("", "", "u1"))
]


def write(home: str, session: str = SESSION) -> str:
    """A transcript where Copilot keeps them; its path."""
    path = f"{home}/session-state/{session}/events.jsonl"
    os.makedirs(os.path.dirname(path))
    records = [*TRANSCRIPTS["copilot"], *MORE]
    with open(path, "w", encoding="utf-8") as file:
        file.write("".join(f"{json.dumps(record)}\n" for record in records) + '{"type": "assist')
    return path


def ended(event: str = "agentStop", agent: str = "copilot", **fields: object) -> Envelope:
    """What a hook leaves at the end of a turn."""
    payload = json.dumps({"sessionId": SESSION, "timestamp": 1} | fields).encode()
    return Envelope(
        payload, agent=agent, event=event, time_ms=1, cwd="/home/ann/shop", project="shop"
    )


@pytest.fixture
def home(tmp_path: os.PathLike[str]) -> str:
    """A directory as Copilot's own."""
    return os.fspath(tmp_path)


def test_replies_are_those_of_an_import(home: str) -> None:
    """Words, times, metadata and ids are what a later import gives, so that it adds nothing."""
    path = write(home)
    reader = READERS["copilot"](Place(SESSION, path))
    records = enumerate([*TRANSCRIPTS["copilot"], *MORE], 1)
    imported = {event.event_id: event for event in from_transcript(reader, records)}
    found = Replies(home).of(ended(transcriptPath=path))
    assert [event.text for event in found][-2:] == ["Done.", "Done."]
    assert len({event.event_id for event in found}) == len(found) > 2
    for event in found:
        assert event._replace(project="") == imported[event.event_id]
        assert event.project == "shop"


def test_a_session_end_names_no_file(home: str) -> None:
    """The end of a session finds the transcript by the session alone."""
    write(home)
    assert len(Replies(home).of(ended("sessionEnd"))) == len(Replies(home).of(ended())) > 2


def test_only_the_end_of_a_turn_is_looked_at(home: str) -> None:
    """Other hooks, and other agents, read nothing; without a home nobody does."""
    write(home)
    assert Replies(home).of(ended("postToolUse")) == []
    assert Replies(home).of(ended(agent="claude-code")) == []
    assert Replies("").of(ended()) == []


def test_no_file_outside_of_the_agents_directory_is_read(home: str) -> None:
    """A path elsewhere, of another session, a link, a pipe or a folder gives nothing."""
    path = write(f"{home}/away")
    replies = Replies(f"{home}/own")
    assert replies.of(ended(transcriptPath=path)) == []
    other = write(f"{home}/own", "other")
    assert replies.of(ended(transcriptPath=other)) == []
    assert replies.of(ended(transcriptPath=f"{home}/own/session-state/../../away{path}")) == []
    folder = f"{home}/own/session-state/{SESSION}"
    os.symlink(os.path.dirname(path), folder)
    assert replies.of(ended()) == []
    os.unlink(folder)
    os.mkdir(folder)
    os.symlink(path, f"{folder}/events.jsonl")
    assert replies.of(ended()) == []
    os.unlink(f"{folder}/events.jsonl")
    os.mkfifo(f"{folder}/events.jsonl")
    assert replies.of(ended()) == []


@pytest.mark.parametrize("session", ["", "..", "a/b", 7, None])
def test_a_bad_session_gives_nothing(home: str, session: object) -> None:
    """What is no session of its own is not looked for."""
    write(home)
    assert Replies(home).of(ended(sessionId=session)) == []
