"""Empties the inbox into the log: in the order of arrival, in batches, each with one synced write.

A file is deleted only after the write that holds its events is on disk. A crash in between is
harmless: the events' ids follow from the file's name, so the log knows them. A file that nobody
can read is set aside with the reason; one that cannot be written now stays, and is tried again.
What a transcript has told already (`twins`) is not written a second time, and the probes of
`memory doctor`, which only ask whether the way is open, are told of and never written.
"""

import errno
import logging
import os
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from memoryd import arrivals, spool
from memoryd.domain.capture import twins
from memoryd.domain.errors import Conflict, InvalidInput, MemorydError, Stopping
from memoryd.domain.event import Event
from memoryd.services.ingest import BATCH_LIMIT, Ingest
from memoryd.services.replies import Replies
from memoryd.services.status import ErrorBook
from memoryd.services.watch import Watch

_log = logging.getLogger(__name__)

_BATCH_BYTES: Final = 8 * 1024 * 1024
_RETRY_SECONDS: Final = 2.0
_LOOK_SECONDS: Final = 60.0
_UNFINISHED_SECONDS: Final = 3600.0
_PASSING: Final = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOMEM))


class _File(NamedTuple):
    name: str
    events: list[Event]


class Drain:
    """One thread, from `start` to `stop`, that moves what hooks left into the log."""

    def __init__(
        self,
        data_dir: str,
        ingest: Ingest,
        nearby: Callable[[Event, int], Iterable[Event]],
        errors: ErrorBook,
        replies: Replies,
    ) -> None:
        """``nearby`` gives an event's session within so many ms. The inbox must exist."""
        self._inbox = spool.inbox(data_dir)
        self._aside = spool.aside(data_dir)
        self._ingest = ingest
        self._nearby = nearby
        self._errors = errors
        self._replies = replies
        self._stopping = threading.Event()
        self._left: set[str] = set()  # in the log, or told of, and yet not to be removed
        self._watch = Watch(self._inbox)
        self._thread = threading.Thread(target=self._run, name="drain", daemon=True)

    def start(self) -> None:
        """Begin with what waits."""
        if not self._watch.told:
            _log.warning("the system does not tell of new files: looking for them twice a second")
        self._thread.start()

    def stop(self) -> None:
        """Finish the batch that is under way, and end; what still waits stays where it is."""
        self._stopping.set()
        self._watch.wake()
        if self._thread.ident is not None:
            self._thread.join()
        self._watch.close()

    def _run(self) -> None:
        self._sweep()
        trouble = ""
        while not self._stopping.is_set():
            seconds = _LOOK_SECONDS
            try:
                self.once()
                trouble = ""
            except Stopping:
                return
            except Exception as error:  # noqa: BLE001 - a dead thread would leave the inbox to grow
                seconds = _RETRY_SECONDS
                said = str(error) if isinstance(error, MemorydError) else _named(error)
                if said != trouble:
                    trouble = said
                    self._report(f"the inbox cannot be emptied, and is tried again: {said}")
            self._watch.wait(seconds)

    def once(self) -> None:
        """Move everything that waits now. Raises ReadOnly or Stopping; then the rest stays."""
        while names := [n for n in spool.waiting(self._inbox) if n not in self._left]:
            for batch in self._batches(names):
                self._write(batch)
                if self._stopping.is_set():
                    return

    def _batches(self, names: list[str]) -> Iterator[list[_File]]:
        """The files that can be read, as many together as one write may hold."""
        batch: list[_File] = []
        events = size = 0
        for name in names:
            read = self._read(name)
            if read is None:
                continue
            file, length = read
            over = events + len(file.events) > BATCH_LIMIT or size + length > _BATCH_BYTES
            if batch and over:
                yield batch
                batch, events, size = [], 0, 0
            batch.append(file)
            events += len(file.events)
            size += length
        if batch:
            yield batch

    def _read(self, name: str) -> tuple[_File, int] | None:
        """A file's events and its length; None if there is nothing to write of it."""
        path = f"{self._inbox}/{name}"
        try:
            data = _bytes(path)
            envelope = spool.decode(data)
            found = arrivals.events(envelope, name)
            replies = self._replies.of(envelope)
            size = len(data) + sum(len(event.text) for event in replies)
            # what was replied, before the end that the payload tells of
            return _File(name, [*replies, *found]), size
        except FileNotFoundError:
            return None
        except (InvalidInput, spool.BadEnvelope) as error:
            self._set_aside(name, str(error))
        except OSError as error:
            if error.errno in _PASSING:
                raise
            self._leave(name, f"cannot be read: {error.strerror}")
        return None

    def _write(self, batch: list[_File]) -> None:
        """Write the events of a batch, and only then remove its files."""
        refused: dict[str, str] = {}
        told = [event for file in batch for event in file.events]
        for event in told:
            if event.session_id.startswith(spool.PROBE):
                self._errors.probed(event.session_id)
        fresh = [event for event in told if not self._known(event)]
        for events in _parts(fresh):
            for result in self._ingest.many(events, len(events), idempotent=False):
                # another source has told of the same call already
                if result.error is not None and not isinstance(result.error, Conflict):
                    refused[result.event_id] = str(result.error)
        for file in batch:
            reason = next((refused[e.event_id] for e in file.events if e.event_id in refused), "")
            if reason:
                self._set_aside(file.name, reason)
            else:
                self._remove(file.name)

    def _known(self, event: Event) -> bool:
        """Whether an import has told what this event tells, or it is a probe.

        What comes from a transcript has an id by which it is known.
        """
        if event.session_id.startswith(spool.PROBE):
            return True
        return not twins.imported(event) and bool(
            twins.find_twin(event, self._nearby(event, twins.WINDOW_MS))
        )

    def _remove(self, name: str) -> None:
        try:
            os.unlink(f"{self._inbox}/{name}")
        except FileNotFoundError:
            return
        except OSError as error:
            self._leave(name, f"is in the log and cannot be removed: {error.strerror}")

    def _set_aside(self, name: str, reason: str) -> None:
        """Move a file out of the way, with the reason beside it."""
        try:
            note = f"{reason}\n".encode("utf-8", "backslashreplace")
            with open(f"{self._aside}/{name}{spool.REASON}", "wb", opener=_private) as file:
                file.write(note)
            os.rename(f"{self._inbox}/{name}", f"{self._aside}/{name}")
        except OSError as error:
            self._leave(name, f"{reason}; and it cannot be set aside: {error.strerror}")
            return
        self._report(f"{name} is set aside in {self._aside}: {reason}")

    def _leave(self, name: str, reason: str) -> None:
        """Pass over a file from now on, so that it is told of once and not in a circle."""
        self._left.add(name)
        self._report(f"{self._inbox}/{name}: {reason}")

    def _report(self, message: str) -> None:
        error_id = self._errors.add("drain", message)
        _log.warning("drain", extra={"reason": message, "error_id": error_id})

    def _sweep(self) -> None:
        """Remove what hooks left unfinished long ago, when they were killed."""
        oldest = time.time() - _UNFINISHED_SECONDS
        with suppress(OSError):
            for entry in os.scandir(self._inbox):
                if entry.name.startswith(".") and entry.stat().st_mtime < oldest:
                    with suppress(OSError):
                        os.unlink(entry.path)


def _bytes(path: str) -> bytes:
    """A file that is regular and not too large. Raises OSError or InvalidInput."""
    if not stat.S_ISREG(os.lstat(path).st_mode):
        raise InvalidInput("it is not a regular file")
    with open(path, "rb") as file:
        data = file.read(spool.FILE_LIMIT + 1)
    if len(data) > spool.FILE_LIMIT:
        raise InvalidInput(f"the file is larger than {spool.FILE_LIMIT} bytes")
    return data


def _parts(events: list[Event]) -> Iterator[list[Event]]:
    """One part, unless a single payload gave more events than a write may hold."""
    for start in range(0, len(events), BATCH_LIMIT):
        yield events[start : start + BATCH_LIMIT]


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


def _named(error: Exception) -> str:
    """An error that nobody foresaw: its kind, not its words, which may be those of an event."""
    kind = type(error).__name__
    return f"{kind} ({error.strerror})" if isinstance(error, OSError) else kind
