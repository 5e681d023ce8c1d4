"""The one thread that writes: gathers what waits, writes it, syncs once, then acknowledges.

Requests that arrive together share one fsync. A request is answered only after the sync that
covers it; if that fails, so do all requests it would have covered.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, Final, NamedTuple, TypeVar

from memoryd.domain.errors import MemorydError, ReadOnly, Stopping
from memoryd.domain.event import Appended
from memoryd.storage.log import Draft
from memoryd.storage.store import Store

_GATHER: Final = 4_000
_PROBE_SECONDS: Final = 2.0

_T = TypeVar("_T")
_Work = Callable[[], tuple[_T, bool]]


class _Request(NamedTuple):
    """Drafts to append, or work that writes by itself; and who waits for it."""

    done: Future[Any]
    drafts: Sequence[Draft] = ()
    work: _Work[Any] | None = None


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
        self._submit(_Request(done, drafts=drafts))
        return done.result()

    def write(self, work: _Work[_T]) -> _T:
        """Run ``work`` in the writing thread, and wait until what it wrote is on disk.

        ``work`` writes without a sync, returns its result and whether it wrote, and raises only
        if it has written nothing. Raises what it raises, or ReadOnly or Stopping.
        """
        done: Future[_T] = Future()
        self._submit(_Request(done, work=work))
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

    def _submit(self, request: _Request) -> None:
        with self._wake:
            if self._stopping:
                raise Stopping("the daemon is stopping: send it again when it is back")
            self._waiting.append(request)
            self._wake.notify()

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
        for index, request in enumerate(self._waiting):
            size += len(request.drafts) or 1
            if index and size > _GATHER:
                taken, self._waiting = self._waiting[:index], self._waiting[index:]
                return taken
        taken, self._waiting = self._waiting, []
        return taken

    def _commit(self, taken: list[_Request]) -> None:
        try:
            if self.fault:
                self._store.reload()
            drafts = [draft for request in taken for draft in request.drafts]
            results = self._store.log.append(drafts, self._clock_ms()) if drafts else []
            self._unsynced = self._unsynced or any(r.created for r in results)
            answers = [self._do(request.work) if request.work else None for request in taken]
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
        for request, answer in zip(taken, answers, strict=True):
            if answer is not None:
                answer(request.done)
                continue
            request.done.set_result(results[start : start + len(request.drafts)])
            start += len(request.drafts)

    def _do(self, work: _Work[Any]) -> Callable[[Future[Any]], None]:
        """Run one piece of work; how to answer it once all is synced. Raises ReadOnly."""
        try:
            result, wrote = work()
        except ReadOnly:
            raise
        except Exception as error:  # noqa: BLE001 - it has written nothing, and stops no other
            # its traceback would hold this frame, and so the batch and the open database
            bare = error.with_traceback(None)
            return lambda done: done.set_exception(bare)
        self._unsynced = self._unsynced or wrote
        return lambda done: done.set_result(result)

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
        for request in taken:
            request.done.set_exception(error)

    def _probe(self) -> None:
        """Without a request, find out whether the disk takes writes again."""
        try:
            self._store.reload()
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
