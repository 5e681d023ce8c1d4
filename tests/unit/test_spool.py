import os
import stat
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd import spool
from memoryd.spool import BadEnvelope, Envelope

# what an argument or a path can be: bytes without a NUL, in Python's spelling
words = st.binary(max_size=40).map(lambda b: os.fsdecode(b.replace(b"\0", b"")))


def fields(envelope: Envelope) -> dict[str, Any]:
    """All that an envelope holds."""
    return {name: getattr(envelope, name) for name in Envelope.__slots__}


@given(
    payload=st.binary(),
    agent=words,
    event=words,
    time_ms=st.integers(0, 2**63 - 1),
    cwd=words,
    project=words,
    chosen=st.booleans(),
)
def test_an_envelope_comes_back_as_it_was(payload: bytes, **others: Any) -> None:
    """Whatever the payload and the paths are, what is read is what was written."""
    envelope = Envelope(payload, **others)
    assert fields(spool.decode(spool.encode(envelope))) == fields(envelope)


@given(st.binary())
def test_foreign_bytes_are_refused(data: bytes) -> None:
    """Bytes that are no envelope raise the one error that says so."""
    for bytes_ in (data, b"memoryd-spool=1\0" + data, b"memoryd-spool=1\0\0" + data):
        try:
            spool.decode(bytes_)
        except BadEnvelope:
            continue
        pytest.fail("taken for an envelope")


@given(st.integers(1, 200))
def test_a_cut_envelope_is_refused(left_out: int) -> None:
    """A file that lost its end is not taken for a shorter payload."""
    data = spool.encode(Envelope(b"x" * 80, agent="codex", time_ms=1, cwd="/work", project="p"))
    with pytest.raises(BadEnvelope):
        spool.decode(data[:-left_out])


def test_a_field_of_a_later_version_is_passed_over() -> None:
    """A header may gain fields that this reader does not know."""
    data = spool.encode(Envelope(b"{}", agent="codex", time_ms=1))
    newer = data.replace(b"\0agent=", b"\0colour=blue\0agent=", 1)
    assert spool.decode(newer).agent == "codex"


def test_a_nul_cannot_forge_the_header() -> None:
    """A field with a NUL in it is refused, because it would end the field."""
    with pytest.raises(ValueError, match="event holds a NUL"):
        spool.encode(Envelope(b"", agent="codex", event="a\0size=0", time_ms=1))


@given(st.lists(st.tuples(st.integers(0, 2**63), st.integers(1, 2**22), st.integers(0, 9999))))
def test_names_sort_by_arrival(keys: list[tuple[int, int, int]]) -> None:
    """The order of names is the order of time, then of process and counter."""
    names = [spool.file_name(*key) for key in keys]
    assert sorted(names) == [spool.file_name(*key) for key in sorted(keys)]


def test_a_file_appears_whole_and_private(tmp_path: os.PathLike[str]) -> None:
    """A written file is finished, for its owner alone, and the only one."""
    directory = os.fspath(tmp_path)
    spool.put(directory, "b", b"second")
    spool.put(directory, "a", b"first")
    assert sorted(os.listdir(directory)) == ["a", "b"]
    assert spool.waiting(directory) == ["a", "b"]
    assert stat.S_IMODE(os.stat(f"{directory}/a").st_mode) == 0o600


def test_unfinished_files_do_not_wait(tmp_path: os.PathLike[str]) -> None:
    """What is still being written, and the reasons beside files set aside, do not count."""
    directory = os.fspath(tmp_path)
    for name in (".1-unfinished", "2.reason", "3"):
        with open(f"{directory}/{name}", "wb"):
            pass
    assert spool.waiting(directory) == ["3"]
    assert spool.waiting(f"{directory}/none") == []


def test_a_failed_write_leaves_nothing(
    tmp_path: os.PathLike[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the bytes cannot reach the disk, no file stays, finished or not."""

    def full(_fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        spool.put(os.fspath(tmp_path), "a", b"x")
    assert os.listdir(tmp_path) == []


def test_a_short_write_is_continued(
    tmp_path: os.PathLike[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A system that takes a few bytes at a time gets all of them."""
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:3]))
    spool.put(os.fspath(tmp_path), "a", b"0123456789")
    monkeypatch.undo()
    with open(f"{os.fspath(tmp_path)}/a", "rb") as file:
        assert file.read() == b"0123456789"
