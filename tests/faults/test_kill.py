import statistics

from tests.faults.driver import House, kill_loop


def test_kill_9_loses_no_acknowledged_event(house: House) -> None:
    """After each of 50 kills under load, every acknowledged event is there, whole, and soon."""
    report = kill_loop(house, cycles=50, seed=1)
    print(report)
    assert report.problems == []
    assert report.verify.endswith("whole")
    assert report.acknowledged > 500
    assert statistics.median(report.opened) < 2
    assert max(report.opened) < 5
