"""The inbox directory: hooks write, the daemon drains. Truth until it has been drained.

Owns the bytes of a spooled payload, the names of the files and the two directories. The hook's
start-up time is the time of this module's imports: it may import nothing that a bare interpreter
has not loaded already. `docs/format.md` specifies the bytes.
"""

import os

PAYLOAD_LIMIT = 16 * 1024 * 1024
FILE_LIMIT = PAYLOAD_LIMIT + 64 * 1024
REASON = ".reason"
PROBE = "memoryd-doctor-probe-"  # how the session of a payload begins that only asks the way

_MAGIC = b"memoryd-spool=1"
_END = b"\0\0"
_FIELDS = ("agent", "event", "time_ms", "cwd", "project", "chosen", "size")


class BadEnvelope(ValueError):
    """The bytes are not a spooled payload that this version can read; says why."""


class Envelope:
    """One payload of an agent, and what the hook knew when it came."""

    __slots__ = ("agent", "chosen", "cwd", "event", "payload", "project", "time_ms")

    def __init__(
        self,
        payload: bytes,
        *,
        agent: str,
        event: str = "",
        time_ms: int,
        cwd: str = "",
        project: str = "",
        chosen: bool = False,
    ) -> None:
        """``project`` is that of ``cwd``, or was ``chosen`` by MEMORY_PROJECT_ID whatever cwd is."""
        self.payload = payload
        self.agent = agent
        self.event = event
        self.time_ms = time_ms
        self.cwd = cwd
        self.project = project
        self.chosen = chosen


def encode(envelope: Envelope) -> bytes:
    """The bytes of a spool file. Raises ValueError if a field holds a NUL."""
    values = (
        envelope.agent,
        envelope.event,
        str(envelope.time_ms),
        envelope.cwd,
        envelope.project,
        "1" if envelope.chosen else "0",
        str(len(envelope.payload)),
    )
    header = [_MAGIC]
    for name, value in zip(_FIELDS, values, strict=True):
        if "\0" in value:
            msg = f"{name} holds a NUL"
            raise ValueError(msg)
        header.append(name.encode() + b"=" + os.fsencode(value))
    return b"\0".join(header) + _END + envelope.payload


def decode(data: bytes) -> Envelope:
    """What a spool file holds; fields that are not known are passed over. Raises BadEnvelope."""
    header, end, payload = data.partition(_END)
    magic, *lines = header.split(b"\0")
    if magic != _MAGIC:
        raise BadEnvelope("it does not begin like a spooled payload of version 1")
    if not end:
        raise BadEnvelope("its header has no end")
    fields = {}
    for line in lines:
        name, _, value = line.partition(b"=")
        fields[os.fsdecode(name)] = os.fsdecode(value)
    missing = [name for name in _FIELDS if name not in fields]
    if missing:
        raise BadEnvelope(f"its header lacks {', '.join(missing)}")
    time_ms, size = fields["time_ms"], fields["size"]
    if not (time_ms.isascii() and time_ms.isdecimal() and len(time_ms) <= len(str(2**63))):
        raise BadEnvelope("its time is not a number")
    if size != str(len(payload)):
        raise BadEnvelope(f"its payload has {len(payload)} bytes, and its header says otherwise")
    return Envelope(
        payload,
        agent=fields["agent"],
        event=fields["event"],
        time_ms=int(time_ms),
        cwd=fields["cwd"],
        project=fields["project"],
        chosen=fields["chosen"] == "1",
    )


def inbox(data_dir: str) -> str:
    """Where hooks leave payloads; holds nothing else but hidden, unfinished files."""
    return data_dir + "/spool"


def aside(data_dir: str) -> str:
    """Where payloads are set aside that cannot be read, each with a file that says why.

    Beside the inbox and not in it: an inbox that is not empty starts the daemon.
    """
    return data_dir + "/spool-bad"


def file_name(time_ns: int, pid: int, counter: int = 0) -> str:
    """A name no other process makes, which sorts by the time of arrival."""
    return f"{time_ns:020d}-{pid:010d}-{counter:04d}"


def put(directory: str, name: str, data: bytes) -> None:
    """Write a file so that it is there whole and on disk, or not at all. Raises OSError."""
    unfinished = f"{directory}/.{name}"
    fd = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(fd, rest) :]
            os.fsync(fd)
        finally:
            os.close(fd)
        os.rename(unfinished, f"{directory}/{name}")
    except OSError:
        _forget(unfinished)
        raise
    sync_directory(directory)


def sync_directory(directory: str) -> None:
    """Have the names in a directory reach the disk."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def waiting(directory: str) -> list[str]:
    """The names of the finished files in a directory, in the order of arrival."""
    try:
        names = os.listdir(directory)
    except FileNotFoundError:
        return []
    return sorted(name for name in names if name[0] != "." and not name.endswith(REASON))


def _forget(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return
