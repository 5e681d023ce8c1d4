import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc
import pytest

from memoryd.domain.errors import InvalidInput, StoreDamaged
from memoryd.rpc.interceptors import Guard
from memoryd.services.status import ErrorBook

SECRET = "secret-text-of-an-event"


class Fatal(BaseException):
    """An error that is not even an Exception."""


class Handlers(grpc.GenericRpcHandler):
    """Serves one unary and one streaming method that fail in the same way."""

    def __init__(self, error: BaseException | None) -> None:
        self._error = error

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """The handler of a method."""
        if handler_call_details.method == "/x/Unary":
            return grpc.unary_unary_rpc_method_handler(self._unary)
        return grpc.unary_stream_rpc_method_handler(self._stream)

    def _unary(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        if self._error is not None:
            raise self._error
        return request

    def _stream(self, request: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        yield b"first"
        if self._error is not None:
            raise self._error


@contextmanager
def guarded(
    error: BaseException | None, token: str | None = None
) -> Iterator[tuple[grpc.Channel, Guard, ErrorBook]]:
    """A server behind a guard, with a channel to it over TCP."""
    book = ErrorBook(lambda: 1)
    guard = Guard(token, 2, book)
    server = grpc.server(ThreadPoolExecutor(4), handlers=[Handlers(error)], interceptors=[guard])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield channel, guard, book
    server.stop(None).wait()


def call(channel: Any, method: str = "/x/Unary", **more: Any) -> Any:
    """Call a method to its end."""
    if method == "/x/Unary":
        return channel.unary_unary(method)(b"hello", timeout=10, **more)
    return list(channel.unary_stream(method)(b"hello", timeout=10, **more))


@pytest.mark.parametrize("error", [ValueError(SECRET), Fatal(SECRET), SystemExit(SECRET)])
@pytest.mark.parametrize("method", ["/x/Unary", "/x/Stream"])
def test_unforeseen_errors_leak_nothing(
    error: BaseException,
    method: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """An error that nobody foresaw answers with an id, and its message stays out of everything."""
    caplog.set_level(logging.DEBUG)
    with guarded(error) as (channel, guard, book):
        with pytest.raises(grpc.RpcError) as caught:
            call(channel, method)
        failure: Any = caught.value
        (report,) = book.latest()
        assert failure.code() == grpc.StatusCode.INTERNAL
        assert failure.details() == f"error {report.error_id}: see the daemon's log"
        assert report.message == f"unexpected {type(error).__name__}"
        assert guard.open_streams == 0
    ours = [r for r in caplog.records if r.name.startswith("memoryd")]
    assert SECRET not in "".join(f"{r.getMessage()} {vars(r)}" for r in ours)
    assert any(vars(r).get("error_id") == report.error_id for r in ours)


@pytest.mark.parametrize(
    ("error", "code", "noted"),
    [
        (InvalidInput("limit -1 is negative"), grpc.StatusCode.INVALID_ARGUMENT, 0),
        (StoreDamaged("cannot read events"), grpc.StatusCode.DATA_LOSS, 1),
    ],
)
def test_our_errors_are_answered_in_their_words(
    error: Exception,
    code: grpc.StatusCode,
    noted: int,
) -> None:
    """Errors raised on purpose keep their words, and damage is noted for the status."""
    with guarded(error) as (channel, _, book):
        with pytest.raises(grpc.RpcError) as caught:
            call(channel)
        failure: Any = caught.value
        assert (failure.code(), failure.details()) == (code, str(error))
        assert len(book.latest()) == noted


def test_over_tcp_the_token_is_required() -> None:
    """Without the right token a call over TCP is refused, and with it answered."""
    with guarded(None, token="t0ken") as (channel, _, _book):
        for metadata in ((), (("authorization", "Bearer wrong"),), (("authorization", "t0ken"),)):
            with pytest.raises(grpc.RpcError) as caught:
                call(channel, metadata=metadata)
            failure: Any = caught.value
            assert failure.code() == grpc.StatusCode.UNAUTHENTICATED
            assert "t0ken" not in failure.details()
            with pytest.raises(grpc.RpcError):
                call(channel, "/x/Stream", metadata=metadata)
        assert call(channel, metadata=(("authorization", "Bearer t0ken"),)) == b"hello"


def test_the_error_book_keeps_the_latest() -> None:
    """The book keeps 20 errors, newest first, each under an id of its own."""
    book = ErrorBook(lambda: 7)
    ids = [book.add("op", f"m{n}") for n in range(25)]
    assert [report.error_id for report in book.latest()] == ids[:4:-1]
    assert book.latest()[0].message == "m24"
