"""The one thread that writes: gathers what waits, writes it, syncs once, then acknowledges.

Requests that arrive together share one fsync. A request is answered only after the sync that
covers it; if that fails, so do all requests it would have covered.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Final

from memoryd.domain.errors import MemorydError, ReadOnly, Stopping
from memoryd.domain.event import Appended
from memoryd.storage.log import Draft
from memoryd.storage.store import Store

_GATHER: Final = 4_000
_PROBE_SECONDS: Final = 2.0

_Request = tuple[Sequence[Draft], Future[list[Appended]]]


class Committer:
    """Owns the store's writing side from `start` to `stop`."""

    def __init__(self, store: Store, clock_ms: Callable[[], int]) -> None:
        self._store = store
        self._clock_ms = clock_ms
        self._wake = threading.Condition()
        self._waiting: list[_Request] = []
        self._stopping = False
        self._unsynced = False
        self._thread = threading.Thread(target=self._run, name="committer", daemon=True)
        self._grown = threading.Condition()
        self.fault: ReadOnly | None = None
        self.on_fault: Callable[[ReadOnly | None], None] = lambda _fault: None
        self.on_grown: Callable[[], None] = lambda: None
        self.synced = store.log.tail.sequence
        self.commits = 0

    def start(self) -> None:
        """Begin to take requests."""
        self._thread.start()

    def append(self, drafts: Sequence[Draft]) -> list[Appended]:
        """Write the drafts and wait until they are on disk.

        Raises ReadOnly if they cannot be written, Stopping if the daemon ends.
        """
        done: Future[list[Appended]] = Future()
        with self._wake:
            if self._stopping:
                raise Stopping("the daemon is stopping: send the events again when it is back")
            self._waiting.append((drafts, done))
            self._wake.notify()
        return done.result()

    def wait_beyond(self, sequence: int, seconds: float) -> int:
        """Wait until the log has grown beyond a number, at most so long; return its end."""
        with self._grown:
            self._grown.wait_for(lambda: self.synced > sequence or self._stopping, seconds)
        return self.synced

    def stop(self) -> None:
        """Finish what waits, and end."""
        with self._wake:
            self._stopping = True
            self._wake.notify()
        with self._grown:
            self._grown.notify_all()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while True:
            with self._wake:
                timeout = _PROBE_SECONDS if self.fault else None
                self._wake.wait_for(lambda: self._waiting or self._stopping, timeout)
                taken = self._take()
                if not taken and self._stopping:
                    return
            if taken:
                self._commit(taken)
            elif self.fault:
                self._probe()

    def _take(self) -> list[_Request]:
        """As many waiting requests as one batch may hold, at least one."""
        size = 0
        for index, (drafts, _) in enumerate(self._waiting):
            size += len(drafts)
            if index and size > _GATHER:
                taken, self._waiting = self._waiting[:index], self._waiting[index:]
                return taken
        taken, self._waiting = self._waiting, []
        return taken

    def _commit(self, taken: list[_Request]) -> None:
        try:
            if self.fault:
                self._store.log.reload()
            results = self._store.log.append(
                [draft for drafts, _ in taken for draft in drafts], self._clock_ms()
            )
            self._unsynced = self._unsynced or any(r.created for r in results)
            if self._unsynced:
                self._sync()
        except MemorydError as error:
            self._refuse(taken, error)
            return
        except BaseException as error:  # noqa: BLE001 - an unanswered request would hang its caller
            self._refuse(taken, ReadOnly(f"the log could not be written ({type(error).__name__})"))
            return
        self._recover()
        start = 0
        for drafts, done in taken:
            done.set_result(results[start : start + len(drafts)])
            start += len(drafts)

    def _sync(self) -> None:
        self._store.sync()
        self._unsynced = False
        self.commits += 1
        with self._grown:
            self.synced = self._store.log.tail.sequence
            self._grown.notify_all()
        self.on_grown()

    def _refuse(self, taken: list[_Request], error: MemorydError) -> None:
        if isinstance(error, ReadOnly):
            self._unsynced = True  # whatever reached memory must be synced before the next answer
            if self.fault is None:
                self.on_fault(error)
            self.fault = error
        for _, done in taken:
            done.set_exception(error)

    def _probe(self) -> None:
        """Without a request, find out whether the disk takes writes again."""
        try:
            self._store.log.reload()
            batch = self._store.db.batch()
            batch.put(b"probe_ms", b"%d" % self._clock_ms(), self._store.db.handle("meta"))
            self._store.db.write(batch)
            self._sync()
        except MemorydError as error:
            if isinstance(error, ReadOnly):
                self.fault = error
            return
        except Exception:  # noqa: BLE001 - a dead thread would leave every caller waiting
            return
        self._recover()

    def _recover(self) -> None:
        if self.fault is not None:
            self.fault = None
            self.on_fault(None)
