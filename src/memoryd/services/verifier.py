"""Runs a full check in a process of its own: it is Python's work, and would hold up writers.

The process prints a line of JSON for everything that the check tells, and ends when nobody reads.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, Any, Final

from memoryd.domain.errors import Cancelled, StoreError
from memoryd.services.copying import Alive
from memoryd.services.verify import Place, Problem, Verdict, verify
from memoryd.storage.audit import Progress
from memoryd.storage.gaps import Gap

_NICENESS: Final = 5
_KINDS: Final = {"progress": Progress, "problem": Problem, "verdict": Verdict}

Told = Progress | Problem | Verdict


def verify_apart(place: Place, alive: Alive) -> Iterator[Told]:
    """Check a store in another process; what it tells. Raises Cancelled, StoreError."""
    command = [sys.executable, "-m", __name__, json.dumps(place)]
    process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
        command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, start_new_session=True
    )
    finished = False
    try:
        for line in process.stdout or ():
            if not alive():
                raise Cancelled("the check was called off")
            told = from_line(line)
            finished = isinstance(told, Verdict)
            yield told
    finally:
        if process.stdout is not None:
            process.stdout.close()
        with suppress(ProcessLookupError):
            process.kill()
        process.wait()
    if not finished:
        raise StoreError("the check has ended before its time: run `memoryd verify` without daemon")


def to_line(told: Told) -> str:
    """What a check tells, as a line of JSON."""
    kind = next(name for name, made in _KINDS.items() if isinstance(told, made))
    return json.dumps({kind: plain(told)})


def plain(told: Told) -> dict[str, Any]:
    """What a check tells, in words that JSON knows."""
    found = told._asdict()
    if isinstance(told, Verdict):
        found["problems"] = [problem._asdict() for problem in told.problems]
        for name in ("event_gaps", "note_gaps"):
            found[name] = [
                {**gap._asdict(), "chain": gap.chain.hex()} for gap in getattr(told, name)
            ]
    return found


def from_line(line: bytes) -> Told:
    """What `to_line` spelled."""
    ((kind, fields),) = json.loads(line).items()
    if kind == "verdict":
        fields["problems"] = tuple(Problem(**problem) for problem in fields["problems"])
        for name in ("event_gaps", "note_gaps"):
            fields[name] = tuple(
                Gap(**{**gap, "chain": bytes.fromhex(gap["chain"])}) for gap in fields[name]
            )
    told: Told = _KINDS[kind](**fields)
    return told


def print_all(told: Iterator[Told], stream: IO[str]) -> Verdict:
    """Print everything that a check tells as lines of JSON; the verdict."""
    verdict = Verdict()
    for word in told:
        stream.write(to_line(word) + "\n")
        stream.flush()
        if isinstance(word, Verdict):
            verdict = word
    return verdict


if __name__ == "__main__":
    os.nice(_NICENESS)
    with suppress(BrokenPipeError):
        print_all(verify(Place(*json.loads(sys.argv[1]))), sys.stdout)
