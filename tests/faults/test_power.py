import pytest

from tests.soak.outcome import Order
from tests.soak.power import power


def test_a_power_cut_loses_no_acknowledged_event() -> None:
    """What the disk holds at an instant under load is a whole store with all that was promised."""
    outcome = power(Order(cycles=2, seed=1))
    if outcome.skipped:
        pytest.skip(outcome.skipped)
    print(outcome.line())
    assert outcome.problems == []
    assert int(outcome.figures["acknowledged"]) > 50
    assert outcome.figures["unsynced control files gone"] == 2
