"""A piece of one session's conversation that grows at both ends. No screen in it.

Owns which events are held and what is known of both ends. Asked from a worker thread; at most
HELD events are held, and what is let go at one end is read again when somebody goes back.
"""

from typing import TYPE_CHECKING, Any, Final

from memoryd.client import Filter

if TYPE_CHECKING:
    from memoryd.client import Client

AROUND: Final = 30
PAGE: Final = 50
HELD: Final = 400

Event = dict[str, Any]


class Conversation:
    """Events of one session, the oldest first, some of them evidence."""

    def __init__(self, session_id: str, events: list[Event], evidence: list[Event]) -> None:
        self.session_id = session_id
        self.events = events
        self.evidence = frozenset(event["event_id"] for event in evidence)
        self.words = ""  # what to mark in the evidence
        self.source = ""
        self.at_start = self.at_end = False

    def more(self, client: "Client", *, older: bool) -> list[Event]:
        """Read on at one end; what was read, the oldest first. Empty at the end. Raises ClientError."""
        if not self.events or (self.at_start if older else self.at_end):
            return []
        edge = self.events[0 if older else -1]
        span = {"until_ms" if older else "since_ms": edge["timestamp_ms"]}
        found: list[Event] = []
        token, has_more = "", True
        while has_more and not found:  # many events may be of the moment at the edge
            page, has_more, token = client.events_page(
                Filter(session_id=self.session_id), newest=older, limit=PAGE, token=token, **span
            )
            found = [event for event in page if _lies(event, edge, older=older)]
        if older:
            found.reverse()
            self.at_start = not has_more
        else:
            self.at_end = not has_more
        self.events = [*found, *self.events] if older else [*self.events, *found]
        return found

    def let_go(self, *, newest: bool) -> list[Event]:
        """Let go what is over the limit at one end; what was let go."""
        over = len(self.events) - HELD
        if over <= 0:
            return []
        gone = self.events[-over:] if newest else self.events[:over]
        self.events = self.events[:-over] if newest else self.events[over:]
        if newest:
            self.at_end = False
        else:
            self.at_start = False
        return gone


def _lies(event: Event, edge: Event, *, older: bool) -> bool:
    """Whether an event lies beyond another, in the order of the log: by time, then by id."""
    one, other = ((e["timestamp_ms"], e["event_id"].encode()) for e in (event, edge))
    return one < other if older else one > other


def of_grip(client: "Client", grip_id: str) -> Conversation:
    """The conversation around a grip. Raises Missing, ClientError."""
    found = client.expand(grip_id, before=AROUND, after=AROUND)
    before, after = found["events_before"], found["events_after"]
    evidence = found["excerpt_events"]
    made = Conversation(found["grip"]["session_id"], [*before, *evidence, *after], evidence)
    made.words, made.source = found["grip"]["excerpt"], found["grip"]["source"]
    made.at_start, made.at_end = len(before) < AROUND, len(after) < AROUND
    return made


def of_event(client: "Client", event_id: str, words: str = "") -> Conversation:
    """The conversation around an event. Raises Missing, ClientError."""
    event = client.event(event_id)
    made = Conversation(event["session_id"], [event], [event])
    made.words, made.source = words, event["agent"]
    made.more(client, older=True)
    made.more(client, older=False)
    return made


def of_segment(client: "Client", node: dict[str, Any]) -> Conversation:
    """The conversation from where a segment begins. Raises ClientError."""
    session = node["session_ids"][0] if node["session_ids"] else ""
    page = client.events_page(
        Filter(session_id=session), since_ms=node["start_time_ms"], limit=PAGE
    )
    made = Conversation(session, page.events, page.events[:1])
    made.at_end = not page.has_more
    made.source = ", ".join(node["agents"])
    return made
