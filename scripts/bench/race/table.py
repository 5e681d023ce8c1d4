"""How the figures are told: one table for each size, the floors, and the page in docs."""

import os
import platform
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from race.course import EMPTY, OURS, RAW, RIPGREP, SQLITE, Results

_SOME, _MANY = 100_000, 1_000_000
WHO: Final = (OURS, SQLITE, RIPGREP, RAW, EMPTY)
_WORK: Final = (  # name, unit, what is shown
    ("bulk ingest", "events/s", "batches of 1,000, each synced"),
    ("single ingest", "events/s", "one client, one event after the other, each synced"),
    ("derived", "events/s", "written, summarized and searchable"),
    ("last 50 events", "ms", ""),
    ("one session", "ms", "200 events"),
    ("one day", "ms", "1,440 events"),
    ("search, rare word", "ms", "top 10"),
    ("search, common words", "ms", "three words, top 10"),
    ("search, question", "ms", "six words, top 10"),
    ("open a grip", "ms", "the evidence, three events before and after"),
    ("context block", "ms", "for a question of six words"),
    ("toc root", "ms", ""),
    ("one node", "ms", ""),
    ("10 children", "ms", ""),
    ("cold start", "ms", "from nothing to the first answer"),
    ("disk", "of JSONL", "everything, with the search index"),
    ("memory", "MB", "while searching"),
)


_STAGES: Final = (
    ("ingest", "all events, in batches of 1,000"),
    ("search index", "until all are searchable"),
    ("table of contents", "until the years are up to date"),
    ("browse", "some hundred calls: those of the table above"),
    ("backup", "a checkpoint, copied and hashed"),
    ("restart", "to the first answer"),
    ("search", "195 searches"),
)


class Floor(NamedTuple):
    """One promise: a ratio and its bound."""

    name: str
    value: float
    bound: float
    at_most: bool

    @property
    def kept(self) -> bool:
        """Whether the promise is kept."""
        return self.value <= self.bound if self.at_most else self.value >= self.bound

    @property
    def lost(self) -> bool:
        """Whether it is missed by more than a factor of two."""
        if self.at_most:
            return self.value > 2 * self.bound
        return self.value < self.bound / 2


def floors(every: Sequence[Results]) -> Iterator[Floor]:
    """All promises, at the largest size that was measured."""
    last = every[-1]

    def of(work: str, who: str = OURS) -> float:
        return last.get(work, who) or 0.0

    size = f"{last.total:,}"
    yield Floor(
        "batch ingest / raw rocksdict", of("bulk ingest") / of("bulk ingest", RAW), 0.4, False
    )
    asked = "search, question"
    for kind in ("rare word", "common words", "question"):
        work = f"search, {kind}"
        if last.total < _MANY:  # raw tantivy takes next to nothing here: what counts is the call
            yield Floor(f"{work} / empty RPC", of(work) / of(work, EMPTY), 6.0, at_most=True)
            continue
        allowed = 2 * of(work, RAW) + of(work, EMPTY)
        name = f"search at {size}, {kind} / (2 raw + empty RPC)"
        yield Floor(name, of(work) / allowed, 1.0, at_most=True)
    if last.total >= _MANY:
        name = f"search at {size}, question / FTS5"
        yield Floor(name, of(asked) / of(asked, SQLITE), 1.0, at_most=True)
    for work in ("toc root", "one node", "10 children", "open a grip"):
        yield Floor(f"{work} / empty RPC", of(work) / of("empty RPC", EMPTY), 1.5, True)
    yield Floor("context block, ms", of("context block") * 1e3, 30.0, True)
    yield Floor(f"cold start with {size} events, s", of("cold start"), 0.8, True)
    if last.total >= _SOME:  # below, what an empty store takes is most of it
        yield Floor("disk / raw JSONL", of("disk"), 0.6, True)
    if len(every) > 1:
        first = every[0]
        sizes = f"{first.total:,} to {size}"
        for work in ("bulk ingest", "derived"):
            grown = (first.get(work) or 0.0) / of(work)
            yield Floor(f"cost of an event, {work}, {sizes}", grown, 1.5, True)
        grown = of(asked) / (first.get(asked) or 1.0)
        yield Floor(f"cost of a search, question, {sizes}", grown, 1.5, True)


def tables(every: Sequence[Results]) -> Iterator[str]:
    """The lines of all tables, in Markdown."""
    for results in every:
        yield f"### {results.total:,} events"
        yield ""
        yield f"| | {' | '.join(WHO)} |"
        yield f"|---{'|---:' * len(WHO)}|"
        for work, unit, remark in _WORK:
            shown = f"{work} ({remark})" if remark else work
            cells = (_cell(results.get(work, who), unit) for who in WHO)
            yield f"| {shown}, {unit} | {' | '.join(cells)} |"
        yield ""


def growth(every: Sequence[Results]) -> Iterator[str]:
    """The lines of what each part of a daemon's life takes as the log grows, in Markdown."""
    yield "### From the first event to a backup"
    yield ""
    yield (
        "Each part begins when the one above it is done: the index and the table of contents wait "
        "while a lot is written. Disk is that of the data directory afterwards, memory the most "
        "that the daemon and its processes had meanwhile, both in MB."
    )
    yield ""
    yield f"| | {' | '.join(f'{r.total:,}: s, disk, memory' for r in every)} |"
    yield f"|---{'|---:' * len(every)}|"
    for name, remark in _STAGES:
        cells = (r.stages[name] for r in every)
        told = (f"{c.seconds:,.2f}, {c.disk_mb:,.0f}, {c.memory_mb:,.0f}" for c in cells)
        yield f"| {name} ({remark}) | {' | '.join(told)} |"
    yield ""


def floor_lines(found: Sequence[Floor]) -> Iterator[str]:
    """The lines of the floors' table, in Markdown."""
    yield "| promise | reached | bound | |"
    yield "|---|---:|---:|---|"
    for floor in found:
        sign = "at most" if floor.at_most else "at least"
        kept = "kept" if floor.kept else "missed"
        yield f"| {floor.name} | {floor.value:.2f} | {sign} {floor.bound:g} | {kept} |"


def machine() -> str:
    """What the figures were measured on."""
    return f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}"


def _cell(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    if unit == "ms":
        return f"{value * 1e3:,.2f}"
    return f"{value:.2f}" if unit == "of JSONL" else f"{value:,.0f}"
