"""A store with tables, a WAL, notes and an index, of which damaged copies are judged."""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from memoryd.pb import note_pb2
from memoryd.pb.note_pb2_grpc import NoteServiceStub
from tests.faults import judge
from tests.faults.driver import House, Oracle

KINDS = ("WAL", "SST", "MANIFEST", "CURRENT")
JUDGE_SECONDS = 30.0


class Damage(NamedTuple):
    """One thing to do to a copy of a store: flip a bit of a file, cut it off, or delete it."""

    path: str
    bit: int = -1
    keep: int = -1

    def apply(self, data_dir: str) -> None:
        """Do it."""
        path = f"{data_dir}/{self.path}"
        if self.keep >= 0:
            os.truncate(path, self.keep)
            return
        if self.bit < 0:
            if os.path.isdir(path):
                shutil.rmtree(path)
            else:
                os.unlink(path)
            return
        with open(path, "r+b") as file:
            file.seek(self.bit // 8)
            byte = file.read(1)[0]
            file.seek(self.bit // 8)
            file.write(bytes([byte ^ (1 << self.bit % 8)]))


class Verdict(NamedTuple):
    """What became of a damaged store: `same`, `refused`, `crashed`, or `lost` without a word."""

    damage: Damage
    outcome: str
    detail: str


class Specimen:
    """A store with tables and a WAL, of which damaged copies are judged."""

    def __init__(self, house: House) -> None:
        """Write the store in three runs of a daemon, the last of which is killed."""
        oracle = Oracle()
        for run in range(3):
            daemon = house.serve()
            for number in range(8):
                oracle.write_batch(daemon.stub, f"r{run}b{number}", 250)
            notes = NoteServiceStub(daemon.channel)
            for number in range(20):
                oracle.write(daemon.stub, f"r{run}s{number}")
                note = note_pb2.RememberRequest(name=f"note {number}", content=f"- run {run}")
                notes.Remember(note, timeout=30)
            data_dir = daemon.status().data_dir
            if run < 2:
                daemon.terminate()
            else:
                daemon.kill()
        self._base = house.base
        self._store = f"{house.base}/specimen"
        os.rename(data_dir, self._store)
        self._ids = f"{house.base}/ids"
        with open(self._ids, "w", encoding="utf-8") as file:
            json.dump(oracle.ids, file)
        self._hash = ""
        whole = self.judge(None)
        assert whole.outcome == "lost", whole
        self._hash = whole.detail
        again = self.judge(None)
        assert again.outcome == "same", again

    def files(self, kind: str = "") -> list[str]:
        """The files of the database of one kind, or all; those that hold something."""
        fits: dict[str, Callable[[str], bool]] = {
            "WAL": lambda n: n.endswith(".log"),
            "SST": lambda n: n.endswith(".sst"),
            "MANIFEST": lambda n: n.startswith("MANIFEST"),
            "CURRENT": lambda n: n == "CURRENT",
            "": lambda _: True,
        }
        names = sorted(filter(fits[kind], os.listdir(f"{self._store}/db")))
        return [f"db/{n}" for n in names if os.path.getsize(f"{self._store}/db/{n}")]

    def marks(self) -> list[str]:
        """The files beside the database that say how far it had come."""
        return ["HIGHWATER", "HIGHWATER-NOTES"]

    def size(self, path: str) -> int:
        """How long a file is."""
        return os.path.getsize(f"{self._store}/{path}")

    def flips(self, kind: str, count: int, chance: random.Random) -> list[Damage]:
        """Random flips in the files of one kind, every byte as likely as every other."""
        return self.flips_in(self.files(kind), count, chance)

    def flips_in(self, paths: Sequence[str], count: int, chance: random.Random) -> list[Damage]:
        """Random flips in some files, every byte as likely as every other."""
        sizes = [self.size(path) for path in paths]
        chosen = chance.choices(range(len(paths)), sizes, k=count)
        return [Damage(paths[i], chance.randrange(sizes[i] * 8)) for i in chosen]

    def judge(self, *damages: Damage | None) -> Verdict:
        """Damage a copy and judge it in a process of its own."""
        copy = tempfile.mkdtemp(prefix="copy", dir=self._base)
        try:
            shutil.copytree(self._store, copy, dirs_exist_ok=True)
            for damage in damages:
                if damage is not None:
                    damage.apply(copy)
            command = [sys.executable, judge.__file__, copy, self._ids]
            try:
                done = subprocess.run(
                    command, capture_output=True, text=True, timeout=JUDGE_SECONDS, check=False
                )
            except subprocess.TimeoutExpired:
                return Verdict(damages[0] or Damage(""), "hung", "")
            return Verdict(damages[0] or Damage(""), *self._outcome(done))
        finally:
            shutil.rmtree(copy)

    def judge_all(self, damages: Sequence[Damage]) -> list[Verdict]:
        """Judge many damages, each on a copy of its own, two at a time."""
        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(self.judge, damages))

    def _outcome(self, done: subprocess.CompletedProcess[str]) -> tuple[str, str]:
        if not done.stdout:
            return "crashed", f"exit {done.returncode}: {done.stderr[:300]}"
        said = json.loads(done.stdout.splitlines()[-1])
        if "hash" in said:
            return ("same" if said["hash"] == self._hash else "lost"), said["hash"]
        if "refused" in said:
            return ("foreign" if "foreign" in said else "refused"), said["refused"]
        return "lost", said["lost"]


def tally(verdicts: Sequence[Verdict]) -> str:
    """How many of each outcome."""
    counted = Counter(v.outcome for v in verdicts)
    return ", ".join(f"{n} {outcome}" for outcome, n in sorted(counted.items()))


def silent(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The verdicts that must not be: events lost without a word, or an open that never ends."""
    return [v for v in verdicts if v.outcome in {"lost", "hung"}]
