"""Bits that flip, files that vanish or are cut off: everything is refused, or harmless."""

import os
import random
import shutil
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import grpc

from memoryd.pb import memory_pb2 as pb
from tests.faults.driver import Daemon, House
from tests.soak import searching
from tests.soak.outcome import Order, Outcome
from tests.soak.specimen import Damage, Specimen, Verdict, silent

FLIPPED = ("WAL", "SST", "MANIFEST", "CURRENT")
PATIENCE = 30.0
_AT_ONCE = 2
_EVENTS = 240


class IndexSpecimen:
    """A store whose index has settled; copies with a damaged index are judged by a real daemon.

    The outcomes: ``same`` (nobody noticed, and nothing was wrong), ``rebuilt`` (noticed, and right
    again), ``lost`` (answers stayed wrong), ``hung`` or ``crashed``.
    """

    def __init__(self, house: House) -> None:
        daemon = house.serve()
        for first in range(0, _EVENTS, 40):
            batch = pb.IngestEventsRequest(events=searching.events(first, 40))
            daemon.stub.IngestEvents(batch, timeout=30)
            searching.settle(daemon)
        self._truth = searching.truth(_EVENTS)
        assert searching.answers(daemon.stub, _EVENTS) == self._truth
        self._store = daemon.status().data_dir
        daemon.terminate()
        self._house = house
        self._lock = threading.Lock()
        self.slowest = 0.0

    def files(self, top: str = "index") -> list[str]:
        """The files below a directory of the store that hold something."""
        found = []
        for folder, _, names in os.walk(f"{self._store}/{top}"):
            found += [f"{folder}/{name}" for name in names]
        return sorted(os.path.relpath(f, self._store) for f in found if os.path.getsize(f))

    def size(self, path: str) -> int:
        """How long a file is."""
        return os.path.getsize(f"{self._store}/{path}")

    def flips(self, count: int, chance: random.Random) -> list[Damage]:
        """Random flips in the files of the index, every byte as likely as every other."""
        paths = self.files()
        chosen = chance.choices(paths, [self.size(path) for path in paths], k=count)
        return [Damage(path, chance.randrange(self.size(path) * 8)) for path in chosen]

    def judge_all(self, damages: Sequence[Damage]) -> list[Verdict]:
        """Judge many damages, each on a copy of its own, two at a time."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return list(pool.map(self.judge, damages))

    def judge(self, damage: Damage) -> Verdict:
        """Damage a copy and ask a daemon that serves it."""
        copy = tempfile.mkdtemp(prefix="i", dir=self._house.base)
        daemon = None
        try:
            shutil.copytree(self._store, f"{copy}/d")
            damage.apply(f"{copy}/d")
            flags = "--data-dir", f"{copy}/d", "--runtime-dir", f"{copy}/r"
            with self._lock:
                daemon = self._house.spawn(*flags)
            daemon.wait_ready(f"{copy}/r")
            return self._ask(damage, daemon)
        except (RuntimeError, grpc.RpcError) as error:
            return Verdict(damage, "crashed", str(error)[:300])
        finally:
            if daemon is not None:
                daemon.kill()
            shutil.rmtree(copy)

    def _ask(self, damage: Damage, daemon: Daemon) -> Verdict:
        began = time.monotonic()
        while time.monotonic() < began + PATIENCE:
            status = searching.settle(daemon, PATIENCE)
            found = searching.answers(daemon.stub, _EVENTS)
            wrong = [word for word in found if found[word] != self._truth[word]]
            if not wrong and status.state == pb.INDEX_STATE_READY:
                seconds = time.monotonic() - began
                self.slowest = max(self.slowest, seconds)
                return Verdict(damage, "rebuilt" if status.rebuilds else "same", f"{seconds:.1f} s")
            time.sleep(0.1)
        if status.state != pb.INDEX_STATE_READY:
            return Verdict(damage, "hung", status.reason)
        return Verdict(damage, "lost", f"wrong answers for {wrong[:5]}")


def flip(order: Order) -> Outcome:
    """Flip single bits, as many in each kind of file as there are cycles."""
    outcome = Outcome("flip", order.seed)
    chance = random.Random(order.seed)
    house = House()
    try:
        specimen = Specimen(house)
        for kind in FLIPPED:
            _note(outcome, kind, specimen.judge_all(specimen.flips(kind, order.cycles, chance)))
            order.say(f"{order.cycles} flips in {kind}: {outcome.figures[kind]}")
        marks = specimen.flips_in(["HIGHWATER", "HIGHWATER-NOTES"], order.cycles, chance)
        _note(outcome, "HIGHWATER", specimen.judge_all(marks))
        index = IndexSpecimen(house)
        _note(outcome, "index", index.judge_all(index.flips(order.cycles, chance)))
        outcome.figures["index right again, max s"] = round(index.slowest, 2)
    finally:
        house.close()
    outcome.figures["silent or hung"] = len(outcome.problems)
    return outcome


def delete(order: Order) -> Outcome:
    """Delete files of the data directory, and cut them off, one at a time.

    Each file goes, is emptied, is cut at a random place, and loses its last byte; where that are
    more damages than there are cycles, some of them are drawn.
    """
    outcome = Outcome("delete", order.seed)
    chance = random.Random(order.seed)
    house = House()
    try:
        specimen, index = Specimen(house), IndexSpecimen(house)
        truth = [*specimen.files(), *specimen.marks()]
        rest = [path for path in index.files("") if "/" not in path and "HIGH" not in path]
        damages = [("log", damage) for damage in _cuts(specimen, truth, chance)]
        damages += [("index", damage) for damage in _cuts(index, index.files(), chance)]
        damages += [("other", damage) for damage in _cuts(index, rest, chance)]
        drawn = chance.sample(damages, min(order.cycles, len(damages)))
        for kind, judge in (("log", specimen), ("index", index), ("other", index)):
            _note(outcome, kind, judge.judge_all([damage for k, damage in drawn if k == kind]))
            order.say(f"{outcome.cycles} of {len(drawn)} damages")
    finally:
        house.close()
    outcome.figures["silent or hung"] = len(outcome.problems)
    return outcome


def _cuts(
    specimen: Specimen | IndexSpecimen, paths: Sequence[str], chance: random.Random
) -> list[Damage]:
    damages = []
    for path in paths:
        size = specimen.size(path)
        lengths = {0, size - 1, chance.randrange(size)}
        damages += [Damage(path), *(Damage(path, keep=length) for length in sorted(lengths))]
    return damages


def _note(outcome: Outcome, kind: str, verdicts: Sequence[Verdict]) -> None:
    """Count what became of the damages, and keep what must not be."""
    if not verdicts:
        return
    outcome.cycles += len(verdicts)
    counted = Counter(verdict.outcome for verdict in verdicts)
    outcome.figures[kind] = ", ".join(f"{counted[word]} {word}" for word in sorted(counted))
    outcome.problems += [f"{v.damage}: {v.outcome} {v.detail}" for v in silent(verdicts)]
    outcome.problems += [
        f"{v.damage}: {v.outcome} {v.detail}" for v in verdicts if v.outcome == "crashed"
    ]
