"""The story as events and notes, told so that it ends now. Pure but for reading its own file.

Everything in it is made up. Ids follow from the story, so that telling it twice adds nothing.
"""

import tomllib
from datetime import datetime, time, timedelta
from importlib.resources import files
from typing import Any, Final

_FRIDAY: Final = 4
_FRIDAY_AGO: Final = 15  # the day of the story that has to be one
_RECENT_DAYS: Final = 7
_THINKING_MS: Final = 20_000
_CHARACTER_MS: Final = 250  # so long one writes at a character
_TYPES: Final = {"user": "user_message", "assistant": "assistant_message", "tool": "tool_result"}

Event = dict[str, Any]


def read() -> dict[str, Any]:
    """The story as its file has it."""
    return tomllib.loads(files(__package__).joinpath("story.toml").read_text(encoding="utf-8"))


def events(story: dict[str, Any], now: datetime) -> list[Event]:
    """Everything that was said, the oldest first; ``now`` must know its zone."""
    shift = ((now.date() - timedelta(days=_FRIDAY_AGO)).weekday() - _FRIDAY) % 7
    told = [event for session in story["session"] for event in _session(session, now, shift)]
    return sorted(told, key=lambda event: (event["timestamp_ms"], event["event_id"]))


def notes(story: dict[str, Any]) -> list[dict[str, Any]]:
    """The notes, as fields of Remember."""
    return [{"scope": "project", **note} for note in story["note"]]


def _session(session: dict[str, Any], now: datetime, shift: int) -> list[Event]:
    start, most = _beginning(session, now, shift)
    made: list[Event] = []
    for place, (role, *rest) in enumerate(session["turns"]):
        tool, text = rest if role == "tool" else ("", rest[0])
        made.append(
            {
                "event_id": f"demo-{session['id']}-{place:02}",
                "session_id": session["id"],
                "agent": session["agent"],
                "timestamp_ms": start,
                "event_type": _TYPES[role],
                "role": role,
                "text": f"{tool}: {text}" if tool else text,
                "metadata": {"tool_name": tool} if tool else {},
            }
        )
        start += min(most, _THINKING_MS + len(text) * _CHARACTER_MS)
    return made


def _beginning(session: dict[str, Any], now: datetime, shift: int) -> tuple[int, int]:
    """When a session begins, and the longest pause between two turns of it."""
    if "minutes" in session:
        pause = session["minutes"] * 60_000 // len(session["turns"])
        return _ms(now) - session["minutes"] * 60_000, pause
    days = session["ago"] + (shift if session["ago"] > _RECENT_DAYS else 0)
    day = now.date() - timedelta(days=days)
    # the zone's offset may have been another on that day
    return _ms(datetime.combine(day, time.fromisoformat(session["at"])).astimezone()), 3_600_000


def _ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
