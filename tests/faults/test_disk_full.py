import os
import subprocess
import time
from collections.abc import Iterator

import grpc
import pytest

from tests.faults.driver import House, Oracle

_MIB = 1024 * 1024


@pytest.fixture
def small_disk(house: House) -> Iterator[str]:
    """A file system of 48 MiB on which the home keeps its data."""
    place = f"{house.base}/d"
    if os.geteuid():
        pytest.skip("only root can mount a small file system")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=48m", "none", place], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("this machine does not let root mount a small file system")
    yield place
    house.stop_all()
    subprocess.run(["umount", place], check=True)


def _fill(path: str) -> None:
    """Write a file until nothing more fits."""
    with open(path, "wb", buffering=0) as file:
        for size in (_MIB, 4096, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue


def test_a_full_disk_is_survived(house: House, small_disk: str) -> None:
    """On a full disk writes are refused and reads go on; with space again, writes come back."""
    daemon = house.serve()
    oracle = Oracle()
    oracle.write_batch(daemon.stub, "before", 500)
    _fill(f"{small_disk}/ballast")
    code = None
    for number in range(2000):
        try:
            oracle.write_batch(daemon.stub, f"full{number}", 100)
        except grpc.RpcError as error:
            code = error.code()
            break
    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert oracle.check_all(daemon.stub) == []
    assert not daemon.serving()
    assert not daemon.status().writable
    os.unlink(f"{small_disk}/ballast")
    freed = time.monotonic()
    while not daemon.serving() and time.monotonic() < freed + 30:
        time.sleep(0.2)
    print(f"writable {time.monotonic() - freed:.1f} s after space was freed")
    assert daemon.serving()
    oracle.write_batch(daemon.stub, "after", 100)
    assert oracle.check_all(daemon.stub) == []
    daemon.kill()
    again = house.serve()
    assert oracle.check_all(again.stub) == []
    again.terminate()
    assert house.run("verify").returncode == 0
