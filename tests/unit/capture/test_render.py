import base64

import pytest

from memoryd.domain.capture import build
from memoryd.domain.capture.build import Source
from memoryd.domain.capture.render import Call, call_text, content_text, value_text
from memoryd.domain.event import EventType

IMAGE = base64.b64encode(bytes(range(256)) * 16).decode()
SOURCE = Source("claude-code", "s-1", 1)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        ("a\nb", "a\nb"),
        (3, "3"),
        (["a", "b"], "a, b"),
        ({"stdout": "a\n", "stderr": "", "exitCode": 3}, "a\nexit code 3"),
        ({"type": "text", "file": {"filePath": "/a", "content": "line"}}, "line"),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\n\nb"),
        (
            [{"type": "image", "source": {"media_type": "image/png", "data": "QUJD"}}],
            "[image/png, about 3 bytes]",
        ),
        ({"ok": True, "count": 2}, "ok: true\ncount: 2"),
        ({"deep": {"er": 1}}, '{"deep": {"er": 1}}'),
        ([{"content": "Write", "status": "done", "id": 1}], "- Write (done)"),
        (IMAGE, "[base64 data, about 4 KiB]"),
        (f"data:image/png;base64,{IMAGE}", "[image/png, about 4 KiB]"),
        ("a\0b", "[binary data, 3 bytes]"),
        ("\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m"),
        ("\n".join(["src/some_directory"] * 100), "\n".join(["src/some_directory"] * 100)),
    ],
)
def test_values_become_readable(value: object, text: str) -> None:
    """Words stay whole, usual shapes lose their wrapping, bytes are described."""
    assert value_text(value) == text


def test_thoughts_are_not_words() -> None:
    """Thinking blocks are passed over."""
    blocks = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "yes"}]
    assert content_text(blocks) == "yes"


def test_a_call_reads_from_its_first_line() -> None:
    """Name and main argument stand first, the error last, our own block nowhere."""
    call = Call(
        "Edit",
        {"old": "a\nb", "file_path": "/a.py", "empty": ""},
        "done<memoryd-context>x</memoryd-context>",
        "odd",
    )
    assert call_text(call) == "Edit: /a.py\nold:\n  a\n  b\n\ndone\n\nerror: odd"


def test_a_text_over_the_limit_is_split_and_marked() -> None:
    """No character is lost or cut in two, and every part says which it is."""
    text = "aä" * 10_000_000
    parts = build.said(SOURCE, EventType.USER_MESSAGE, text, event_id="e")
    assert [p.metadata["part"] for p in parts] == ["1/2", "2/2"]
    assert all(len(p.text.encode()) <= build.PART_LIMIT + 20 for p in parts)
    assert "".join(p.text.removeprefix("[continued]\n") for p in parts) == text
    assert parts[0].event_id == "e" != parts[1].event_id


def test_half_a_surrogate_pair_is_replaced() -> None:
    """JSON can hold what UTF-8 cannot."""
    (made,) = build.said(SOURCE, EventType.USER_MESSAGE, "a\ud800b", {"k": "\udfff"})
    assert (made.text, made.metadata) == ("a\ufffdb", {"k": "\ufffd"})


def test_metadata_is_bounded() -> None:
    """A value that is too long is cut, with a mark; an empty one is left out."""
    (made,) = build.said(SOURCE, EventType.USER_MESSAGE, "a", {"k": "x" * 10_000, "e": ""})
    assert made.metadata["k"].endswith("[cut]")
    assert set(made.metadata) == {"k"}
