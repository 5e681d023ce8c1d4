"""Where documents are analysed and put into the index: by a process of its own. Derived.

Analysing is pure Python, and so is acknowledging: in one process they would hold each other up.
The daemon's end, `IndexWorker`, has the face of `index.writer.Writer` and sends it plain
documents; the daemon reads the same directory and looks again after each commit.

The process is started with the first document and ended when there is nothing to do, which gives
its memory back. One that meets an error says so and ends, so that nothing that was sent behind
the error is committed. A process that is killed has committed all or nothing of what it was told
to; which of the two, only the index on the disk can say.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, Final

from memoryd.domain.document import Document, Kind
from memoryd.domain.errors import IndexDoubt
from memoryd.index import files
from memoryd.index.reader import Reader
from memoryd.index.schema import State
from memoryd.index.writer import Writer
from memoryd.services.child import Child, receive, send, standard_streams

_AHEAD: Final = 2  # messages under way, so that neither side waits for the other


class IndexWorker:
    """Writes to one index. For one thread."""

    def __init__(
        self, path: str, state: State, reader: Reader, *, bulk: bool, kept: Sequence[int] = ()
    ) -> None:
        """``reader`` is shown each commit; ``kept`` are files that the process holds open too."""
        self._child = Child(__name__, (path, "bulk" if bulk else "live"), kept)
        self._reader = reader
        self._under_way = 0
        self.state = state
        self.waiting = 0  # documents that have been sent and not been committed

    def put(self, documents: Iterable[Document], *, replacing: bool) -> None:
        """Put documents in; with ``replacing``, each instead of the one of its kind and id.

        Raises IndexDoubt, for this or for something that was sent before.
        """
        sent = tuple(documents)
        self._tell("put", sent, replacing)
        self.waiting += len(sent)

    def remove(self, kind: Kind, ids: Sequence[str]) -> None:
        """Take documents out. Raises IndexDoubt as `put`."""
        self._tell("remove", kind, ids)
        self.waiting += len(ids)

    def remove_all(self, kind: Kind) -> None:
        """Take all documents of a kind out, of all but events. Raises IndexDoubt as `put`."""
        self._tell("remove_all", kind)
        self.waiting += 1

    def commit(self, cursors: dict[str, int]) -> None:
        """Bring everything to the disk, and how far the sources have been taken in with it.

        Raises IndexDoubt; then only the disk can say whether it was done.
        """
        self._tell("commit", cursors)
        answer = self._answers(0)
        with files.doubting("the state of the index cannot be read"):
            self.state = State.decode(answer)
        self._reader.reload()
        self.waiting = 0

    @property
    def open(self) -> bool:
        """Whether there is a process that holds memory."""
        return self._child.process is not None

    def idle(self, seconds: float) -> bool:
        """Whether there is a process that has had nothing to do for so long."""
        return not self.waiting and self._child.idle(seconds)

    def rest(self) -> None:
        """Have what is being merged finished, and end the process until the next document."""
        if self.open and not self.waiting:
            with suppress(IndexDoubt):
                self._tell("rest")
                self._answers(0)
            self.close()

    def close(self) -> None:
        """End; what has not been committed is lost."""
        self._child.end()
        self._under_way = self.waiting = 0

    def _tell(self, *message: object) -> None:
        with self._ending():
            if self._child.start():
                if self.waiting:
                    raise EOFError  # the one before has died, and what it was given is lost
                self._child.send(self.state.encode())
            self._child.send(message)
            self._child.flush()
        self._under_way += 1
        self._answers(_AHEAD)

    def _answers(self, open_: int) -> Any:
        """Take answers until at most so many are open; the last of them."""
        answer = None
        while self._under_way > open_:
            with self._ending():
                answer = self._child.receive()
            self._under_way -= 1
            if isinstance(answer, str):
                self.close()
                raise IndexDoubt(answer)
        return answer

    @contextmanager
    def _ending(self) -> Iterator[None]:
        try:
            yield
        except (OSError, EOFError, ValueError) as error:
            self.close()
            raise IndexDoubt("the process that writes the index has ended") from error


def serve(path: str, inbox: BinaryIO, outbox: BinaryIO, *, bulk: bool) -> None:
    """Do what comes in until nothing does, or until something fails.

    An answer is nothing, the state behind a commit, or the words for what has failed.
    """
    with suppress(BrokenPipeError, EOFError):
        try:
            index = files.open_existing(path)
            writer = Writer(index, State.decode(receive(inbox)), bulk=bulk)
            while True:
                send(outbox, _do(writer, *receive(inbox)))
                outbox.flush()
        except IndexDoubt as doubt:
            send(outbox, str(doubt))
            outbox.flush()


def _do(writer: Writer, name: str, *arguments: Any) -> bytes | None:
    if name == "put":
        documents, replacing = arguments
        writer.put((_document(fields) for fields in documents), replacing=replacing)
    elif name == "remove":
        writer.remove(Kind(arguments[0]), arguments[1])
    elif name == "remove_all":
        writer.remove_all(Kind(arguments[0]))
    elif name == "commit":
        writer.commit(arguments[0])
        return writer.state.encode()
    elif name == "rest":
        writer.rest()
    return None


def _document(fields: list[Any]) -> Document:
    made = Document(*fields)
    return made._replace(kind=Kind(made.kind), path=tuple(made.path))


if __name__ == "__main__":
    serve(sys.argv[1], *standard_streams(), bulk=sys.argv[2] == "bulk")
    os._exit(0)  # whatever is being merged may be left: it is merged another time
