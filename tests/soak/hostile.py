"""Hostile bytes: bent requests, bad HTTP/2, readers that do not read, a thousand connections.

All the while an honest client writes and reads; it must be served, and what it was told is kept.
"""

import random
import resource
import socket
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import grpc

from memoryd.pb import memory_pb2 as pb
from memoryd.pb.memory_pb2_grpc import MemoryServiceStub
from tests.faults.driver import Daemon, House, Oracle
from tests.soak import frames, messages, vitals
from tests.soak.outcome import Order, Outcome

SERVED_SECONDS = 30.0
GROWTH_MIB = 64.0
_THREADS = 6
_CALL_SECONDS = 30.0
_CONNECTIONS = 1_000
_READERS = 12
_MALFORMED = "deserializing request"


class Honest:
    """A client that means well: an event and a question, five times a second."""

    def __init__(self, path: str) -> None:
        """``path``: the daemon's socket, to which it has a connection of its own."""
        options = (("grpc.enable_http_proxy", 0), ("grpc.use_local_subchannel_pool", 1))
        self._channel = grpc.insecure_channel(f"unix:{path}", options=options)
        self._stub = MemoryServiceStub(self._channel)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.oracle = Oracle()
        self.problems: list[str] = []
        self.slowest = 0.0
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._ended.wait(0.2):
            number += 1
            began = time.monotonic()
            try:
                self.oracle.write(self._stub, f"honest-{number}")
                self._stub.GetStatus(pb.GetStatusRequest(), timeout=SERVED_SECONDS)
            except grpc.RpcError as error:
                if (
                    error.code() is not grpc.StatusCode.RESOURCE_EXHAUSTED
                ):  # too many calls: told so
                    self.problems.append(f"not served: {error.code()} {error.details()}")
            self.slowest = max(self.slowest, time.monotonic() - began)

    def close(self) -> None:
        """End."""
        self._ended.set()
        self._thread.join()
        self._channel.close()


def hostile(order: Order) -> Outcome:
    """Send as many bent requests as there are cycles, a hundredth as many bad connections, and so on."""
    outcome = Outcome("hostile", order.seed)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    house = House()
    try:
        daemon = house.serve()
        honest = Honest(house.socket)
        try:
            _attack(house, daemon, order, outcome)
        finally:
            honest.close()
        outcome.problems += honest.problems
        outcome.problems += honest.oracle.check_ids(daemon.stub, honest.oracle.ids)
        outcome.bound("honest client waited at most s", honest.slowest, SERVED_SECONDS)
        outcome.problems += _unforeseen(house)
        if daemon.process.poll() is not None or not daemon.serving():
            outcome.problems.append("the daemon does not serve any more")
    finally:
        house.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return outcome


def _attack(house: House, daemon: Daemon, order: Order, outcome: Outcome) -> None:
    """All attacks, first a quarter of them and then the rest: the second time, nothing may grow."""
    answers: Counter[str] = Counter()
    first = order.cycles // 4
    seen = []
    for seed, count in ((order.seed, first), (order.seed + 1, order.cycles - first)):
        _bent_requests(daemon, count, seed, answers, outcome)
        order.say(f"{sum(answers.values())} bent requests")
        _bad_connections(house.socket, max(20, count // 100), seed)
        _slow_readers(daemon, outcome, f"slow{seed}")
        _many_connections(house.socket, daemon, outcome)
        order.say("bad connections, slow readers and a thousand connections")
        time.sleep(2)
        seen.append(vitals.look(daemon.process.pid))
    warm, after = seen
    outcome.cycles = sum(answers.values())
    outcome.figures |= {
        "methods": len(messages.methods()),
        "answers": ", ".join(f"{n} {code}" for code, n in answers.most_common()),
        "bad connections": max(20, first // 100) + max(20, (order.cycles - first) // 100),
        "connections held": _CONNECTIONS,
        "RSS MiB after a quarter": round(warm.rss_mib),
        "threads": f"{warm.threads} to {after.threads}",
        "files": f"{warm.files} to {after.files}",
    }
    outcome.bound("RSS grew by MiB", after.rss_mib - warm.rss_mib, GROWTH_MIB)


def _bent_requests(
    daemon: Daemon, count: int, seed: int, answers: "Counter[str]", outcome: Outcome
) -> None:
    """Send bent requests to every method, from some threads, each with a chance of its own."""
    known = messages.methods()

    def send(thread: int) -> None:
        chance = random.Random(f"{seed}-{thread}")
        for _ in range(count // _THREADS):
            method = messages.draw(chance, known)
            code, details = _call(daemon.channel, method, messages.bent(chance, method.request))
            answers[code.name] += 1
            if _is_problem(code, details):
                outcome.problems.append(f"{method.name}: {code.name} {details[:200]}")

    with ThreadPoolExecutor(_THREADS) as pool:
        list(pool.map(send, range(_THREADS)))


def _is_problem(code: grpc.StatusCode, details: str) -> bool:
    """Whether an answer shows that nobody had foreseen the request, or that a call hung."""
    if code is grpc.StatusCode.INTERNAL:
        return _MALFORMED not in details
    return code in {
        grpc.StatusCode.UNKNOWN,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.DATA_LOSS,
    }


def _call(
    channel: grpc.Channel, method: messages.Method, data: bytes
) -> tuple[grpc.StatusCode, str]:
    try:
        if method.streams:
            made: Any = channel.unary_stream(method.path, _same, _same)
            call = made(data, timeout=_CALL_SECONDS)
            for number, _ in enumerate(_within(call, 0.5)):
                if number >= 2:
                    break
            call.cancel()
        else:
            channel.unary_unary(method.path, _same, _same)(data, timeout=_CALL_SECONDS)
    except grpc.RpcError as error:
        if error.code() is grpc.StatusCode.CANCELLED:
            return grpc.StatusCode.OK, ""
        return error.code(), error.details() or ""
    return grpc.StatusCode.OK, ""


def _within(call: Any, seconds: float) -> Any:
    """What a stream says, for so long at most: one that follows the log never ends."""
    timer = threading.Timer(seconds, call.cancel)
    timer.start()
    try:
        yield from call
    finally:
        timer.cancel()


def _same(data: bytes) -> bytes:
    return data


def _bad_connections(path: str, count: int, seed: int) -> None:
    def one(number: int) -> None:
        frames.attack(path, random.Random(f"{seed}-{number}"))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, range(count)))


def _slow_readers(daemon: Daemon, outcome: Outcome, name: str) -> None:
    """Follow the log in more streams than there may be, read nothing, and let it grow."""
    oracle = Oracle()
    tails = [daemon.stub.TailEvents(pb.TailEventsRequest()) for _ in range(_READERS)]
    time.sleep(0.5)
    try:
        for number in range(20):
            oracle.write_batch(daemon.stub, f"{name}-{number}", 200)
    except grpc.RpcError as error:
        outcome.problems.append(f"slow readers hold up a writer: {error.code()}")
    for tail in tails:
        tail.cancel()
    deadline = time.monotonic() + 30
    while daemon.status().open_streams and time.monotonic() < deadline:
        time.sleep(0.1)
    if daemon.status().open_streams:
        outcome.problems.append("streams of readers that have gone stay open")


def _many_connections(path: str, daemon: Daemon, outcome: Outcome) -> None:
    """Hold a thousand connections: a third says nothing, a third half a word, a third hello."""
    held: list[socket.socket] = []
    openings = (b"", frames.hello()[:10], frames.hello())
    try:
        for number in range(_CONNECTIONS):
            held.append(frames.connected(path))
            held[-1].sendall(openings[number % 3])
        with grpc.insecure_channel(f"unix:{path}") as channel:
            fresh = channel.unary_unary("/memory.MemoryService/GetStatus", _same, _same)
            fresh(b"", timeout=SERVED_SECONDS)
        Oracle().write(daemon.stub, "among a thousand")
    except (OSError, grpc.RpcError) as error:
        outcome.problems.append(f"with {len(held)} connections: {error}")
    for sock in held:
        with suppress(OSError):
            sock.close()


def _unforeseen(house: House) -> list[str]:
    """What the log tells of errors that nobody had foreseen."""
    text = house.log_text()
    problems = ["a traceback in the log"] if "Traceback" in text else []
    lines = [line for line in text.splitlines() if "error_id" in line]
    return problems + [f"unforeseen: {line[:300]}" for line in lines[:20]]
