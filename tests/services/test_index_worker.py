import os
import shutil
import signal
from collections.abc import Iterator

import pytest

from memoryd.domain.document import Document, Kind
from memoryd.domain.errors import IndexDoubt
from memoryd.domain.question import read
from memoryd.index import files
from memoryd.index.reader import Filters, Reader
from memoryd.index.schema import State
from memoryd.services.index_worker import IndexWorker
from tests.services.test_indexer import Room, event, indexed


class Bench:
    """A new index, its worker, and its lock."""

    def __init__(self, directory: str) -> None:
        self.path = f"{directory}/index"
        self.lock = files.hold(self.path)
        assert self.lock is not None
        self.reader = Reader(files.create(self.path))
        self.worker = self.hire(State("store", {}, 0))

    def hire(self, state: State) -> IndexWorker:
        """A worker for the index, which stands at a state."""
        kept = () if self.lock is None else (self.lock,)
        return IndexWorker(self.path, state, self.reader, bulk=False, kept=kept)

    def held(self) -> set[str]:
        """The ids of the documents that can be found."""
        return {head.id for head in self.reader.newest(read(""), Filters(kinds=tuple(Kind)), 100)}

    def unlock(self) -> None:
        """Close our end of the lock."""
        if self.lock is not None:
            os.close(self.lock)
            self.lock = None


@pytest.fixture
def bench(tmp_path: os.PathLike[str]) -> Iterator[Bench]:
    """A new index with its worker."""
    made = Bench(os.fspath(tmp_path))
    yield made
    made.worker.close()
    made.unlock()


def document(number: int, kind: Kind = Kind.EVENT) -> Document:
    """One document."""
    return Document(kind, f"d{number}", f"wörd{number} 大 pool", number, number, path=("y", "m"))


def pid_of(worker: IndexWorker) -> int:
    """The process of a worker."""
    process = worker._child.process
    assert process is not None
    return process.pid


def test_what_is_committed_is_found_and_replaced_and_goes(bench: Bench) -> None:
    """Everything that a writer can do goes through the pipe, and so does the state it makes."""
    worker = bench.worker
    worker.put([document(n) for n in (1, 2)], replacing=False)
    worker.put([document(3, Kind.NODE), document(4, Kind.NOTE)], replacing=True)
    assert bench.held() == set()
    worker.commit({"log": 2})
    assert bench.held() == {"d1", "d2", "d3", "d4"}
    assert (worker.state.cursors, worker.state.events) == ({"log": 2}, 2)
    (head,) = bench.reader.newest(read(""), Filters(kinds=(Kind.NODE,)), 9)
    assert head.path == ("y", "m")
    worker.put([document(4, Kind.NOTE)], replacing=True)
    worker.remove(Kind.EVENT, ("d1",))
    worker.remove_all(Kind.NODE)
    worker.commit({"log": 3})
    assert bench.held() == {"d2", "d4"}
    assert bench.reader.state() == worker.state


def test_a_worker_without_work_is_ended_and_replaced(bench: Bench) -> None:
    """Its memory goes back; the next document goes on where the last commit stood."""
    bench.worker.put([document(1)], replacing=False)
    assert not bench.worker.idle(-1)  # it holds what is not committed
    bench.worker.commit({"log": 1})
    assert bench.worker.idle(-1)
    process = bench.worker._child.process
    bench.worker.rest()
    assert process is not None
    assert process.returncode == 0
    assert not bench.worker.open
    bench.worker.put([document(2)], replacing=False)
    bench.worker.commit({"log": 2})
    assert bench.worker.state.events == 2
    assert bench.held() == {"d1", "d2"}


def test_a_worker_outlives_the_signal_that_stops_a_daemon(bench: Bench) -> None:
    """The last commit is made although everybody was told to end; then it ends with its input."""
    bench.worker.put([document(1)], replacing=False)
    bench.worker._answers(0)
    os.kill(pid_of(bench.worker), signal.SIGTERM)
    bench.worker.commit({"log": 1})
    assert bench.held() == {"d1"}
    process = bench.worker._child.process
    bench.worker.close()
    assert process is not None
    assert process.returncode == 0


@pytest.mark.parametrize("after", ["put", "commit"])
def test_a_killed_worker_never_commits_a_part(bench: Bench, after: str) -> None:
    """A commit behind the death of a worker fails if that worker was given anything."""
    worker = bench.worker
    worker.put([document(1)], replacing=False)
    worker.commit({"log": 1})
    if after == "put":
        worker.put([document(2)], replacing=False)
        worker._answers(0)
    os.kill(pid_of(worker), signal.SIGKILL)
    os.waitid(os.P_PID, pid_of(worker), os.WEXITED | os.WNOWAIT)
    if after == "put":
        with pytest.raises(IndexDoubt, match="has ended"):
            worker.commit({"log": 2})
        bench.reader.reload()
        assert bench.reader.state().cursors == {"log": 1}
    else:
        worker.commit({"log": 2})
        assert bench.reader.state().cursors == {"log": 2}
    assert bench.held() == {"d1"}


def test_an_error_of_the_engine_comes_back_in_words(bench: Bench) -> None:
    """What the worker cannot do is a doubt, and what was sent behind it is not done."""
    bench.worker.put([document(1)], replacing=False)
    bench.worker.commit({"log": 1})
    shutil.rmtree(bench.path)
    bench.worker.put([document(2)], replacing=False)
    with pytest.raises(IndexDoubt, match="index"):
        bench.worker.commit({"log": 2})
    assert not bench.worker.open
    with pytest.raises(IndexDoubt, match="no index"):
        bench.worker.commit({"log": 9})


def test_the_directory_is_held_until_the_worker_has_ended_too(bench: Bench) -> None:
    """Whoever comes after a killed daemon waits for its worker, which ends with its input."""
    bench.worker.put([document(1)], replacing=False)
    process = bench.worker._child.process
    assert process is not None
    assert process.stdin is not None
    bench.unlock()
    assert files.hold(bench.path) is None
    process.stdin.close()
    assert process.wait(30) == 0
    bench.lock = files.hold(bench.path)
    assert bench.lock is not None


def test_the_index_waits_for_its_directory(tmp_path: os.PathLike[str]) -> None:
    """While somebody holds the directory nothing is written to it; then everything is."""
    lock = files.hold(f"{os.fspath(tmp_path)}/index")
    assert lock is not None
    room = Room(os.fspath(tmp_path))
    room.write(event(1, "red pool"))
    room.indexer._ended.wait(0.2)
    assert not os.path.exists(room.path)
    os.close(lock)
    room.settle()
    assert room.find("pool") == ["e0001"]
    room.close()


def test_killed_workers_lose_and_double_nothing(tmp_path: os.PathLike[str]) -> None:
    """Whenever the worker is killed, the index comes to hold each event once."""
    room = Room(os.fspath(tmp_path))
    room.settle()
    for start in range(0, 60, 20):
        room.write(*(event(start + n, f"word{start + n}") for n in range(1, 21)))
        target = room.indexer._target
        assert target is not None
        room.until(lambda: target.writer.open or room.indexer.sequence() > start)  # noqa: B023
        process = target.writer._child.process
        if process is not None:
            process.kill()
    room.settle()
    assert indexed(room) == {f"e{n:04}": n for n in range(1, 61)}
    room.restart()
    room.settle()
    assert room.indexer.status().rebuilds == 0
    room.close()
