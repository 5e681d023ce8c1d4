import os
from typing import Any

import grpc
import pytest

from memoryd.pb import care_pb2 as pb
from memoryd.pb import care_pb2_grpc as pb_grpc
from memoryd.pb import memory_pb2


@pytest.fixture
def care(served: Any) -> pb_grpc.CareServiceStub:
    """The service of a running daemon that has an event."""
    event = memory_pb2.Event(
        session_id="s",
        text="said",
        role=memory_pb2.EVENT_ROLE_USER,
        event_type=memory_pb2.EVENT_TYPE_USER_MESSAGE,
    )
    served.stub.IngestEvent(memory_pb2.IngestEventRequest(event=event))
    stub: pb_grpc.CareServiceStub = pb_grpc.CareServiceStub(served.channel)
    return stub


def test_a_backup_ends_with_where_it_is(
    care: pb_grpc.CareServiceStub, tmp_path: os.PathLike[str]
) -> None:
    """The last answer is the only one that is finished, and names the directory."""
    path = f"{os.fspath(tmp_path)}/b"
    *before, last = care.Backup(pb.BackupRequest(destination=path))
    assert not any(told.finished for told in before)
    assert (last.finished, last.sequence > 0, os.path.dirname(last.path)) == (True, True, path)
    assert before[-1].done == before[-1].total == last.size


def test_a_bad_destination_is_an_argument(care: pb_grpc.CareServiceStub) -> None:
    """A relative path, and a directory of somebody else's things, are refused."""
    for path in ("relative", "/etc"):
        with pytest.raises(grpc.RpcError) as caught:
            list(care.Backup(pb.BackupRequest(destination=path)))
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_a_check_ends_with_a_summary(care: pb_grpc.CareServiceStub) -> None:
    """Progress comes first, the summary last."""
    *before, last = care.Verify(pb.VerifyRequest())
    assert {told.part for told in before} >= {"events", "journal", "tables"}
    assert last.finished
    assert last.summary.events == last.summary.sequence
    assert list(last.problems) == []


def test_a_compaction_ends_with_sizes(care: pb_grpc.CareServiceStub) -> None:
    """All families are merged at the end."""
    *_, last = care.Compact(pb.CompactRequest())
    assert last.finished
    assert last.done == last.total
    assert min(last.before, last.after) > 0
