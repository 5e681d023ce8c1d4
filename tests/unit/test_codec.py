import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryd.domain.errors import InvalidInput, StoreDamaged
from memoryd.domain.event import TIME_LIMIT_MS, Event, Recorded
from memoryd.domain.session import AgentStats, SessionStats
from memoryd.storage import codec

UNICODE = st.characters(exclude_categories=["Cs"])
HOSTILE = st.sampled_from(
    [
        "",
        "\0",
        "a\0b",
        "\u202eevil\u2066",
        "👩‍👩‍👧‍👦🏴‍☠️",
        "\ufeff",
        "\r\n",
        "\x1b[2J",
        "x" * 70_000,
        "ß" * 40_000,
    ]
)
TEXTS = st.text(UNICODE, max_size=60) | HOSTILE
IDS = st.text(UNICODE, max_size=20)
EVENTS = st.builds(
    Event,
    event_id=IDS,
    session_id=IDS,
    time_ms=st.integers(0, TIME_LIMIT_MS),
    type=st.integers(1, 8),
    role=st.integers(1, 4),
    text=TEXTS,
    metadata=st.dictionaries(TEXTS, TEXTS, max_size=4),
    agent=IDS,
    project=IDS,
    parent_id=IDS,
    turn_id=IDS,
)
EVENT = Event("id", "s", 5, 2, 1, "text", {}, "", "", "", "")


@settings(max_examples=150, deadline=None)
@given(EVENTS, st.integers(1, 2**64 - 1), st.integers(0, TIME_LIMIT_MS))
def test_any_event_round_trips(event: Event, sequence: int, arrival_ms: int) -> None:
    """Every event comes back from its stored bytes as it was, hostile text included."""
    head = codec.event_head(event, sequence, arrival_ms, "store")
    value = codec.event_value(head, event.text)
    assert codec.read_event(value) == Recorded(event, sequence, arrival_ms, "store")
    assert codec.split_event(value) == (head, event.text)


@pytest.mark.parametrize("metadata", [{"k": "\ud800"}, {"\udfff": "v"}])
def test_metadata_that_are_not_unicode_are_refused(metadata: dict[str, str]) -> None:
    """A lone surrogate in metadata is refused as the caller's mistake."""
    with pytest.raises(InvalidInput, match="metadata"):
        codec.event_head(EVENT._replace(metadata=metadata), 1, 1, "store")


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60) | st.binary(max_size=60).map(lambda data: codec.VERSION + data))
def test_bytes_without_sense_are_damage(data: bytes) -> None:
    """Bytes that are no event raise StoreDamaged and nothing else."""
    with pytest.raises(StoreDamaged):
        codec.read_event(data)


@pytest.mark.parametrize("content", [0, [], [b"\xff", "t"], [b"\x90", "t"], ["head", "text"]])
def test_other_shapes_are_damage(content: object) -> None:
    """MessagePack of another shape than an event's raises StoreDamaged."""
    with pytest.raises(StoreDamaged):
        codec.read_event(codec.VERSION + msgpack.packb(content))


def test_another_version_is_refused() -> None:
    """A value that begins with another version byte is not read."""
    value = codec.event_value(codec.event_head(EVENT, 1, 1, "store"), "text")
    with pytest.raises(StoreDamaged, match="version 09"):
        codec.read_event(b"\x09" + value[1:])


@settings(max_examples=50, deadline=None)
@given(st.integers(0, TIME_LIMIT_MS), st.integers(1, 2**64 - 1))
def test_places_and_outbox_round_trip(time_ms: int, sequence: int) -> None:
    """A place and an outbox entry give back their numbers."""
    assert codec.read_place(codec.place_value(time_ms, sequence)) == (time_ms, sequence)
    assert codec.read_outbox(codec.value((sequence, time_ms))) == (sequence, time_ms)


@settings(max_examples=50, deadline=None)
@given(st.binary(min_size=32, max_size=32), st.binary(min_size=9, max_size=30))
def test_journal_entries_round_trip(chain: bytes, key: bytes) -> None:
    """A journal entry gives back the running hash and the key."""
    assert codec.read_journal(codec.journal_value(chain, key)) == (chain, key)


def test_a_short_journal_entry_is_damage() -> None:
    """A journal entry without a key raises StoreDamaged."""
    with pytest.raises(StoreDamaged):
        codec.read_journal(codec.VERSION + bytes(32))


def test_statistics_round_trip() -> None:
    """What is told of sessions and agents comes back as it was."""
    session = SessionStats(1, 2, 3, 4, ("a", ""), ("p",))
    agent = AgentStats(1, 2, 3, 4)
    assert codec.read_session(codec.value(session)) == session
    assert codec.read_agent(codec.value(agent)) == agent
