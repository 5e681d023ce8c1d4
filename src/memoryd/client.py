"""What every client uses: find the project, connect, set a deadline, translate errors.

Owns the connection and the errors that a client can meet. What goes in and out are plain dicts,
as `wire` spells them. It may not import grpc or pb before the first connection, because every
start of every command pays for that.
"""

import dataclasses
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Self

from memoryd import config, wire
from memoryd.care_client import CareCalls
from memoryd.erasure_client import ErasureCalls
from memoryd.note_client import NoteCalls
from memoryd.toc_client import TocCalls
from memoryd.wire import (
    ALL,
    EVERYTHING,
    ID_KINDS,
    ROLES,
    TYPES,
    BadAddress,
    ClientError,
    Failed,
    Filter,
    Missing,
    NotAllowed,
    NotRunning,
    Page,
    Refused,
    Search,
    Unavailable,
    plain,
)

if TYPE_CHECKING:
    import grpc

    from memoryd.pb import memory_pb2 as pb

TIMEOUT: Final = 10.0
BATCH_TIMEOUT: Final = 60.0
BATCH_EVENTS: Final = 1000
BATCH_BYTES: Final = 8 * 1024 * 1024
PAGE: Final = 1000
RECEIVE_LIMIT: Final = 64 * 1024 * 1024

__all__ = (
    "ALL",
    "ROLES",
    "TYPES",
    "BadAddress",
    "Client",
    "ClientError",
    "Failed",
    "Filter",
    "Missing",
    "NotAllowed",
    "NotRunning",
    "Page",
    "Refused",
    "Search",
    "Unavailable",
    "connect",
    "listening",
    "load",
    "running",
)

_SWITCH: Final = frozenset(("", "true", "yes", "on", "1", "false", "no", "off", "0"))
_NODE_PREFIX: Final = "toc:"


def load(
    start_dir: str, environ: Mapping[str, str] = os.environ
) -> tuple[config.Settings, list[config.Value]]:
    """The settings of a directory's project. Raises config.ConfigError."""
    own = _own(environ)
    return config.load(start_dir, environ={k: v for k, v in environ.items() if k not in own})


def connect(
    start_dir: str = ".",
    *,
    address: str | None = None,
    timeout: float = TIMEOUT,
    environ: Mapping[str, str] = os.environ,
) -> "Client":
    """A client of the daemon of the project that ``start_dir`` belongs to.

    Over the project's socket, or over TCP if ``address`` or MEMORYD_ADDRESS names one. Raises
    NotRunning at once if nobody listens there, BadAddress for an address that is not loopback,
    NotAllowed for a socket of somebody else, config.ConfigError for settings that cannot be used.
    """
    settings, _ = load(start_dir, environ)
    address = address or environ.get("MEMORYD_ADDRESS") or ""
    token = ""
    if address:
        token = _own(environ).get("MEMORYD_TOKEN") or _token_file(settings.data_dir)
    listening(settings, address)
    return Client(settings, address=address, token=token, timeout=timeout)


def running(
    start_dir: str = ".", *, timeout: float = TIMEOUT, environ: Mapping[str, str] = os.environ
) -> "tuple[list[Client], list[str]]":
    """Clients of all daemons of this user that answer, and the projects whose sockets are dead."""
    settings, _ = load(start_dir, environ)
    found, dead = [], []
    names = os.listdir(settings.runtime_dir) if os.path.isdir(settings.runtime_dir) else []
    for name in sorted(name.removesuffix(".sock") for name in names if name.endswith(".sock")):
        theirs = dataclasses.replace(settings, project=name)
        try:
            listening(theirs)
        except ClientError:
            dead.append(name)
        else:
            found.append(Client(theirs, timeout=timeout))
    return found, dead


class Client(TocCalls, NoteCalls, CareCalls, ErasureCalls):
    """A connection to one daemon. Every call can raise ClientError. Closed by ``with``."""

    def __init__(
        self,
        settings: config.Settings,
        *,
        address: str = "",
        token: str = "",
        timeout: float = TIMEOUT,
    ) -> None:
        import grpc

        from memoryd.pb import memory_pb2
        from memoryd.pb.memory_pb2_grpc import MemoryServiceStub

        self.settings = settings
        self._pb = memory_pb2
        self._timeout = timeout
        self._metadata = (("authorization", f"Bearer {token}"),) if token else ()
        self._channel = grpc.insecure_channel(
            address or f"unix:{settings.socket_path}",
            options=(
                ("grpc.max_receive_message_length", RECEIVE_LIMIT),
                ("grpc.max_send_message_length", RECEIVE_LIMIT),
                ("grpc.enable_http_proxy", 0),
            ),
        )
        self._stub = MemoryServiceStub(self._channel)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection, and every call on it."""
        self._channel.close()

    def ingest(
        self,
        events: Iterable[Mapping[str, Any]],
        *,
        idempotent: bool = False,
        restoring: bool = False,
    ) -> list[dict[str, Any]]:
        """Write events, in as many batches as they need; one result for each, in their order.

        An event that cannot be put on the wire is refused alone, as the daemon does it: its
        result has ``error`` and ``error_code``. ``restoring``: the notes of a copy will follow.
        """
        flags = {"idempotent": idempotent, "restoring": restoring}
        results: list[dict[str, Any]] = []
        batch: list[pb.Event] = []
        places: list[int] = []
        size = 0
        for event in events:
            try:
                message = wire.event_message(event)
            except ValueError as error:
                results.append(wire.refusal(event, str(error)))
                continue
            length = message.ByteSize()
            if batch and (len(batch) == BATCH_EVENTS or size + length > BATCH_BYTES):
                self._send(batch, places, results, flags)
                batch, places, size = [], [], 0
            batch.append(message)
            places.append(len(results))
            results.append({})
            size += length
        if batch:
            self._send(batch, places, results, flags)
        return results

    def ingest_one(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Write one event within the client's timeout. Raises Refused if it is not taken."""
        try:
            request = self._pb.IngestEventRequest(event=wire.event_message(event))
        except ValueError as error:
            raise Refused(str(error)) from None
        return plain(self._call("IngestEvent", request))

    def _send(
        self,
        batch: "list[pb.Event]",
        places: list[int],
        results: list[dict[str, Any]],
        flags: dict[str, bool],
    ) -> None:
        request = self._pb.IngestEventsRequest(events=batch, **flags)
        answer = self._call("IngestEvents", request, max(self._timeout, BATCH_TIMEOUT))
        for place, result in zip(places, answer.results, strict=True):
            results[place] = plain(result)

    def event(self, event_id: str) -> dict[str, Any]:
        """One event by its id. Raises Refused if there is none."""
        return plain(self._call("GetEvent", self._pb.GetEventRequest(event_id=event_id)).event)

    def events_page(
        self,
        which: Filter = ALL,
        *,
        since_ms: int = 0,
        until_ms: int = 0,
        newest: bool = False,
        limit: int = 0,
        token: str = "",
    ) -> Page:
        """One answer's worth of events, and how to ask for the next."""
        pb = self._pb
        request = pb.GetEventsRequest(
            from_timestamp_ms=since_ms,
            to_timestamp_ms=until_ms,
            order=pb.EVENT_ORDER_NEWEST_FIRST if newest else pb.EVENT_ORDER_OLDEST_FIRST,
            limit=limit,
            continuation_token=token,
            **which.on_the_wire(),
        )
        answer = self._call("GetEvents", request)
        events = [plain(event) for event in answer.events]
        return Page(events, answer.has_more, answer.continuation_token)

    def events(
        self,
        which: Filter = ALL,
        *,
        since_ms: int = 0,
        until_ms: int = 0,
        newest: bool = False,
        limit: int | None = None,
    ) -> Iterator[dict[str, Any]]:
        """The events of a range, or the first ``limit`` of them, however many answers it takes."""
        left, token, more = limit, "", True
        while more and left != 0:
            events, more, token = self.events_page(
                which,
                since_ms=since_ms,
                until_ms=until_ms,
                newest=newest,
                limit=PAGE if left is None else min(left, PAGE),
                token=token,
            )
            left = None if left is None else left - len(events)
            yield from events

    def tail(
        self, which: Filter = ALL, *, after_sequence: int | None = None
    ) -> Iterator[dict[str, Any]]:
        """Events as they are written, from now on or behind a sequence number, without end.

        Ends, or raises Unavailable, when the daemon stops.
        """
        pb = self._pb
        request = pb.TailEventsRequest(
            after_sequence=after_sequence or 0,
            from_now=after_sequence is None,
            **which.on_the_wire(),
        )
        for answer in self._stream("TailEvents", request):
            yield plain(answer.event)

    def status(self) -> dict[str, Any]:
        """What the daemon is, what it holds and how it is doing."""
        return plain(self._call("GetStatus", self._pb.GetStatusRequest()))

    def sessions(
        self,
        *,
        agent: str = "",
        project: str = "",
        since_ms: int = 0,
        until_ms: int = 0,
        limit: int | None = None,
    ) -> Iterator[dict[str, Any]]:
        """The sessions in the log, most recently active first."""
        pb = self._pb
        left, token, more = limit, "", True
        while more and left != 0:
            request = pb.ListSessionsRequest(
                limit=PAGE if left is None else min(left, PAGE),
                continuation_token=token,
                agent=agent,
                project=project,
                active_since_ms=since_ms,
                active_until_ms=until_ms,
            )
            answer = self._call("ListSessions", request)
            more, token = answer.has_more, answer.continuation_token
            left = None if left is None else left - len(answer.sessions)
            yield from map(plain, answer.sessions)

    def context(self, **fields: Any) -> dict[str, Any]:
        """The block that an agent should be given, or was given, by the fields of GetContext."""
        try:
            request = self._pb.GetContextRequest(**fields)
        except (ValueError, TypeError) as error:
            raise Refused(f"the request cannot be sent: {error}") from None
        return plain(self._call("GetContext", request))

    def agents(self) -> list[dict[str, Any]]:
        """The agents in the log, most recently active first."""
        answer = self._call("ListAgents", self._pb.ListAgentsRequest())
        return [plain(agent) for agent in answer.agents]

    def resolve(
        self, prefix: str, kinds: tuple[str, ...] = (), *, limit: int = 0, project: str = ""
    ) -> tuple[list[dict[str, Any]], bool]:
        """The ids of some kinds that begin with a text, and whether there are more."""
        numbers = [ID_KINDS.index(kind) + 1 for kind in kinds]
        request = self._pb.ResolveIdRequest(
            prefix=prefix, kinds=numbers, limit=limit, project=project
        )
        answer = self._call("ResolveId", request)
        return [plain(found) for found in answer.ids], answer.has_more

    def search_sessions(
        self, query: str, which: Search = EVERYTHING, *, hits: int = 0
    ) -> dict[str, Any]:
        """The sessions that matter for a question, each with its best turns."""
        asked = self._pb.TeleportSearchRequest(query=query, **which.on_the_wire())
        request = self._pb.SearchSessionsRequest(search=asked, hits_per_session=hits)
        return plain(self._call("SearchSessions", request))

    def search(self, query: str, which: Search = EVERYTHING) -> dict[str, Any]:
        """The best results for a question, with ``total_docs`` and ``index_state``."""
        request = self._pb.TeleportSearchRequest(query=query, **which.on_the_wire())
        return plain(self._call("TeleportSearch", request))

    def related(self, like: str, which: Search = EVERYTHING) -> dict[str, Any]:
        """What is like an event, or a node of the table of contents, as `search` answers."""
        wire = self._pb
        named = {"node_id" if like.startswith(_NODE_PREFIX) else "event_id": like}
        search = wire.TeleportSearchRequest(**which.on_the_wire())
        return plain(self._call("FindRelated", wire.FindRelatedRequest(search=search, **named)))

    def index_status(self) -> dict[str, Any]:
        """How the search index is doing."""
        return plain(self._call("GetIndexStatus", self._pb.GetIndexStatusRequest()))

    def rebuild_index(self) -> Iterator[dict[str, Any]]:
        """Have the search index made anew; how far it is, until it is done."""
        request = self._pb.RebuildIndexRequest()
        yield from map(plain, self._stream("RebuildIndex", request))

    def _call(self, method: str, request: object, timeout: float | None = None) -> Any:
        import grpc

        try:
            return getattr(self._stub, method)(
                request, timeout=timeout or self._timeout, metadata=self._metadata
            )
        except grpc.RpcError as error:
            raise self._translated(error) from error

    def _stream(self, method: str, request: object) -> Iterator[Any]:
        """The answers of a call that goes on; ends it when nobody listens any more."""
        import grpc

        call = getattr(self._stub, method)(request, metadata=self._metadata)
        try:
            yield from call
        except grpc.RpcError as error:
            details = error.details() or ""
            if wire.is_end(error.code().name, details):
                msg = f"daemon for project {self.settings.project} has stopped: {details}"
                raise Unavailable(msg) from error
            raise self._translated(error) from error
        finally:
            call.cancel()

    def _translated(self, error: "grpc.RpcError") -> ClientError:
        code: str = error.code().name
        details: str = error.details() or code.lower()
        kind = wire.error_kind(code)
        if issubclass(kind, Refused):
            return kind(details)
        what = {Unavailable: "is unavailable", NotAllowed: "refuses the call"}.get(kind, "failed")
        return kind(f"daemon for project {self.settings.project} {what}: {details}")


def _own(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that speak to clients alone: MEMORYD_TOKEN is also the name of a switch."""
    own = {k: environ[k].strip() for k in ("MEMORYD_ADDRESS", "MEMORYD_TOKEN") if k in environ}
    if own.get("MEMORYD_TOKEN", "").lower() in _SWITCH:
        own.pop("MEMORYD_TOKEN", None)
    return own


def listening(settings: config.Settings, address: str = "") -> None:
    """Raise at once if nobody listens: grpc itself would try again and again until the deadline."""
    import socket

    try:
        if address:
            socket.create_connection(_loopback(address), timeout=1).close()
        else:
            with socket.socket(socket.AF_UNIX) as probe:
                probe.settimeout(1)
                probe.connect(settings.socket_path)
    except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
        where = f" at {address}" if address else ""
        msg = f"daemon for project {settings.project} is not running{where}: start it with `memoryd serve`"
        raise NotRunning(msg) from None
    except PermissionError:
        raise NotAllowed(f"socket {settings.socket_path} belongs to somebody else") from None
    except OSError as error:
        msg = f"daemon for project {settings.project} cannot be reached: {error}"
        raise Unavailable(msg) from error


def _loopback(address: str) -> tuple[str, int]:
    """Host and port. Raises BadAddress unless the host is this machine: the token goes in clear."""
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    if not port.isdecimal() or not (host in {"localhost", "::1"} or host.startswith("127.")):
        msg = (
            f"address {address!r} is not usable: take 127.0.0.1:PORT, [::1]:PORT or localhost:PORT"
        )
        raise BadAddress(msg)
    return host, int(port)


def _token_file(data_dir: str) -> str:
    """The token that the daemon keeps in its data directory, or "" if it keeps none."""
    try:
        with open(f"{data_dir}/token", encoding="ascii") as file:
            return file.read().strip()
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise NotAllowed(f"token {data_dir}/token cannot be read: {error.strerror}") from error
