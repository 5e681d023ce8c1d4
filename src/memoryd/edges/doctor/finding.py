"""What a check has found."""

from typing import Final, NamedTuple

OK: Final = "ok"
NOTE: Final = "note"  # worth knowing; all is well nevertheless
PROBLEM: Final = "problem"


class Finding(NamedTuple):
    """One thing that was looked at: how it is, and what to do about it."""

    check: str
    state: str
    said: str
    todo: str = ""


def ok(check: str, said: str) -> Finding:
    """All is well."""
    return Finding(check, OK, said)


def note(check: str, said: str, todo: str = "") -> Finding:
    """Something worth knowing."""
    return Finding(check, NOTE, said, todo)


def problem(check: str, said: str, todo: str) -> Finding:
    """Something that has to be done."""
    return Finding(check, PROBLEM, said, todo)
