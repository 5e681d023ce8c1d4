"""What a search index says, asked so that the answer does not depend on order or clock."""

import time

from memoryd.pb import memory_pb2 as pb
from memoryd.pb.memory_pb2_grpc import MemoryServiceStub
from tests.faults.driver import Daemon

WORDS = [
    "anchor",
    "birch",
    "cobalt",
    "delta",
    "ember",
    "falcon",
    "garnet",
    "harbor",
    "iris",
    "jasper",
    "kelp",
    "lumen",
]
Answers = dict[str, tuple[str, ...]]


def said(number: int) -> str:
    """The text of an event: three words, each in a quarter of all events, and one of its own."""
    chosen = (WORDS[number % 12], WORDS[(number // 12) % 12], WORDS[(number * 5 + 3) % 12])
    return f"{' '.join(chosen)} unique{number:05}"


def events(first: int, count: int) -> list[pb.Event]:
    """So many events with words to be found."""
    return [
        pb.Event(
            event_id=f"w{number:05}",
            session_id=f"s{number % 5}",
            timestamp_ms=1_780_308_000_000 + number * 60_000,
            role=pb.EVENT_ROLE_USER,
            text=said(number),
        )
        for number in range(first, first + count)
    ]


def truth(count: int) -> Answers:
    """What each question must find among the first so many events."""
    texts = {f"w{number:05}": said(number).split() for number in range(count)}
    return {
        query: tuple(sorted(name for name, words in texts.items() if query in words))
        for query in _questions(count)
    }


def answers(stub: MemoryServiceStub, count: int) -> Answers:
    """What each question finds, without the neighbours that search likes to add."""
    found = {}
    for query in _questions(count):
        request = pb.TeleportSearchRequest(
            query=query, limit=100, doc_type=pb.TELEPORT_DOC_TYPE_EVENT
        )
        results = stub.TeleportSearch(request, timeout=30).results
        names = (result.event_id for result in results)
        found[query] = tuple(sorted(n for n in names if query in said(int(n[1:])).split()))
    return found


def _questions(count: int) -> list[str]:
    return [*WORDS, *(f"unique{number:05}" for number in range(0, count, 37))]


def settle(daemon: Daemon, seconds: float = 30.0) -> pb.GetIndexStatusResponse:
    """Wait until the index holds the whole log; how it is doing then, or at the end of patience."""
    deadline = time.monotonic() + seconds
    while True:
        status = daemon.stub.GetIndexStatus(pb.GetIndexStatusRequest(), timeout=30)
        done = status.state == pb.INDEX_STATE_READY and status.sequence >= status.log_sequence
        if done or time.monotonic() > deadline:
            return status
        time.sleep(0.05)
