import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import NamedTuple

import grpc
import pytest

from memoryd.pb import memory_pb2 as pb
from memoryd.pb import memory_pb2_grpc as pb_grpc

SIZE = 80 * 1024 * 1024


class Served(NamedTuple):
    """A daemon of its own, and a way to call it."""

    channel: grpc.Channel
    stub: pb_grpc.MemoryServiceStub
    process: subprocess.Popen[bytes]
    data_dir: str
    root: str


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """A real daemon for the tests of one file."""
    base = os.path.realpath(tempfile.mkdtemp(prefix="md", dir="/tmp"))
    root = f"{base}/api"
    for name in ("api", "r"):
        os.mkdir(f"{base}/{name}", mode=0o700)
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MEMORY", "XDG_"))}
    env |= {"HOME": base, "XDG_RUNTIME_DIR": f"{base}/r"}
    env |= {"XDG_DATA_HOME": f"{base}/d", "XDG_CONFIG_HOME": f"{base}/c", "MEMORY_PROJECT_ID": "p"}
    command = [sys.executable, "-m", "memoryd.daemon", "serve", "--project", root]
    with open(f"{base}/log", "wb") as log:
        process = subprocess.Popen(command, env=env, stderr=log)
    channel = grpc.insecure_channel(
        f"unix:{base}/r/memoryd/p.sock",
        options=[
            ("grpc.max_send_message_length", SIZE),
            ("grpc.max_receive_message_length", SIZE),
            ("grpc.initial_reconnect_backoff_ms", 50),
            ("grpc.max_reconnect_backoff_ms", 100),
        ],
    )
    stub = pb_grpc.MemoryServiceStub(channel)
    try:
        _await(stub, process, f"{base}/log")
        yield Served(channel, stub, process, f"{base}/d/memoryd/p", root)
        assert process.poll() is None, "the daemon has ended by itself"
    finally:
        channel.close()
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        shutil.rmtree(base)


def _await(stub: pb_grpc.MemoryServiceStub, process: subprocess.Popen[bytes], log: str) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            stub.GetStatus(pb.GetStatusRequest(), timeout=1)
        except grpc.RpcError:
            if process.poll() is not None or time.monotonic() > deadline:
                with open(log, encoding="utf-8") as file:
                    pytest.fail(f"the daemon did not start: {file.read()}")
            time.sleep(0.05)
        else:
            return
