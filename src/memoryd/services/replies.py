"""Replies that no hook carries, read from the transcript of the session. Feeds the truth.

Copilot's hooks say that a turn or a session has ended, and not what the agent replied. The
replies are taken from the session's transcript with the ids that an import gives them, so that
neither adds what the other has told. What cannot be read now is left for the next hook, or for
`memory import`. A subagent's last words come by its own hook, and are not taken here.
"""

import json
import os
import stat
from collections.abc import Iterator, Mapping
from typing import Any, Final

from memoryd.arrivals import project_of
from memoryd.domain.capture.transcripts import READERS, Place
from memoryd.domain.event import Event, EventType
from memoryd.spool import Envelope

AGENT: Final = "copilot"
ENDINGS: Final = frozenset({"agentStop", "sessionEnd"})
FILE_LIMIT: Final = 64 * 1024 * 1024
_FOLDER: Final = "session-state"
_FILE: Final = "events.jsonl"
# only lines with one of these are parsed: the others do not speak
_TELLING: Final = (b'"assistant.message"', b'"session.start"')


class Replies:
    """Reads transcripts below the directory of the agent that wrote them, and nowhere else."""

    def __init__(self, home: str) -> None:
        """``home`` is the agent's own directory; empty: nothing is read."""
        self._home = os.path.realpath(home) if home else ""

    def of(self, envelope: Envelope) -> list[Event]:
        """What the agent has replied so far, if the payload says that it has ended; else nothing."""
        if envelope.agent != AGENT or envelope.event not in ENDINGS or not self._home:
            return []
        try:
            path = self._path(json.loads(envelope.payload))
            lines = _lines(path) if path else []
        except (OSError, ValueError, RecursionError):
            return []
        place = Place(os.path.basename(os.path.dirname(path)), path)
        reader = READERS[AGENT](place)
        said = (e for number, record in _records(lines) for e in reader.feed(number, record))
        return [
            event._replace(project=project_of(envelope, event.metadata.get("cwd", "")))
            for event in said
            if event.type == EventType.ASSISTANT_MESSAGE and "subagent" not in event.metadata
        ]

    def _path(self, payload: Any) -> str:
        """The session's transcript, if it lies where the agent keeps them; or ""."""
        if not isinstance(payload, Mapping):
            return ""
        session, named = payload.get("sessionId"), payload.get("transcriptPath")
        if not isinstance(session, str) or "/" in session or session in {"", ".", ".."}:
            return ""
        path = named if isinstance(named, str) else f"{self._home}/{_FOLDER}/{session}/{_FILE}"
        folder = os.path.realpath(os.path.dirname(path))
        inside = f"{folder}/".startswith(f"{self._home}/{_FOLDER}/")
        # the name of the folder is the session's, as an import takes it
        right = os.path.basename(folder) == session and os.path.basename(path) == _FILE
        return f"{folder}/{_FILE}" if inside and right else ""


def _lines(path: str) -> list[bytes]:
    """The lines of a regular file of this user's, bounded. Raises OSError; none for another file."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(fd, "rb") as file:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
            return []
        data = file.read(FILE_LIMIT + 1)
    return data.split(b"\n") if len(data) <= FILE_LIMIT else []


def _records(lines: list[bytes]) -> Iterator[tuple[int, Any]]:
    """The records that may speak, with the numbers of their lines; an unfinished line is left out.

    A record without a time of its own is left to an import, which knows what stands before it.
    """
    for number, line in enumerate(lines, 1):
        if any(mark in line for mark in _TELLING):
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(record, dict) and isinstance(record.get("timestamp"), str):
                yield number, record
