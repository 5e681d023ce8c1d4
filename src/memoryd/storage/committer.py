"""Group commit: one caller at a time writes for all who wait, syncs once, then all are answered.

Requests that arrive together share one fsync. A request is answered only after the sync that
covers it; if that fails, so do all requests it would have covered. The first caller leads: it
writes in its own thread, so that a lone caller waits for no other, and when it is done the first
of those who have come meanwhile leads on.
"""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

from memoryd.domain.errors import MemorydError, ReadOnly, Stopping
from memoryd.domain.event import Appended
from memoryd.storage.log import Draft
from memoryd.storage.store import Store

_GATHER: Final = 4_000
_PROBE_SECONDS: Final = 2.0

_T = TypeVar("_T")
_Work = Callable[[], tuple[_T, bool]]


class _Request:
    """Drafts to append, or work that writes by itself; and what became of it."""

    __slots__ = ("_woken", "answered", "drafts", "error", "result", "work")

    def __init__(self, drafts: Sequence[Draft] = (), work: _Work[Any] | None = None) -> None:
        self.drafts = drafts
        self.work = work
        self.answered = False
        self.result: Any = None
        self.error: BaseException | None = None
        self._woken = threading.Lock()
        self._woken.acquire()

    def wait(self) -> None:
        """Sleep until somebody else has written it, or it is this caller's turn to lead."""
        self._woken.acquire()

    def wake(self) -> None:
        """End its caller's sleep."""
        self._woken.release()

    def answer(self, result: Any, error: BaseException | None = None) -> None:
        """Say what became of it."""
        self.result, self.error, self.answered = result, error, True
        self.wake()


class Committer:
    """Owns the store's writing side from `start` to `stop`."""

    def __init__(self, store: Store, clock_ms: Callable[[], int]) -> None:
        self._store = store
        self._clock_ms = clock_ms
        self._gate = threading.Condition()
        self._waiting: list[_Request] = []
        self._leading = False  # whether somebody writes; then what waits will be written
        self._stopping = False
        self._unsynced = False
        self._thread = threading.Thread(target=self._heal, name="committer", daemon=True)
        self._grown = threading.Condition()
        self.fault: ReadOnly | None = None
        self.on_fault: Callable[[ReadOnly | None], None] = lambda _fault: None
        self.on_grown: Callable[[], None] = lambda: None
        self.synced = store.log.tail.sequence
        self.commits = 0

    def start(self) -> None:
        """Look after the log: bring it back by itself when a fault has passed."""
        self._thread.start()

    def append(self, drafts: Sequence[Draft]) -> list[Appended]:
        """Write the drafts and wait until they are on disk.

        Raises ReadOnly if they cannot be written, Stopping if the daemon ends.
        """
        results: list[Appended] = self._have_written(_Request(drafts=drafts))
        return results

    def write(self, work: _Work[_T]) -> _T:
        """Run ``work`` while nobody else writes, and wait until what it wrote is on disk.

        ``work`` writes without a sync, returns its result and whether it wrote, and raises only
        if it has written nothing. Raises what it raises, or ReadOnly or Stopping.
        """
        result: _T = self._have_written(_Request(work=work))
        return result

    def wait_beyond(self, sequence: int, seconds: float) -> int:
        """Wait until the log has grown beyond a number, at most so long; return its end."""
        with self._grown:
            self._grown.wait_for(lambda: self.synced > sequence or self._stopping, seconds)
        return self.synced

    def stop(self) -> None:
        """Finish what waits, and end."""
        with self._gate:
            self._stopping = True
            self._gate.notify_all()
            self._gate.wait_for(lambda: not self._leading)
        with self._grown:
            self._grown.notify_all()
        if self._thread.ident is not None:
            self._thread.join()

    def _have_written(self, request: _Request) -> Any:
        """Lead if nobody does, else wait; the request's result. Raises what it was refused with."""
        with self._gate:
            if self._stopping:
                raise Stopping("the daemon is stopping: send it again when it is back")
            self._waiting.append(request)
            leads, self._leading = not self._leading, True
        if not leads:
            request.wait()
        if not request.answered:
            self._lead()
        if request.error is not None:
            raise request.error
        return request.result

    def _lead(self) -> None:
        """Write what waits, of which the caller's request is the first, and let the next lead."""
        with self._gate:
            taken = self._take()
        grown = False
        try:
            grown = self._commit(taken)
        finally:
            self._hand_over()
        if grown:
            with self._grown:
                self._grown.notify_all()
            self.on_grown()

    def _hand_over(self) -> None:
        """Let the first of those who have come meanwhile lead on."""
        with self._gate:
            heir = self._waiting[0] if self._waiting else None
            self._leading = heir is not None
            if self._stopping:
                self._gate.notify_all()
        if heir is not None:
            heir.wake()

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

    def _commit(self, taken: list[_Request]) -> bool:
        """Write and answer the requests; whether anything was synced."""
        try:
            if self.fault:
                self._store.reload()
            drafts = [draft for request in taken for draft in request.drafts]
            results = self._store.log.append(drafts, self._clock_ms()) if drafts else []
            self._unsynced = self._unsynced or any(r.created for r in results)
            answers = [self._do(request.work) if request.work else None for request in taken]
            grown = self._unsynced
            if grown:
                self._sync()
        except MemorydError as error:
            self._refuse(taken, error)
            return False
        except BaseException as error:  # noqa: BLE001 - an unanswered request would hang its caller
            self._refuse(taken, ReadOnly(f"the log could not be written ({type(error).__name__})"))
            return False
        self._recover()
        start = 0
        for request, answer in zip(taken, answers, strict=True):
            if answer is not None:
                request.answer(*answer)
                continue
            request.answer(results[start : start + len(request.drafts)])
            start += len(request.drafts)
        return grown

    def _do(self, work: _Work[Any]) -> tuple[Any, BaseException | None]:
        """Run one piece of work; the answer once all is synced. Raises ReadOnly."""
        try:
            result, wrote = work()
        except ReadOnly:
            raise
        except Exception as error:  # noqa: BLE001 - it has written nothing, and stops no other
            # its traceback would hold this frame, and so the batch and the open database
            return None, error.with_traceback(None)
        self._unsynced = self._unsynced or wrote
        return result, None

    def _sync(self) -> None:
        self._store.sync()
        self._unsynced = False
        self.commits += 1
        self.synced = self._store.log.tail.sequence

    def _refuse(self, taken: list[_Request], error: MemorydError) -> None:
        if isinstance(error, ReadOnly):
            self._unsynced = True  # whatever reached memory must be synced before the next answer
            if self.fault is None:
                self.on_fault(error)
            with self._gate:
                self.fault = error
                self._gate.notify_all()
        for request in taken:
            request.answer(None, error)

    def _recover(self) -> None:
        if self.fault is not None:
            self.fault = None
            self.on_fault(None)

    def _heal(self) -> None:
        """The thread: while there is a fault, find out whether the disk takes writes again."""
        while not self._stopping:
            with self._gate:
                self._gate.wait_for(lambda: self.fault or self._stopping)
                self._gate.wait_for(lambda: self._stopping, _PROBE_SECONDS)
            if self.fault is not None:
                with suppress(MemorydError):
                    self.write(self._probe)

    def _probe(self) -> tuple[None, bool]:
        batch = self._store.db.batch()
        batch.put(b"probe_ms", b"%d" % self._clock_ms(), self._store.db.handle("meta"))
        self._store.db.write(batch)
        return None, True
