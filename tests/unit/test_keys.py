from hypothesis import given, settings
from hypothesis import strategies as st

from memoryd.domain import keys
from memoryd.domain.event import TIME_LIMIT_MS

TIMES = st.integers(0, TIME_LIMIT_MS)
IDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)
NUMBERS = st.integers(0, 2**64 - 1)


@settings(max_examples=200, deadline=None)
@given(TIMES | st.integers(0, 3), IDS, TIMES | st.integers(0, 3), IDS)
def test_key_order_is_time_then_id(time_a: int, id_a: str, time_b: int, id_b: str) -> None:
    """Event keys sort by time, and by id where the times are equal."""
    by_bytes = keys.event_key(time_a, id_a) < keys.event_key(time_b, id_b)
    assert by_bytes == ((time_a, id_a) < (time_b, id_b))


@settings(max_examples=100, deadline=None)
@given(TIMES, IDS)
def test_event_key_round_trips(time_ms: int, event_id: str) -> None:
    """An event key gives back the time and the id it was made of."""
    assert keys.split_event_key(keys.event_key(time_ms, event_id)) == (time_ms, event_id)


@settings(max_examples=100, deadline=None)
@given(NUMBERS, NUMBERS)
def test_sequence_key_round_trips_in_order(a: int, b: int) -> None:
    """Sequence keys give back their number and sort by it."""
    assert keys.split_sequence_key(keys.sequence_key(a)) == a
    assert (keys.sequence_key(a) < keys.sequence_key(b)) == (a < b)


@settings(max_examples=100, deadline=None)
@given(TIMES, IDS)
def test_time_floor_separates_moments(time_ms: int, event_id: str) -> None:
    """The floor of a moment lies at or before its events and behind those of the one before."""
    key = keys.event_key(time_ms, event_id)
    assert keys.time_floor(time_ms) <= key < keys.time_floor(time_ms + 1)


def test_time_floor_takes_any_number() -> None:
    """A time outside of what a key can hold is moved to the nearest end."""
    assert keys.time_floor(-5) == keys.time_floor(0)
    assert keys.time_floor(2**70) > keys.event_key(TIME_LIMIT_MS, "z")


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 2), TIMES, IDS)
def test_session_prefix_bounds_its_events(number: int, time_ms: int, event_id: str) -> None:
    """The keys of a session lie between its prefix and the next."""
    prefix = keys.session_prefix(number)
    key = prefix + keys.event_key(time_ms, event_id)
    assert prefix < key < keys.session_prefix(number + 1)
