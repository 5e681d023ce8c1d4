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
    "GetTocRootRequest": set(),
    "GetTocRootResponse": {("nodes", 1, "repeated memory.TocNode")},
    "TocNode": {
        ("node_id", 1, "string"),
        ("level", 2, "memory.TocLevel"),
        ("title", 3, "string"),
        ("summary", 4, "optional string"),
        ("bullets", 5, "repeated memory.TocBullet"),
        ("keywords", 6, "repeated string"),
        ("child_node_ids", 7, "repeated string"),
        ("start_time_ms", 8, "int64"),
        ("end_time_ms", 9, "int64"),
        ("version", 10, "int32"),
    },
    "TocBullet": {("text", 1, "string"), ("grip_ids", 2, "repeated string")},
    "GetNodeRequest": {("node_id", 1, "string")},
    "GetNodeResponse": {("node", 1, "memory.TocNode")},
    "BrowseTocRequest": {
        ("parent_id", 1, "string"),
        ("limit", 2, "int32"),
        ("continuation_token", 3, "optional string"),
    },
    "BrowseTocResponse": {
        ("children", 1, "repeated memory.TocNode"),
        ("continuation_token", 2, "optional string"),
        ("has_more", 3, "bool"),
    },
    "ExpandGripRequest": {
        ("grip_id", 1, "string"),
        ("events_before", 2, "optional int32"),
        ("events_after", 3, "optional int32"),
    },
    "ExpandGripResponse": {
        ("grip", 1, "memory.Grip"),
        ("events_before", 2, "repeated memory.Event"),
        ("excerpt_events", 3, "repeated memory.Event"),
        ("events_after", 4, "repeated memory.Event"),
    },
    "Grip": {
        ("grip_id", 1, "string"),
        ("excerpt", 2, "string"),
        ("event_id_start", 3, "string"),
        ("event_id_end", 4, "string"),
        ("timestamp_ms", 5, "int64"),
        ("source", 6, "string"),
    },
    "GetSchedulerStatusRequest": set(),
    "GetSchedulerStatusResponse": {
        ("scheduler_running", 1, "bool"),
        ("jobs", 2, "repeated memory.JobStatusProto"),
    },
    "JobStatusProto": {
        ("job_name", 1, "string"),
        ("cron_expr", 2, "string"),
        ("last_run_ms", 3, "int64"),
        ("last_duration_ms", 4, "int64"),
        ("last_result", 5, "memory.JobResultStatus"),
        ("last_error", 6, "optional string"),
        ("next_run_ms", 7, "int64"),
        ("run_count", 8, "uint64"),
        ("error_count", 9, "uint64"),
        ("is_running", 10, "bool"),
        ("is_paused", 11, "bool"),
        ("last_run_metadata", 12, "map<string, string>"),
    },
    "PauseJobRequest": {("job_name", 1, "string")},
    "PauseJobResponse": {("success", 1, "bool"), ("error", 2, "optional string")},
    "ResumeJobRequest": {("job_name", 1, "string")},
    "ResumeJobResponse": {("success", 1, "bool"), ("error", 2, "optional string")},
    "SearchNodeRequest": {
        ("node_id", 1, "string"),
        ("query", 2, "string"),
        ("fields", 3, "repeated memory.SearchField"),
        ("limit", 4, "int32"),
        ("token_budget", 5, "int32"),
    },
    "SearchNodeResponse": {
        ("matched", 1, "bool"),
        ("matches", 2, "repeated memory.SearchMatch"),
        ("node_id", 3, "string"),
        ("level", 4, "memory.TocLevel"),
    },
    "SearchMatch": {
        ("field", 1, "memory.SearchField"),
        ("text", 2, "string"),
        ("grip_ids", 3, "repeated string"),
        ("score", 4, "float"),
    },
    "SearchChildrenRequest": {
        ("parent_id", 1, "string"),
        ("query", 2, "string"),
        ("child_level", 3, "memory.TocLevel"),
        ("fields", 4, "repeated memory.SearchField"),
        ("limit", 5, "int32"),
        ("token_budget", 6, "int32"),
    },
    "SearchChildrenResponse": {
        ("results", 1, "repeated memory.SearchNodeResult"),
        ("has_more", 2, "bool"),
    },
    "SearchNodeResult": {
        ("node_id", 1, "string"),
        ("title", 2, "string"),
        ("level", 3, "memory.TocLevel"),
        ("matches", 4, "repeated memory.SearchMatch"),
        ("relevance_score", 5, "float"),
    },
    "TeleportSearchRequest": {
        ("query", 1, "string"),
        ("doc_type", 2, "memory.TeleportDocType"),
        ("limit", 3, "int32"),
        ("agent_filter", 4, "optional string"),
    },
    "TeleportSearchResponse": {
        ("results", 1, "repeated memory.TeleportSearchResult"),
        ("total_docs", 2, "uint64"),
    },
    "TeleportSearchResult": {
        ("doc_id", 1, "string"),
        ("doc_type", 2, "memory.TeleportDocType"),
        ("score", 3, "float"),
        ("keywords", 4, "optional string"),
        ("timestamp_ms", 5, "optional int64"),
        ("agent", 6, "optional string"),
    },
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
    "TocLevel": {
        "TOC_LEVEL_UNSPECIFIED": 0,
        "TOC_LEVEL_YEAR": 1,
        "TOC_LEVEL_MONTH": 2,
        "TOC_LEVEL_WEEK": 3,
        "TOC_LEVEL_DAY": 4,
        "TOC_LEVEL_SEGMENT": 5,
    },
    "JobResultStatus": {
        "JOB_RESULT_STATUS_UNSPECIFIED": 0,
        "JOB_RESULT_STATUS_SUCCESS": 1,
        "JOB_RESULT_STATUS_FAILED": 2,
        "JOB_RESULT_STATUS_SKIPPED": 3,
    },
    "SearchField": {
        "SEARCH_FIELD_UNSPECIFIED": 0,
        "SEARCH_FIELD_TITLE": 1,
        "SEARCH_FIELD_SUMMARY": 2,
        "SEARCH_FIELD_BULLETS": 3,
        "SEARCH_FIELD_KEYWORDS": 4,
    },
    "TeleportDocType": {
        "TELEPORT_DOC_TYPE_UNSPECIFIED": 0,
        "TELEPORT_DOC_TYPE_TOC_NODE": 1,
        "TELEPORT_DOC_TYPE_GRIP": 2,
    },
}
METHODS = (
    "TeleportSearch",
    "IngestEvent",
    "GetEvents",
    "GetTocRoot",
    "GetNode",
    "BrowseToc",
    "ExpandGrip",
    "GetSchedulerStatus",
    "PauseJob",
    "ResumeJob",
    "SearchNode",
    "SearchChildren",
)
SCALARS = {
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_INT64: "int64",
    FieldDescriptor.TYPE_INT32: "int32",
    FieldDescriptor.TYPE_UINT64: "uint64",
    FieldDescriptor.TYPE_FLOAT: "float",
    FieldDescriptor.TYPE_BOOL: "bool",
    FieldDescriptor.TYPE_UINT64: "uint64",
    FieldDescriptor.TYPE_FLOAT: "float",
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
    assert {v.name: v.number for v in values if v.number < 300} == ENUMS[name]


def test_shared_methods_never_change() -> None:
    """The shared methods are unary and go from their request to their response."""
    assert pb.DESCRIPTOR.package == "memory"
    service = pb.DESCRIPTOR.services_by_name["MemoryService"]
    for name in METHODS:
        method = service.methods_by_name[name]
        assert method.input_type.full_name == f"memory.{name}Request"
        assert method.output_type.full_name == f"memory.{name}Response"
        assert not method.client_streaming
        assert not method.server_streaming
