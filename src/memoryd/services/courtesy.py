"""When work that can wait had better wait: while many events a second are written. Derived.

Deriving and indexing need the same processors as acknowledging. While writers are few, both go
on beside them. Where a lot is written at once, as by an import, writers go first, and what
follows from their events is made when they are done; or when it has waited for long enough.
"""

import time
from collections.abc import Callable
from typing import Final

from memoryd.storage.committer import Committer

_MANY: Final = 400  # events a second: twice what eight busy agents write
_LOOK_SECONDS: Final = 0.2  # over which they are counted


class Courtesy:
    """For one thread, which says how far it has come in the log."""

    def __init__(
        self,
        committer: Committer,
        patience_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._committer = committer
        self._patience = patience_seconds
        self._clock = clock
        self._seen = committer.synced, clock()
        self._rate = 0.0
        self._awaited = committer.synced, clock()  # an event that is still to be worked in

    def wait(self, done: int) -> bool:
        """Whether to leave the processor to the writers for another moment."""
        synced, now = self._committer.synced, self._clock()
        before, since = self._seen
        if now - since >= _LOOK_SECONDS:
            self._rate = (synced - before) / (now - since)
            self._seen = synced, now
        return self._rate > _MANY and not self.late(done)

    def late(self, done: int) -> bool:
        """Whether events have waited so long that they come before the writers' comfort."""
        sequence, since = self._awaited
        now = self._clock()
        if done >= sequence:
            self._awaited = self._committer.synced, now
            return False
        return now - since > self._patience
