"""The way to the daemon: calls that find it again when it comes back, and a thread that listens.

Nothing here touches the screen. Calls are made from worker threads; what the listener hears is
fetched by whoever draws, at his own pace, so that a flood of events cannot drown him.
"""

import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from memoryd.config import ConfigError
from memoryd.wire import ClientError, NotRunning, Unavailable

if TYPE_CHECKING:
    from memoryd.client import Client

RETRY_SECONDS: Final = 1.0
_KEPT: Final = 500  # of the events that nobody has fetched yet

_T = TypeVar("_T")


def brief(error: Exception) -> str:
    """What went wrong, without the details that gRPC adds."""
    return str(error).partition("; last error")[0]


class Link:
    """Makes calls on one connection, and a new connection after the daemon was away."""

    def __init__(self, connect: "Callable[[], Client]") -> None:
        self._connect = connect
        self._client: Client | None = None
        self._lock = threading.Lock()

    def ask(self, call: "Callable[[Client], _T]") -> _T:
        """What a call gives. Raises ClientError, ConfigError."""
        with self._lock:
            if self._client is None:
                self._client = self._connect()
            client = self._client
        try:
            return call(client)
        except (NotRunning, Unavailable):
            with self._lock:
                # not closed: that would end the calls of others too
                if self._client is client:
                    self._client = None
            raise

    def end(self) -> None:
        """Close the connection; calls that are under way fail."""
        with self._lock:
            if self._client is not None:
                self._client.close()


class Heard(NamedTuple):
    """What has happened since it was last asked; ``lost`` says why nothing is heard."""

    total: int
    events: list[dict[str, Any]]
    lost: str


class Listener(threading.Thread):
    """Follows the log, and goes on when the daemon has been away."""

    def __init__(self, connect: "Callable[[], Client]", retry: float = RETRY_SECONDS) -> None:
        super().__init__(name="memory-listener", daemon=True)
        self._connect = connect
        self._retry = retry
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._client: Client | None = None
        self._events: deque[dict[str, Any]] = deque(maxlen=_KEPT)
        self._count = 0
        self._lost = ""

    def take(self) -> Heard:
        """What was heard since the last call; of very many events the last."""
        with self._lock:
            heard = Heard(self._count, list(self._events), self._lost)
            self._events.clear()
            self._count = 0
        return heard

    def end(self) -> None:
        """Stop to listen."""
        self._ended.set()
        with self._lock:
            if self._client is not None:
                self._client.close()

    def run(self) -> None:
        """Listen until the end."""
        while not self._ended.is_set():
            try:
                with self._connect() as client:
                    self._listen(client)
                reason = f"daemon for project {client.settings.project} has stopped"
            except (ClientError, ConfigError) as error:
                reason = brief(error)
            except ValueError:  # grpc's word for a connection that was closed under it
                reason = "the connection was closed"
            with self._lock:
                self._lost = reason
                self._client = None
            self._ended.wait(self._retry)

    def _listen(self, client: "Client") -> None:
        with self._lock:
            self._client = client
        if self._ended.is_set():
            return
        end = client.status()["sequence"]
        with self._lock:
            self._lost = ""
        for event in client.tail(after_sequence=end):
            with self._lock:
                self._events.append(event)
                self._count += 1
