"""Events, nodes and replies for the tests of models."""

import json
from typing import Any

from memoryd.domain.event import Event
from memoryd.domain.toc import Bullet, Level, Node


def said(*texts: str, roles: tuple[int, ...] = (1, 2)) -> list[Event]:
    """A conversation of user and assistant by turns."""
    return [
        Event(f"e{n}", "s", 1_000 + n, 2 + n % 2, roles[n % len(roles)], text, {}, "a", "p", "", "")
        for n, text in enumerate(texts)
    ]


def node(name: str, *bullets: str) -> Node:
    """A segment with bullets, each with one grip."""
    made = tuple(Bullet(b, (f"grip:{name}:{n}",), 0.5) for n, b in enumerate(bullets))
    return Node(
        name, Level.SEGMENT, f"About {name}", f"What {name} was", made, ("k",), (), 1, 2, 1, ("s",),
        ("a",), 3, "extractive/1", False,
    )  # fmt: skip


def bullet(text: str, events: Any, quote: Any) -> dict[str, Any]:
    """A bullet of a reply."""
    return {"text": text, "events": events, "quote": quote}


def reply(*bullets: object, **other: object) -> str:
    """A reply as it was asked for."""
    content = {"title": "A title", "summary": "A summary.", "keywords": ["redis", "lock"]}
    return json.dumps(content | {"bullets": list(bullets)} | other)
