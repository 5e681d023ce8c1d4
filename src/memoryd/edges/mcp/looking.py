"""The tools that look things up. They change nothing.

Each call makes a connection of its own, so that a daemon that comes, goes or is restarted is
noticed with the next call. A failure is an answer that says what to do.
"""

from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import islice
from typing import Annotated, Any, Final, Literal

from mcp.types import CallToolResult
from pydantic import Field

from memoryd import client, project
from memoryd.config import ConfigError
from memoryd.edges.cli import times
from memoryd.edges.cli.output import now_ms
from memoryd.edges.mcp import items
from memoryd.edges.mcp.answer import Reply, block, failed, reply

BUDGET: Final = 1500
LATER: Final = "Tell the user. What hooks capture meanwhile is kept and not lost."
_SAME_MOMENT: Final = 6
_SCANNED: Final = 200  # children of a node that are looked at, at most

Budget = Annotated[
    int, Field(ge=100, le=20_000, description="About how many tokens the answer may have.")
]
Limit = Annotated[int, Field(ge=1, le=50, description="At most so many results.")]
When = Annotated[
    str, Field(description="2026-01-31, 2026-01-31T14:30, 3d, yesterday, tuesday, last week, ...")
]
Role = Literal["user", "assistant", "system", "tool"]
Level = Literal["", "year", "month", "week", "day", "segment"]


def asked(start_dir: str, answer: Callable[["client.Client"], CallToolResult]) -> CallToolResult:
    """What the daemon of a directory's project answers, or why it does not."""
    try:
        with client.connect(start_dir) as connected:
            return answer(connected)
    except (client.NotRunning, client.Unavailable) as error:
        return failed(f"{error}. {LATER}")
    except (client.ClientError, ConfigError) as error:
        return failed(str(error))


def span(since: str, until: str) -> tuple[int, int]:
    """The first and last moment that two words mean, 0 for an empty one. Raises Refused."""
    now = now_ms()
    try:
        first = times.parse_time(since, now) if since else 0
        last = times.parse_time(until, now, end=True) if until else 0
    except ValueError as error:
        raise client.Refused(str(error)) from None
    return first, last


class Looking:
    """Tools over the daemon of the project that a directory belongs to."""

    def __init__(self, start_dir: str) -> None:
        self._start_dir = start_dir

    def search(  # noqa: PLR0913 - one parameter for each filter
        self,
        query: Annotated[str, Field(description='Words; "a phrase", -without, begin*.')] = "",
        *,
        roles: list[Role] = [],  # noqa: B006 - the schema shows it, and nobody changes it
        since: When = "",
        until: When = "",
        session: str = "",
        agent: str = "",
        limit: Limit = 8,
        budget: Budget = BUDGET,
    ) -> Reply:
        """Find what was said or done earlier in this project, best first, in any session of any agent.

        Start here for a question on one thing. Open a result's id to read on. Without a query but
        with a session, an agent or a time: what was said there, newest first.
        """

        def answer(connected: client.Client) -> CallToolResult:
            first, last = span(since, until)
            zone = datetime.now().astimezone().utcoffset()
            which = client.Search(
                roles=tuple(roles),
                agent=agent,
                session_id=session,
                since_ms=first,
                until_ms=last,
                limit=limit,
                now_ms=now_ms(),
                utc_offset_minutes=int(zone.total_seconds() // 60) if zone else 0,
            )
            found = connected.search(query, which)
            state = found["index_state"].replace("_", " ")
            hint = "" if state == "ready" else f"The index is {state}: more may be found later."
            return reply([items.of_hit(hit) for hit in found["results"]], budget, hint=hint)

        return asked(self._start_dir, answer)

    def timeline(
        self,
        since: When = "7d",
        until: When = "",
        level: Level = "",
        limit: Limit = 20,
        budget: Budget = BUDGET,
    ) -> Reply:
        """What happened between two times, oldest first, at the finest level of detail that fits.

        Start here for a question on a period. Open a node's id for the evidence.
        """

        def answer(connected: client.Client) -> CallToolResult:
            first, last = span(since, until)
            words = budget * 2 // 3  # the rest is for ids
            found = connected.timeline(since_ms=first, until_ms=last, tokens=words, level=level)
            nodes = [items.of_node(node, bullets=True) for node in found["nodes"]]
            more = found["truncated"] or len(nodes) > limit
            hint = "There was more before that: see since and level." if more else ""
            return reply(nodes[-limit:], budget, hint=hint, newest_last=True)

        return asked(self._start_dir, answer)

    def browse_toc(
        self,
        node: Annotated[str, Field(description="Such as toc:month:2026-01; empty: years.")] = "",
        limit: Limit = 30,
        budget: Budget = BUDGET,
    ) -> Reply:
        """The table of contents right below a node: years, months, weeks, days, segments."""

        def answer(connected: client.Client) -> CallToolResult:
            below = list(islice(connected.children(node), _SCANNED + 1))
            hint = f"The first of {len(below)} are left out." if len(below) > limit else ""
            found = [items.of_node(child) for child in below[-limit:]]
            return reply(found, budget, hint=hint, newest_last=True)

        return asked(self._start_dir, answer)

    def open(
        self,
        id: Annotated[str, Field(description="Of a node (toc:...), a grip or an event.")],  # noqa: A002 - the name that agents know
        before: Annotated[
            int, Field(ge=0, le=50, description="Events before a grip or event.")
        ] = 2,
        after: Annotated[int, Field(ge=0, le=50, description="Events after a grip or event.")] = 2,
        offset: Annotated[int, Field(ge=0, description="Characters of an event to skip.")] = 0,
        limit: Limit = 20,
        budget: Budget = BUDGET,
    ) -> Reply:
        """Open a node with its evidence and children, a grip or an event in its conversation.

        Of the events around an event only the beginnings are shown.
        """

        def answer(connected: client.Client) -> CallToolResult:
            found = _opened(connected, id.strip(), (before, after), offset)
            taken = list(islice(found, limit + 1))
            hint = "There are more: raise limit." if len(taken) > limit else ""
            return reply(taken[:limit], budget, hint=hint)

        return asked(self._start_dir, answer)

    def recent_sessions(
        self,
        since: When = "",
        agent: str = "",
        limit: Limit = 10,
        budget: Budget = BUDGET,
    ) -> Reply:
        """The latest sessions of all agents, newest first, each with what its user asked first.

        Search with a session and no query reads one.
        """

        def answer(connected: client.Client) -> CallToolResult:
            first, _ = span(since, "")
            found = connected.sessions(agent=agent, since_ms=first, limit=limit)
            return reply([_session(connected, session) for session in found], budget)

        return asked(self._start_dir, answer)

    def context(
        self,
        query: Annotated[str, Field(description="What the work is about; may be empty.")] = "",
        agent: Annotated[str, Field(description="Who asks: tells what is new to it.")] = "",
        session: Annotated[str, Field(description="Its own words are left out.")] = "",
        budget: Budget = BUDGET,
    ) -> Reply:
        """What to know before work begins: pinned notes, the scratchpad, what happened lately.

        With a query also what was said about it. Use it once, at the start or after a compaction.
        """

        def answer(connected: client.Client) -> CallToolResult:
            found = connected.context(
                query=query,
                agent=agent,
                session_id=session,
                budget_tokens=budget,
                project=owner(connected, self._start_dir),
            )
            short = [
                f"{s['name']} {s['state']}" for s in found["sections"] if s["state"] != "whole"
            ]
            hint = f"Not whole: {', '.join(short)}." if short else ""
            return block(found["text"], hint)

        return asked(self._start_dir, answer)


def owner(connected: client.Client, start_dir: str) -> str:
    """The project to name in a request, in a store that several projects share."""
    return project.project_id(start_dir) if connected.settings.unified else ""


def _opened(
    connected: client.Client, name: str, around: tuple[int, int], offset: int
) -> Iterator[items.Item]:
    if name.startswith("toc:"):
        yield items.of_node(connected.node(name), bullets=True, evidence=True)
        yield from map(items.of_node, connected.children(name))
    elif name.startswith("grip:"):
        yield from items.of_grip(connected.expand(name, before=around[0], after=around[1]))
    else:
        event = connected.event(name)
        yield items.of_event(event, text=event["text"][offset:])
        if not offset:  # who reads on has seen them
            yield from _neighbours(connected, event, around)


def _neighbours(
    connected: client.Client, event: dict[str, Any], around: tuple[int, int]
) -> Iterator[items.Item]:
    """The beginnings of what was said just before and after an event, in its session."""
    which, time_ms = client.Filter(session_id=event["session_id"]), event["timestamp_ms"]
    before, after = around
    # those of the same moment may come from either side
    earlier = connected.events(which, until_ms=time_ms, newest=True, limit=before + _SAME_MOMENT)
    later = connected.events(which, since_ms=time_ms, limit=after + _SAME_MOMENT)
    told = {event["event_id"]}
    for found, most in ((earlier, before), (later, after)):
        fresh = [other for other in found if other["event_id"] not in told][:most]
        told |= {other["event_id"] for other in fresh}
        for other in sorted(fresh, key=lambda other: (other["timestamp_ms"], other["event_id"])):
            yield items.of_event(other, text=items.beginning(other["text"]))._replace(session="")


def _session(connected: client.Client, session: dict[str, Any]) -> items.Item:
    """A session with the first words of its user."""
    which = client.Filter(session_id=session["session_id"], roles=("user",))
    times_ms = {"since_ms": session["first_event_ms"], "until_ms": session["last_event_ms"]}
    opening = connected.events_page(which, **times_ms, limit=1).events
    return items.of_session(session, opening[0] if opening else None)
