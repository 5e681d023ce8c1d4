"""When derived work gives way to writers."""

from types import SimpleNamespace
from typing import cast

import pytest

from memoryd.services.courtesy import Courtesy
from memoryd.storage.committer import Committer


class Street:
    """A log that grows, and a clock, both by hand."""

    def __init__(self) -> None:
        self.now = 0.0
        self.log = SimpleNamespace(synced=0)
        self.courtesy = Courtesy(cast("Committer", self.log), 8.0, lambda: self.now)

    def pass_by(self, seconds: float, events_a_second: int, done: int = 0) -> list[bool]:
        """What a thread is told, ten times a second, that has come as far as ``done``."""
        told = []
        for _ in range(round(seconds * 10)):
            self.now += 0.1
            self.log.synced += events_a_second // 10
            told.append(self.courtesy.wait(done))
        return told


@pytest.fixture
def street() -> Street:
    """Nothing written yet."""
    return Street()


def test_few_writers_are_not_waited_for(street: Street) -> None:
    """At what busy agents write, derived work goes on beside it."""
    assert not any(street.pass_by(60, 200))


def test_many_writers_go_first(street: Street) -> None:
    """While a lot is written, derived work waits; when it is over, it goes on at once."""
    assert all(street.pass_by(5, 2_000)[4:])
    assert not any(street.pass_by(1, 0)[4:])


def test_nothing_waits_for_ever(street: Street) -> None:
    """Events that have waited for the whole of the patience are worked in, whoever writes."""
    told = street.pass_by(20, 2_000)
    assert all(told[4:75])
    assert not any(told[85:])
    assert street.courtesy.late(0)


def test_whoever_has_caught_up_is_patient_again(street: Street) -> None:
    """Patience begins anew when all is done that was there when it began."""
    street.pass_by(20, 2_000)
    assert not street.courtesy.late(street.log.synced)
    assert all(street.pass_by(5, 2_000, done=street.log.synced)[4:])
