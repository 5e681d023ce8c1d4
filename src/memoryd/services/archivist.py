"""Keeps what agents write down when they compact a conversation: as archive notes. Truth.

Told of each such event once it is in the log. To be told twice changes nothing, so whoever
cannot tell whether an event was kept (a drain after a crash, a second import) tells again.
"""

import logging

from memoryd.domain.errors import Conflict, InvalidInput
from memoryd.domain.event import Event
from memoryd.services.notes import Notes
from memoryd.services.status import ErrorBook

_log = logging.getLogger(__name__)


class Archivist:
    """Makes archive notes of compaction summaries. Safe to call from many threads."""

    def __init__(self, notes: Notes, errors: ErrorBook, *, unified: bool) -> None:
        """In a ``unified`` store a note is marked with the project of its event."""
        self._notes = notes
        self._errors = errors
        self._unified = unified

    def keep(self, event: Event) -> None:
        """Archive a summary. What makes no note is reported; raises ReadOnly or Stopping."""
        project = event.project if self._unified else ""
        try:
            self._notes.archive_event(event, project)
        except (InvalidInput, Conflict) as error:
            message = f"event {event.event_id} is not archived: {error}"
            error_id = self._errors.add("archive", message)
            _log.warning("archive", extra={"reason": message, "error_id": error_id})
