import time
from concurrent.futures import ThreadPoolExecutor

from tests.faults.driver import Daemon, House, Oracle

ROUNDS = 10
AT_ONCE = 10


def _winner(daemons: list[Daemon]) -> Daemon:
    """Wait until all but one have ended; return that one."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        alive = [d for d in daemons if d.process.poll() is None]
        if len(alive) <= 1:
            break
        time.sleep(0.02)
    assert len(alive) == 1
    return alive[0]


def test_of_ten_daemons_started_at_once_one_serves(house: House) -> None:
    """In 10 rounds of 10 starts at once exactly one daemon serves, and the others say why not."""
    oracle = Oracle()
    for number in range(ROUNDS):
        with ThreadPoolExecutor(AT_ONCE) as pool:
            daemons = list(pool.map(lambda _: house.spawn(), range(AT_ONCE)))
        winner = _winner(daemons)
        winner.wait_ready()
        oracle.write(winner.stub, f"round-{number}")
        assert oracle.check_all(winner.stub) == []
        assert [d.process.returncode for d in daemons if d is not winner] == [1] * (AT_ONCE - 1)
        winner.terminate()
        assert winner.process.returncode == 0
    assert house.log_text().count(" is in use by process ") == ROUNDS * (AT_ONCE - 1)
    assert "Traceback" not in house.log_text()


def test_a_running_daemon_is_left_untouched(house: House, daemon: Daemon) -> None:
    """A second daemon is refused with a message that names the first, which goes on serving."""
    oracle = Oracle()
    oracle.write(daemon.stub, "before")
    for _ in range(5):
        refused = house.run("serve")
        assert refused.returncode == 1
        assert f"in use by process {daemon.process.pid}: stop it with `memoryd stop`" in (
            refused.stderr
        )
    oracle.write(daemon.stub, "after")
    assert oracle.check_all(daemon.stub) == []
    assert daemon.serving()
    fresh = house.run("status")
    assert (fresh.returncode, f"process {daemon.process.pid}" in fresh.stdout) == (0, True)
