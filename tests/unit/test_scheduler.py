from memoryd.scheduler import jumps


def test_a_clock_that_is_set_is_noticed_once() -> None:
    """Steps back and forth are told with their size; slow drift is not."""
    offsets = iter([0, 300, 600, -3_600_000, -3_600_100, 31_536_000_000, 31_536_000_000])
    left = iter([False] * 6 + [True])
    found = list(jumps(lambda: next(offsets), lambda _seconds: next(left)))
    assert found == [-3_600_600, 31_539_600_100]
