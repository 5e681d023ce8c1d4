import pytest

from tests.soak.full import full
from tests.soak.outcome import Order


def test_a_full_disk_is_survived() -> None:
    """On a full disk writes are refused, reads and hooks go on; with space again, all comes back."""
    outcome = full(Order(cycles=1, seed=1))
    if outcome.skipped:
        pytest.skip(outcome.skipped)
    print(outcome.line())
    assert outcome.problems == []
    assert int(outcome.figures["spooled meanwhile"]) > 0
