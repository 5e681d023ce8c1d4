from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryd.domain.chain import GENESIS, HASH_BYTES, link, text_hash
from memoryd.domain.errors import InvalidInput
from memoryd.domain.event import Event
from memoryd.storage import codec

EVENT = Event("id", "s", 5, 2, 1, "text", {"k": "v"}, "agent", "project", "parent", "turn")
OTHERS: dict[str, Any] = {
    "event_id": "id2",
    "session_id": "s2",
    "time_ms": 6,
    "type": 3,
    "role": 2,
    "text": "text2",
    "metadata": {"k": "w"},
    "agent": "",
    "project": "project2",
    "parent_id": "",
    "turn_id": "turn2",
}


def linked(event: Event, previous: bytes = GENESIS, sequence: int = 1, arrival: int = 9) -> bytes:
    """The running hash after an event."""
    head = codec.event_head(event, sequence, arrival, "store")
    return link(previous, head, text_hash(event.text))


def test_every_field_has_another_value() -> None:
    """The table of other values leaves no field of an event out."""
    assert set(OTHERS) == set(Event._fields)


@pytest.mark.parametrize("field", OTHERS)
def test_any_field_changes_the_hash(field: str) -> None:
    """Changing any one field of an event changes the running hash."""
    changed: Any = {field: OTHERS[field]}
    assert linked(EVENT._replace(**changed)) != linked(EVENT)


def test_place_and_arrival_change_the_hash() -> None:
    """The sequence number and the time of arrival are covered by the running hash."""
    assert len({linked(EVENT), linked(EVENT, sequence=2), linked(EVENT, arrival=10)}) == 3


def test_order_of_metadata_does_not_change_the_hash() -> None:
    """Metadata are hashed in the order of their keys, whatever order they came in."""
    one = EVENT._replace(metadata={"a": "1", "b": "2"})
    assert linked(one) == linked(EVENT._replace(metadata={"b": "2", "a": "1"}))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(max_size=5), min_size=2, max_size=6, unique=True))
def test_order_changes_the_hash(texts: list[str]) -> None:
    """The same events in another order end in another running hash."""
    shuffled = texts[1:] + texts[:1]
    ends = []
    for order in (texts, shuffled):
        chain = GENESIS
        for text in order:
            chain = link(chain, b"head", text_hash(text))
        ends.append(chain)
    assert ends[0] != ends[1]
    assert all(len(end) == HASH_BYTES for end in ends)


def test_text_that_is_not_unicode_is_refused() -> None:
    """A lone surrogate has no hash, and the refusal says where it is."""
    with pytest.raises(InvalidInput, match="text is not valid Unicode at character 2"):
        text_hash("ab\ud800")
