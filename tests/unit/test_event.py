from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryd.domain.errors import InvalidInput
from memoryd.domain.event import (
    ID_LIMIT,
    METADATA_LIMIT,
    ROLE_OF_TYPE,
    TEXT_LIMIT,
    TIME_LIMIT_MS,
    TYPE_OF_ROLE,
    Event,
    EventRole,
    EventType,
    checked,
    difference,
)

EVENT = Event("id", "s", 5, 2, 1, "text", {"k": "v"}, "agent", "project", "parent", "turn")
ID_FIELDS = ("event_id", "session_id", "agent", "project", "parent_id", "turn_id")


def changed(field: str, value: Any) -> Event:
    """The event with another value in one field."""
    return EVENT._replace(**{field: value})


def test_the_limits_are_those_of_the_contract() -> None:
    """The limits are the published ones."""
    assert (TEXT_LIMIT, METADATA_LIMIT, ID_LIMIT) == (16_777_216, 65_536, 256)
    assert TIME_LIMIT_MS == 9_223_372_036_854


@pytest.mark.parametrize("unit", ["a", "ß", "€", "😀"])
def test_text_may_have_16_mib_and_no_byte_more(unit: str) -> None:
    """Text is measured in bytes of UTF-8: exactly the limit is taken, one byte more is refused."""
    width = len(unit.encode())
    text = unit * (TEXT_LIMIT // width) + "a" * (TEXT_LIMIT % width)
    assert checked(EVENT._replace(text=text)).text is text
    with pytest.raises(InvalidInput, match="text is longer than 16 MiB"):
        checked(EVENT._replace(text=text + "a"))


def test_metadata_may_have_64_kib_and_no_byte_more() -> None:
    """Keys and values together may have exactly the limit."""
    full = {"ß": "x" * 1000, "k": "y" * (METADATA_LIMIT - 1003)}
    assert checked(EVENT._replace(metadata=full)).metadata == full
    with pytest.raises(InvalidInput, match="metadata has 65537 bytes"):
        checked(EVENT._replace(metadata=full | {"l": ""}))


@pytest.mark.parametrize("field", ID_FIELDS)
@pytest.mark.parametrize("unit", ["a", "ß", "😀"])
def test_ids_may_have_256_bytes_and_no_byte_more(field: str, unit: str) -> None:
    """Every id may have exactly 256 bytes of UTF-8, and a refusal names the field."""
    full = unit * (ID_LIMIT // len(unit.encode()))
    assert checked(changed(field, full)) == changed(field, full)
    with pytest.raises(InvalidInput, match=f"{field} has 257 bytes"):
        checked(changed(field, full + "a"))


def test_all_ids_may_be_full_at_once() -> None:
    """The limit holds for each id, not for all of them together."""
    event = Event(**EVENT._asdict() | dict.fromkeys(ID_FIELDS, "x" * ID_LIMIT))
    assert checked(event) == event


@pytest.mark.parametrize("field", ID_FIELDS)
@pytest.mark.parametrize("bad", ["\0", "a\nb", "\x7f", "\u202e", "\u200b", "\ud800", "a\udfff"])
def test_ids_that_cannot_be_printed_are_refused(field: str, bad: str) -> None:
    """Control characters, direction marks and lone surrogates are refused in every id."""
    with pytest.raises(InvalidInput, match=f"{field} holds characters that cannot be printed"):
        checked(changed(field, bad))


@pytest.mark.parametrize("metadata", [{"k": "\ud800"}, {"\udfff": "v"}])
def test_lone_surrogates_in_metadata_are_refused(metadata: dict[str, str]) -> None:
    """Metadata that are not Unicode are the caller's mistake."""
    with pytest.raises(InvalidInput, match="metadata is not valid Unicode"):
        checked(EVENT._replace(metadata=metadata))


@pytest.mark.parametrize("time_ms", [0, 1, TIME_LIMIT_MS])
def test_times_within_the_range_are_taken(time_ms: int) -> None:
    """Both ends of the range of time belong to it."""
    assert checked(EVENT._replace(time_ms=time_ms)).time_ms == time_ms


@pytest.mark.parametrize("time_ms", [-1, TIME_LIMIT_MS + 1, -(2**63), 2**63 - 1])
def test_times_outside_of_the_range_are_refused(time_ms: int) -> None:
    """A time before 1970 or behind 2262 is refused by name."""
    with pytest.raises(InvalidInput, match="timestamp_ms"):
        checked(EVENT._replace(time_ms=time_ms))


def test_a_session_is_required() -> None:
    """An event without a session is refused."""
    with pytest.raises(InvalidInput, match="session_id is empty"):
        checked(EVENT._replace(session_id=""))


@settings(max_examples=100, deadline=None)
@given(st.integers(-(2**31), 2**31 - 1) | st.integers(-1, 10), st.integers(-1, 6))
def test_type_and_role_are_known_or_completed(type_: int, role: int) -> None:
    """Known numbers stay, one missing number is derived, and everything else is refused."""
    known_type, known_role = type_ in list(EventType), role in list(EventRole)
    sent = EVENT._replace(type=type_, role=role)
    if known_type and known_role:
        assert checked(sent) == sent
    elif known_type and role == 0:
        assert checked(sent) == sent._replace(role=ROLE_OF_TYPE[type_])
    elif type_ == 0 and role in TYPE_OF_ROLE:
        assert checked(sent) == sent._replace(type=TYPE_OF_ROLE[role])
    else:
        with pytest.raises(InvalidInput, match=r"event_type|role"):
            checked(sent)


def test_every_type_has_a_role() -> None:
    """Each type completes to a role, and each role but the system's to a type."""
    assert set(ROLE_OF_TYPE) == set(EventType)
    assert set(TYPE_OF_ROLE) == set(EventRole) - {EventRole.SYSTEM}


@pytest.mark.parametrize(
    ("field", "value", "name"),
    [
        ("session_id", "t", "session_id"),
        ("time_ms", 6, "timestamp_ms"),
        ("type", 3, "event_type"),
        ("role", 2, "role"),
        ("text", "other", "text"),
        ("metadata", {}, "metadata"),
        ("agent", "", "agent"),
        ("project", "p", "project"),
        ("parent_id", "p", "parent_id"),
        ("turn_id", "t", "turn_id"),
    ],
)
def test_a_difference_is_named_as_on_the_wire(field: str, value: object, name: str) -> None:
    """The field that differs is named as the contract names it."""
    assert difference(EVENT, changed(field, value), timed=True) == name


def test_a_time_of_the_daemon_contradicts_nothing() -> None:
    """A time that the sender did not give makes no difference."""
    assert difference(EVENT, EVENT._replace(time_ms=99), timed=False) is None
    assert difference(EVENT, EVENT, timed=True) is None
