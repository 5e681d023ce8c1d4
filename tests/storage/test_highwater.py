import os

import pytest

from memoryd.domain.errors import StoreDamaged
from memoryd.storage.highwater import HighWater, Mark

STORE = bytes(range(16))
SPACING = 512


def mark(sequence: int) -> Mark:
    """A mark at a sequence number."""
    return Mark(sequence, STORE, sequence.to_bytes(32, "big"))


@pytest.fixture
def path(tmp_path: os.PathLike[str]) -> str:
    """A new file with a mark at 1."""
    path = f"{os.fspath(tmp_path)}/HIGHWATER"
    HighWater.create(path, mark(1))
    return path


def advance(path: str, *sequences: int) -> None:
    """Open, advance, close."""
    highwater = HighWater(path)
    for sequence in sequences:
        highwater.advance(mark(sequence))
    highwater.close()


def read(path: str) -> Mark:
    """The mark that a new reader finds."""
    highwater = HighWater(path)
    highwater.close()
    return highwater.mark


def spoil(path: str, offset: int) -> None:
    """Flip a byte."""
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 0xFF]))


def test_a_new_file_has_its_mark_and_mode(path: str) -> None:
    """A created file gives back its mark and belongs to its owner alone."""
    assert read(path) == mark(1)
    assert os.stat(path).st_mode & 0o777 == 0o600


@pytest.mark.parametrize("sequences", [(2,), (2, 3), (2, 3, 4, 5, 6)])
def test_the_newest_mark_is_found(path: str, sequences: tuple[int, ...]) -> None:
    """After any number of moves, a new reader finds the last mark."""
    advance(path, *sequences)
    assert read(path) == mark(sequences[-1])


def test_two_slots_are_written_in_turn(path: str) -> None:
    """The mark before the last one is still in the file."""
    advance(path, 2, 3)
    with open(path, "rb") as file:
        data = file.read()
    assert mark(2).chain in data
    assert mark(3).chain in data
    advance(path, 4)
    with open(path, "rb") as file:
        data = file.read()
    assert mark(2).chain not in data
    assert mark(3).chain in data


@pytest.mark.parametrize("moves", [(2, 3), (2, 3, 4)])
@pytest.mark.parametrize("place", [0, 8, 20, 40, 67])
def test_a_torn_slot_falls_back_to_the_other(path: str, moves: tuple[int, ...], place: int) -> None:
    """Damage anywhere in the newest slot leaves the mark before it, and the file goes on."""
    advance(path, *moves)
    newest = 0 if len(moves) % 2 == 0 else SPACING
    spoil(path, newest + place)
    assert read(path) == mark(moves[-2])
    advance(path, 9)
    assert read(path) == mark(9)


def test_damage_of_both_slots_is_refused(path: str) -> None:
    """With both slots damaged nobody can tell how far the log went."""
    spoil(path, 10)
    spoil(path, SPACING + 10)
    with pytest.raises(StoreDamaged, match="verify --accept"):
        HighWater(path)


@pytest.mark.parametrize("size", [0, 1, 67])
def test_a_cut_file_is_refused(path: str, size: int) -> None:
    """A file too short for a slot is damage."""
    os.truncate(path, size)
    with pytest.raises(StoreDamaged, match="is damaged"):
        HighWater(path)


def test_a_missing_file_is_refused(path: str) -> None:
    """A missing file is damage, not a new beginning."""
    os.unlink(path)
    with pytest.raises(StoreDamaged, match="is missing"):
        HighWater(path)


def test_a_failed_write_does_not_touch_the_good_slot(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a write that failed, the next goes to the same slot, so that one is always whole."""
    highwater = HighWater(path)
    highwater.advance(mark(2))

    def failing(fd: int, data: bytes, offset: int) -> int:
        msg = "no"
        raise OSError(msg)

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", failing)
        with pytest.raises(OSError, match="no"):
            highwater.advance(mark(3))
    assert highwater.mark == mark(2)
    highwater.advance(mark(4))
    highwater.close()
    with open(path, "rb") as file:
        assert mark(2).chain in file.read()
    assert read(path) == mark(4)
