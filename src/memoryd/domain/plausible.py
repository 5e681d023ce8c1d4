"""Whether a value looks like a secret or like something people write in its place. Pure.

Rules that know a secret only by the name before it ask here, because names alone fire on
ordinary code: ``token = next_token`` is no secret, ``token = "9fK2..."`` is.
"""

import binascii
import re
from collections import Counter
from itertools import pairwise
from math import log2
from typing import Final

_LOOKED_AT: Final = 256  # bytes of a value; more would tell nothing new
_KEY_BITS, _PASSWORD_BITS = 3.0, 2.2
_SCATTERED, _RANDOM = 0.2, 0.35
_PRINTABLE: Final = range(0x20, 0x7F)

# what stands where a secret would: a reference, a template, a mask, a word for "fill this in"
_STAND_IN: Final = re.compile(
    rb"""^(?: [$%<{\[(*.] | [@&!]\{? [A-Za-z_.]+ \}?$ | \\[(u] | https?:// | /[A-Za-z][a-z0-9_.-]{0,20}(?:/|$) | \.{1,2}/ | ~/ )
    | \$\{ | \{\{ | \$\( | %\( | \*\*\* | \.\.\. | (.)\1{5}
    | (?i: change.?me | example | placeholder | your[-_. ]? | dummy | redact | \bxxx | insert[-_]
         | replace[-_]?(?:me|with|this) | process\.env | environ | getenv | undefined | sample
         | \bnull\b | \bnone\b | \btrue\b | \bfalse\b | secrets?\. )
    """,
    re.VERBOSE,
)
_REFERENCE: Final = re.compile(
    rb"[A-Za-z_$][\w$]*(?:(?:\.|->|::)[A-Za-z_$][\w$]*)+|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+"
)
_NAME: Final = re.compile(rb"[A-Za-z_$][\w$]*(?:(?:\.|->|::)[A-Za-z_$][\w$]*)*[.!?:]?")
_PARTS: Final = re.compile(rb"[^A-Za-z0-9]+")
_WORD: Final = re.compile(rb"(?:[A-Za-z]?[a-z]*+(?:[A-Z]++[a-z]{2,}+)*+|[A-Z]*+)\d{0,3}|\d*")
_CALL: Final = re.compile(rb"[A-Za-z_][\w.]*(?:\(|\[)")


def entropy(value: bytes) -> float:
    """Shannon's bits per byte."""
    value = value[:_LOOKED_AT]
    size = len(value)
    return -sum(n / size * log2(n / size) for n in Counter(value).values()) if size else 0.0


def key_like(value: bytes) -> bool:
    """Whether a value of some length looks random: bits enough, and no words between marks."""
    value = value[:_LOOKED_AT]
    if _STAND_IN.search(value) or _worded(value):
        return False
    return _scatter(value) >= _SCATTERED and entropy(value) >= _KEY_BITS


def password_like(value: bytes, *, bare: bool = False) -> bool:
    """Whether a value after a password's name is one: not a word, a name or a stand-in.

    A bare value, without quotes, is more likely a name of the program.
    """
    value = value[:_LOOKED_AT]
    if _STAND_IN.search(value) or entropy(value) < _PASSWORD_BITS:
        return False
    kinds = set(value.rstrip(b"?!:=*.").translate(_KIND))
    if not kinds & {_LOWER, _UPPER, _OTHER}:
        return False
    mixed = {_LOWER, _UPPER} <= kinds and _scatter(value) >= _RANDOM
    if not kinds & {_DIGIT, _SIGN} and (bare or not mixed):
        return False
    if bare:
        return not _NAME.fullmatch(value) or (_scatter(value) >= _SCATTERED and not named(value))
    return not _CALL.match(value)


def named(value: bytes) -> bool:
    """Whether a value is a reference: names joined by dots, or a constant in capitals."""
    return _REFERENCE.fullmatch(value) is not None


def credentials(value: bytes) -> bool:
    """Whether base64 holds ``user:password``."""
    try:
        plain = binascii.a2b_base64(value + b"=" * (-len(value) % 4), strict_mode=True)
    except binascii.Error:
        return False
    return b":" in plain and all(byte in _PRINTABLE for byte in plain)


_LOWER, _UPPER, _DIGIT, _SIGN, _OTHER, _DASH = range(6)


def _kind(byte: int) -> int:
    char = chr(byte)
    if not char.isascii():
        return _OTHER
    if char.isalpha():
        return _LOWER if char.islower() else _UPPER
    return _DIGIT if char.isdigit() else _SIGN if char in "!@#$%^&*+~?=" else _DASH


_KIND: Final = bytes(map(_kind, range(256)))


def _scatter(value: bytes) -> float:
    """How often the kind of character changes; words and camel case stay low."""
    kinds = value.translate(_KIND)
    return sum(a != b for a, b in pairwise(kinds)) / max(len(value) - 1, 1)


def _worded(value: bytes) -> bool:
    """Whether every part between marks is a word or a number, as in names and versions."""
    return all(_WORD.fullmatch(part) for part in _PARTS.split(value))
