"""SIGTERM while calls are in flight: writers, a reader, a tail, and now and then a call that hangs."""

import random
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import grpc

from memoryd.pb import memory_pb2 as pb
from tests.faults.driver import Daemon, House, Oracle, Writers
from tests.soak.outcome import Order, Outcome

EXIT_SECONDS = 15.0
_STUCK_SHARE = 0.05  # a call that hangs makes a stop last as long as the grace


class Calls:
    """What else a daemon is busy with when the signal comes."""

    def __init__(self, daemon: Daemon, *, stuck: bool) -> None:
        self._stub, self._channel = daemon.stub, daemon.channel
        self._release = threading.Event()
        work = [self._read, self._tail] + [self._hang] * stuck
        self._threads = [threading.Thread(target=self._quietly, args=(w,)) for w in work]
        for thread in self._threads:
            thread.start()

    def _quietly(self, work: object) -> None:
        assert callable(work)
        with suppress(grpc.RpcError, ValueError):  # gone, or the channel was closed
            work()

    def _read(self) -> None:
        while not self._release.is_set():
            self._stub.GetEvents(pb.GetEventsRequest(limit=1000), timeout=30)
            self._stub.TeleportSearch(pb.TeleportSearchRequest(query="häß", limit=20), timeout=30)

    def _tail(self) -> None:
        for _ in self._stub.TailEvents(pb.TailEventsRequest()):
            if self._release.is_set():
                return

    def _hang(self) -> None:
        call = self._channel.stream_unary(
            "/memory.MemoryService/IngestEvent",
            request_serializer=pb.IngestEventRequest.SerializeToString,
            response_deserializer=pb.IngestEventResponse.FromString,
        )
        call.future(self._nothing()).result(30)

    def _nothing(self) -> Iterator[pb.IngestEventRequest]:
        self._release.wait(60)
        yield from ()

    def join(self) -> None:
        """Wait for the threads to end."""
        self._release.set()
        for thread in self._threads:
            thread.join(60)


def stop(order: Order) -> Outcome:
    """Stop the daemon under load; it ends with code 0, in time, and keeps its word."""
    outcome = Outcome("stop", order.seed)
    house = House()
    try:
        _stop(house, order, outcome)
    finally:
        house.close()
    return outcome


def _stop(house: House, order: Order, outcome: Outcome) -> None:
    chance, oracle = random.Random(order.seed), Oracle()
    longest = 0.0
    daemon = house.serve()
    for cycle in range(order.cycles):
        known = len(oracle.ids)
        calls = Calls(daemon, stuck=chance.random() < _STUCK_SHARE)
        writers = Writers(daemon, oracle, f"c{cycle}")
        time.sleep(chance.uniform(0.05, 0.4))
        longest = max(longest, daemon.terminate())
        writers.join()
        calls.join()
        if daemon.process.returncode:
            outcome.problems.append(f"stop {cycle}: exit code {daemon.process.returncode}")
        daemon = house.serve()
        outcome.problems += oracle.check_ids(daemon.stub, oracle.ids[known:][-100:])
        outcome.cycles += 1
        order.say(f"{outcome.cycles} of {order.cycles} stops")
    outcome.problems += oracle.check_all(daemon.stub)
    if "Traceback" in house.log_text():
        outcome.problems.append("a traceback in the log")
    outcome.figures |= {"acknowledged": len(oracle.ids), "lost": len(outcome.problems)}
    outcome.bound("exit max s", longest, EXIT_SECONDS)
