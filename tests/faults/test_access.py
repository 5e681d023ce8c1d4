import os
import stat
import subprocess
import sys
from collections.abc import Callable

import grpc
import pytest
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from memoryd.pb import memory_pb2 as pb
from memoryd.pb.memory_pb2_grpc import MemoryServiceStub
from tests.faults.driver import Daemon, House, Oracle

_STRANGER = """
import os, socket, sys
os.setgroups([]); os.setgid(65534); os.setuid(65534)
for path in sys.argv[1:]:
    try:
        if path.endswith(".sock"):
            socket.socket(socket.AF_UNIX).connect(path)
        elif os.path.isdir(path):
            os.listdir(path)
        else:
            open(path, "rb").read(1)
    except PermissionError:
        continue
    print("open to others:", path)
"""

Metadata = tuple[tuple[str, str], ...]


def _below(top: str) -> list[str]:
    return [top, *(os.path.join(d, n) for d, dirs, files in os.walk(top) for n in dirs + files)]


def _codes(address: str, metadata: Metadata) -> list[grpc.StatusCode]:
    """How the contract, health and reflection answer over TCP."""
    with grpc.insecure_channel(address, options=(("grpc.enable_http_proxy", 0),)) as channel:
        health = channel.unary_unary(
            "/grpc.health.v1.Health/Check",
            request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
            response_deserializer=health_pb2.HealthCheckResponse.FromString,
        )
        reflection = channel.stream_stream(
            "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
            request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
            response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
        )
        question = reflection_pb2.ServerReflectionRequest(list_services="")
        stub = MemoryServiceStub(channel)
        calls: tuple[Callable[[], object], ...] = (
            lambda: stub.GetStatus(pb.GetStatusRequest(), timeout=10, metadata=metadata),
            lambda: health(health_pb2.HealthCheckRequest(), timeout=10, metadata=metadata),
            lambda: list(reflection(iter([question]), timeout=10, metadata=metadata)),
        )
        codes = []
        for call in calls:
            try:
                call()
            except grpc.RpcError as error:
                codes.append(error.code())
            else:
                codes.append(grpc.StatusCode.OK)
        return codes


def _tcp(daemon: Daemon) -> str:
    return next(e for e in daemon.status().endpoints if not e.startswith("unix:"))


def test_another_user_gets_neither_socket_nor_data(house: House, daemon: Daemon) -> None:
    """Another user can neither connect to the socket nor read anything in the data directory."""
    if os.geteuid():
        pytest.skip("only root can become another user")
    for path in (house.base, f"{house.base}/r", f"{house.base}/d"):
        os.chmod(path, 0o755)  # only memoryd's own modes are to keep others out
    Oracle().write_batch(daemon.stub, "secret", 10)
    paths = [house.socket, *_below(daemon.status().data_dir)]
    tried = subprocess.run(
        [sys.executable, "-c", _STRANGER, *paths], capture_output=True, text=True, check=False
    )
    assert (tried.returncode, tried.stdout, tried.stderr) == (0, "", "")


def test_files_are_for_their_owner_alone(house: House) -> None:
    """Nothing below the data and runtime directories gives group or others any right."""
    before = os.umask(0)
    try:
        daemon = house.serve("--listen", "127.0.0.1:0")
    finally:
        os.umask(before)
    Oracle().write_batch(daemon.stub, "some", 10)
    paths = [*_below(daemon.status().data_dir), *_below(os.path.dirname(house.socket))]
    assert [p for p in paths if stat.S_IMODE(os.lstat(p).st_mode) & 0o077] == []


def test_tcp_needs_the_token(house: House) -> None:
    """Over TCP every service answers the right token, and no token or a wrong one never."""
    daemon = house.serve("--listen", "127.0.0.1:0")
    path = f"{daemon.status().data_dir}/token"
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    with open(path, encoding="ascii") as file:
        token = file.read().strip()
    refused = [grpc.StatusCode.UNAUTHENTICATED] * 3
    assert _codes(_tcp(daemon), ()) == refused
    for wrong in (f"Bearer {token[:-1]}", f"Bearer {token}0", token, "Bearer ", "Basic x"):
        assert _codes(_tcp(daemon), (("authorization", wrong),)) == refused
    right = (("authorization", f"Bearer {token}"),)
    assert _codes(_tcp(daemon), right) == [grpc.StatusCode.OK] * 3
    assert token not in house.log_text()


def test_no_token_lets_in_and_warns(house: House) -> None:
    """With --no-token TCP is open, and the log warns of it."""
    daemon = house.serve("--listen", "127.0.0.1:0", "--no-token")
    assert _codes(_tcp(daemon), ()) == [grpc.StatusCode.OK] * 3
    assert "TCP IS OPEN TO EVERY USER" in house.log_text()


@pytest.mark.parametrize("address", ["0.0.0.0:1", "[::]:1", "192.168.1.10:1", "example.org:1"])
def test_only_loopback_is_listened_on(house: House, address: str) -> None:
    """An address that other machines can reach is refused before anything starts."""
    refused = house.run("serve", "--listen", address)
    assert refused.returncode == 2
    assert "only this machine can reach" in refused.stderr
