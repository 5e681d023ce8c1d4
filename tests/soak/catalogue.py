"""Every fault by its name: what simulates it, how often by default and in short, what is asked."""

from collections.abc import Callable
from typing import Final, NamedTuple

from tests.soak.backup import backup
from tests.soak.clock import clock
from tests.soak.damage import delete, flip
from tests.soak.full import full
from tests.soak.hostile import hostile
from tests.soak.kill import kill
from tests.soak.load import load
from tests.soak.outcome import Order, Outcome
from tests.soak.power import power
from tests.soak.race import race
from tests.soak.step import step
from tests.soak.stop import stop


class Fault(NamedTuple):
    """One fault."""

    name: str
    run: Callable[[Order], Outcome]
    cycles: int
    short: int
    about: str
    asked: str


_ALL: Final = (
    Fault(
        "kill",
        kill,
        1_000,
        10,
        "kill -9 of a daemon that is written to",
        "kill -9 under at least 100 events/s: 1,000, none lost or torn, reopen under 2 s",
    ),
    Fault(
        "power",
        power,
        200,
        3,
        "power cuts: the image of the disk as it is at an instant",
        "simulated power cut: 200, none lost",
    ),
    Fault(
        "flip",
        flip,
        500,
        3,
        "bit flips, as many in each kind of file",
        "bit flips in WAL, SST, MANIFEST, index: 500 each, all noticed or harmless, no hang over 30 s",
    ),
    Fault(
        "delete",
        delete,
        1_000,
        12,
        "files deleted or cut off; 1,000 is all of them",
        "any file of the data directory deleted or cut off: all noticed, or harmless",
    ),
    Fault(
        "full",
        full,
        50,
        2,
        "a disk that is full and then is not",
        "disk full, then freed: 50, none lost, hooks spool, recovery under 30 s, index equals log",
    ),
    Fault(
        "step",
        step,
        500,
        5,
        "kill -9 while tree and index are derived",
        "kill during index commit or pump step: 500, tree and index as if undisturbed",
    ),
    Fault(
        "race",
        race,
        100,
        4,
        "daemons, hooks and commands at once",
        "second daemon, spool and command races: 100, never two owners",
    ),
    Fault(
        "clock",
        clock,
        10,
        1,
        "a clock that is set",
        "clock back 1 h, forward 1 year, both DST changes, leap day: order kept, no job lost or doubled",
    ),
    Fault(
        "stop",
        stop,
        200,
        5,
        "SIGTERM with calls in flight",
        "SIGTERM with calls in flight: 200, none lost, exit under 15 s",
    ),
    Fault(
        "backup",
        backup,
        100,
        2,
        "backups under load, restored",
        "backup under load, restored: 100 of 100 verify",
    ),
    Fault(
        "hostile",
        hostile,
        100_000,
        3_000,
        "bent requests, bad HTTP/2, slow readers, 1,000 connections",
        "hostile bytes (100,000 bent requests): no crash, no hang, RSS flat, others still served",
    ),
    Fault(
        "load",
        load,
        60,
        2,
        "200 events/s from 8 writers; a cycle is a minute",
        "an hour of load: ack p99 less than 50 ms above fsync p99, RSS, threads and files flat",
    ),
)
FAULTS: Final = {fault.name: fault for fault in _ALL}
ASKED: Final = {fault.name: fault.asked for fault in _ALL}
