"""From transcripts on disk to events. Pure: whoever opens the files feeds the records.

A reader per agent; `ledger` keeps the account of every record. Ids follow from the identity of
the records, so that reading a transcript again gives the same events.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from memoryd.domain.capture.transcripts.claude_code import ClaudeCode
from memoryd.domain.capture.transcripts.codex import Codex
from memoryd.domain.capture.transcripts.copilot import Copilot
from memoryd.domain.capture.transcripts.cursor import Cursor
from memoryd.domain.capture.transcripts.gemini import Gemini
from memoryd.domain.capture.transcripts.ledger import Place, Problem, Reader
from memoryd.domain.capture.transcripts.opencode import OpenCode
from memoryd.domain.event import Event

__all__ = ("READERS", "Place", "Problem", "Reader", "from_transcript")

READERS: Final[Mapping[str, type[Reader]]] = {
    reader.agent: reader for reader in (ClaudeCode, Codex, Gemini, Copilot, Cursor, OpenCode)
}


def from_transcript(reader: Reader, records: Iterable[tuple[int, object]]) -> Iterator[Event]:
    """The events of a transcript whose survey, if its reader wants one, is done."""
    for number, value in records:
        yield from reader.feed(number, value)
    yield from reader.end()
