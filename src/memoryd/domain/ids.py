"""Event ids: ULIDs made of a time and 80 bits, random or from content."""

from collections.abc import Iterable
from hashlib import blake2b

from ulid import ULID

ENTROPY_BYTES = 10


def make(time_ms: int, entropy: bytes) -> str:
    """The ULID of a time and 10 bytes."""
    return str(ULID(time_ms.to_bytes(6, "big") + entropy))


def from_content(time_ms: int, parts: Iterable[str]) -> str:
    """A ULID that depends on nothing but ``time_ms`` and ``parts``."""
    digest = blake2b(digest_size=ENTROPY_BYTES, person=b"memoryd event id")
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return make(time_ms, digest.digest())
