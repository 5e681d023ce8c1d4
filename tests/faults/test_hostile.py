from tests.soak.hostile import hostile
from tests.soak.outcome import Order


def test_hostile_bytes_harm_nobody() -> None:
    """Bent requests, bad HTTP/2, slow readers and 1,000 connections do not disturb a client."""
    outcome = hostile(Order(cycles=900, seed=1))
    print(outcome.line())
    assert outcome.problems == []
