"""Erases events for good: finds them, keeps a receipt, takes every trace out, searches for the rest.

The one destructive operation. It goes in named steps, each of which may be done twice:

    receipt   who erases what, before anything goes
    bodies    texts and metadata, notes made of them, blocks that told them: one batch
    derived   nodes and grips that stood on them, in every version
    notes     provenance that names them
    index     made anew from what is left
    files     payloads set aside, then every table of the database written anew
    search    for the words in every byte of the data directory
    done      the outcome, on a second receipt

A crash leaves a receipt without an outcome, and the next start goes on where it must.
"""

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from memoryd.domain import erasure
from memoryd.domain.erasure import Erased, Outcome, Receipt, Which, Who
from memoryd.domain.errors import Cancelled, MemorydError, Outdated, Stopping, TooBusy
from memoryd.domain.event import Recorded
from memoryd.domain.keys import event_key, time_floor
from memoryd.services import erasure_search
from memoryd.services.anew import Renewed
from memoryd.services.erasure_notes import rewrite_provenance
from memoryd.services.indexer import Indexer, IndexState
from memoryd.services.pump import Pump
from memoryd.services.rollup import Steps
from memoryd.storage import bodies
from memoryd.storage.bodies import Words
from memoryd.storage.committer import Committer
from memoryd.storage.notebook import NoteStore
from memoryd.storage.store import Store

_log = logging.getLogger(__name__)

_ASK_EVERY: Final = 256
_RETRY_SECONDS: Final = (1.0, 5.0, 15.0, 60.0)
_LOOK_SECONDS: Final = 0.2


class Progress(NamedTuple):
    """Which step of an erasure is under way; at the end its outcome."""

    receipt: int
    step: str
    outcome: Outcome | None = None
    error: str = ""  # why the step is tried again


class Parts(NamedTuple):
    """What an erasure works on."""

    store: Store
    committer: Committer
    pump: Pump
    indexer: Indexer
    notes: Callable[[], tuple[NoteStore, ...]]  # the stores of notes that there are
    steps: Steps = Steps()


class Eraser:
    """Plans, and erases in a thread of its own, from `start` to `stop`."""

    def __init__(
        self, parts: Parts, clock_ms: Callable[[], int], who: Callable[[str], Who]
    ) -> None:
        """``who`` says whose process this is, with the reason they gave."""
        self._parts = parts
        self._store = parts.store
        self._clock_ms = clock_ms
        self._who = who
        self._stopping = threading.Event()
        self._beginning = threading.Lock()
        self._thread: threading.Thread | None = None
        self._progress: dict[int, Progress] = {}
        self._words: dict[int, Words] = {}
        self.erased = Erased()
        for receipt, _ in self._store.receipts.all():
            self.erased.add(receipt.entries)

    # --- planning

    def find(self, which: Which, until: int, alive: Callable[[], bool]) -> Iterator[Recorded]:
        """The events that are meant, up to a sequence number, without those that are erased.

        Raises InvalidInput, NotFound for an id that the log does not hold, or Cancelled.
        """
        which = erasure.checked(which)
        for scanned, recorded in enumerate(self._candidates(which), 1):
            if scanned % _ASK_EVERY == 0 and not alive():
                raise Cancelled("the caller has gone")
            there = recorded.sequence <= until and not recorded.erased_ms
            if there and which.matches(recorded.event):
                yield recorded

    def digest(self, found: Iterator[tuple[int, str]]) -> str:
        """What stands for exactly these events."""
        return erasure.digest(self._store.store_id, found)

    def end(self) -> int:
        """The number of the last event there is."""
        return self._parts.committer.synced

    def _candidates(self, which: Which) -> Iterator[Recorded]:
        log = self._store.log
        start = time_floor(which.from_ms)
        stop = time_floor(which.to_ms + 1) if which.to_ms else None
        if which.event_ids:
            yield from map(log.get, sorted(which.event_ids))
        elif which.session_ids:
            for session_id in sorted(which.session_ids):
                for _, recorded in log.by_session(session_id, start, stop):
                    yield recorded
        else:
            for _, recorded in log.by_time(start, stop):
                yield recorded

    def receipts(self) -> Iterator[tuple[Receipt, Outcome | None]]:
        """Every erasure in order, and how it ended."""
        return self._store.receipts.all()

    def receipt(self, number: int) -> Receipt:
        """One receipt. Raises NotFound."""
        return self._store.receipts.get(number)[0]

    # --- erasing

    def begin(self, which: Which, until: int, digest: str, reason: str) -> Receipt:
        """Write the receipt and begin, if exactly the planned events are meant.

        Raises Outdated if others are, TooBusy while another erasure goes on, ReadOnly.
        """
        erasure.check_reason(reason)
        with self._beginning:
            if self._thread is not None and self._thread.is_alive():
                raise TooBusy("another erasure goes on: wait for its end")
            found = self.find(which, until, lambda: not self._stopping.is_set())
            entries, words = bodies.entries(self._store, found)
            named = ((entry.sequence, entry.event_id) for entry in entries)
            if not entries or self.digest(named) != digest:
                raise Outdated("these are not the events of the plan: look at them again")
            receipt = self._keep_receipt(tuple(entries), self._who(reason))
            self.erased.add(receipt.entries)
            self._words[receipt.number] = words
            self._begin_work([receipt])
            return receipt

    def _keep_receipt(self, entries: tuple[erasure.Entry, ...], who: Who) -> Receipt:
        receipts = self._store.receipts

        def work() -> tuple[Receipt, bool]:
            made = Receipt(receipts.next_number(), self._clock_ms(), who, entries)
            batch = self._store.db.batch()
            receipts.begin(batch, made)
            self._store.db.write(batch)
            return made, True

        receipt = self._parts.committer.write(work)
        self._reach("erase.after_receipt")
        return receipt

    def finish_bodies(self) -> None:
        """Before anybody reads: take out what an erasure that was cut off had left."""
        for receipt in self._store.receipts.unfinished():
            self._erase_bodies(receipt)

    def start(self) -> None:
        """Go on with what was cut off."""
        left = self._store.receipts.unfinished()
        if left:
            _log.warning("an erasure was cut off and goes on", extra={"receipts": len(left)})
            with self._beginning:
                self._begin_work(left)

    def stop(self) -> None:
        """End after the step under way; what is left is taken up at the next start."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()

    def progress(self, number: int, alive: Callable[[], bool]) -> Iterator[Progress]:
        """What goes on, each time it changes, up to the outcome. Raises NotFound, Stopping."""
        _, outcome = self._store.receipts.get(number)
        if outcome is not None:
            yield Progress(number, "done", outcome)
            return
        last = None
        while alive():
            now = self._progress.get(number)
            if now is not None and now != last:
                last = now
                yield now
                if now.outcome is not None:
                    return
            if self._stopping.wait(_LOOK_SECONDS):
                raise Stopping("the daemon is stopping: the erasure goes on when it is back")

    def _begin_work(self, receipts: list[Receipt]) -> None:
        for receipt in receipts:
            self._progress[receipt.number] = Progress(receipt.number, "receipt")
        self._thread = threading.Thread(
            target=self._run, args=(receipts,), name="eraser", daemon=True
        )
        self._thread.start()

    def _run(self, receipts: list[Receipt]) -> None:
        for receipt in receipts:
            failures = 0
            while not self._stopping.is_set():
                try:
                    self._work(receipt)
                    break
                except Stopping:
                    return
                except Exception as error:  # noqa: BLE001 - what was begun has to be ended
                    self._failed(receipt, error)
                    self._stopping.wait(_RETRY_SECONDS[min(failures, len(_RETRY_SECONDS) - 1)])
                    failures += 1

    def _failed(self, receipt: Receipt, error: Exception) -> None:
        reason = str(error) if isinstance(error, MemorydError) else type(error).__name__
        at = self._progress[receipt.number]
        self._progress[receipt.number] = at._replace(error=reason)
        self._parts.steps.on_error("erase", f"receipt {receipt.number}, {at.step}: {reason}")
        _log.error("erasing failed", extra={"receipt": receipt.number, "reason": reason})

    def _work(self, receipt: Receipt) -> None:
        number = receipt.number
        self._at(number, "bodies")
        self._erase_bodies(receipt)
        self._at(number, "derived")
        renewed = self._derive(receipt)
        self._reach("erase.after_derived")
        self._at(number, "notes")
        self._empty_blocks(receipt, renewed)
        rewrite_provenance(self._parts.notes(), {e.event_id for e in receipt.entries}, renewed)
        self._reach("erase.after_notes")
        self._at(number, "index")
        self._index()
        self._reach("erase.after_index")
        self._at(number, "files")
        words = self._words.get(number)
        erasure_search.drop_set_aside(self._store.data_dir, receipt, words)
        self._compact()
        self._reach("erase.after_compact")
        self._at(number, "search")
        outcome = self._search(receipt, words)
        self._reach("erase.after_search")
        self._parts.committer.write(lambda: self._end(outcome))
        self._words.pop(number, None)
        self._progress[number] = Progress(number, "done", outcome)
        _log.info("events were erased", extra={"receipt": number, "events": len(receipt.entries)})

    def _at(self, number: int, step: str) -> None:
        self._progress[number] = Progress(number, step)

    def _reach(self, name: str) -> None:
        self._parts.steps.reach(name)

    def _erase_bodies(self, receipt: Receipt) -> None:
        if bodies.bodies_gone(self._store, receipt):
            return
        number = receipt.number
        if number not in self._words:  # cut off before: the texts are still there to be read
            found = (self._store.log.get(entry.event_id) for entry in receipt.entries)
            self._words[number] = bodies.entries(self._store, found)[1]
        words = self._words[number]

        def work() -> tuple[None, bool]:
            bodies.erase(self._store, receipt, words, self._clock_ms())
            return None, True

        self._parts.committer.write(work)
        self._reach("erase.after_bodies")

    def _derive(self, receipt: Receipt) -> Renewed:
        keys: dict[int, list[bytes]] = defaultdict(list)
        for entry in receipt.entries:
            stats = self._store.log.session(entry.session_id)
            if stats is not None:
                keys[stats.number].append(event_key(entry.time_ms, entry.event_id))
        pump = self._parts.pump
        return pump.ask(lambda: pump.derive_anew(keys)).result()

    def _empty_blocks(self, receipt: Receipt, renewed: Renewed) -> None:
        """Empty the blocks that showed what was derived from the events."""
        ids = {e.event_id for e in receipt.entries} | renewed.node_ids | renewed.gone_grips

        def work() -> tuple[int, bool]:
            batch = self._store.db.batch()
            count = self._store.injections.erase(batch, lambda g: bodies.names_one(g, ids))
            if count:
                self._store.db.write(batch)
            return count, bool(count)

        self._parts.committer.write(work)

    def _index(self) -> None:
        """Have the index made anew; one that is being made now may have begun too early."""
        indexer = self._parts.indexer
        for _ in range(1 + (indexer.state() is IndexState.REBUILDING)):
            for _status in indexer.rebuilding(lambda: not self._stopping.is_set()):
                pass
        if self._stopping.is_set():
            raise Stopping("the daemon is stopping")

    def _compact(self) -> None:
        self._store.db.flush()
        self._store.db.compact(lambda: not self._stopping.is_set(), rewrite=True)
        if self._stopping.is_set():
            raise Stopping("the daemon is stopping")

    def _search(self, receipt: Receipt, words: Words | None) -> Outcome:
        """Search; a table that a reader still holds is given a moment to go."""
        for pause in (0.5, 2.0, 5.0, 0.0):
            outcome = erasure_search.search(
                self._store, receipt, words, lambda: not self._stopping.is_set()
            )
            if not outcome.remains or not pause:
                break
            time.sleep(pause)
            self._compact()
        if self._stopping.is_set():
            raise Stopping("the daemon is stopping")
        return outcome._replace(time_ms=self._clock_ms())

    def _end(self, outcome: Outcome) -> tuple[None, bool]:
        batch = self._store.db.batch()
        self._store.receipts.end(batch, outcome)
        self._store.db.write(batch)
        return None, True
