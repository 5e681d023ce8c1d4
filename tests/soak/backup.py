"""Backups of a daemon that is written to, each restored into a home of its own and checked."""

import os
import random
import subprocess
import sys
import time

from tests.faults.driver import Daemon, House, Oracle, Writers
from tests.soak.outcome import CannotRun, Order, Outcome

PROJECT = "soak"
_MEMORY = os.path.join(os.path.dirname(sys.executable), "memory")
_WRITING = 20  # of so many backups, the daemon is then started anew with an empty store


def backup(order: Order) -> Outcome:
    """Back up under load, restore, verify, and look for what was acknowledged before the backup."""
    outcome = Outcome("backup", order.seed)
    chance = random.Random(order.seed)
    if not _can_back_up():
        outcome.skipped = "this memoryd has no `memory backup`"
        return outcome
    outcome.figures |= {"restored and whole": 0, "acknowledged before": 0}
    try:
        while outcome.cycles < order.cycles:
            _one_house(min(_WRITING, order.cycles - outcome.cycles), chance, order, outcome)
    except CannotRun as error:
        outcome.problems.append(str(error))
    outcome.figures["lost"] = len(outcome.problems)
    return outcome


def _one_house(count: int, chance: random.Random, order: Order, outcome: Outcome) -> None:
    house, oracle = _house(), Oracle()
    try:
        daemon = house.serve()
        for number in range(count):
            writers = Writers(daemon, oracle, f"b{number}")
            time.sleep(chance.uniform(0.05, 0.5))
            known = Oracle()
            known.ids = list(oracle.ids)
            done = _memory(house, "backup", f"{house.base}/backups")
            writers.join()
            if done.returncode:
                raise CannotRun(f"backup {outcome.cycles}: {done.stdout}{done.stderr}")
            problems = _restored(house, known, daemon)
            outcome.problems += [f"backup {outcome.cycles}: {problem}" for problem in problems]
            whole = int(outcome.figures["restored and whole"]) + (not problems)
            outcome.figures["restored and whole"] = whole
            before = int(outcome.figures["acknowledged before"]) + len(known.ids)
            outcome.figures["acknowledged before"] = before
            outcome.cycles += 1
            order.say(f"{outcome.cycles} of {order.cycles} backups")
    finally:
        house.close()


def _restored(house: House, known: Oracle, daemon: Daemon) -> list[str]:
    """What is wrong with the newest backup, once it is restored."""
    after = _house()
    try:
        for command in (("restore", f"{house.base}/backups"), ("verify",)):
            done = _memory(after, *command)
            if done.returncode:
                return [f"{command[0]}: {done.stdout}{done.stderr}"[:500]]
        again = after.serve()
        problems = known.check_all(again.stub)
        if again.status().sequence > daemon.status().sequence:
            problems.append("the backup has more events than the store")
        again.terminate()
    except RuntimeError as error:
        problems = [str(error)]
    finally:
        after.close()
    return problems


def _can_back_up() -> bool:
    house = House()
    try:
        return _memory(house, "backup", "--help").returncode == 0
    finally:
        house.close()


def _house() -> House:
    house = House()
    house.env["MEMORY_PROJECT_ID"] = PROJECT  # the same store, whatever the directory
    return house


def _memory(house: House, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [_MEMORY, *arguments],
        cwd=house.project,
        env=house.env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
