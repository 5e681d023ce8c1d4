from tests.soak.kill import kill
from tests.soak.outcome import Order


def test_kill_9_loses_no_acknowledged_event() -> None:
    """After each of 50 kills under load, every acknowledged event is there, whole."""
    outcome = kill(Order(cycles=50, seed=1))
    print(outcome.line())
    assert outcome.problems == []
    assert int(outcome.figures["acknowledged"]) > 500
