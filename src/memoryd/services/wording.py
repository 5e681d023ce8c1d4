"""Turns what a summarizer says into nodes and grips, and lets nothing through without evidence.

Derived. A piece of evidence counts only if its excerpt stands in the events that it names, a
bullet only if it has evidence; that holds for every summarizer, also for one that makes things
up.
"""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Final

from memoryd.domain import ids, origin
from memoryd.domain.calendar import Calendar, Period
from memoryd.domain.event import Event
from memoryd.domain.summarize import Digest, Evidence, Summary
from memoryd.domain.toc import Bullet, Grip, Level, Node
from memoryd.services.segmenter import Piece

NAMES_LIMIT: Final = 500  # of sessions and agents that a node names, those that came first
WORDLESS: Final = Summary("", "", (), ())


def segment_node(piece: Piece, summary: Summary, summarizer: str) -> tuple[Node, list[Grip]]:
    """The node of a segment, and the grips under its bullets."""
    extent, _, events, _ = piece
    grips: dict[str, Grip] = {}
    bullets = []
    for point in summary.points:
        held = [g for e in point.evidence if (g := _grip(extent.node_id, events, e)) is not None]
        if held and point.text:
            grips |= {grip.grip_id: grip for grip in held}
            bullets.append(Bullet(point.text, _once(g.grip_id for g in held), point.weight))
    node = Node(
        node_id=extent.node_id,
        level=Level.SEGMENT,
        title=summary.title,
        summary=summary.summary,
        bullets=tuple(bullets),
        keywords=summary.keywords,
        child_ids=(),
        start_ms=events[0].time_ms,
        end_ms=events[-1].time_ms,
        version=0,
        session_ids=(events[0].session_id,),
        agents=_once(e.agent for e in events if e.agent)[:NAMES_LIMIT],
        event_count=len(events),
        summarizer=summarizer,
        provisional=bool(extent.closes_ms),
    )
    return node, list(grips.values())


def period_node(
    period: Period, children: Sequence[Node], digest: Digest, summarizer: str, calendar: Calendar
) -> Node:
    """The node of a period; its bullets keep those grips that are its children's."""
    known = {grip for child in children for bullet in child.bullets for grip in bullet.grip_ids}
    bullets = []
    for text, grip_ids, weight in digest.bullets:
        held = _once(grip for grip in grip_ids if grip in known)
        if held and text:
            bullets.append(Bullet(text, held, weight))
    start, end = calendar.bounds(period)
    return Node(
        node_id=period.node_id,
        level=period.level,
        title=digest.title,
        summary=digest.summary,
        bullets=tuple(bullets),
        keywords=digest.keywords,
        child_ids=tuple(child.node_id for child in children),
        start_ms=start,
        end_ms=end,
        version=0,
        session_ids=_once(s for c in children for s in c.session_ids)[:NAMES_LIMIT],
        agents=_once(a for c in children for a in c.agents)[:NAMES_LIMIT],
        event_count=sum(child.event_count for child in children),
        summarizer=summarizer,
        provisional=any(child.provisional for child in children),
    )


def _grip(node_id: str, events: Sequence[Event], evidence: Evidence) -> Grip | None:
    """The grip of a piece of evidence, or None if its excerpt is not there."""
    first, last, excerpt = evidence
    if not (0 <= first <= last < len(events) and excerpt):
        return None
    speaker = next((e for e in events[first : last + 1] if excerpt in e.text), None)
    if speaker is None:
        return None
    begin, end = events[first], events[last]
    digest = blake2b(digest_size=ids.ENTROPY_BYTES, person=b"memoryd grip")
    for part in (node_id, begin.event_id, end.event_id, excerpt):
        data = part.encode()
        digest.update(len(data).to_bytes(4, "big") + data)
    return Grip(
        grip_id=f"grip:{begin.time_ms}:{ids.make(begin.time_ms, digest.digest())}",
        excerpt=excerpt,
        first_event_id=begin.event_id,
        last_event_id=end.event_id,
        time_ms=begin.time_ms,
        source=origin.of_excerpt(speaker.agent, speaker.role),
        node_id=node_id,
    )


def _once(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
