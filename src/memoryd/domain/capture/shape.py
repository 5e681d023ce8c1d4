"""Reading decoded JSON: strict about the types of known fields, blind to unknown ones. Pure.

Owns the one way in which parsers look into a payload or a record. A field that is missing or null
counts as empty; a field of another type than documented raises InvalidInput, which names it.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from memoryd.domain.errors import InvalidInput
from memoryd.domain.event import TIME_LIMIT_MS

Json = Mapping[str, Any]

_KINDS: Final = {
    dict: "an object",
    list: "an array",
    str: "text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    type(None): "null",
}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Received(NamedTuple):
    """What is known of a hook's payload besides its bytes."""

    agent: str
    event: str
    time_ms: int
    cwd: str


def kind(value: object) -> str:
    """What a JSON value is, in words."""
    return _KINDS.get(type(value), type(value).__name__)


def obj(value: object, name: str) -> Json:
    """The value as an object. Raises InvalidInput if it is none."""
    if not isinstance(value, dict):
        raise InvalidInput(f"{name} is {kind(value)}, not an object")
    return value


def sub(record: Json, field: str) -> Json:
    """An object in a field, empty if missing. Raises InvalidInput for another type."""
    value = record.get(field)
    return {} if value is None else obj(value, field)


def items(record: Json, field: str) -> list[Any]:
    """An array in a field, empty if missing. Raises InvalidInput for another type."""
    value = record.get(field)
    if value is None:
        return []
    if not isinstance(value, list):
        raise InvalidInput(f"{field} is {kind(value)}, not an array")
    return value


def text(record: Json, field: str) -> str:
    """Text in a field, "" if missing. Raises InvalidInput for another type."""
    value = record.get(field)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidInput(f"{field} is {kind(value)}, not text")
    return value


def required(record: Json, field: str) -> str:
    """Text in a field. Raises InvalidInput if it is missing, empty or of another type."""
    value = text(record, field)
    if not value:
        raise InvalidInput(f"{field} is missing")
    return value


def number(record: Json, field: str) -> int | None:
    """A whole number in a field, None if missing. Raises InvalidInput for another type."""
    value = record.get(field)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInput(f"{field} is {kind(value)}, not a number")
    try:
        return int(value)
    except (ValueError, OverflowError):
        raise InvalidInput(f"{field} is not a finite number") from None


def flag(record: Json, field: str) -> bool:
    """True or false in a field, False if missing. Raises InvalidInput for another type."""
    value = record.get(field)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise InvalidInput(f"{field} is {kind(value)}, not true or false")
    return value


def time_ms(record: Json, field: str, default: int = 0) -> int:
    """A time, as ISO text or in milliseconds; ``default`` if missing.

    Raises InvalidInput for another type, or for a time that no event can have.
    """
    value = record.get(field)
    if value is None or value == "":
        return default
    found = iso_ms(value, field) if isinstance(value, str) else number(record, field)
    if found is None or not 0 <= found <= TIME_LIMIT_MS:
        raise InvalidInput(f"{field} is out of range: it lies between 1970 and 2262")
    return found


def iso_ms(value: str, field: str) -> int:
    """ISO text in milliseconds since 1970; without a zone it is UTC. Raises InvalidInput."""
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        span = moment - _EPOCH
    except (ValueError, OverflowError):
        raise InvalidInput(f"{field} is not an ISO time") from None
    return (span.days * 86_400 + span.seconds) * 1000 + span.microseconds // 1000
