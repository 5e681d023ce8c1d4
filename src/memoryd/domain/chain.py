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
    return link_digest(previous, digest(head, hash_of_text))


def digest(head: bytes, hash_of_text: bytes) -> bytes:
    """What stands for an event in the chain, wherever in the chain it stands."""
    return sha256(head + hash_of_text).digest()


def link_digest(previous: bytes, event_digest: bytes) -> bytes:
    """The running hash after an event of that digest."""
    return sha256(previous + event_digest).digest()


def anchor(previous: bytes, first: int, last: int) -> bytes:
    """The running hash to go on from where events are gone and nobody knows the true one."""
    span = first.to_bytes(8, "big") + last.to_bytes(8, "big")
    return sha256(b"memoryd gap" + previous + span).digest()
