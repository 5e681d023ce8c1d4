"""Kill -9 of a daemon that is written to, again and again."""

import random
import statistics
import time

from tests.faults.driver import House, Oracle, Writers
from tests.soak.outcome import Order, Outcome
from tests.soak.vitals import processes

REOPEN_SECONDS = 2.0


def kill(order: Order) -> Outcome:
    """Kill the daemon under load, look for what it acknowledged, and verify the store at the end."""
    outcome = Outcome("kill", order.seed)
    house = House()
    try:
        _kill(house, order, outcome)
    finally:
        house.close()
    return outcome


def _kill(house: House, order: Order, outcome: Outcome) -> None:
    chance, oracle = random.Random(order.seed), Oracle()
    opened: list[float] = []
    loaded = 0.0
    daemon = house.serve()
    for cycle in range(order.cycles):
        known, began = len(oracle.ids), time.monotonic()
        writers = Writers(daemon, oracle, f"c{cycle}")
        time.sleep(chance.uniform(0.02, 0.35))
        daemon.process.kill()
        loaded += time.monotonic() - began
        writers.join()
        daemon.kill()
        daemon = house.serve()
        opened.append(daemon.seconds_to_open)
        outcome.problems += oracle.check_ids(daemon.stub, oracle.ids[known:][-100:])
        outcome.cycles += 1
        order.say(f"{outcome.cycles} of {order.cycles} kills")
    outcome.problems += oracle.check_all(daemon.stub)
    daemon.terminate()
    outcome.problems += verify(house)
    outcome.problems += _left_behind(house)
    outcome.figures |= {
        "acknowledged": len(oracle.ids),
        "events/s": round(len(oracle.ids) / loaded),
        "lost or torn": len(outcome.problems),
        "reopen median s": round(statistics.median(opened), 2),
    }
    outcome.bound("reopen max s", max(opened), REOPEN_SECONDS)


def _left_behind(house: House) -> list[str]:
    """Worker processes that have outlived the daemon that started them."""
    deadline = time.monotonic() + 10
    while (left := list(processes(house.base))) and time.monotonic() < deadline:
        time.sleep(0.1)
    return [f"process {pid} has outlived its daemon" for pid in left]


def verify(house: House, *flags: str) -> list[str]:
    """What `memoryd verify` has to say against a store."""
    verdict = house.run("verify", *flags, seconds=1800)  # half a million events after a long run
    if verdict.returncode == 0 and "whole" in verdict.stdout:
        return []
    return [f"verify: {verdict.stdout}{verdict.stderr}"]
