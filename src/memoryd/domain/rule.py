"""Rules: what a secret looks like, and how a user's own rules are read. Pure.

A rule works on the UTF-8 bytes of a text. It is tried only where one of its keywords stands, so
a text without keywords costs one pass for all rules together.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, NamedTuple

from memoryd.domain.errors import InvalidInput
from memoryd.domain.plausible import entropy

_ID: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")
_FIELDS: Final = frozenset({"id", "pattern", "keywords", "entropy", "group"})
_MAX_ENTROPY: Final = 8.0


class Rule(NamedTuple):
    """One kind of secret.

    With ``back`` the pattern must match at that many bytes before a keyword; without it (None)
    anywhere in a text that holds a keyword, or in any text if there are no keywords. The secret
    is the given group; by default the last one that took part, or else the whole match.
    """

    id: str
    pattern: bytes
    keywords: tuple[bytes, ...]  # in lower case; they match in any case
    entropy: float = 0.0  # bits per byte that the secret has at least
    back: int | None = 0
    group: int | None = None
    check: Callable[["re.Match[bytes]"], bool] | None = None

    def secret(self, match: "re.Match[bytes]") -> tuple[int, int] | None:
        """Where the secret of a match stands, or None if it is not one."""
        group = self.group if self.group is not None else match.lastindex or 0
        start, end = match.span(group)
        if start == end or (self.entropy and entropy(match[group]) < self.entropy):
            return None
        return (start, end) if self.check is None or self.check(match) else None


@cache
def compiled(pattern: bytes) -> "re.Pattern[bytes]":
    """The pattern, compiled when it is first needed: most never are."""
    return re.compile(pattern)


def rule_from_dict(raw: Mapping[str, Any]) -> Rule:
    """A user's rule from parsed TOML. Raises InvalidInput that names the field."""
    if not isinstance(raw, Mapping):
        raise InvalidInput("a rule must be a table with id and pattern")
    for name in raw:
        if name not in _FIELDS:
            known = ", ".join(sorted(_FIELDS))
            raise InvalidInput(f"rule field {name!r} is not known: known are {known}")
    rule_id = raw.get("id")
    if not isinstance(rule_id, str) or not _ID.fullmatch(rule_id):
        raise InvalidInput(
            f"rule id {rule_id!r} is not allowed: it must be up to 64 of a-z, 0-9 and hyphens"
        )
    pattern = pattern_of(raw.get("pattern"), f"rule {rule_id}: pattern")
    keywords = raw.get("keywords", [])
    if not isinstance(keywords, list) or not all(isinstance(k, str) and k for k in keywords):
        raise InvalidInput(f"rule {rule_id}: keywords must be a list of texts that are not empty")
    limit = raw.get("entropy", 0.0)
    if type(limit) not in {int, float} or not 0 <= limit <= _MAX_ENTROPY:
        raise InvalidInput(f"rule {rule_id}: entropy must be a number from 0 to 8")
    group = raw.get("group")
    groups = compiled(pattern).groups
    if group is not None and (type(group) is not int or not 0 <= group <= groups):
        raise InvalidInput(f"rule {rule_id}: group must be a number from 0 to {groups}")
    lowered = tuple(k.encode().lower() for k in keywords)
    return Rule(rule_id, pattern, lowered, float(limit), back=None, group=group)


def pattern_of(raw: object, name: str) -> bytes:
    """A pattern as bytes. Raises InvalidInput with ``name`` if it cannot be used."""
    if not isinstance(raw, str) or not raw:
        raise InvalidInput(f"{name} must be a regular expression")
    if not raw.isascii():
        raise InvalidInput(f"{name} must be ASCII: it is matched against the bytes of UTF-8")
    pattern = raw.encode()
    try:
        empty = compiled(pattern).search(b"")
    except (re.error, RecursionError, OverflowError) as error:
        raise InvalidInput(f"{name} does not compile: {error}") from error
    if empty:
        raise InvalidInput(f"{name} matches the empty text")
    return pattern
