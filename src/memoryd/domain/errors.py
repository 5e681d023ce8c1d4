"""The whole error tree. An error names the operation, the thing, and what to do next.

::

    MemorydError
    ├── InvalidInput        the caller sent something that cannot be taken; names the field
    ├── NotFound            no such thing; names it
    ├── Conflict            the id is taken by other content; names the field that differs
    │   └── Outdated        ... has changed since the caller looked; says to what
    ├── ReadOnly            the log takes no writes now; says why
    │   └── DiskFull        ... because there is no space left
    ├── Stopping            the daemon is shutting down
    ├── TooBusy             a limit on concurrent work is reached; names the limit
    ├── Cancelled           the caller has gone or its deadline has passed
    ├── IndexDoubt          the search index cannot be trusted; it is made anew from the log
    └── StoreError
        ├── StoreLocked     another process has the store open
        ├── StoreDamaged    what is on disk is not what was written; names damage and remedy
        └── FormatUnknown   the store was written by another version of memoryd
            └── FormatOld   ... an older one, from which there is a way to the present
"""


class MemorydError(Exception):
    """Base of every error that memoryd raises on purpose."""


class InvalidInput(MemorydError):
    """The caller sent something that cannot be taken."""


class NotFound(MemorydError):
    """There is no such thing."""


class Conflict(MemorydError):
    """The id is taken by other content."""


class Outdated(Conflict):
    """The thing has changed since the caller looked."""


class ReadOnly(MemorydError):
    """The log takes no writes now."""


class DiskFull(ReadOnly):
    """The log takes no writes because the disk is full."""


class Stopping(MemorydError):
    """The daemon is shutting down."""


class TooBusy(MemorydError):
    """A limit on concurrent work is reached."""


class Cancelled(MemorydError):
    """The caller has gone."""


class IndexDoubt(MemorydError):
    """The search index cannot be trusted."""


class StoreError(MemorydError):
    """The store cannot be used."""


class StoreLocked(StoreError):
    """Another process has the store open."""


class StoreDamaged(StoreError):
    """What is on disk is not what was written."""


class FormatUnknown(StoreError):
    """The store was written by another version of memoryd."""


class FormatOld(FormatUnknown):
    """The store has a format from before; it can be brought to the present one."""
