"""A summarizer for tests: plain, deterministic, every word from the events."""

from collections.abc import Sequence

from memoryd.domain.event import Event
from memoryd.domain.summarize import Digest, Evidence, Point, Summary
from memoryd.domain.toc import Level, Node


class Plain:
    """Says the first line of the longest events."""

    name = "plain/1"

    def segment(self, events: Sequence[Event], before: Sequence[Event]) -> Summary:
        """The first lines of the three longest texts, in order, and how much context there was."""
        longest = sorted(range(len(events)), key=lambda i: (-len(events[i].text), i))[:3]
        points = []
        for place in sorted(longest):
            line = events[place].text.strip().partition("\n")[0][:80]
            if line:
                weight = min(1.0, len(events[place].text) / 1000)
                points.append(Point(line, (Evidence(place, place, line),), weight))
        title = points[0].text if points else ""
        context = "|".join(e.event_id for e in before)
        return Summary(title, f"{len(events)} events after {context}", tuple(points), ("plain",))

    def period(self, level: Level, children: Sequence[Node]) -> Digest:
        """The heaviest bullets of the children."""
        bullets = [bullet for child in children for bullet in child.bullets]
        best = sorted(bullets, key=lambda b: (-b.weight, b.text, b.grip_ids))[:5]
        title = best[0].text if best else level.name
        return Digest(title, " / ".join(c.title for c in children), tuple(best), ("plain",))
