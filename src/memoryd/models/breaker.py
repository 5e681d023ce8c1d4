"""The breaker: after several failures in a row nobody is asked for a while. Pure."""

from typing import Final

_FAILURES: Final = 3
_FIRST_SECONDS: Final = 60.0
_LONGEST_SECONDS: Final = 1800.0


class Breaker:
    """Counts failures in a row; from the third on each makes the wait twice as long."""

    def __init__(self) -> None:
        self._failures = 0
        self._until = 0.0

    def left(self, now: float) -> float:
        """For how many seconds from now nobody should be asked."""
        return max(0.0, self._until - now)

    def succeeded(self) -> None:
        """An answer came that could be used."""
        self._failures = 0
        self._until = 0.0

    def failed(self, now: float, wait_seconds: float = 0.0) -> None:
        """None came; ``wait_seconds`` is what the other side has asked for."""
        self._failures += 1
        pause = min(wait_seconds, _LONGEST_SECONDS)
        if self._failures >= _FAILURES:
            more = min(self._failures - _FAILURES, 10)
            pause = max(pause, min(_LONGEST_SECONDS, _FIRST_SECONDS * 2.0**more))
        self._until = now + pause
