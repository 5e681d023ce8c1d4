"""Connections that do not speak HTTP/2, or speak it badly."""

import random
import socket
import struct
from collections.abc import Callable
from contextlib import suppress

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_HEADERS, _PRIORITY, _RESET, _SETTINGS, _PING, _WINDOW, _MORE = 1, 2, 3, 4, 6, 8, 9
_DATA, _PUSH, _LEAVE = 0, 5, 7


def frame(kind: int, flags: int, stream: int, payload: bytes, length: int | None = None) -> bytes:
    """A frame, whose length may lie."""
    size = len(payload) if length is None else length
    return struct.pack(">I", size)[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def hello() -> bytes:
    """What a client that means well begins with."""
    return _PREFACE + frame(_SETTINGS, 0, 0, b"")


def _path(name: bytes) -> bytes:
    """A block of headers: POST http, a path, all spelled out."""
    block = b"\x83\x86"
    pairs = ((b":path", name), (b":authority", b"x"), (b"content-type", b"application/grpc"))
    for key, value in (*pairs, (b"te", b"trailers")):
        block += b"\x00" + bytes([len(key)]) + key + bytes([len(value)]) + value
    return block


def _noise(chance: random.Random) -> bytes:
    return chance.randbytes(chance.randrange(1, 4000))


def _http1(_chance: random.Random) -> bytes:
    return b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20


def _half(chance: random.Random) -> bytes:
    return hello()[: chance.randrange(1, len(hello()))]


def _random_frames(chance: random.Random) -> bytes:
    said = hello()
    for _ in range(chance.randrange(1, 60)):
        payload = chance.randbytes(chance.randrange(60))
        lie = chance.choice((None, None, None, 0, 2**24 - 1))
        stream = chance.choice((0, 1, 2, 3, 2**31 - 1))
        said += frame(chance.randrange(12), chance.randrange(256), stream, payload, lie)
    return said


def _bad_headers(chance: random.Random) -> bytes:
    return hello() + frame(_HEADERS, 5, 1, chance.randbytes(chance.randrange(1, 300)))


def _endless_headers(_chance: random.Random) -> bytes:
    more = frame(_MORE, 0, 1, b"\x00\x01a\x7f" + b"b" * 16_000)
    return hello() + frame(_HEADERS, 0, 1, _path(b"/x")) + more * 40


def _rapid_resets(_chance: random.Random) -> bytes:
    said = hello()
    for stream in range(1, 2001, 2):
        said += frame(_HEADERS, 4, stream, _path(b"/memory.MemoryService/GetStatus"))
        said += frame(_RESET, 0, stream, struct.pack(">I", 8))
    return said


def _flood(chance: random.Random) -> bytes:
    kind, payload = chance.choice(
        (
            (_PING, b"12345678"),
            (_SETTINGS, b""),
            (_SETTINGS, struct.pack(">HI", 4, 0)),
            (_PRIORITY, b"\0\0\0\1\1"),
            (_WINDOW, struct.pack(">I", 1)),
        )
    )
    stream = 1 if kind == _PRIORITY else 0
    return hello() + frame(kind, 0, stream, payload) * 3000


def _window_overflow(_chance: random.Random) -> bytes:
    return hello() + frame(_WINDOW, 0, 0, struct.pack(">I", 2**31 - 1)) * 3


def _strange_streams(chance: random.Random) -> bytes:
    call = _path(b"/memory.MemoryService/IngestEvent")
    said = hello() + frame(_HEADERS, 4, 1, call)
    said += frame(_DATA, 0, 1, b"\0" + struct.pack(">I", chance.choice((2**32 - 1, 10))) + b"abc")
    said += frame(_DATA, 1, chance.choice((1, 3, 0)), b"") + frame(_PUSH, 4, 1, b"\0\0\0\2")
    return said + frame(_LEAVE, 0, 0, b"\0" * 8) + frame(_HEADERS, 5, 1, call)


ATTACKS: tuple[Callable[[random.Random], bytes], ...] = (
    _noise,
    _http1,
    _half,
    _random_frames,
    _bad_headers,
    _endless_headers,
    _rapid_resets,
    _flood,
    _window_overflow,
    _strange_streams,
)


def attack(path: str, chance: random.Random, seconds: float = 0.2) -> None:
    """Say one bad thing on a connection of its own, and listen for a moment."""
    said = chance.choice(ATTACKS)(chance)
    with suppress(OSError), connected(path) as sock:
        sock.settimeout(seconds)
        sock.sendall(said)
        if chance.random() < 0.3:
            return  # gone without listening
        while sock.recv(65536):
            pass


def connected(path: str) -> socket.socket:
    """A raw connection to a unix socket."""
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(10)
    sock.connect(path)
    return sock
