"""The pump: takes the outbox in order and works it into segments, nodes and grips. Derived.

One thread, the only one that derives: whatever else wants to change the table of contents hands
it a task. A step is one atomic batch that holds nodes, grips, marks on the days above, and the
acknowledgement of the outbox, so a crash repeats a step or does not, and never half of it.
"""

import logging
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from itertools import islice
from typing import Any, Final, NamedTuple, TypeVar

from memoryd.domain.calendar import PERIODS, Calendar
from memoryd.domain.errors import MemorydError, Stopping
from memoryd.domain.event import Recorded
from memoryd.domain.keys import event_key
from memoryd.domain.segment import Rules
from memoryd.domain.toc import Grip, Level, Node
from memoryd.services.anew import Anew, Renewed
from memoryd.services.courtesy import Courtesy
from memoryd.services.rollup import Rollup, Steps
from memoryd.services.segmenter import Piece, Segmenter
from memoryd.services.wording import WORDLESS, segment_node
from memoryd.services.workshop import Workshop
from memoryd.storage.committer import Committer
from memoryd.storage.nodes import Change, Due, Extent
from memoryd.storage.store import Store

_log = logging.getLogger(__name__)
_T = TypeVar("_T")

RECIPE: Final = "toc:recipe"
_STEP_EVENTS: Final = 2_000
_STEP_BYTES: Final = 16 * 1024 * 1024
_QUIET_SECONDS: Final = 0.25  # without a write: then the writers are taken to be done
_SETTLE_SECONDS: Final = 1.0  # is waited for that at most
_GIVING_WAY: Final = (
    3.0  # times as long as a step is rested beside writers, at most so many seconds:
)
_REST_SECONDS: Final = 1.0
_PATIENCE_SECONDS: Final = 20.0  # after which what waits is worked in whoever writes
_REFRESH_SECONDS: Final = 2.0
_OVERDUE_SECONDS: Final = 15.0
_LOOK_SECONDS: Final = 30.0
_RETRY_SECONDS: Final = (1.0, 2.0, 5.0, 15.0)


class Recipe(NamedTuple):
    """What the table of contents depends on besides the events. Another recipe, another table."""

    zone: str
    rules: Rules


class Pump:
    """Derives from `start` to `stop`."""

    def __init__(
        self,
        store: Store,
        committer: Committer,
        workshop: Workshop,
        calendar: Calendar,
        recipe: Recipe,
        clock_ms: Callable[[], int],
        steps: Steps,
    ) -> None:
        self._store = store
        self._nodes = store.nodes
        self._committer = committer
        self._workshop = workshop
        self._calendar = calendar
        self._recipe = recipe
        self._clock_ms = clock_ms
        self._steps = steps
        self._segmenter = Segmenter(store.log, store.nodes, recipe.rules, calendar, clock_ms)
        self.rollup = Rollup(store.nodes, calendar, workshop.summarizer, clock_ms, steps)
        self.held: Callable[[Level], bool] = lambda _level: False  # levels that are paused
        self.done = 0
        self._tasks: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._asking = threading.Lock()
        self._wake = threading.Event()  # there is something to do
        self._asked = threading.Event()  # and it cannot wait for the writers
        self._stopping = False
        self._seen = committer.commits
        self._courtesy = Courtesy(committer, _PATIENCE_SECONDS)
        self._stale_since: float | None = time.monotonic()  # since when periods are marked
        self._failures = 0
        self._thread = threading.Thread(target=self._run, name="pump", daemon=True)

    # --- from other threads

    def start(self) -> None:
        """Begin to work."""
        self.prepare()
        self._committer.on_grown = self._wake.set
        self._thread.start()

    def stop(self) -> None:
        """End after the step under way; what is left is taken up at the next start."""
        with self._asking:
            self._stopping = True
            self._asked.set()
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._workshop.close()
        while self._tasks:
            self._tasks.popleft()[1].set_exception(Stopping("the daemon is stopping"))

    def ask(self, task: Callable[[], _T]) -> "Future[_T]":
        """Have something done in the pump's thread, between two steps. Raises Stopping."""
        done: Future[_T] = Future()
        with self._asking:  # no task may come behind the last look at them
            if self._stopping:
                raise Stopping("the daemon is stopping")
            self._tasks.append((task, done))
            self._asked.set()
        self._wake.set()
        return done

    def count_nodes(self) -> int:
        """How many nodes the latest tree has."""
        return sum(1 for _ in self._nodes.ids_between("toc:", "toc:~"))

    # --- tasks, for `ask`

    def catch_up(self) -> None:
        """Work in all that waits now; what comes meanwhile must not keep a rollup waiting for ever."""
        end = self._committer.synced
        while self.done < end and not self._stopping:
            self._step()
        self._close_segments()

    def roll_up(self, level: Level) -> dict[str, str]:
        """Derive what has changed at a level, and close the periods that have ended."""
        self.catch_up()
        derived = self.rollup.refresh(level, lambda: not self._stopping)
        closed = self.rollup.close(level)
        return {"derived": str(derived), "closed": str(closed)}

    def start_over(self) -> int:
        """Throw the table of contents away and begin again; how many events there are to do."""
        end = self._committer.synced
        change = self._nodes.change()
        change.start_over(end, self._clock_ms())
        change.remember(RECIPE, self._recipe)
        self._steps.reach("rebuild.before_write")
        change.write()
        self._steps.reach("rebuild.after_write")
        self.done = 0
        self._mark_stale()
        return end

    def rewrite(self, node: Node, grips: Sequence[Grip], version: int) -> bool:
        """Put other words in the place of a version, unless it has changed; say whether it was."""
        old = self._nodes.find(node.node_id)
        if old is None or old.version != version:
            return False
        change = self._nodes.change()
        change.put_node(node)
        change.clear_unwritten(node.level, node.node_id)
        for grip in grips:
            change.put_grip(grip)
        if node.level is not Level.YEAR:
            above = self._calendar.period(node.start_ms, Level(node.level - 1))
            change.mark_dirty(above.level, above.node_id)
        self._steps.reach("rewrite.before_write")
        change.write()
        self._steps.reach("rewrite.after_write")
        self._mark_stale()
        return True

    def derive_anew(self, keys: Mapping[int, Sequence[bytes]]) -> Renewed:
        """Derive again all that stands on some events, by session number, and drop what was."""
        anew = Anew(self._store, self._segmenter, self._workshop, self.rollup, self._calendar)
        return anew.run(keys, self._steps.reach)

    # --- the thread

    def prepare(self) -> None:
        """Find where the last run ended; begin again if the recipe has changed since."""
        known = self._store.checkpoints.get(RECIPE)
        now = [self._recipe.zone, list(self._recipe.rules)]
        if known is None:
            self._store.checkpoints.put(RECIPE, self._recipe)
        elif known != now:
            _log.info("time zone or rules have changed: the table of contents is derived again")
            self.start_over()
        first = next(self._store.log.outbox(), None)
        self.done = first[0] - 1 if first else self._committer.synced

    def _run(self) -> None:
        while not self._stopping:
            try:
                self._turn()
                self._failures = 0
            except Exception as error:  # noqa: BLE001 - a dead pump would derive nothing any more
                self._fail(error)

    def _turn(self) -> None:
        """One round: tasks, events, segments that close, periods that have changed; then wait."""
        self._wake.clear()
        self._asked.clear()
        while self._tasks and not self._stopping:
            self._do(*self._tasks.popleft())
        if self._committer.synced > self.done:
            self._settle()
            self._step_beside()
            self._mark_stale()
        if self._committer.synced > self.done or self._tasks:
            return
        self._close_segments()
        if self._stale_since is None:
            self._workshop.rest()
            self._wake.wait(self._until_due())
        elif not self._wake.wait(_REFRESH_SECONDS) or self._overdue():
            self._refresh_periods()

    def _settle(self) -> None:
        """Wait for the end of what has begun to come: its writers need the processor.

        If they are few, only for a moment, and no longer than until there is a whole step to do.
        """
        deadline = time.monotonic() + _SETTLE_SECONDS
        while self._committer.commits != self._seen:
            self._seen = self._committer.commits
            if not self._courtesy.wait(self.done):
                full = self._committer.synced - self.done >= _STEP_EVENTS
                if full or time.monotonic() > deadline or self._courtesy.late(self.done):
                    return
            if self._asked.wait(_QUIET_SECONDS):
                return

    def _step_beside(self) -> None:
        """Take a step and, while others write to the log, leave the processor to them for longer.

        Deriving is Python's work, and so is acknowledging: without this, writers would get half of
        what they get alone.
        """
        began, commits = time.monotonic(), self._committer.commits
        self._step()
        if self._committer.commits != commits and not self._courtesy.late(self.done):
            self._asked.wait(min(_REST_SECONDS, _GIVING_WAY * (time.monotonic() - began)))

    def _do(self, task: Callable[[], _T], done: "Future[_T]") -> None:
        try:
            done.set_result(task())
        except MemorydError as error:
            done.set_exception(type(error)(*error.args))  # a traceback keeps the database open
        except BaseException as error:  # noqa: BLE001 - whoever asked must get an answer
            done.set_exception(RuntimeError(f"the pump has failed ({type(error).__name__})"))

    def _step(self) -> None:
        """Work in the next events of the outbox."""
        sessions: dict[str, dict[bytes, Recorded]] = defaultdict(dict)
        size, end, synced = 0, self.done, self._committer.synced
        left = self._store.log.after(self.done, synced)
        for recorded in islice(left, _STEP_EVENTS):
            event = recorded.event
            sessions[event.session_id][event_key(event.time_ms, event.event_id)] = recorded
            end = recorded.sequence
            size += len(event.text)
            if size > _STEP_BYTES:
                break
        else:
            if next(left, None) is None:
                end = synced  # also over events at the end of the log that are gone
        del left  # a scan that is not at its end holds on to the state of the database
        self._steps.reach("pump.after_read")
        pieces: list[Piece] = []
        removed: list[Extent] = []
        for session_id, fresh in sessions.items():
            reworked = self._segmenter.rework(session_id, fresh, end)
            pieces += reworked.pieces
            removed += reworked.removed
        change = self._nodes.change()
        self._put_segments(change, pieces)
        for extent in removed:
            change.remove_extent(extent)
            change.remove_node(extent.node_id)
            self._mark_day(change, extent)
        change.acknowledge(end)
        self._steps.reach("pump.before_write")
        change.write()
        self._steps.reach("pump.after_write")
        self.done = end

    def _put_segments(self, change: Change, pieces: list[Piece]) -> None:
        name = self._workshop.summarizer.name
        tasks = [(piece.events, piece.before) for piece in pieces]
        for piece, summary in zip(pieces, self._workshop.segments(tasks), strict=True):
            node, grips = segment_node(piece, summary or WORDLESS, name if summary else "")
            change.put_node(node)
            change.put_extent(piece.extent, piece.old)
            for grip in grips:
                change.put_grip(grip)
            self._mark_day(change, piece.extent)

    def _mark_day(self, change: Change, extent: Extent) -> None:
        time_ms = int.from_bytes(extent.first[:8], "big")
        change.mark_dirty(Level.DAY, self._calendar.period(time_ms, Level.DAY).node_id)

    def _close_segments(self) -> None:
        for due in list(self._nodes.due(Level.SEGMENT, self._clock_ms())):
            self._close_segment(due)
            self._mark_stale()

    def _close_segment(self, due: Due) -> None:
        change = self._nodes.change()
        change.drop_due(due)
        session, key = int.from_bytes(due.place[:4], "big"), due.place[4:]
        extent = self._nodes.extent_at(session, key)
        node = self._nodes.find(due.node_id)
        if extent is not None and extent.first == key and node is not None:
            change.put_extent(extent._replace(closes_ms=0), extent)
            change.put_node(node._replace(provisional=False))
            self._mark_day(change, extent)
        self._steps.reach("close.before_write")
        change.write()
        self._steps.reach("close.after_write")

    def _refresh_periods(self) -> None:
        """Derive what has changed, from the days up, until something else is to be done."""
        overdue = self._overdue()

        def alive() -> bool:
            return not (self._stopping or self._tasks or (self._wake.is_set() and not overdue))

        for level in PERIODS:
            if not self.held(level):
                self.rollup.refresh(level, alive)
        if alive():
            self._stale_since = None

    def _mark_stale(self) -> None:
        if self._stale_since is None:
            self._stale_since = time.monotonic()

    def _overdue(self) -> bool:
        """Whether periods have waited so long that they come before new events."""
        since = self._stale_since
        return since is not None and time.monotonic() - since > _OVERDUE_SECONDS

    def _until_due(self) -> float | None:
        due = self._nodes.next_due_ms(Level.SEGMENT)
        if due is None:
            return None
        # the wall clock may be set, or the machine sleep, while we wait
        return min(max(0.0, (due - self._clock_ms()) / 1000), _LOOK_SECONDS)

    def _fail(self, error: Exception) -> None:
        """Say what went wrong, and wait longer each time it goes wrong again."""
        seconds = _RETRY_SECONDS[min(self._failures, len(_RETRY_SECONDS) - 1)]
        reason = str(error) if isinstance(error, MemorydError) else type(error).__name__
        if not self._failures:
            self._steps.on_error("derive", reason)
            trace = error.__traceback__
            while trace is not None and trace.tb_next is not None:
                trace = trace.tb_next
            where = f"{trace.tb_frame.f_code.co_name}:{trace.tb_lineno}" if trace else ""
            _log.error("the pump has failed", extra={"reason": reason, "at": where})
        self._failures += 1
        self._wake.wait(seconds)
