"""Real daemons in a home of their own, an oracle of what they acknowledged, and ways to hurt them."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress

import grpc
from grpc_health.v1 import health_pb2

from memoryd.pb import memory_pb2 as pb
from memoryd.pb.memory_pb2_grpc import MemoryServiceStub
from tests.faults import judge
from tests.soak import vitals

text_of = judge.text_of

START_SECONDS = 30.0
_MEMORYD = (sys.executable, "-m", "memoryd.daemon")
_FIRST_MS = 1_700_000_000_000


def socket_in(folder: str) -> str:
    """The path of the socket in a directory; empty while there is none."""
    names = os.listdir(folder) if os.path.isdir(folder) else []
    return next((f"{folder}/{name}" for name in names if name.endswith(".sock")), "")


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
        return socket_in(f"{self.base}/r/memoryd")

    def log_text(self) -> str:
        """What the daemons have logged."""
        with open(self.log, encoding="utf-8") as file:
            return file.read()

    def stop_all(self) -> None:
        """End every daemon, and see all that they have started end."""
        for daemon in self._daemons:
            daemon.kill()
        vitals.wait_gone(list(vitals.processes(self.base)))

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

    def wait_ready(self, runtime_dir: str = "") -> None:
        """Wait until the daemon answers; note how long that took. Raises RuntimeError."""
        deadline = self._began + START_SECONDS
        while time.monotonic() < deadline and self.process.poll() is None:
            path = socket_in(runtime_dir) if runtime_dir else self._house.socket
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
        """End the daemon with SIGKILL, if it runs, and see its worker processes end."""
        workers = vitals.children(self.process.pid)
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        vitals.wait_gone(workers)
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

    def check_all(self, stub: MemoryServiceStub, strangers: str = "") -> list[str]:
        """What is wrong with the log: acknowledged and gone, changed, doubled, half a batch.

        The session ``strangers`` is not the oracle's business.
        """
        counted: Counter[str] = Counter()
        batches: Counter[tuple[str, str]] = Counter()
        problems = []
        for found in read_all(stub):
            if strangers and found.session_id == strangers:
                continue
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
