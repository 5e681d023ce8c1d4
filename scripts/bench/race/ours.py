"""memoryd as a user has it: a daemon of its own, asked over its socket; and a server with nothing."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import grpc

from memoryd.pb import care_pb2 as care
from memoryd.pb import care_pb2_grpc as care_grpc
from memoryd.pb import memory_pb2 as pb
from memoryd.pb import memory_pb2_grpc as pb_grpc
from race.corpus import Said, session

PAGE: Final = 1_000
_ROLES: Final = {
    "user": pb.EVENT_ROLE_USER,
    "assistant": pb.EVENT_ROLE_ASSISTANT,
    "tool": pb.EVENT_ROLE_TOOL,
}
_OPTIONS: Final = [
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    ("grpc.use_local_subchannel_pool", 1),
]


def message(said: Said) -> pb.Event:
    """An event on the wire."""
    return pb.Event(
        event_id=said.event_id,
        session_id=said.session_id,
        timestamp_ms=said.time_ms,
        role=_ROLES[said.role],
        agent=said.agent,
        text=said.text,
    )


class Daemon:
    """A daemon and its calls. ``start`` may follow ``stop``."""

    def __init__(self, scratch: str) -> None:
        self._scratch = scratch
        self._environment = {
            **os.environ,
            "HOME": scratch,
            "XDG_RUNTIME_DIR": scratch,
            "XDG_DATA_HOME": f"{scratch}/data",
            "XDG_STATE_HOME": f"{scratch}/state",
            "XDG_CONFIG_HOME": f"{scratch}/config",
            "MEMORY_PROJECT_ID": "bench",
        }
        self._address = f"unix:{scratch}/memoryd/bench.sock"
        self._process: subprocess.Popen[bytes] | None = None
        self.data_dir = f"{scratch}/data/memoryd/bench"

    def start(self) -> float:
        """Seconds from the start of the process to its first answer."""
        begin = time.perf_counter()
        command = [sys.executable, "-m", "memoryd.daemon", "serve"]
        self._process = subprocess.Popen(command, env=self._environment, stderr=subprocess.DEVNULL)
        while True:
            self._channel = grpc.insecure_channel(self._address, options=_OPTIONS)
            self.stub = pb_grpc.MemoryServiceStub(self._channel)
            try:
                self.last(50)
            except grpc.RpcError:
                self._channel.close()
                if self._process.poll() is not None:
                    raise
                time.sleep(0.005)
            else:
                return time.perf_counter() - begin

    def stop(self) -> None:
        """End the process."""
        self._channel.close()
        if self._process is not None:
            self._process.terminate()
            self._process.wait()

    def write(self, events: Sequence[pb.Event]) -> None:
        """One batch."""
        self.stub.IngestEvents(pb.IngestEventsRequest(events=events))

    def write_ahead(self, batches: Iterator[list[pb.Event]]) -> None:
        """Batches, two of them under way at any time."""
        waiting: list[Any] = []
        for events in batches:
            waiting.append(self.stub.IngestEvents.future(pb.IngestEventsRequest(events=events)))
            if len(waiting) > 1:
                waiting.pop(0).result()
        for future in waiting:
            future.result()

    def write_one(self, event: pb.Event) -> None:
        """One event, acknowledged when it is on disk."""
        self.stub.IngestEvent(pb.IngestEventRequest(event=event))

    def settle(self) -> None:
        """Wait until everything is derived and searchable."""
        self.derive()
        self.index()

    def derive(self) -> None:
        """Wait until the table of contents has everything, up to its years."""
        while True:
            status = self.stub.GetStatus(pb.GetStatusRequest())
            if not status.pump_lag_events and not status.toc_waiting:
                return
            time.sleep(0.1)

    def index(self) -> None:
        """Wait until everything is searchable."""
        while True:
            end = self.stub.GetStatus(pb.GetStatusRequest()).sequence
            index = self.stub.GetIndexStatus(pb.GetIndexStatusRequest())
            if index.state == pb.INDEX_STATE_READY and index.sequence >= end:
                return
            time.sleep(0.1)

    def backup(self) -> None:
        """Copy everything off, hashed."""
        request = care.BackupRequest(destination=f"{self._scratch}/backups")
        for _ in care_grpc.CareServiceStub(self._channel).Backup(request):
            pass

    def last(self, count: int) -> int:
        """The newest events."""
        order = pb.EVENT_ORDER_NEWEST_FIRST
        return len(self.stub.GetEvents(pb.GetEventsRequest(limit=count, order=order)).events)

    def session(self, number: int) -> int:
        """All events of one session."""
        return self._pages(pb.GetEventsRequest(session_id=session(number), limit=PAGE))

    def day(self, between: tuple[int, int]) -> int:
        """All events of one day."""
        first, last = between
        return self._pages(
            pb.GetEventsRequest(from_timestamp_ms=first, to_timestamp_ms=last, limit=PAGE)
        )

    def _pages(self, request: pb.GetEventsRequest) -> int:
        seen, more = 0, True
        while more:
            answer = self.stub.GetEvents(request)
            seen += len(answer.events)
            more, request.continuation_token = answer.has_more, answer.continuation_token
        return seen

    def search(self, words: str) -> int:
        """The ten best, with their places and snippets."""
        return len(self.stub.TeleportSearch(pb.TeleportSearchRequest(query=words)).results)

    def context(self, words: str) -> int:
        """The block for a prompt of these words."""
        return len(self.stub.GetContext(pb.GetContextRequest(agent="codex", query=words)).text)

    def root(self, _number: int) -> int:
        """The years."""
        return len(self.stub.GetTocRoot(pb.GetTocRootRequest()).nodes)

    def node(self, node_id: str) -> int:
        """One node."""
        return len(self.stub.GetNode(pb.GetNodeRequest(node_id=node_id)).node.bullets)

    def children(self, node_id: str) -> int:
        """The first nodes below one."""
        return len(self.stub.BrowseToc(pb.BrowseTocRequest(parent_id=node_id, limit=10)).children)

    def grip(self, grip_id: str) -> int:
        """The conversation around a grip."""
        request = pb.ExpandGripRequest(grip_id=grip_id, events_before=3, events_after=3)
        return len(self.stub.ExpandGrip(request).excerpt_events)

    def places(self, count: int) -> tuple[list[str], list[str], list[str]]:
        """Ids to browse: of periods with nodes below, of segments, and of grips."""
        inner: list[str] = []
        segments: list[str] = []
        grips: list[str] = []
        below = [node.node_id for node in self.stub.GetTocRoot(pb.GetTocRootRequest()).nodes]
        while below and len(grips) < count:
            node_id = below.pop()
            inner.append(node_id)
            answer = self.stub.BrowseToc(pb.BrowseTocRequest(parent_id=node_id, limit=10))
            for node in answer.children:
                if node.child_node_ids:
                    below.append(node.node_id)
                else:
                    segments.append(node.node_id)
                    grips.extend(g for bullet in node.bullets for g in bullet.grip_ids)
        return inner[:count], segments[:count], grips[:count]

    def memory(self) -> float:
        """Megabytes resident, with the processes that the daemon has started."""
        assert self._process is not None
        return sum(map(_megabytes, _family(self._process.pid)))

    def disk(self) -> tuple[int, int]:
        """Bytes of the log and everything derived, and of these the search index."""
        return size(self.data_dir), size(f"{self.data_dir}/index")

    def peak(self) -> float:
        """Megabytes that the daemon and its processes have had at most since the last look."""
        assert self._process is not None
        family = _family(self._process.pid)
        most = sum(_megabytes(pid, "VmHWM") for pid in family)
        for pid in family:
            Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")
        return most


@contextmanager
def nothing(scratch: str) -> Iterator[pb_grpc.MemoryServiceStub]:
    """Calls to a server that answers with nothing: what gRPC itself costs."""
    path = f"{scratch}/nothing.sock"
    command = [sys.executable, sys.argv[0], "--nothing", path]
    process = subprocess.Popen(command)
    try:
        with grpc.insecure_channel(f"unix:{path}", options=_OPTIONS) as channel:
            grpc.channel_ready_future(channel).result(timeout=30)
            yield pb_grpc.MemoryServiceStub(channel)
    finally:
        process.terminate()
        process.wait()


def serve_nothing(path: str) -> None:
    """Be that server until killed."""
    sys.setswitchinterval(0.0005)
    methods: dict[str, tuple[Any, Any]] = {
        "IngestEvent": (pb.IngestEventRequest, pb.IngestEventResponse),
        "TeleportSearch": (pb.TeleportSearchRequest, pb.TeleportSearchResponse),
    }
    handlers = {
        name: grpc.unary_unary_rpc_method_handler(
            lambda _request, _context, answer=answer: answer(),
            request_deserializer=request.FromString,
            response_serializer=answer.SerializeToString,
        )
        for name, (request, answer) in methods.items()
    }
    server = grpc.server(ThreadPoolExecutor(32), options=[("grpc.so_reuseport", 0)])
    generic = grpc.method_handlers_generic_handler("memory.MemoryService", handlers)
    server.add_generic_rpc_handlers((generic,))
    server.add_insecure_port(f"unix:{path}")
    server.start()
    server.wait_for_termination()


def size(path: str) -> int:
    """Bytes of a file, or of all files below a directory."""
    if os.path.isfile(path):
        return os.path.getsize(path)
    return sum(
        os.path.getsize(f"{directory}/{name}")
        for directory, _, names in os.walk(path)
        for name in names
        if os.path.exists(f"{directory}/{name}")
    )


def clear(path: str) -> None:
    """Remove a directory with everything in it."""
    shutil.rmtree(path, ignore_errors=True)


def _family(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children")
    below = children.read_text(encoding="ascii").split() if children.exists() else []
    return [pid, *(one for child in below for one in _family(int(child)))]


def _megabytes(pid: int, figure: str = "VmRSS") -> float:
    fields = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    kept = next(line for line in fields.splitlines() if line.startswith(figure))
    return int(kept.split()[1]) / 1024
