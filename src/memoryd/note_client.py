"""The client's calls that read and write notes.

The other half of `client.Client`, which has the connection. Plain dicts go in and out, as `wire`
spells them.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from memoryd.wire import ClientError, Refused, plain

if TYPE_CHECKING:
    import grpc

TIMEOUT: Final = 60.0  # a global note may have to wait for another process
PAGE: Final = 1000


class NoteCalls:
    """Calls on a connection. Every one can raise ClientError."""

    _notes: Any = None
    if TYPE_CHECKING:  # the client's own
        _channel: Any
        _metadata: Any

        def _translated(self, error: "grpc.RpcError") -> ClientError: ...

    def note(self, method: str, **fields: Any) -> dict[str, Any]:
        """Call a method of NoteService with the fields of its request, as the contract names them.

        A note in them is a dict of its fields.
        """
        from memoryd.pb import note_pb2

        methods = note_pb2.DESCRIPTOR.services_by_name["NoteService"].methods_by_name
        try:
            request = getattr(note_pb2, methods[method].input_type.name)(**fields)
        except (ValueError, TypeError) as error:
            raise Refused(f"the request cannot be sent: {error}") from None
        return plain(self._call_notes(method, request))

    def notes(self, **fields: Any) -> Iterator[dict[str, Any]]:
        """The notes that List gives for these fields, however many answers it takes."""
        token, more = "", True
        while more:
            answer = self.note("List", limit=PAGE, continuation_token=token, **fields)
            token, more = answer["continuation_token"], answer["has_more"]
            yield from answer["notes"]

    def _call_notes(self, method: str, request: object) -> Any:
        import grpc

        from memoryd.pb.note_pb2_grpc import NoteServiceStub

        if self._notes is None:
            self._notes = NoteServiceStub(self._channel)
        try:
            return getattr(self._notes, method)(request, timeout=TIMEOUT, metadata=self._metadata)
        except grpc.RpcError as error:
            raise self._translated(error) from error
