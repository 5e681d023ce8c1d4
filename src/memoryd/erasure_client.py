"""The client's calls that erase events, list receipts, and change the token.

The other half of `client.Client`, which has the connection. Plain dicts go in and out, as `wire`
spells them.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from memoryd.wire import ClientError, Refused, Unavailable, is_end, plain

if TYPE_CHECKING:
    import grpc

TIMEOUT = 60.0


class Which(NamedTuple):
    """Which events are to go: all that fit every part that is given."""

    session_ids: tuple[str, ...] = ()
    event_ids: tuple[str, ...] = ()
    from_timestamp_ms: int = 0
    to_timestamp_ms: int = 0
    matching: str = ""


class ErasureCalls:
    """Calls on a connection. Every one can raise ClientError."""

    if TYPE_CHECKING:  # the client's own
        _channel: Any
        _metadata: Any

        def _translated(self, error: "grpc.RpcError") -> ClientError: ...

    def plan_erasure(self, which: Which) -> Iterator[dict[str, Any]]:
        """Portions of the events that would go; the last one has count, log_sequence and digest."""
        yield from self._erasure_stream("Plan", filter=which._asdict())

    def erase(
        self, which: Which, plan: dict[str, Any], reason: str = ""
    ) -> Iterator[dict[str, Any]]:
        """Erase exactly what a plan named; how far it is, up to the outcome."""
        yield from self._erasure_stream(
            "Erase",
            filter=which._asdict(),
            log_sequence=plan["log_sequence"],
            digest=plan["digest"],
            reason=reason,
        )

    def follow_erasure(self, receipt: int) -> Iterator[dict[str, Any]]:
        """How far an erasure is, up to the outcome."""
        yield from self._erasure_stream("FollowErasure", receipt=receipt)

    def receipts(self) -> list[dict[str, Any]]:
        """Every erasure there was; ``outcome`` is None as long as one goes on."""
        answer = self._erasure_call("ListReceipts")
        return [
            plain(found) | ({} if found.HasField("outcome") else {"outcome": None})
            for found in answer.receipts
        ]

    def receipt_events(self, number: int) -> Iterator[dict[str, Any]]:
        """The events of a receipt."""
        for portion in self._erasure_stream("GetReceipt", number=number):
            yield from portion["events"]

    def rotate_token(self) -> str:
        """Have a new token for TCP; the path of the file that holds it."""
        path: str = self._erasure_call("RotateToken").path
        return path

    def _erasure_call(self, method: str, **fields: Any) -> Any:
        import grpc

        call, request = self._erasure(method, fields)
        try:
            return call(request, timeout=TIMEOUT, metadata=self._metadata)
        except grpc.RpcError as error:
            raise self._translated(error) from error

    def _erasure_stream(self, method: str, **fields: Any) -> Iterator[dict[str, Any]]:
        import grpc

        call, request = self._erasure(method, fields)
        answers = call(request, metadata=self._metadata)
        try:
            for answer in answers:
                yield plain(answer)
        except grpc.RpcError as error:
            details = error.details() or ""
            if is_end(error.code().name, details):
                raise Unavailable(f"the daemon has stopped: {details}") from error
            raise self._translated(error) from error
        finally:
            answers.cancel()

    def _erasure(self, method: str, fields: dict[str, Any]) -> tuple[Any, Any]:
        from memoryd.pb import erasure_pb2
        from memoryd.pb.erasure_pb2_grpc import ErasureServiceStub

        methods = erasure_pb2.DESCRIPTOR.services_by_name["ErasureService"].methods_by_name
        try:
            request = getattr(erasure_pb2, methods[method].input_type.name)(**fields)
        except (ValueError, TypeError) as error:
            raise Refused(f"the request cannot be sent: {error}") from None
        return getattr(ErasureServiceStub(self._channel), method), request
