import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(
    shutil.which("grpcurl") is None, reason="grpcurl is not on the PATH"
)


class Caller:
    """grpcurl, with the address of a daemon by socket and by TCP."""

    def __init__(self, socket: str, address: str, token: str) -> None:
        self.socket = socket
        self.address = address
        self.token = token

    def unix(self, *rest: str, flags: tuple[str, ...] = ()) -> str:
        """Call over the socket; what it printed."""
        return run("grpcurl", "-plaintext", *flags, f"unix:{self.socket}", *rest).stdout

    def tcp(self, *rest: str, flags: tuple[str, ...] = (), token: bool = True) -> Any:
        """Call over TCP; the finished process."""
        header = ("-H", f"authorization: Bearer {self.token}") if token else ()
        command = ("grpcurl", "-plaintext", *header, *flags, self.address, *rest)
        return run(*command, check=False)


def run(*command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a program and keep what it prints."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert not check or done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def caller() -> Iterator[Caller]:
    """A daemon that listens on its socket and on loopback TCP."""
    base = os.path.realpath(tempfile.mkdtemp(prefix="md", dir="/tmp"))
    os.mkdir(f"{base}/api")
    os.mkdir(f"{base}/r", mode=0o700)
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MEMORY", "XDG_"))}
    env |= {"HOME": base, "XDG_RUNTIME_DIR": f"{base}/r", "MEMORY_PROJECT_ID": "p"}
    command = [sys.executable, "-m", "memoryd.daemon", "serve", "--listen", "127.0.0.1:0"]
    with open(f"{base}/log", "wb") as log:
        daemon = subprocess.Popen(command, env=env, stderr=log, cwd=f"{base}/api")
    socket = f"{base}/r/memoryd/p.sock"
    unix = ("grpcurl", "-plaintext", f"unix:{socket}")
    try:
        deadline = time.monotonic() + 30
        while (done := run(*unix, "memory.MemoryService/GetStatus", check=False)).returncode:
            assert daemon.poll() is None, "the daemon has ended"
            assert time.monotonic() < deadline, done.stderr
            time.sleep(0.1)
        _, address = json.loads(done.stdout)["endpoints"]
        with open(f"{base}/.local/share/memoryd/p/token", encoding="ascii") as file:
            yield Caller(socket, address, file.read().strip())
    finally:
        daemon.send_signal(signal.SIGTERM)
        try:
            daemon.wait(20)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()
        shutil.rmtree(base)


def test_services_are_listed_and_described(caller: Caller) -> None:
    """Over the socket, reflection lists the services and describes a method."""
    services = caller.unix("list").split()
    assert {"memory.MemoryService", "grpc.health.v1.Health"} <= set(services)
    described = caller.unix("describe", "memory.MemoryService.IngestEvent")
    assert "memory.IngestEventRequest" in described


def test_events_go_in_and_out_over_the_socket(caller: Caller) -> None:
    """Over the socket an event is taken without a token and read back."""
    sent = {"event_id": "u", "session_id": "s", "event_type": "EVENT_TYPE_USER_MESSAGE"}
    data = ("-d", json.dumps({"event": sent | {"text": "hello", "timestamp_ms": 5}}))
    answer = json.loads(caller.unix("memory.MemoryService/IngestEvent", flags=data))
    assert (answer["event_id"], answer["created"]) == ("u", True)
    asked = ("-d", json.dumps({"session_id": "s"}))
    page = json.loads(caller.unix("memory.MemoryService/GetEvents", flags=asked))
    assert [e["text"] for e in page["events"]] == ["hello"]


def test_events_go_in_and_out_over_tcp(caller: Caller) -> None:
    """Over TCP the same works with the token, and without it nothing does."""
    sent = {"event_id": "t", "session_id": "tcp", "role": "EVENT_ROLE_USER", "text": "hi"}
    data = ("-d", json.dumps({"event": sent}))
    answer = caller.tcp("memory.MemoryService/IngestEvent", flags=data)
    assert json.loads(answer.stdout)["created"] is True
    asked = ("-d", json.dumps({"session_id": "tcp"}))
    page = caller.tcp("memory.MemoryService/GetEvents", flags=asked)
    assert [e["event_id"] for e in json.loads(page.stdout)["events"]] == ["t"]
    refused = caller.tcp("memory.MemoryService/GetEvents", token=False)
    assert refused.returncode != 0
    assert caller.token not in refused.stderr


def test_notes_are_easy_by_hand(caller: Caller) -> None:
    """A note is written and found with flat requests and plain words."""
    note = json.dumps({"name": "deploy", "content": "Run make ship.", "tags": ["ops"]})
    caller.unix("memory.NoteService/Remember", flags=("-d", note))
    found = caller.unix("memory.NoteService/Recall", flags=("-d", '{"query": "deploy*"}'))
    assert json.loads(found)["notes"][0]["note"]["name"] == "deploy"
