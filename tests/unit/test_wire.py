import pytest

from memoryd import wire


@pytest.mark.parametrize(
    ("code", "details", "ended"),
    [
        ("UNAVAILABLE", "Socket closed", True),
        ("UNAVAILABLE", "Stream removed (Socket closed)", True),
        ("CANCELLED", "CANCELLED", True),
        ("UNKNOWN", "Stream removed", True),
        ("UNKNOWN", "", True),
        ("INTERNAL", "Received RST_STREAM with error code 2", True),
        ("INTERNAL", "error 7: see the daemon's log", False),
        ("INVALID_ARGUMENT", "limit is negative", False),
        ("RESOURCE_EXHAUSTED", "64 streams are open, which is the limit", False),
        ("DATA_LOSS", "event 7 is damaged", False),
    ],
)
def test_a_stream_tells_its_end_from_its_errors(code: str, details: str, *, ended: bool) -> None:
    """However gRPC puts the end of the daemon, it is told from what the daemon answers."""
    assert wire.is_end(code, details) is ended


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("NOT_FOUND", wire.Missing),
        ("UNAUTHENTICATED", wire.NotAllowed),
        ("DEADLINE_EXCEEDED", wire.Unavailable),
        ("DATA_LOSS", wire.Failed),
        ("something new", wire.Failed),
    ],
)
def test_a_status_code_stands_for_an_error(code: str, kind: type[wire.ClientError]) -> None:
    """Codes become the errors that clients can meet; an unknown one is a failure."""
    assert wire.error_kind(code) is kind
