"""Real daemons in a home of their own, an oracle of what they acknowledged, and ways to hurt them."""

import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

import grpc
from grpc_health.v1 import health_pb2

from memoryd.pb import memory_pb2 as pb
from memoryd.pb.memory_pb2_grpc import MemoryServiceStub
from tests.faults import judge

text_of = judge.text_of

START_SECONDS = 30.0
JUDGE_SECONDS = 40.0
KINDS = ("WAL", "SST", "MANIFEST", "CURRENT")
_MEMORYD = (sys.executable, "-m", "memoryd.daemon")
_FIRST_MS = 1_700_000_000_000


class House:
    """A home, a project in it, and the daemons that run there."""

    def __init__(self) -> None:
        self.base = tempfile.mkdtemp(prefix="md", dir="/tmp")
        self.project = f"{self.base}/p"
        self.log = f"{self.base}/log"
        for name in "prdc":
            os.mkdir(f"{self.base}/{name}")
        ours = ("MEMORY", "XDG_", "CLAUDE_", "CURSOR_", "GEMINI_")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
        self.env = kept | {
            "HOME": self.base,
            "XDG_RUNTIME_DIR": f"{self.base}/r",
            "XDG_DATA_HOME": f"{self.base}/d",
            "XDG_CONFIG_HOME": f"{self.base}/c",
        }
        self._daemons: list[Daemon] = []

    def spawn(self, *flags: str) -> "Daemon":
        """Start a daemon and do not wait for it."""
        daemon = Daemon(self, flags)
        self._daemons.append(daemon)
        return daemon

    def serve(self, *flags: str) -> "Daemon":
        """Start a daemon and wait until it answers."""
        daemon = self.spawn(*flags)
        daemon.wait_ready()
        return daemon

    def run(self, *arguments: str, seconds: float = 120) -> subprocess.CompletedProcess[str]:
        """Run a command of memoryd to its end."""
        return subprocess.run(
            [*_MEMORYD, *arguments],
            cwd=self.project,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    @property
    def socket(self) -> str:
        """The path of the socket; empty while there is none."""
        folder = f"{self.base}/r/memoryd"
        names = os.listdir(folder) if os.path.isdir(folder) else []
        return next((f"{folder}/{name}" for name in names if name.endswith(".sock")), "")

    def log_text(self) -> str:
        """What the daemons have logged."""
        with open(self.log, encoding="utf-8") as file:
            return file.read()

    def stop_all(self) -> None:
        """End every daemon."""
        for daemon in self._daemons:
            daemon.kill()

    def close(self) -> None:
        """End every daemon and remove the home."""
        self.stop_all()
        shutil.rmtree(self.base, ignore_errors=True)


class Daemon:
    """One `memoryd serve`."""

    def __init__(self, house: House, flags: Sequence[str]) -> None:
        self._house = house
        self._began = time.monotonic()
        self.log = house.log
        with open(house.log, "ab") as log:
            self.process = subprocess.Popen(
                [*_MEMORYD, "serve", *flags],
                cwd=house.project,
                env=house.env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._channel: grpc.Channel | None = None
        self.seconds_to_open = 0.0

    def wait_ready(self) -> None:
        """Wait until the daemon answers; note how long that took. Raises RuntimeError."""
        deadline = self._began + START_SECONDS
        while time.monotonic() < deadline and self.process.poll() is None:
            path = self._house.socket
            if path and self._answers(path):
                self.seconds_to_open = time.monotonic() - self._began
                return
            time.sleep(0.01)
        raise RuntimeError(f"the daemon does not answer:\n{self._house.log_text()[-2000:]}")

    def _answers(self, path: str) -> bool:
        channel = grpc.insecure_channel(f"unix:{path}", options=(("grpc.enable_http_proxy", 0),))
        with suppress(grpc.RpcError):
            status = MemoryServiceStub(channel).GetStatus(pb.GetStatusRequest(), timeout=5)
            if status.pid == self.process.pid:
                self._channel = channel
                return True
        channel.close()
        return False

    @property
    def channel(self) -> grpc.Channel:
        """The connection to the daemon."""
        assert self._channel is not None, "the daemon has not been waited for"
        return self._channel

    @property
    def stub(self) -> MemoryServiceStub:
        """The daemon's calls."""
        return MemoryServiceStub(self.channel)

    def status(self) -> pb.GetStatusResponse:
        """What the daemon says of itself."""
        return self.stub.GetStatus(pb.GetStatusRequest(), timeout=10)

    def serving(self) -> bool:
        """What the daemon's health says."""
        check = self.channel.unary_unary(
            "/grpc.health.v1.Health/Check",
            request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
            response_deserializer=health_pb2.HealthCheckResponse.FromString,
        )
        answer = check(health_pb2.HealthCheckRequest(), timeout=10)
        return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)

    def terminate(self) -> float:
        """Send SIGTERM, wait for the end, and return how long it took."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)
        self._disconnect()
        return time.monotonic() - began

    def kill(self) -> None:
        """End the daemon with SIGKILL, if it runs."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._disconnect()

    def _disconnect(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None


def event(event_id: str, text: str | None = None) -> pb.Event:
    """The event that belongs to an id."""
    place = sum(event_id.encode())
    return pb.Event(
        event_id=event_id,
        session_id=f"session-{place % 7}",
        timestamp_ms=_FIRST_MS + place,
        role=pb.EVENT_ROLE_USER,
        text=text_of(event_id) if text is None else text,
        agent=f"agent-{place % 3}",
    )


class Oracle:
    """Remembers which events were acknowledged; their ids say what their texts are."""

    def __init__(self) -> None:
        self.ids: list[str] = []

    def write(self, stub: MemoryServiceStub, event_id: str) -> None:
        """Send one event and remember it when it is acknowledged. Raises grpc.RpcError."""
        request = pb.IngestEventRequest(event=event(event_id))
        if stub.IngestEvent(request, timeout=30).event_id == event_id:
            self.ids.append(event_id)

    def write_batch(self, stub: MemoryServiceStub, name: str, size: int) -> None:
        """Send a batch, whose ids say that they belong together. Raises grpc.RpcError."""
        ids = [f"{name}:{size}:{i}" for i in range(size)]
        answer = stub.IngestEvents(
            pb.IngestEventsRequest(events=[event(i) for i in ids]), timeout=60
        )
        self.ids.extend(r.event_id for r in answer.results if not r.error)

    def check_ids(self, stub: MemoryServiceStub, ids: Sequence[str]) -> list[str]:
        """What is wrong with these events when asked for one by one."""
        problems = []
        for event_id in ids:
            try:
                found = stub.GetEvent(pb.GetEventRequest(event_id=event_id), timeout=10).event
            except grpc.RpcError as error:
                problems.append(f"{event_id}: {error.code()}")
                continue
            if found.text != text_of(event_id):
                problems.append(f"{event_id}: another text")
        return problems

    def check_all(self, stub: MemoryServiceStub) -> list[str]:
        """What is wrong with the log: acknowledged and gone, changed, doubled, half a batch."""
        counted: Counter[str] = Counter()
        batches: Counter[tuple[str, str]] = Counter()
        problems = []
        for found in read_all(stub):
            counted[found.event_id] += 1
            if found.text != text_of(found.event_id):
                problems.append(f"{found.event_id}: another text")
            name, colon, rest = found.event_id.partition(":")
            if colon:
                batches[name, rest.partition(":")[0]] += 1
        problems += [f"{i}: lost" for i in self.ids if i not in counted]
        problems += [f"{i}: {n} times" for i, n in counted.items() if n > 1]
        problems += [f"{b}: {n} of {s}" for (b, s), n in batches.items() if n != int(s)]
        return problems


def read_all(stub: MemoryServiceStub) -> Iterator[pb.Event]:
    """Every event by time, page by page."""
    token = ""
    while True:
        request = pb.GetEventsRequest(limit=1000, continuation_token=token)
        page = stub.GetEvents(request, timeout=30)
        yield from page.events
        token = page.continuation_token
        if not page.has_more:
            return


class Writers:
    """Threads that write until the daemon is gone: two with single events, one with batches."""

    def __init__(self, daemon: Daemon, oracle: Oracle, name: str) -> None:
        self._stub = daemon.stub
        self._oracle = oracle
        self._stopped = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(f"{name}-{i}", i == 0)) for i in range(3)
        ]
        for thread in self._threads:
            thread.start()

    def _run(self, name: str, batches: bool) -> None:  # noqa: FBT001
        number = 0
        while not self._stopped.is_set():
            number += 1
            try:
                if batches:
                    self._oracle.write_batch(self._stub, f"{name}-{number}", 1 + number % 40)
                else:
                    self._oracle.write(self._stub, f"{name}-{number}")
            except (grpc.RpcError, ValueError):  # gone, or the channel was closed under the call
                return

    def join(self) -> None:
        """Wait for the threads to end."""
        self._stopped.set()
        for thread in self._threads:
            thread.join(60)


@dataclass
class KillReport:
    """What a series of kills showed."""

    cycles: int = 0
    acknowledged: int = 0
    problems: list[str] = field(default_factory=list)
    opened: list[float] = field(default_factory=list)
    verify: str = ""

    def __str__(self) -> str:
        median, worst = statistics.median(self.opened), max(self.opened)
        return (
            f"{self.cycles} kills, {self.acknowledged} acknowledged events, "
            f"{len(self.problems)} problems; reopened in {median:.2f} s (median), {worst:.2f} s "
            f"(max); {self.verify}"
        )


def kill_loop(
    house: House, cycles: int, seed: int, progress: Callable[[int], None] = lambda _: None
) -> KillReport:
    """Kill the daemon again and again while it is written to; check what it acknowledged."""
    chance = random.Random(seed)
    oracle, report = Oracle(), KillReport()
    daemon = house.serve()
    for cycle in range(cycles):
        known = len(oracle.ids)
        writers = Writers(daemon, oracle, f"c{cycle}")
        time.sleep(chance.uniform(0.02, 0.35))
        daemon.process.kill()
        writers.join()
        daemon.kill()
        daemon = house.serve()
        report.cycles += 1
        report.opened.append(daemon.seconds_to_open)
        newest = oracle.ids[known:][-100:]
        report.problems += oracle.check_ids(daemon.stub, newest)
        progress(cycle + 1)
    report.problems += oracle.check_all(daemon.stub)
    report.acknowledged = len(oracle.ids)
    daemon.terminate()
    verdict = house.run("verify", seconds=1800)  # half a million events after a long run
    report.verify = verdict.stdout.strip().rpartition(": ")[2]
    if verdict.returncode:
        report.problems.append(f"verify: {verdict.stdout}{verdict.stderr}")
    return report


class Damage(NamedTuple):
    """One thing to do to a copy of a store: flip a bit of a file, or delete it (bit -1)."""

    path: str
    bit: int = -1

    def apply(self, data_dir: str) -> None:
        """Do it."""
        path = f"{data_dir}/{self.path}"
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
            for number in range(20):
                oracle.write(daemon.stub, f"r{run}s{number}")
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

    def flips(self, kind: str, count: int, chance: random.Random) -> list[Damage]:
        """Random flips in the files of one kind, every byte as likely as every other."""
        return self.flips_in(self.files(kind), count, chance)

    def flips_in(self, paths: Sequence[str], count: int, chance: random.Random) -> list[Damage]:
        """Random flips in some files, every byte as likely as every other."""
        sizes = [os.path.getsize(f"{self._store}/{path}") for path in paths]
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
