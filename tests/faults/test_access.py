import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress

import grpc
import pytest
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from memoryd.pb import erasure_pb2
from memoryd.pb import memory_pb2 as pb
from memoryd.pb.erasure_pb2_grpc import ErasureServiceStub
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


def test_no_core_is_dumped(daemon: Daemon) -> None:
    """The daemon may write no core, which would hold texts, nor may its memory be read."""
    if not sys.platform.startswith("linux"):
        pytest.skip("there is no /proc here")
    with open(f"/proc/{daemon.process.pid}/limits", encoding="ascii") as file:
        core = next(line for line in file if line.startswith("Max core file size"))
    assert core.split()[4:6] == ["0", "0"]
    asked = "from memoryd import nodump; import ctypes; nodump.forbid(); print(ctypes.CDLL(None).prctl(3))"
    told = subprocess.run([sys.executable, "-c", asked], capture_output=True, check=True)
    assert told.stdout == b"0\n"


def test_a_new_token_holds_at_once(house: House) -> None:
    """After a rotation the old token is refused, the new one taken, and its file is private."""
    daemon = house.serve("--listen", "127.0.0.1:0")
    path = f"{daemon.status().data_dir}/token"
    with open(path, encoding="ascii") as file:
        old = file.read().strip()
    stub = ErasureServiceStub(daemon.channel)
    assert stub.RotateToken(erasure_pb2.RotateTokenRequest(), timeout=10).path == path
    with open(path, encoding="ascii") as file:
        new = file.read().strip()
    assert len(new) == 64
    assert new != old
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    ok, refused = [grpc.StatusCode.OK] * 3, [grpc.StatusCode.UNAUTHENTICATED] * 3
    assert _codes(_tcp(daemon), (("authorization", f"Bearer {old}"),)) == refused
    assert _codes(_tcp(daemon), (("authorization", f"Bearer {new}"),)) == ok
    assert new not in house.log_text()


def test_a_stream_ends_with_its_token(house: House) -> None:
    """Who follows the log with the old token is told nothing more after a rotation."""
    daemon = house.serve("--listen", "127.0.0.1:0")
    with open(f"{daemon.status().data_dir}/token", encoding="ascii") as file:
        old = (("authorization", f"Bearer {file.read().strip()}"),)
    with grpc.insecure_channel(_tcp(daemon), options=(("grpc.enable_http_proxy", 0),)) as channel:
        request = pb.TailEventsRequest(after_sequence=0)
        tail = MemoryServiceStub(channel).TailEvents(request, timeout=30, metadata=old)
        Oracle().write_batch(daemon.stub, "first", 1)
        assert next(tail).event.event_id == "first:1:0"
        ErasureServiceStub(daemon.channel).RotateToken(erasure_pb2.RotateTokenRequest(), timeout=10)
        Oracle().write_batch(daemon.stub, "second", 1)
        with pytest.raises(grpc.RpcError) as ended:
            next(tail)
        assert ended.value.code() == grpc.StatusCode.UNAUTHENTICATED


def test_without_tcp_there_is_no_token(daemon: Daemon) -> None:
    """A daemon without TCP says that there is no token to rotate, and makes none."""
    stub = ErasureServiceStub(daemon.channel)
    with pytest.raises(grpc.RpcError) as refused:
        stub.RotateToken(erasure_pb2.RotateTokenRequest(), timeout=10)
    assert refused.value.code() == grpc.StatusCode.FAILED_PRECONDITION
    assert not os.path.exists(f"{daemon.status().data_dir}/token")


def test_no_secret_in_arguments_or_log(house: House) -> None:
    """The token is in no process argument, and neither it nor an event's text in the log."""
    daemon = house.serve("--listen", "127.0.0.1:0", "--log-level", "debug")
    with open(f"{daemon.status().data_dir}/token", encoding="ascii") as file:
        token = file.read().strip()
    said = pb.Event(
        session_id="s", role=pb.EVENT_ROLE_USER, text="saffron under the lighthouse stairs"
    )
    daemon.stub.IngestEvent(pb.IngestEventRequest(event=said), timeout=10)
    with pytest.raises(grpc.RpcError):
        daemon.stub.GetEvent(pb.GetEventRequest(event_id="nobody"), timeout=10)
    with open(f"/proc/{daemon.process.pid}/cmdline", "rb") as file:
        assert token.encode() not in file.read()
    log = house.log_text()
    assert token not in log
    assert "saffron" not in log


def test_a_web_page_gets_nothing(house: House) -> None:
    """What a browser can send to a port of localhost gets no answer and writes nothing."""
    daemon = house.serve("--listen", "127.0.0.1:0", "--no-token")
    host, _, port = _tcp(daemon).rpartition(":")
    body = b'{"event": {"session_id": "s", "text": "planted by a page"}}'
    head = b" /memory.MemoryService/IngestEvent HTTP/1.1\r\nHost: localhost\r\nOrigin: https://example.org\r\n"
    requests = (
        b"GET" + head + b"\r\n",
        b"OPTIONS" + head + b"Access-Control-Request-Method: POST\r\n\r\n",
        b"POST"
        + head
        + b"Content-Type: text/plain\r\nContent-Length: %d\r\n\r\n" % len(body)
        + body,
    )
    for request in requests:
        with socket.create_connection((host, int(port)), timeout=10) as page:
            page.sendall(request)
            heard = b""
            with suppress(ConnectionError):
                while chunk := page.recv(4096):
                    heard += chunk
        assert b"200" not in heard
        assert b"Access-Control-Allow" not in heard
    assert daemon.status().sequence == 0


def test_another_user_gets_no_copy_and_no_log(house: House, daemon: Daemon) -> None:
    """Copies that are exported and the log of the hooks are for their owner alone."""
    if os.geteuid():
        pytest.skip("only root can become another user")
    Oracle().write_batch(daemon.stub, "secret", 3)
    bin_dir = os.path.dirname(sys.executable)
    before = os.umask(0)
    try:
        for arguments in (
            ("export", "--jsonl", f"{house.base}/all.jsonl"),
            ("export", f"{house.base}/book"),
        ):
            command = [f"{bin_dir}/memory", *arguments]
            subprocess.run(command, cwd=house.project, env=house.env, check=True, timeout=60)
        hook = [f"{bin_dir}/memory-hook", "--agent", "nobody"]
        subprocess.run(hook, cwd=house.project, env=house.env, check=True, timeout=60, input=b"{}")
    finally:
        os.umask(before)
    for path in (house.base, f"{house.base}/d", f"{house.base}/d/memoryd"):
        os.chmod(path, 0o755)
    paths = [
        f"{house.base}/all.jsonl",
        f"{house.base}/d/memoryd/hook.log",
        *_below(f"{house.base}/book"),
    ]
    assert os.path.exists(paths[1])
    tried = subprocess.run(
        [sys.executable, "-c", _STRANGER, *paths], capture_output=True, text=True, check=False
    )
    assert (tried.returncode, tried.stdout, tried.stderr) == (0, "", "")
