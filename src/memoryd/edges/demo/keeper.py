"""The process that keeps a throwaway memory: starts its daemon, and removes everything at the end.

The end is the end of stdin, which also comes when the demo is killed: nothing is left behind
whatever happens to it. Run as ``python -m memoryd.edges.demo.keeper DIRECTORY PROJECT``.
"""

import os
import shutil
import signal
import subprocess
import sys
import threading
from types import FrameType
from typing import Final

_STOP_SECONDS: Final = 20.0


def keep(base: str, project: str) -> int:
    """Serve a project out of a directory until stdin ends, then remove the directory."""
    over = threading.Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        over.set()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end)
    with open(os.path.join(base, "log"), "wb") as log:
        daemon = subprocess.Popen(  # noqa: S603 - ourselves
            [sys.executable, "-m", "memoryd.daemon", "serve", "--project", project],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    threading.Thread(target=_read_to_end, args=(over,), daemon=True).start()
    try:
        while not over.wait(0.2) and daemon.poll() is None:
            pass
    finally:
        daemon.terminate()
        try:
            daemon.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()
        if over.is_set():  # else somebody wants to read the log
            shutil.rmtree(base, ignore_errors=True)
    return 0


def _read_to_end(over: threading.Event) -> None:
    while os.read(0, 1):
        pass
    over.set()


if __name__ == "__main__":
    sys.exit(keep(sys.argv[1], sys.argv[2]))
