"""The running hash over the log: each event's hash covers all events before it.

An event enters the chain by its digest, and the digest holds the hash of the text instead of
the text, so that the chain can be checked after a text has been erased.
"""

from hashlib import sha256

from memoryd.domain.errors import InvalidInput

HASH_BYTES = 32
GENESIS = bytes(HASH_BYTES)


def text_hash(text: str) -> bytes:
    """The hash that stands for a text. Raises InvalidInput if the text is not valid Unicode."""
    try:
        return sha256(text.encode()).digest()
    except UnicodeEncodeError as error:
        msg = f"text is not valid Unicode at character {error.start}: it holds a lone surrogate"
        raise InvalidInput(msg) from error


def link(previous: bytes, head: bytes, hash_of_text: bytes) -> bytes:
    """The running hash after an event whose other fields are encoded as ``head``."""
    return sha256(previous + sha256(head + hash_of_text).digest()).digest()
