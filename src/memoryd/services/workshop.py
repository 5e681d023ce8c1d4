"""Where segments are put into words: in the pump's thread, or by a process of its own in bulk.

Summarizing is pure Python and would hold up acknowledgements, so a step with many segments is
handed to one spawned process. A process that dies is replaced, and its work is done in the
thread meanwhile.
"""

import importlib
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, BinaryIO, Final

from memoryd.domain.event import Event
from memoryd.domain.summarize import Evidence, Point, Summarizer, Summary
from memoryd.services.child import Child, receive, send, standard_streams

_BULK: Final = 4  # segments in a step, from which on it is worth the way to another process
_IDLE_SECONDS: Final = 60.0
_AHEAD: Final = 8  # segments under way, so that neither side waits for the other

Task = tuple[Sequence[Event], Sequence[Event]]


class Workshop:
    """Summarizes segments for one thread, the pump's."""

    def __init__(
        self, summarizer: Summarizer, factory: str, on_error: Callable[[str, str], object]
    ) -> None:
        """``factory`` names the class of the summarizer, as "module:Class"; empty: no process."""
        self.summarizer = summarizer
        self._factory = factory
        self._on_error = on_error
        self._child = Child(__name__, (factory,))

    def segments(self, tasks: Sequence[Task]) -> Iterator[Summary | None]:
        """A summary for each task, in order; None where the summarizer failed."""
        done = 0
        if self._factory and len(tasks) >= _BULK:
            try:
                for summary in self._elsewhere(tasks):
                    done += 1
                    yield summary
            except (OSError, EOFError, ValueError) as error:
                self._child.end()
                self._on_error("summarize", f"the worker process failed ({type(error).__name__})")
        for events, before in tasks[done:]:
            yield self._here(events, before)

    def rest(self) -> None:
        """End the process if it has not been needed for a while."""
        if self._child.idle(_IDLE_SECONDS):
            self._child.end()

    def close(self) -> None:
        """End the process."""
        self._child.end()

    def _here(self, events: Sequence[Event], before: Sequence[Event]) -> Summary | None:
        try:
            return self.summarizer.segment(events, before)
        except Exception as error:  # noqa: BLE001 - one bad segment must not stop the pump
            self._on_error("summarize", f"a segment has no words ({type(error).__name__})")
            return None

    def _elsewhere(self, tasks: Sequence[Task]) -> Iterator[Summary | None]:
        self._child.start()
        sent = 0
        for place in range(len(tasks)):
            while sent < min(place + _AHEAD, len(tasks)):
                self._child.send(tasks[sent])
                sent += 1
            self._child.flush()
            answer = self._child.receive()
            if answer is None:
                self._on_error("summarize", "a segment has no words")
            yield _summary(answer)


def serve(factory: str, inbox: BinaryIO, outbox: BinaryIO) -> None:
    """Summarize what comes in until nothing does."""
    module, _, name = factory.partition(":")
    summarizer: Summarizer = getattr(importlib.import_module(module), name)()
    # read in a thread: whoever sends must never have to wait for an answer to be taken
    tasks: SimpleQueue[Any] = SimpleQueue()
    threading.Thread(target=_read_all, args=(inbox, tasks), daemon=True).start()
    with suppress(BrokenPipeError):
        while (task := tasks.get()) is not None:
            events, before = ([Event(*fields) for fields in part] for part in task)
            try:
                summary = summarizer.segment(events, before)
            except Exception:  # noqa: BLE001 - the other side decides what becomes of it
                send(outbox, None)
            else:
                send(outbox, summary)
            outbox.flush()


def _read_all(inbox: BinaryIO, tasks: "SimpleQueue[Any]") -> None:
    with suppress(EOFError):
        while True:
            tasks.put(receive(inbox))
    tasks.put(None)


def _summary(answer: Any) -> Summary | None:
    if answer is None:
        return None
    title, summary, points, keywords, by = answer
    return Summary(
        title,
        summary,
        tuple(
            Point(text, tuple(Evidence(*e) for e in evidence), weight)
            for text, evidence, weight in points
        ),
        tuple(keywords),
        by,
    )


if __name__ == "__main__":
    serve(sys.argv[1], *standard_streams())
