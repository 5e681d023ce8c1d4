"""Derives the whole table of contents again, and tells how far it is."""

import time
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from memoryd.domain.calendar import PERIODS
from memoryd.domain.errors import Stopping
from memoryd.services.pump import Pump

_TELL_SECONDS: Final = 0.2


class Progress(NamedTuple):
    """Events worked in, of how many; at the end, how many nodes there are."""

    done: int
    total: int
    nodes: int = 0
    finished: bool = False


def rebuild(
    pump: Pump, alive: Callable[[], bool], stopping: Callable[[], bool]
) -> Iterator[Progress]:
    """Throw nodes and grips away and derive them again, whether or not somebody listens.

    Raises Stopping if the daemon ends meanwhile; it goes on when it is back.
    """
    total = pump.ask(pump.start_over).result()
    yield Progress(0, total)
    while pump.done < total and alive() and not stopping():
        time.sleep(_TELL_SECONDS)
        yield Progress(min(pump.done, total), total)
    for level in PERIODS:
        if stopping():
            raise Stopping("the daemon is stopping: it goes on with the rest when it is back")
        if alive():
            pump.ask(lambda level=level: pump.roll_up(level)).result()  # type: ignore[misc]
    yield Progress(total, total, pump.count_nodes(), finished=True)
