"""The part of the contract that other clients share: names, numbers and types never change."""

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from memoryd.pb import memory_pb2 as pb

FIELDS = {
    "Event": {
        ("event_id", 1, "string"),
        ("session_id", 2, "string"),
        ("timestamp_ms", 3, "int64"),
        ("event_type", 4, "memory.EventType"),
        ("role", 5, "memory.EventRole"),
        ("text", 6, "string"),
        ("metadata", 7, "map<string, string>"),
        ("agent", 8, "optional string"),
    },
    "IngestEventRequest": {("event", 1, "memory.Event")},
    "IngestEventResponse": {
        ("event_id", 1, "string"),
        ("created", 2, "bool"),
        ("deduplicated", 3, "bool"),
    },
    "GetEventsRequest": {
        ("from_timestamp_ms", 1, "int64"),
        ("to_timestamp_ms", 2, "int64"),
        ("limit", 3, "int32"),
    },
    "GetEventsResponse": {("events", 1, "repeated memory.Event"), ("has_more", 2, "bool")},
}
ENUMS = {
    "EventType": {
        "EVENT_TYPE_UNSPECIFIED": 0,
        "EVENT_TYPE_SESSION_START": 1,
        "EVENT_TYPE_USER_MESSAGE": 2,
        "EVENT_TYPE_ASSISTANT_MESSAGE": 3,
        "EVENT_TYPE_TOOL_RESULT": 4,
        "EVENT_TYPE_ASSISTANT_STOP": 5,
        "EVENT_TYPE_SUBAGENT_START": 6,
        "EVENT_TYPE_SUBAGENT_STOP": 7,
        "EVENT_TYPE_SESSION_END": 8,
    },
    "EventRole": {
        "EVENT_ROLE_UNSPECIFIED": 0,
        "EVENT_ROLE_USER": 1,
        "EVENT_ROLE_ASSISTANT": 2,
        "EVENT_ROLE_SYSTEM": 3,
        "EVENT_ROLE_TOOL": 4,
    },
}
SCALARS = {
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_INT64: "int64",
    FieldDescriptor.TYPE_INT32: "int32",
    FieldDescriptor.TYPE_BOOL: "bool",
}


def kind(field: FieldDescriptor) -> str:
    """The type of a field as the contract writes it."""
    message, enum = field.message_type, field.enum_type
    if message is not None and message.GetOptions().map_entry:
        key, value = message.fields_by_name["key"], message.fields_by_name["value"]
        return f"map<{kind(key)}, {kind(value)}>"
    named = message or enum
    name = named.full_name if named is not None else SCALARS[field.type]
    if field.containing_oneof is not None:
        return f"optional {name}"
    return f"repeated {name}" if field.is_repeated else name


@pytest.mark.parametrize("name", FIELDS)
def test_shared_fields_never_change(name: str) -> None:
    """Fields with numbers below 300 have the names, numbers and types that others rely on."""
    message: Descriptor = pb.DESCRIPTOR.message_types_by_name[name]
    assert {(f.name, f.number, kind(f)) for f in message.fields if f.number < 300} == FIELDS[name]


@pytest.mark.parametrize("name", ENUMS)
def test_shared_enums_never_change(name: str) -> None:
    """The shared enumerations have exactly these names and numbers."""
    values = pb.DESCRIPTOR.enum_types_by_name[name].values
    assert {v.name: v.number for v in values} == ENUMS[name]


def test_shared_methods_never_change() -> None:
    """The shared methods are unary and go from their request to their response."""
    assert pb.DESCRIPTOR.package == "memory"
    service = pb.DESCRIPTOR.services_by_name["MemoryService"]
    for name in ("IngestEvent", "GetEvents"):
        method = service.methods_by_name[name]
        assert method.input_type.full_name == f"memory.{name}Request"
        assert method.output_type.full_name == f"memory.{name}Response"
        assert not method.client_streaming
        assert not method.server_streaming
