"""Replies: what a model answered, as far as it can be shown to be true. Pure.

A model's answer is untrusted text: it may be wrong, and the conversation may have talked it into
something. A bullet counts only if its quote stands in an event that it names, or, for a period, if
it names bullets of the nodes below; what is kept as evidence is the event's own text.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, Final

from memoryd.domain.event import Event
from memoryd.domain.segment import tokens
from memoryd.domain.summarize import Digest, Evidence, Point, Summary
from memoryd.domain.toc import Bullet
from memoryd.models.fence import STAND_IN

TITLE_LIMIT: Final = 100
SUMMARY_LIMIT: Final = 1_000
BULLET_LIMIT: Final = 240
EXCERPT_LIMIT: Final = 400
BULLETS_LIMIT: Final = 9
KEYWORDS_LIMIT: Final = 30
_KEYWORD_LIMIT: Final = 60
_GRIPS_LIMIT: Final = 8  # of one bullet of a period
_NAMED_LIMIT: Final = 20
_QUOTE_LIMIT: Final = 2_000
_QUOTE_TOKENS: Final = 3  # a shorter quote would be found anywhere
_TRIES: Final = 40
_ORNAMENT: Final = " \t\n\"'`\u201c\u201d\u2018\u2019\u2026."
_BLANK: Final = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]+")
_BRACKETS: Final = f"[<\uff1c\ufe64{STAND_IN}]"


class Unusable(Exception):
    """A reply that nothing can be taken from; says why, in words without any of the reply."""


def read_summary(text: str, events: Sequence[Event]) -> Summary:
    """The words of a segment, each bullet with its evidence. Raises Unusable."""
    content = _object(text)
    title, summary = _heading(content)
    points = []
    for rank, item in enumerate(_bullets(content)):
        said = _line(item.get("text"), BULLET_LIMIT)
        evidence = _evidence(item, events)
        if said and evidence is not None:
            points.append(Point(said, (evidence,), _weight(rank)))
    if not points:
        raise Unusable("no bullet has evidence")
    points.sort(key=lambda point: point.evidence[0].first)
    return Summary(title, summary, tuple(points), _keywords(content))


def read_digest(text: str, bullets: Sequence[Bullet]) -> Digest:
    """The words of a period; its bullets keep the grips of those they name. Raises Unusable."""
    content = _object(text)
    title, summary = _heading(content)
    kept = []
    for rank, item in enumerate(_bullets(content)):
        said = _line(item.get("text"), BULLET_LIMIT)
        named = [n - 1 for n in _numbers(item.get("from")) if 1 <= n <= len(bullets)]
        grips = tuple(dict.fromkeys(g for n in named for g in bullets[n].grip_ids))
        if said and grips:
            kept.append((min(named), Bullet(said, grips[:_GRIPS_LIMIT], _weight(rank))))
    if not kept:
        raise Unusable("no bullet has evidence")
    kept.sort(key=lambda found: found[0])
    return Digest(title, summary, tuple(bullet for _, bullet in kept), _keywords(content))


def _object(text: str) -> dict[str, Any]:
    """The first JSON object with bullets in a reply, whatever stands around it."""
    decoder = json.JSONDecoder()
    start = -1
    for _ in range(_TRIES):
        start = text.find("{", start + 1)
        if start < 0:
            break
        try:
            content, _end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        if isinstance(content, dict) and "bullets" in content:
            return content
    raise Unusable("the reply is not the JSON object that was asked for")


def _heading(content: dict[str, Any]) -> tuple[str, str]:
    title = _line(content.get("title"), TITLE_LIMIT)
    summary = _line(content.get("summary"), SUMMARY_LIMIT)
    if not title or not summary:
        raise Unusable("the reply has no title or no summary")
    return title, summary


def _bullets(content: dict[str, Any]) -> list[dict[str, Any]]:
    found = content["bullets"]
    if not isinstance(found, list):
        raise Unusable("the reply has no list of bullets")
    return [item for item in found if isinstance(item, dict)][:BULLETS_LIMIT]


def _evidence(item: dict[str, Any], events: Sequence[Event]) -> Evidence | None:
    quote = item.get("quote")
    if not isinstance(quote, str) or len(quote) > _QUOTE_LIMIT:
        return None
    for number in _numbers(item.get("events")):
        if 1 <= number <= len(events):
            excerpt = find_quote(quote, events[number - 1].text)
            if excerpt:
                return Evidence(number - 1, number - 1, excerpt)
    return None


def find_quote(quote: str, text: str) -> str:
    """The part of a text that a quote means, verbatim, or nothing.

    Blanks may differ, as may the bracket of what looked like a tag, and the quote may be wrapped.
    """
    for wanted in dict.fromkeys((quote.strip(), quote.strip(_ORNAMENT))):
        words = [word for word in _BLANK.split(wanted) if word]
        if not words:
            continue
        pattern = _BLANK.pattern.join(_literal(word) for word in words)
        found = re.search(pattern, text)
        if found is None:
            continue
        excerpt = found.group()[:EXCERPT_LIMIT].strip()
        if tokens(excerpt) >= _QUOTE_TOKENS or excerpt == text.strip():
            return excerpt
    return ""


def _literal(word: str) -> str:
    return re.escape(word).replace(STAND_IN, _BRACKETS)


def _numbers(raw: object) -> list[int]:
    values = raw if isinstance(raw, list) else [raw]
    return [n for n in values if type(n) is int][:_NAMED_LIMIT]


def _keywords(content: dict[str, Any]) -> tuple[str, ...]:
    raw = content.get("keywords")
    found = [_line(word, _KEYWORD_LIMIT) for word in raw] if isinstance(raw, list) else []
    return tuple(dict.fromkeys(word for word in found if word))[:KEYWORDS_LIMIT]


def _line(raw: object, limit: int) -> str:
    """A text of the reply on one line, with nothing that does not print; cut at a word."""
    if not isinstance(raw, str):
        return ""
    text = _BLANK.sub(" ", raw[: limit * 4].encode("utf-8", "replace").decode()).strip()
    if len(text) <= limit:
        return text
    short = text[: limit - 1]
    head, blank, _ = short.rpartition(" ")
    return (head if blank and len(head) > limit // 2 else short).rstrip() + "\u2026"


def _weight(rank: int) -> float:
    """How much a bullet matters: a model names the most important first."""
    return round(max(0.3, 1.0 - 0.1 * rank), 4)
