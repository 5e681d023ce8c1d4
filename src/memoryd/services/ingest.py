"""Takes events in: checks, redacts and completes them, and has them written. Truth."""

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from memoryd.domain import ids
from memoryd.domain.erasure import Erased
from memoryd.domain.errors import InvalidInput
from memoryd.domain.event import Appended, Event, checked
from memoryd.domain.redact import Redactor, joined
from memoryd.storage.committer import Committer
from memoryd.storage.log import Draft

BATCH_LIMIT: Final = 1_000
_NOTHING: Final[Mapping[str, int]] = {}


class Ingest:
    """The way into the log. Safe to call from many threads."""

    def __init__(
        self, committer: Committer, clock_ms: Callable[[], int], project: str, redactor: Redactor
    ) -> None:
        """``project`` marks the events that name none."""
        self._committer = committer
        self._clock_ms = clock_ms
        self._project = project
        self._redactor = redactor
        self.erased = Erased()  # what was erased is not taken in again, whoever tells of it
        # told of each summary of a compaction that is in the log, be it new or known
        self.on_compaction: Callable[[Event], None] = lambda _event: None

    def one(self, event: Event, *, idempotent: bool) -> Appended:
        """Append one event and return when it is on disk.

        Raises InvalidInput, Conflict, ReadOnly or Stopping; then nothing has changed.
        """
        event, counts = self._redacted(_sound(event, idempotent=idempotent))
        draft = self._draft(event, counts, self._clock_ms(), idempotent=idempotent)
        gone = self.erased.find(draft.event)
        if gone is not None:
            return Appended(draft.event.event_id, gone.sequence, created=False, erased=True)
        result = self._committer.append([draft])[0]
        if result.error is not None:
            raise result.error
        self._tell([draft], [result])
        return result

    def many(
        self, events: Iterable[Event], count: int, *, idempotent: bool, restoring: bool = False
    ) -> list[Appended]:
        """Append up to 1,000 events; a refused one carries its error and stops no other.

        With ``restoring``, nobody is told of compactions: a copy holds the notes made of them.
        Raises InvalidInput if there are too many, ReadOnly or Stopping if none can be written.
        """
        if count > BATCH_LIMIT:
            msg = (
                f"the batch holds {count} events, over the limit of {BATCH_LIMIT}: send it in parts"
            )
            raise InvalidInput(msg)
        settled: dict[int, Appended] = {}  # without a write
        sound: list[Event] = []
        places: list[int] = []
        for index, event in enumerate(events):
            try:
                sound.append(_sound(event, idempotent=idempotent))
            except InvalidInput as error:
                settled[index] = Appended(event.event_id, 0, created=False, error=error)
            else:
                places.append(index)
        drafts: list[Draft] = []
        for index, draft in zip(places, self._drafts(sound, idempotent=idempotent), strict=True):
            gone = self.erased.find(draft.event)
            if gone is None:
                drafts.append(draft)
            else:
                id_ = draft.event.event_id
                settled[index] = Appended(id_, gone.sequence, created=False, erased=True)
        written = self._committer.append(drafts) if drafts else []
        if not restoring:
            self._tell(drafts, written)
        if not settled:
            return written
        rest = iter(written)
        return [settled[i] if i in settled else next(rest) for i in range(count)]

    def _tell(self, drafts: list[Draft], written: list[Appended]) -> None:
        for draft, result in zip(drafts, written, strict=True):
            metadata = draft.event.metadata
            kept = result.error is None and not result.erased
            if kept and metadata and metadata.get("compaction") == "true":
                self.on_compaction(draft.event)

    def _drafts(self, events: list[Event], *, idempotent: bool) -> list[Draft]:
        """The events as they are to be written; redacted where one look at all of them says so."""
        now = self._clock_ms()
        suspects = self._redactor.suspects([_words(event) for event in events])
        drafts = []
        for place, event in enumerate(events):
            clean, counts = self._redacted(event) if place in suspects else (event, _NOTHING)
            drafts.append(self._draft(clean, counts, now, idempotent=idempotent))
        return drafts

    def _draft(
        self, event: Event, counts: Mapping[str, int], now: int, *, idempotent: bool
    ) -> Draft:
        """The event with all that its source has left out."""
        event_id, session, time_ms, type_, role, text, metadata, agent, project, *rest = event
        timed = time_ms != 0
        if event_id and timed and project:
            return Draft(event, timed, counts)
        time_ms, project = time_ms or now, project or self._project
        if not event_id and not idempotent:
            event_id = ids.make(time_ms, os.urandom(10))
        # twice as fast as _replace, by which half of all events would go
        made = Event(event_id, session, time_ms, type_, role, text, metadata, agent, project, *rest)
        return Draft(made if event_id else made._replace(event_id=content_id(made)), timed, counts)

    def _redacted(self, event: Event) -> tuple[Event, Mapping[str, int]]:
        """The event without secrets in text and metadata, and how many of each kind it had."""
        text, counts = self._redactor.redact(event.text)
        metadata = event.metadata
        if metadata:
            metadata, more = self._redactor.redact_value(metadata)
            counts = {rule: counts.get(rule, 0) + more.get(rule, 0) for rule in {*counts, *more}}
        return (event._replace(text=text, metadata=metadata), counts) if counts else (event, counts)


def content_id(event: Event) -> str:
    """The id of an event that has none of its own: the same content, the same id."""
    metadata = [part for pair in sorted(event.metadata.items()) for part in pair]
    fields = (event.session_id, str(event.type), str(event.role), event.text, event.agent)
    return ids.from_content(
        event.time_ms, (*fields, event.project, event.parent_id, event.turn_id, *metadata)
    )


def _sound(event: Event, *, idempotent: bool) -> Event:
    """The event, if it can be taken. Raises InvalidInput."""
    if idempotent and not event.event_id and not event.time_ms:
        raise InvalidInput(
            "timestamp_ms is 0: idempotent capture needs the time of the event, or its id"
        )
    return checked(event)


def _words(event: Event) -> str:
    """Everything of the event in which a secret may stand."""
    return f"{event.text}\n{joined(event.metadata)}" if event.metadata else event.text
