"""One size: give everybody the events, ask everybody the same, and keep what it took."""

import os
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from memoryd.pb import memory_pb2 as pb
from race.corpus import SESSION, Corpus, Questions, Said
from race.ours import Daemon, clear, message, nothing, size
from race.rivals import Ripgrep, Rocks, Sqlite, Tantivy, sqlite_memory

BATCH: Final = 1_000
_GROUP: Final = 20  # batches that are made before the clock runs
_SINGLES: Final = 200
_CALLS: Final = 60
_RIPGREP_CALLS: Final = 5
_WARM: Final = 5

OURS, SQLITE, RIPGREP, RAW, EMPTY = "memoryd", "SQLite FTS5", "ripgrep", "raw engine", "empty RPC"


class Stage(NamedTuple):
    """What a part of a daemon's life took."""

    seconds: float
    disk_mb: float  # of the data directory, afterwards
    memory_mb: float  # at most, with the daemon's own processes


@dataclass
class Results:
    """What was measured at one size: by work and by who did it."""

    total: int
    figures: dict[tuple[str, str], float] = field(default_factory=dict)
    stages: dict[str, Stage] = field(default_factory=dict)

    def put(self, work: str, who: str, value: float) -> None:
        """Keep a figure."""
        self.figures[work, who] = value

    def get(self, work: str, who: str = OURS) -> float | None:
        """A figure, if there is one."""
        return self.figures.get((work, who))


def tell(text: str) -> None:
    """Say how far the run is."""
    print(text, file=sys.stderr, flush=True)


def run(scratch: str, total: int) -> Results:
    """Measure one size."""
    results, corpus = Results(total), Corpus(total)
    questions = corpus.questions()
    clear(scratch)
    os.makedirs(scratch)
    _rivals(scratch, results, corpus, questions)
    _memoryd(scratch, results, corpus, questions)
    clear(scratch)
    return results


def _rivals(scratch: str, results: Results, corpus: Corpus, questions: Questions) -> None:
    lines = Ripgrep(f"{scratch}/said.jsonl")
    sqlite = Sqlite(f"{scratch}/said.db")
    rocks, tantivy = Rocks(f"{scratch}/rocks"), Tantivy(f"{scratch}/tantivy")
    spent = {SQLITE: 0.0, RAW: 0.0}
    for events in _batches(corpus, results.total):
        lines.write(events)
        spent[SQLITE] += _seconds(sqlite.write, events)
        spent[RAW] += _seconds(rocks.write, rocks.ready(events))
        tantivy.write(events)
    tantivy.commit()
    for who, seconds in spent.items():
        results.put("bulk ingest", who, results.total / seconds)
    tell(f"{results.total:,}: the others have their events")
    singles = list(corpus.events(results.total, _SINGLES))
    results.put("single ingest", SQLITE, _rate(lambda s: sqlite.write([s]), singles))
    ready = [rocks.ready([said]) for said in singles]
    results.put("single ingest", RAW, _rate(rocks.write, ready))

    numbers = _numbers(results.total)
    starts = [corpus.time_ms(number) for number in numbers]
    results.put("last 50 events", SQLITE, _median(sqlite.last, [50] * _CALLS))
    results.put("last 50 events", RAW, _median(lambda at: rocks.range(at, 50), starts))
    results.put("one session", SQLITE, _median(sqlite.session, numbers))
    results.put("one session", RAW, _median(lambda at: rocks.range(at, SESSION), starts))
    results.put("one day", SQLITE, _median(sqlite.day, map(corpus.day, numbers)))
    results.put("one day", RAW, _median(lambda at: rocks.range(at, 1_440), starts))
    results.put("open a grip", SQLITE, _median(sqlite.around, numbers))
    for work, asked in _searches(questions):
        results.put(work, SQLITE, _median(sqlite.search, asked))
        results.put(work, RAW, _median(tantivy.search, asked))
        if lines.program:
            results.put(work, RIPGREP, _median(lines.search, asked[:_RIPGREP_CALLS], warm=1))
    sqlite.close()
    rocks.close()
    every = [text for _, asked in _searches(questions) for text in asked]
    results.put("cold start", SQLITE, _cold_sqlite(sqlite.path))
    results.put("memory", SQLITE, sqlite_memory(sqlite.path, every))
    results.put("disk", SQLITE, size(sqlite.path) / size(lines.path))
    results.put("disk", RAW, size(f"{scratch}/rocks") / size(lines.path))
    results.put("disk", RIPGREP, 1.0)
    results.put("jsonl", RIPGREP, size(lines.path))


def _memoryd(scratch: str, results: Results, corpus: Corpus, questions: Questions) -> None:
    daemon = Daemon(scratch)
    daemon.start()
    begin, seconds, group = time.perf_counter(), 0.0, []
    for events in _batches(corpus, results.total):
        group.append([message(said) for said in events])
        if len(group) == _GROUP:
            seconds += _seconds(daemon.write_ahead, iter(group))
            group = []
    seconds += _seconds(daemon.write_ahead, iter(group))
    results.put("bulk ingest", OURS, results.total / seconds)
    results.stages["ingest"] = _stage(daemon, seconds)
    _timed(daemon, results, "search index", daemon.index)
    _timed(daemon, results, "table of contents", daemon.derive)
    results.put("derived", OURS, results.total / (time.perf_counter() - begin))
    tell(f"{results.total:,}: memoryd has its events and all that follows from them")
    singles = [message(said) for said in corpus.events(results.total, _SINGLES)]
    results.put("single ingest", OURS, _rate(daemon.write_one, singles))
    daemon.settle()
    _timed(daemon, results, "browse", lambda: _browse(daemon, results, corpus))
    _timed(daemon, results, "backup", daemon.backup)
    daemon.stop()
    restart = statistics.median(_restarts(daemon))
    results.put("cold start", OURS, restart)
    results.stages["restart"] = _stage(daemon, restart)
    with nothing(scratch) as stub:
        ask = pb.TeleportSearchRequest(query="a few words")
        empty = _median(lambda _: stub.TeleportSearch(ask), range(_CALLS))
        begin = time.perf_counter()
        for work, asked in _searches(questions):
            results.put(work, EMPTY, empty)
            results.put(work, OURS, _median(daemon.search, asked))
        results.stages["search"] = _stage(daemon, time.perf_counter() - begin)
        results.put("empty RPC", EMPTY, empty)
    results.put("memory", OURS, daemon.memory())
    daemon.stop()
    whole, index = daemon.disk()
    jsonl = results.get("jsonl", RIPGREP) or 1.0
    results.put("disk", OURS, whole / jsonl)
    results.put("disk without index", OURS, (whole - index) / jsonl)


def _timed(daemon: Daemon, results: Results, name: str, work: Callable[[], object]) -> None:
    """Have a part of the daemon's life done, and keep what it took."""
    begin = time.perf_counter()
    work()
    results.stages[name] = _stage(daemon, time.perf_counter() - begin)


def _stage(daemon: Daemon, seconds: float) -> Stage:
    return Stage(seconds, daemon.disk()[0] / 1e6, daemon.peak())


def _browse(daemon: Daemon, results: Results, corpus: Corpus) -> None:
    numbers = _numbers(results.total)
    inner, segments, grips = daemon.places(_CALLS)
    results.put("last 50 events", OURS, _median(daemon.last, [50] * _CALLS))
    results.put("one session", OURS, _median(daemon.session, numbers))
    results.put("one day", OURS, _median(daemon.day, map(corpus.day, numbers)))
    results.put("open a grip", OURS, _median(daemon.grip, grips))
    questions = corpus.questions().asked
    results.put("context block", OURS, _median(daemon.context, questions))
    results.put("toc root", OURS, _median(daemon.root, numbers))
    results.put("one node", OURS, _median(daemon.node, segments))
    results.put("10 children", OURS, _median(daemon.children, inner * 8))


def _restarts(daemon: Daemon) -> Iterator[float]:
    """Seconds to the first answer, three times; the last daemon goes on running."""
    for turn in range(3):
        if turn:
            daemon.stop()
        yield daemon.start()


def _cold_sqlite(path: str) -> float:
    begin = time.perf_counter()
    opened = Sqlite(path)
    opened.last(50)
    spent = time.perf_counter() - begin
    opened.close()
    return spent


def _searches(questions: Questions) -> tuple[tuple[str, list[str]], ...]:
    return (
        ("search, rare word", questions.rare),
        ("search, common words", questions.common),
        ("search, question", questions.asked),
    )


def _batches(corpus: Corpus, total: int) -> Iterator[list[Said]]:
    for start in range(0, total, BATCH):
        yield list(corpus.events(start, min(BATCH, total - start)))


def _numbers(total: int) -> list[int]:
    """Events spread over the whole history."""
    return [total * turn // _CALLS for turn in range(_CALLS)]


def _seconds(call: Callable[[Any], object], argument: Any) -> float:
    begin = time.perf_counter()
    call(argument)
    return time.perf_counter() - begin


def _rate(call: Callable[[Any], object], arguments: list[Any]) -> float:
    begin = time.perf_counter()
    for argument in arguments:
        call(argument)
    return len(arguments) / (time.perf_counter() - begin)


def _median(call: Callable[[Any], object], arguments: Iterable[Any], *, warm: int = _WARM) -> float:
    """The median of the seconds that a call takes, after a few that warm up."""
    every = list(arguments)
    for argument in every[:warm]:
        call(argument)
    return statistics.median(_seconds(call, argument) for argument in every)
