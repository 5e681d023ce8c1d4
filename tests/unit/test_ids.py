from hypothesis import given, settings
from hypothesis import strategies as st
from ulid import ULID

from memoryd.domain import ids
from memoryd.domain.event import TIME_LIMIT_MS

TIMES = st.integers(0, TIME_LIMIT_MS)


@settings(max_examples=100, deadline=None)
@given(TIMES, st.binary(min_size=10, max_size=10))
def test_made_id_is_a_ulid_of_its_time(time_ms: int, entropy: bytes) -> None:
    """An id is a ULID that holds the time and the ten bytes it was made of."""
    ulid = ULID.from_str(ids.make(time_ms, entropy))
    assert ulid.milliseconds == time_ms
    assert bytes(ulid)[6:] == entropy


@settings(max_examples=50, deadline=None)
@given(TIMES, TIMES)
def test_ids_sort_by_time(a: int, b: int) -> None:
    """Ids of different times sort as their times do."""
    entropy = bytes(10)
    assert (ids.make(a, entropy) < ids.make(b, entropy)) == (a < b)


@settings(max_examples=100, deadline=None)
@given(TIMES, st.lists(st.text(max_size=8), max_size=4), st.lists(st.text(max_size=8), max_size=4))
def test_content_id_depends_on_every_part(time_ms: int, a: list[str], b: list[str]) -> None:
    """The same parts give the same id, and other parts, or parts cut elsewhere, another."""
    assert ids.from_content(time_ms, a) == ids.from_content(time_ms, tuple(a))
    assert (ids.from_content(time_ms, a) == ids.from_content(time_ms, b)) == (a == b)


def test_content_id_depends_on_the_time() -> None:
    """The same parts at another time give another id."""
    assert ids.from_content(1, ["x"]) != ids.from_content(2, ["x"])
