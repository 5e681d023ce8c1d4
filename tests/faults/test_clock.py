import pytest

from tests.soak import clock


@pytest.mark.parametrize("name", clock.SCENARIOS)
def test_no_job_is_lost_or_doubled_when_the_clock_is_set(name: str) -> None:
    """Through each scenario, jobs run as often as days have come, and not more."""
    assert clock.injected(name) == []
