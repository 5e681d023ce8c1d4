"""A power cut: what the file system had given to the disk by an instant, and nothing else.

The data directory lies on an ext4 of its own in an image file behind a loop device. What a
process has written stays in the page cache of that file system; only what was synced, or written
back by the kernel, is in the image. The daemon is halted with SIGSTOP, the image is copied, and
the copy, mounted (ext4 replays its journal) and opened by another daemon, is the machine after
the cut. A copy counts only if the image did not change meanwhile, so it is the state of one instant.
"""

import os
import random
import shutil
import signal
import subprocess
import time

from tests.faults.driver import Daemon, House, Oracle, Writers
from tests.soak.kill import verify
from tests.soak.outcome import CannotRun, Order, Outcome

PROJECT = "soak"
_SIZE = 192 * 1024 * 1024
_CUTS_PER_DISK = 20
_RESTART_SHARE = 0.15
_CONTROL = b"written and never synced" * 4096


class Disk:
    """An ext4 in a file, mounted in the place of a house's data."""

    def __init__(self, house: House, image: str) -> None:
        """Mount the image, which is made first if there is none. Raises CannotRun."""
        self.image = image
        self.place = f"{house.base}/d"
        if os.geteuid():
            raise CannotRun("only root can mount an image")
        if not os.path.exists(image):
            with open(image, "wb") as file:
                file.truncate(_SIZE)
            _run("mkfs.ext4", "-q", "-F", image)
        _run("mount", "-o", "loop", image, self.place)

    def snapshot(self, target: str) -> None:
        """Copy the image as it is at one instant."""
        for _ in range(50):
            shutil.copyfile(self.image, target)
            same = subprocess.run(["cmp", "-s", self.image, target], check=False)
            if same.returncode == 0:
                return
        raise CannotRun("the image does not hold still")

    def close(self) -> None:
        """Unmount; nothing of memoryd may run on it any more."""
        unmount(self.place)
        os.unlink(self.image)


def unmount(place: str) -> None:
    """Unmount; a process that has just been killed may keep it busy for a moment. Raises RuntimeError."""
    deadline = time.monotonic() + 30
    while True:
        done = subprocess.run(["umount", place], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return
        if time.monotonic() > deadline:
            raise RuntimeError(done.stderr.strip())
        time.sleep(0.1)


def _run(*command: str) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", "") or str(error)
        raise CannotRun(f"`{' '.join(command)}` does not work here: {said.strip()}") from error


def _holds(path: str, data: bytes) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read() == data
    except FileNotFoundError:
        return False


def _house() -> House:
    house = House()
    house.env["MEMORY_PROJECT_ID"] = PROJECT  # the same store, whatever the directory
    return house


def power(order: Order) -> Outcome:
    """Cut the power again and again; after each cut everything acknowledged before is there."""
    outcome = Outcome("power", order.seed)
    chance = random.Random(order.seed)
    outcome.figures |= {"acknowledged": 0, "lost or torn": 0, "unsynced control files gone": 0}
    try:
        while outcome.cycles < order.cycles:
            _one_disk(order, outcome, chance)
    except CannotRun as error:
        outcome.skipped = str(error)
    outcome.figures["lost or torn"] = len(outcome.problems)
    return outcome


def _one_disk(order: Order, outcome: Outcome, chance: random.Random) -> None:
    house, oracle = _house(), Oracle()
    daemon = None
    disk = None
    try:
        disk = Disk(house, f"{house.base}/image")
        daemon = house.serve()
        for cut in range(min(_CUTS_PER_DISK, order.cycles - outcome.cycles)):
            if chance.random() < _RESTART_SHARE:
                daemon.terminate()
                daemon = house.serve()
            writers = Writers(daemon, oracle, f"c{cut}")
            time.sleep(chance.uniform(0.02, 0.6))
            _cut(disk, daemon, oracle, outcome)
            os.kill(daemon.process.pid, signal.SIGCONT)
            writers.join()
            outcome.cycles += 1
            order.say(f"{outcome.cycles} of {order.cycles} power cuts")
        outcome.figures["acknowledged"] = int(outcome.figures["acknowledged"]) + len(oracle.ids)
    finally:
        if daemon is not None and daemon.process.poll() is None:
            os.kill(daemon.process.pid, signal.SIGCONT)
        house.stop_all()
        if disk is not None:
            disk.close()
        house.close()


def _cut(disk: Disk, daemon: Daemon, oracle: Oracle, outcome: Outcome) -> None:
    """Halt the daemon, copy its disk, and look at what a daemon finds on the copy."""
    name = f"control-{outcome.cycles}"
    with open(f"{disk.place}/{name}", "wb") as file:
        file.write(_CONTROL)  # if this outlives the cut, it was none
    os.kill(daemon.process.pid, signal.SIGSTOP)
    time.sleep(0.03)  # acknowledgements that were under way arrive
    known = Oracle()
    known.ids = list(oracle.ids)
    after = _house()
    copy = None
    try:
        disk.snapshot(f"{after.base}/image")
        copy = Disk(after, f"{after.base}/image")
        gone = not _holds(f"{copy.place}/{name}", _CONTROL)
        count = int(outcome.figures["unsynced control files gone"])
        outcome.figures["unsynced control files gone"] = count + gone
        again = after.serve()
        outcome.problems += known.check_all(again.stub)
        again.terminate()
        outcome.problems += verify(after)
    except RuntimeError as error:
        outcome.problems.append(f"cut {outcome.cycles}: {error}")
    finally:
        after.stop_all()
        if copy is not None:
            copy.close()
        after.close()
