from tests.soak.outcome import Order
from tests.soak.race import race


def test_there_are_never_two_owners() -> None:
    """Daemons, hooks and commands that start at once share a store without a second owner."""
    outcome = race(Order(cycles=2, seed=1))
    print(outcome.line())
    assert outcome.problems == []
    assert int(outcome.figures["taken in"]) >= 6
