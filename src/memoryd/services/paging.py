"""Pages: how many at once, and where to go on. A token belongs to the question that it answers."""

import base64
import binascii
import zlib
from typing import Final

from memoryd.domain.errors import InvalidInput

PAGE_DEFAULT: Final = 100
PAGE_LIMIT: Final = 1_000
_CHECKSUM: Final = 4


def bounded(name: str, value: int, default: int, most: int) -> int:
    """A limit that a caller asks for; 0 asks for none. Raises InvalidInput if it is negative."""
    if value < 0:
        raise InvalidInput(f"{name} {value} is negative")
    return min(value, most) or default


def make_token(fingerprint: str, position: bytes) -> str:
    """The token with which the same question goes on behind a position."""
    checksum = zlib.crc32(fingerprint.encode()).to_bytes(_CHECKSUM, "big")
    return base64.urlsafe_b64encode(checksum + position).decode()


def read_token(token: str, fingerprint: str) -> bytes:
    """The position in a token. Raises InvalidInput if it belongs to another question."""
    if not token:
        return b""
    try:
        data = base64.urlsafe_b64decode(token.encode())
    except (ValueError, binascii.Error):
        raise InvalidInput("continuation_token is not one of ours") from None
    checksum = zlib.crc32(fingerprint.encode()).to_bytes(_CHECKSUM, "big")
    if len(data) <= _CHECKSUM or data[:_CHECKSUM] != checksum:
        raise InvalidInput(
            "continuation_token belongs to another question: keep all fields but limit and "
            "max_bytes as they were"
        )
    return data[_CHECKSUM:]
