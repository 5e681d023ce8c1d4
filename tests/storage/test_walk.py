from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st

from memoryd.domain.chain import GENESIS, link_digest
from memoryd.storage.gaps import Gap, Steps
from memoryd.storage.walk import Link, Walk

_COUNT = 24
_KEPT = st.lists(st.booleans(), min_size=_COUNT, max_size=_COUNT)


def digest_of(number: int) -> bytes:
    """What stands for an event."""
    return sha256(b"%d" % number).digest()


def chains(count: int) -> list[bytes]:
    """The running hashes of the first events, that before the first included."""
    found = [GENESIS]
    for number in range(1, count + 1):
        found.append(link_digest(found[-1], digest_of(number)))
    return found


def walk_over(
    events: list[bool], hashes: list[bool], known: list[Gap], now_ms: int
) -> tuple[Walk, list[Gap], dict[int, bytes]]:
    """Follow what is left of a log; its gaps, and the running hash of every event that is left."""
    true = chains(_COUNT)
    walk = Walk(known, now_ms)
    settled = {}
    for number, (event, chain) in enumerate(zip(events, hashes, strict=True), 1):
        if event:
            assert walk.step(Link(number, digest_of(number), true[number] if chain else None))
            settled[number] = walk.chain or b""
        elif chain:
            walk.hear(Link(number, b"", true[number]))
    return walk, walk.finish(), settled


def check(gaps: list[Gap], settled: dict[int, bytes], end: int) -> None:
    """Gaps and events are all numbers to the end, and the running hash holds over them."""
    gone = [number for gap in gaps for number in range(gap.first, gap.last + 1)]
    assert sorted([*gone, *settled]) == list(range(1, end + 1))
    steps = Steps(gaps)
    expected, previous = steps.over(1, GENESIS)
    for number, chain in settled.items():
        assert number == expected
        assert len(chain) == 32
        assert previous is None or link_digest(previous, digest_of(number)) == chain
        expected, previous = steps.over(number + 1, chain)
    assert expected == end + 1
    assert previous is not None


@given(_KEPT, _KEPT)
def test_whatever_is_left_can_be_followed(events: list[bool], hashes: list[bool]) -> None:
    """Over any gaps, with any running hashes lost, what is settled holds, and new events can follow."""
    walk, gaps, settled = walk_over(events, hashes, [], 1)
    known = [n + 1 for n in range(_COUNT) if events[n] or hashes[n]]
    assert walk.end == (known[-1] if known else 0)
    check(gaps, settled, walk.end)


@given(_KEPT, _KEPT, _KEPT)
def test_what_was_recorded_stays(events: list[bool], hashes: list[bool], more: list[bool]) -> None:
    """A second loss on top of a first keeps the records of the first."""
    _, first, settled = walk_over(events, [True] * _COUNT, [], 1)
    left = [event and kept for event, kept in zip(events, more, strict=True)]
    walk = Walk(first, 2)
    again = {}
    for number, chain in settled.items():
        if left[number - 1]:
            known = chain if hashes[number - 1] else None
            assert walk.step(Link(number, digest_of(number), known))
            again[number] = walk.chain or b""
    gaps = walk.finish()
    check(gaps, again, walk.end)
    spans = {(gap.first, gap.last, gap.repaired_ms) for gap in gaps}
    kept = {(gap.first, gap.last, gap.repaired_ms) for gap in first}
    assert kept <= spans


@given(_KEPT)
def test_true_hashes_are_kept(events: list[bool]) -> None:
    """Where no running hash is lost, all that are settled are those that were written."""
    true = chains(_COUNT)
    _, _, settled = walk_over(events, [True] * _COUNT, [], 1)
    assert all(chain == true[number] for number, chain in settled.items())
