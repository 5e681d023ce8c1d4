"""The outermost layer of every call: who may call, how many streams, and an answer to any failure.

Requests are parsed here and not by gRPC: for each one that it cannot parse, it keeps 16 KiB for
ever and writes a traceback to the log.
"""

import hmac
import logging
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import grpc
from google.protobuf.message import DecodeError

from memoryd.domain.errors import InvalidInput, MemorydError, TooBusy
from memoryd.rpc.convert import status_of
from memoryd.services.status import ErrorBook

_log = logging.getLogger(__name__)

if TYPE_CHECKING:  # the stubs know type arguments that the class itself does not take
    _Handler = grpc.RpcMethodHandler[Any, Any]

Behaviour = Callable[[Any, grpc.ServicerContext], Any]
Parse = Callable[[bytes], Any]


class Guard(grpc.ServerInterceptor):
    """Wraps every handler, also those of health and reflection."""

    def __init__(self, token: str | None, max_streams: int, errors: ErrorBook) -> None:
        """``token``: what callers over TCP must present; None lets everybody in."""
        self._bearer: bytes | None = None
        if token:
            self.take(token)
        self._max_streams = max_streams
        self._streams = threading.BoundedSemaphore(max_streams)
        self._errors = errors
        self._guarded: dict[str, tuple[_Handler, _Handler]] = {}  # each handler is wrapped once
        self.open_streams = 0

    def take(self, token: str) -> None:
        """Let in who presents this token from now on, and nobody else."""
        self._bearer = f"Bearer {token}".encode()

    def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], "_Handler | None"],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> "_Handler | None":
        """The handler of a call, wrapped."""
        handler = continuation(handler_call_details)
        if handler is None:
            return None
        name = handler_call_details.method
        known, guarded = self._guarded.get(name, (None, None))
        if known is not handler:
            guarded = self._wrap(name.rpartition("/")[2], handler)
            self._guarded[name] = handler, guarded
        return guarded

    def _wrap(self, method: str, handler: "_Handler") -> "_Handler":
        parse, serialize = (
            _parser(method, handler.request_deserializer),
            handler.response_serializer,
        )
        if handler.unary_unary:
            unary = self._unary(method, handler.unary_unary, parse)
            return grpc.unary_unary_rpc_method_handler(unary, None, serialize)
        if handler.unary_stream:
            stream = self._stream(method, handler.unary_stream, parse)
            return grpc.unary_stream_rpc_method_handler(stream, None, serialize)
        if handler.stream_stream:
            stream = self._stream(method, handler.stream_stream, lambda given: map(parse, given))
            return grpc.stream_stream_rpc_method_handler(stream, None, serialize)
        return handler

    def _unary(self, method: str, behaviour: Behaviour, parse: Parse) -> Behaviour:
        def guarded(request: bytes, context: grpc.ServicerContext) -> Any:
            self._authenticate(context)
            try:
                return behaviour(parse(request), context)
            except BaseException as error:  # noqa: BLE001 - the caller would wait for ever
                failure = error
            return self._fail(method, failure, context)

        return guarded

    def _stream(self, method: str, behaviour: Behaviour, parse: Callable[[Any], Any]) -> Behaviour:
        def guarded(request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
            self._authenticate(context)
            bearer = self._bearer
            if not self._streams.acquire(blocking=False):
                busy = f"{self._max_streams} streams are open, which is the limit: close one first"
                self._fail(method, TooBusy(busy), context)
            self.open_streams += 1
            failure: BaseException | None = None
            try:
                for answer in behaviour(parse(request), context):
                    if self._bearer is not bearer and not self._allowed(context):
                        break  # another token holds since the call began
                    yield answer
                else:
                    return
            except GeneratorExit:
                raise
            except BaseException as error:  # noqa: BLE001 - the caller would wait for ever
                failure = error
            finally:
                self.open_streams -= 1
                self._streams.release()
            if failure is None:
                self._authenticate(context)
            else:
                self._fail(method, failure, context)

        return guarded

    def _allowed(self, context: grpc.ServicerContext) -> bool:
        """Whether a call came by the socket or presents the token."""
        if self._bearer is None or context.peer().startswith("unix:"):
            return True
        for name, value in context.invocation_metadata() or ():
            if name == "authorization":
                given = value if isinstance(value, bytes) else value.encode()
                if hmac.compare_digest(given, self._bearer):
                    return True
        return False

    def _authenticate(self, context: grpc.ServicerContext) -> None:
        """End the call unless it is allowed."""
        if self._allowed(context):
            return
        context.abort(
            grpc.StatusCode.UNAUTHENTICATED,
            "this call needs the metadata `authorization: Bearer TOKEN`; the token is in the file "
            "`token` of the project's data directory",
        )

    def _fail(self, method: str, error: BaseException, context: grpc.ServicerContext) -> NoReturn:
        code = status_of(error)
        if code is not None:
            if code in {grpc.StatusCode.DATA_LOSS, grpc.StatusCode.FAILED_PRECONDITION}:
                self._errors.add(method, str(error))
                _log.error("call failed", extra={"method": method, "reason": str(error)})
            context.abort(code, str(error))
        kind = type(error).__name__
        if not context.is_active():
            context.abort(grpc.StatusCode.CANCELLED, "the caller has gone")
        error_id = self._errors.add(method, f"unexpected {kind}")
        # a message of an error that nobody foresaw may quote event text: log where, not what
        where = _place(error) if not isinstance(error, MemorydError) else str(error)
        _log.error(
            "call failed", extra={"method": method, "error_id": error_id, "kind": kind, "at": where}
        )
        context.abort(grpc.StatusCode.INTERNAL, f"error {error_id}: see the daemon's log")


def _parser(method: str, parse: Parse | None) -> Parse:
    """The parser of a method's requests, with an error that a caller can be told."""

    def parsed(data: bytes) -> Any:
        try:
            return parse(data) if parse else data
        except DecodeError:
            raise InvalidInput(f"the request is not a message that {method} takes") from None

    return parsed


def _place(error: BaseException) -> str:
    trace = error.__traceback__
    places = []
    while trace is not None:
        code = trace.tb_frame.f_code
        places.append(f"{code.co_filename.rpartition('/')[2]}:{trace.tb_lineno}")
        trace = trace.tb_next
    return " < ".join(reversed(places))
