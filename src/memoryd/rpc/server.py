"""The gRPC server: limits, addresses, health and reflection."""

import os
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import grpc
from google.protobuf import descriptor_pool
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from memoryd.config import Settings
from memoryd.domain.errors import StoreError
from memoryd.pb import care_pb2_grpc as care_pb_grpc
from memoryd.pb import erasure_pb2_grpc as erasure_pb_grpc
from memoryd.pb import memory_pb2_grpc as pb_grpc
from memoryd.pb import note_pb2_grpc as note_pb_grpc
from memoryd.project import private_dir
from memoryd.rpc.care import CareServicer
from memoryd.rpc.erasure import ErasureServicer
from memoryd.rpc.interceptors import Guard
from memoryd.rpc.notes import NoteServicer
from memoryd.rpc.servicers import MemoryServicer

_MIB: Final = 1024 * 1024
_STREAMS_EACH: Final = 100  # calls at once on one connection; a client has further ones wait
SERVICES: Final = (
    "memory.MemoryService",
    "memory.NoteService",
    "memory.CareService",
    "memory.ErasureService",
)
_NAMES: Final = (*SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME)


class _Symbols:
    """The descriptors, found by the name of a method too, which the pool itself does not know."""

    def __init__(self) -> None:
        self._pool = descriptor_pool.Default()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pool, name)

    def FindFileContainingSymbol(self, symbol: str) -> Any:  # noqa: N802 - the pool's own name
        """The file that defines a symbol. Raises KeyError."""
        try:
            return self._pool.FindFileContainingSymbol(symbol)
        except KeyError:
            service, _, method = symbol.rpartition(".")
            found = self._pool.FindServiceByName(service)
            return found.methods_by_name[method].containing_service.file


class Server:
    """A server that has been built and not yet bound."""

    def __init__(self, server: grpc.Server) -> None:
        self.grpc = server
        reflection.enable_server_reflection(_NAMES, server, _Symbols())  # type: ignore[arg-type]

    def bind(self, socket_path: str, listen: str) -> tuple[str, ...]:
        """Bind the unix socket, and TCP if asked; return where. Raises StoreError."""
        private_dir(os.path.dirname(socket_path))
        _clear(socket_path)
        try:
            self.grpc.add_insecure_port(f"unix:{socket_path}")
        except RuntimeError as error:
            raise StoreError(f"cannot bind the socket {socket_path}") from error
        os.chmod(socket_path, 0o600)
        endpoints = [f"unix:{socket_path}"]
        if listen:
            try:
                port = self.grpc.add_insecure_port(listen)
            except RuntimeError as error:
                msg = f"cannot listen on {listen}: another program has the port; choose another"
                raise StoreError(msg) from error
            endpoints.append(f"{listen.rpartition(':')[0]}:{port}")
        return tuple(endpoints)

    def add(
        self,
        memory: MemoryServicer,
        notes: NoteServicer,
        care: CareServicer,
        erasure: ErasureServicer,
    ) -> None:
        """Serve the contract."""
        erasure_pb_grpc.add_ErasureServiceServicer_to_server(erasure, self.grpc)
        care_pb_grpc.add_CareServiceServicer_to_server(care, self.grpc)
        pb_grpc.add_MemoryServiceServicer_to_server(memory, self.grpc)
        note_pb_grpc.add_NoteServiceServicer_to_server(notes, self.grpc)

    def start(self) -> None:
        """Begin to answer."""
        self.grpc.start()

    def stop(self, grace: float) -> None:
        """Take no new calls, and wait for those under way, at most so long."""
        self.grpc.stop(grace).wait()


class Health:
    """Tells the truth about the whole server and its services."""

    def __init__(self, server: Server) -> None:
        self._servicer = health.HealthServicer()
        self._names = ("", *SERVICES)
        health_pb2_grpc.add_HealthServicer_to_server(self._servicer, server.grpc)
        self.set(serving=False)

    def set(self, *, serving: bool) -> None:
        """Say whether events are taken."""
        status = health_pb2.HealthCheckResponse
        for name in self._names:
            self._servicer.set(name, status.SERVING if serving else status.NOT_SERVING)

    def leave(self) -> None:
        """Say NOT_SERVING from now on, whatever comes."""
        self._servicer.enter_graceful_shutdown()


def build(pool: ThreadPoolExecutor, settings: Settings, guard: Guard) -> Server:
    """A server with our limits."""
    size = settings.max_message_mib * _MIB
    return Server(
        grpc.server(
            pool,
            interceptors=[guard],
            maximum_concurrent_rpcs=settings.max_concurrent_rpcs,
            options=(
                ("grpc.so_reuseport", 0),
                # without it, one flood of calls that are reset at once costs others theirs
                ("grpc.max_concurrent_streams", _STREAMS_EACH),
                ("grpc.max_receive_message_length", size),
                ("grpc.max_send_message_length", 2 * size),
            ),
        )
    )


def _clear(path: str) -> None:
    """Remove a socket that a dead daemon left; refuse anything else, and a live one."""
    if not os.path.lexists(path):
        return
    probe = socket.socket(socket.AF_UNIX)
    try:
        probe.connect(path)
    except ConnectionRefusedError:
        os.unlink(path)
    except OSError as error:
        raise StoreError(f"{path} is not a socket of memoryd: remove it") from error
    else:
        msg = f"another daemon answers at {path}: stop it, or choose another runtime directory"
        raise StoreError(msg)
    finally:
        probe.close()
