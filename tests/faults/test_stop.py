import threading
import time
from collections.abc import Iterator

import grpc

from memoryd.pb import memory_pb2 as pb
from tests.faults.driver import Daemon, House, Oracle, Writers


class _Stuck:
    """A call whose request never comes, so that the daemon waits for it."""

    def __init__(self, daemon: Daemon) -> None:
        self._release = threading.Event()
        call = daemon.channel.stream_unary(
            "/memory.MemoryService/IngestEvent",
            request_serializer=pb.IngestEventRequest.SerializeToString,
            response_deserializer=pb.IngestEventResponse.FromString,
        )
        self._future = call.future(self._requests())
        time.sleep(0.5)

    def _requests(self) -> Iterator[pb.IngestEventRequest]:
        self._release.wait(60)
        yield from ()

    def end(self) -> None:
        """Let the thread that feeds the call go."""
        self._release.set()


def test_health_says_serving(daemon: Daemon) -> None:
    """A daemon that is up says SERVING."""
    assert daemon.serving()


def test_sigterm_under_load_loses_nothing(house: House, daemon: Daemon) -> None:
    """SIGTERM with calls in flight ends with code 0 in time, and what was acknowledged stays."""
    oracle = Oracle()
    writers = Writers(daemon, oracle, "load")
    time.sleep(0.5)
    seconds = daemon.terminate()
    writers.join()
    assert daemon.process.returncode == 0
    assert seconds < 15
    assert len(oracle.ids) > 10
    again = house.serve()
    assert oracle.check_all(again.stub) == []
    assert "Traceback" not in house.log_text()


def test_an_open_tail_does_not_delay_the_end(daemon: Daemon) -> None:
    """A client that follows the log does not keep the daemon from ending at once."""
    oracle = Oracle()
    oracle.write(daemon.stub, "first")
    tail = daemon.stub.TailEvents(pb.TailEventsRequest())
    assert next(tail).event.event_id == "first"
    seconds = daemon.terminate()
    assert daemon.process.returncode == 0
    assert seconds < 4


def test_a_stuck_call_delays_the_end_only_so_long(daemon: Daemon) -> None:
    """A call that never comes to an end is cut off, and the daemon ends with code 0 in time."""
    stuck = _Stuck(daemon)
    seconds = daemon.terminate()
    stuck.end()
    assert daemon.process.returncode == 0
    assert seconds < 15


def test_a_second_signal_ends_at_once(house: House, daemon: Daemon) -> None:
    """A second SIGTERM ends a daemon that still waits for a call, and loses nothing."""
    oracle = Oracle()
    oracle.write_batch(daemon.stub, "batch", 20)
    stuck = _Stuck(daemon)
    daemon.process.terminate()
    time.sleep(1)
    assert daemon.process.poll() is None
    seconds = daemon.terminate()
    stuck.end()
    assert seconds < 1
    assert daemon.process.returncode == 128 + 15
    again = house.serve()
    assert oracle.check_all(again.stub) == []


def test_a_call_after_sigterm_is_unavailable(daemon: Daemon) -> None:
    """A new call to a daemon that is ending fails with UNAVAILABLE, so that clients try again."""
    stuck = _Stuck(daemon)
    daemon.process.terminate()
    time.sleep(1)
    code = grpc.StatusCode.OK
    try:
        Oracle().write(daemon.stub, "late")
    except grpc.RpcError as error:
        code = error.code()
    stuck.end()
    assert code is grpc.StatusCode.UNAVAILABLE
