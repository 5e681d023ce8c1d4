"""Gathers the figures of a memory from its daemon, without reading its log.

Events per day are the counts of the day nodes, which the daemon keeps; a year of them is one
answer. By its calendar, in the time zone that is set for it.
"""

from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from memoryd.edges.stats.figures import Habits, habits, spread

if TYPE_CHECKING:
    from memoryd.client import Client

HOURS: Final = 24
_HOUR_MS: Final = 3_600_000
_DAY: Final = timedelta(days=1)


class Figures(NamedTuple):
    """What there is to tell of a span of days, and of the memory as a whole."""

    first: date
    last: date
    days: dict[date, int]
    habits: Habits
    agents: list[dict[str, Any]]
    status: dict[str, Any]
    notes: int

    def as_json(self) -> dict[str, Any]:
        """The figures as `memory stats --json` prints them."""
        found = self.habits
        return {
            "from": self.first.isoformat(),
            "to": self.last.isoformat(),
            "events": found.events,
            "active_days": found.active_days,
            "busiest_day": found.busiest.isoformat() if found.busiest else None,
            "busiest_day_events": found.busiest_count,
            "longest_streak_days": found.longest_streak,
            "streak_days": found.streak,
            "days": [{"day": day.isoformat(), "events": n} for day, n in sorted(self.days.items())],
            "agents": self.agents,
            "total": {
                "events": self.status["sequence"],
                "sessions": self.status["sessions"],
                "agents": self.status["agents"],
                "notes": self.notes,
                "first_event_ms": self.status["first_event_ms"],
                "last_event_ms": self.status["last_event_ms"],
                "disk_bytes": self.status["disk_bytes"],
            },
        }


def figures(
    client: "Client",
    first: date,
    last: date,
    project: str = "",
    days: dict[date, int] | None = None,
) -> Figures:
    """The figures of a span of days, which are read unless given. Raises ClientError."""
    days = events_per_day(client, first, last) if days is None else days
    agents = sorted(client.agents(), key=lambda agent: -int(agent["event_count"]))
    notes = int(client.note("Count", project=project)["count"])
    return Figures(first, last, days, habits(days, first, last), agents, client.status(), notes)


def events_per_day(client: "Client", first: date, last: date) -> dict[date, int]:
    """How many events each day has that has any. At most 1,000 days. Raises ClientError."""
    # a day more on both sides: the daemon's zone may be another than ours
    found = client.timeline(since_ms=_ms(first - _DAY), until_ms=_ms(last + 2 * _DAY), level="day")
    counts = {
        date.fromisoformat(node["node_id"].rpartition(":")[2]): int(node["event_count"])
        for node in found["nodes"]
    }
    return {day: count for day, count in counts.items() if first <= day <= last and count}


def events_per_hour(client: "Client", now_ms: int) -> list[float]:
    """About how many events each of the last hours has, the present one last. Raises ClientError."""
    edges = [now_ms - place * _HOUR_MS for place in range(HOURS, -1, -1)]
    found = client.timeline(since_ms=edges[0], until_ms=now_ms, level="segment")
    spans = (
        (node["start_time_ms"], node["end_time_ms"], node["event_count"]) for node in found["nodes"]
    )
    return spread(spans, edges)


def _ms(day: date) -> int:
    return max(0, round(datetime.combine(day, time.min).astimezone().timestamp() * 1000))
