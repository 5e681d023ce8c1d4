"""What is done to the text of a note: appending, editing, checklists, log entries. Pure."""

import re
from collections.abc import Iterator
from hashlib import blake2b
from typing import Final, NamedTuple

from memoryd.domain.errors import InvalidInput

_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_ITEM: Final = re.compile(r"(\s*[-*+] \[)([ xX])(\] ?)(.*)")
_SHOWN: Final = 60
_SESSION_SHOWN: Final = 80


class Appended(NamedTuple):
    """A text after appending, and how many lines were left out because they were there."""

    text: str
    dropped: int


class Item(NamedTuple):
    """One entry of a checklist; ``line`` counts from 0."""

    line: int
    text: str
    done: bool


def append(old: str, new: str) -> Appended:
    """Put ``new`` behind ``old``, without the lines that ``old`` holds already.

    Spaces do not count. A fenced block of code is kept or left out as a whole, because half of
    one would be broken.
    """
    known = {_bare(piece) for piece in _pieces(old)}
    kept: list[str] = []
    dropped = 0
    for piece in _pieces(new):
        bare = _bare(piece)
        if bare and bare in known:
            dropped += piece.count("\n") + 1
        elif bare or (kept and kept[-1].strip()):
            kept.append(piece)
    if not dropped:
        return Appended(join(old, new), 0)
    if not any(map(_bare, kept)):
        return Appended(old, dropped)
    return Appended(join(old, "\n".join(kept)), dropped)


def join(old: str, new: str) -> str:
    """``new`` on a line of its own behind ``old``."""
    return f"{old}\n{new}" if old and not old.endswith("\n") else old + new


def edit(text: str, old: str, new: str) -> str:
    """Replace the one place where ``old`` stands. Raises InvalidInput if there is not just one."""
    if not old:
        raise InvalidInput("old is empty: name the text to replace")
    first = text.find(old)
    if first < 0:
        raise InvalidInput(f"old {_short(old)} does not occur in the note: nothing was changed")
    if text.find(old, first + 1) >= 0:
        msg = f"old {_short(old)} occurs more than once in the note: give more of what is around it"
        raise InvalidInput(msg)
    return text[:first] + new + text[first + len(old) :]


def items(text: str) -> list[Item]:
    """The entries of a checklist, in their order."""
    found = []
    for number, line in enumerate(text.split("\n")):
        match = _ITEM.fullmatch(line)
        if match is not None:
            found.append(Item(number, match[4].strip(), match[2] != " "))
    return found


def tick(text: str, number: int, *, done: bool = True) -> str:
    """The checklist with the entry on a line marked. Raises InvalidInput if there is none."""
    lines = text.split("\n")
    match = _ITEM.fullmatch(lines[number]) if 0 <= number < len(lines) else None
    if match is None:
        raise InvalidInput(f"line {number + 1} is no entry of a checklist")
    lines[number] = f"{match[1]}{'x' if done else ' '}{match[3]}{match[4]}"
    return "\n".join(lines)


def todo(text: str) -> str:
    """One open entry of a checklist. Raises InvalidInput if the text is empty or has two lines."""
    if not text.strip() or len(text.splitlines()) > 1:
        raise InvalidInput("an entry of a checklist is one line of text")
    return f"- [ ] {text.strip()}"


def daily_entry(old: str, day: str, clock: str, heading: str, text: str) -> str:
    """The log of a day with one more entry under its time; a new log begins with the day."""
    if len(heading.splitlines()) > 1:
        raise InvalidInput("heading has more than one line")
    title = f"## {clock} {heading.strip()}".rstrip()
    body = text.strip("\n")
    entry = f"{title}\n\n{body}\n" if body else f"{title}\n"
    if not old.strip():
        return f"# {day}\n\n{entry}"
    return f"{old.rstrip()}\n\n{entry}"


def compaction_heading(messages: int | None) -> str:
    """What the summary of a compacted session is called; None if nobody has counted."""
    return "compaction summary" if messages is None else f"compaction summary ({messages} msgs)"


def archive_name(session_id: str, messages: int, summary: str) -> str:
    """The name of a session's archive: the same summary, the same name."""
    return _archive_name(session_id, f"{session_id}\0{messages}\0{summary}")


def event_archive_name(session_id: str, event_id: str) -> str:
    """The name of the archive of a summary in the log: the same event, the same name."""
    return _archive_name(session_id, f"event\0{event_id}")


def archive_text(session_id: str, day: str, clock: str, heading: str, summary: str) -> str:
    """The content of an archive."""
    head = f"# {heading}\n\nsession {session_id}, {day} {clock}\n"
    return f"{head}\n{summary.strip(chr(10))}\n"


def _archive_name(session_id: str, what: str) -> str:
    digest = blake2b(what.encode(), digest_size=4).hexdigest()
    shown = session_id.encode()[:_SESSION_SHOWN].decode(errors="ignore").strip()
    return f"archive {shown} {digest}"


def _pieces(text: str) -> Iterator[str]:
    """Lines, and fenced blocks as one; a fence that is never closed reaches to the end."""
    block: list[str] = []
    fence = ""
    for line in text.split("\n"):
        match = _FENCE.match(line)
        if not fence:
            if match is None:
                yield line
                continue
            fence = match[1]
            block = [line]
            continue
        block.append(line)
        if match is not None and match[1].startswith(fence) and line.strip() == match[1]:
            yield "\n".join(block)
            fence = ""
    if fence:
        yield "\n".join(block)


def _bare(piece: str) -> str:
    return "\n".join(" ".join(line.split()) for line in piece.split("\n")).strip()


def _short(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")
