import pytest

from tests.soak.backup import backup
from tests.soak.outcome import Order


def test_a_backup_under_load_restores_whole() -> None:
    """A backup that is made while events come in holds all that was acknowledged before it."""
    outcome = backup(Order(cycles=1, seed=1))
    if outcome.skipped:
        pytest.skip(outcome.skipped)
    print(outcome.line())
    assert outcome.problems == []
