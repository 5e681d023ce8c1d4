"""The client's calls that look after the data.

The third half of `client.Client`, which has the connection. Plain dicts come out, as `wire` spells
them; each call tells how far it is, and its last word has ``finished`` set.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from memoryd.wire import ClientError, Unavailable, is_end, plain

if TYPE_CHECKING:
    import grpc

    from memoryd.config import Settings


class CareCalls:
    """Calls on a connection. Every one can raise ClientError."""

    _care: Any = None
    if TYPE_CHECKING:  # the client's own
        _channel: Any
        _metadata: Any
        settings: Settings

        def _translated(self, error: "grpc.RpcError") -> ClientError: ...

    def backup(self, destination: str, keep: int = 0) -> Iterator[dict[str, Any]]:
        """Back the store up into a directory; with ``keep``, only so many backups stay there."""
        from memoryd.pb import care_pb2

        request = care_pb2.BackupRequest(destination=destination, keep=keep)
        return self._stream_care("Backup", request)

    def verify(self) -> Iterator[dict[str, Any]]:
        """Have the daemon check everything that it has."""
        from memoryd.pb import care_pb2

        return self._stream_care("Verify", care_pb2.VerifyRequest())

    def compact(self) -> Iterator[dict[str, Any]]:
        """Merge all tables of the database."""
        from memoryd.pb import care_pb2

        return self._stream_care("Compact", care_pb2.CompactRequest())

    def _stream_care(self, method: str, request: object) -> Iterator[dict[str, Any]]:
        import grpc

        from memoryd.pb.care_pb2_grpc import CareServiceStub

        if self._care is None:
            self._care = CareServiceStub(self._channel)
        call = getattr(self._care, method)(request, metadata=self._metadata)
        try:
            yield from map(plain, call)
        except grpc.RpcError as error:
            details = error.details() or ""
            if is_end(error.code().name, details):
                msg = f"daemon for project {self.settings.project} has stopped: {details}"
                raise Unavailable(msg) from error
            raise self._translated(error) from error
        finally:
            call.cancel()
