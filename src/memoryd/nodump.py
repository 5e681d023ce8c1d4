"""Keeps a process's memory, which holds event text, from being written or read from outside.

The limit on core files is not asked where the kernel hands cores to a program, so the process is
also marked as not dumpable. That keeps other processes of the same user from attaching to it, too.
"""

import sys
from contextlib import suppress

_PR_SET_DUMPABLE = 4


def forbid() -> None:
    """Have no core dump written of this process, as far as the system allows to say so."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform.startswith("linux"):
        # where memory may not be both written and run, ctypes may fail to load
        with suppress(ImportError, MemoryError, OSError, AttributeError):
            import ctypes

            ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
