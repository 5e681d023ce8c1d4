"""Secrets and private words out of a text, before anything is stored. Pure.

Owns the replacing; what a secret looks like is in `formats` and `contexts`. A secret becomes
``[redacted:rule]``. Redacting twice is redacting once: what is found is replaced until nothing
is, and a mark is never taken for a secret.
"""

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from operator import itemgetter
from typing import Any, Final, NamedTuple

from ahocorasick_rs import BytesAhoCorasick, Implementation

from memoryd.domain.contexts import CONTEXTS
from memoryd.domain.errors import InvalidInput
from memoryd.domain.formats import FORMATS
from memoryd.domain.rule import Rule, compiled, pattern_of, rule_from_dict

RULES: Final = (*FORMATS, *CONTEXTS)
PRIVATE: Final = "private"

_ROUNDS: Final = 20
_TRIES: Final = 8
_LOOK: Final = 64  # texts that are looked at together
_MARK: Final = re.compile(rb"\[redacted:[a-z0-9-]{1,64}\]")
_TAG: Final = re.compile(rb"(?i)<(/?)private(?:\s[^<>]{0,200})?>")
_SETTINGS: Final = frozenset({"rules", "allow"})
_DEPTH: Final = 200
_TOP_BITS, _INNER = 0xC0, 0x80  # what the bytes of a character behind its first begin with

_Hit = tuple[int, int, int]  # which keyword, its start and end
_Span = tuple[int, int]


class Redacted(NamedTuple):
    """A text without its secrets, and how many of each kind it had."""

    text: str
    counts: dict[str, int]


class RedactedValue(NamedTuple):
    """A JSON-like value without its secrets, and how many of each kind it had."""

    value: Any
    counts: dict[str, int]


class Found(NamedTuple):
    """A secret: where it stands in the UTF-8 bytes of a text, and the rule that knows it."""

    start: int
    end: int
    rule: str


class Redactor:
    """Finds and replaces secrets. Made once, used from many threads."""

    def __init__(
        self, extra_rules: Iterable[Rule] = (), allow: Iterable[bytes] = (), *, once: bool = False
    ) -> None:
        """``extra_rules`` come before the built-in ones; a secret that ``allow`` finds stays.

        ``once`` is for whoever looks at one text and ends: made sooner, and slower in long ones.
        """
        self._rules = (*extra_rules, *RULES)
        self._allow = [compiled(pattern) for pattern in allow]
        self._always = [n for n, rule in enumerate(self._rules) if not rule.keywords]
        users: dict[bytes, list[int]] = {b"<private": []}
        for number, rule in enumerate(self._rules):
            for keyword in rule.keywords:
                users.setdefault(keyword, []).append(number)
        self._users = list(users.values())
        # a megabyte of memory, and three times as fast as the default; but it takes time to make
        kind = Implementation.NoncontiguousNFA if once else Implementation.DFA
        self._keywords = BytesAhoCorasick(list(users), implementation=kind)

    def redact(self, text: str) -> Redacted:
        """The text with every secret replaced."""
        data, counts = self._clean(text.encode("utf-8", "surrogatepass"))
        if not counts:
            return Redacted(text, counts)
        return Redacted(data.decode("utf-8", "surrogatepass"), counts)

    def redact_value(self, value: Any) -> RedactedValue:
        """A value of dicts, lists and texts with every secret replaced, in its keys too."""
        counts: dict[str, int] = {}
        if isinstance(value, dict) and not self._always:
            try:  # the usual case, metadata: one look for all of it
                flat = joined(value)
            except TypeError:
                flat = ""
            if flat and not self._hits(flat.encode("utf-8", "surrogatepass")):
                return RedactedValue(value, counts)
        return RedactedValue(self._walk(value, counts, 0), counts)

    def suspects(self, texts: Sequence[str]) -> Collection[int]:
        """Which of the texts may hold a secret: their places. `redact` leaves all others alone.

        One look for many texts costs less than half of a look at each.
        """
        if self._always:
            return range(len(texts))
        places: set[int] = set()
        for first in range(0, len(texts), _LOOK):
            data = [text.encode("utf-8", "surrogatepass") for text in texts[first : first + _LOOK]]
            hits = self._hits(b"\n".join(data))
            if hits:
                ends = [*accumulate(len(text) + 1 for text in data)]
                places.update(first + bisect_right(ends, start) for _, start, _ in hits)
        return places

    def find(self, text: str) -> list[Found]:
        """The secrets of a text that is not redacted yet, in order."""
        return self._find(text.encode("utf-8", "surrogatepass"))

    def _clean(self, data: bytes) -> tuple[bytes, dict[str, int]]:
        counts: dict[str, int] = {}
        for _ in range(_ROUNDS):
            found = self._find(data)
            if not found:
                break
            parts, last = [], 0
            for start, end, rule in found:
                parts += [data[last:start], b"[redacted:%s]" % rule.encode()]
                counts[rule] = counts.get(rule, 0) + 1
                last = end
            data = b"".join((*parts, data[last:]))
        return data, counts

    def _find(self, data: bytes) -> list[Found]:
        hits = self._hits(data)
        if not hits and not self._always:
            return []
        found = _private(data) if any(h[0] == 0 for h in hits) else []
        ranks = {PRIVATE: -1}
        marks = [m.span() for m in _MARK.finditer(data)]
        for number, start, end in self._candidates(data, hits, marks):
            rule = self._rules[number]
            ranks.setdefault(rule.id, number)
            if _marked((start, end), marks):
                continue
            if not any(pattern.search(data[start:end]) for pattern in self._allow):
                found.append(Found(start, end, rule.id))
        return _merged(data, found, ranks) if found else []

    def _hits(self, data: bytes) -> list[_Hit]:
        return self._keywords.find_matches_as_indexes(data.lower(), overlapping=True)

    def _candidates(
        self, data: bytes, hits: Sequence[_Hit], marks: Sequence[_Span]
    ) -> Iterator[tuple[int, int, int]]:
        """Every place that a rule takes for a secret: the rule's number, start and end."""
        free = set(self._always)
        places: dict[int, list[int]] = {}
        for keyword, place, _ in hits:
            if marks and _marked((place, place), marks):
                continue
            for number in self._users[keyword]:
                if self._rules[number].back is None:
                    free.add(number)
                else:
                    places.setdefault(number, []).append(place)
        for number, found in places.items():
            for span in _at(self._rules[number], data, found):
                yield number, *span
        for number in free:
            rule = self._rules[number]
            for match in compiled(rule.pattern).finditer(data):
                found_span = rule.secret(match)
                if found_span:
                    yield number, *found_span

    def _walk(self, value: Any, counts: dict[str, int], depth: int) -> Any:
        if depth > _DEPTH:
            raise InvalidInput(f"the value is nested deeper than {_DEPTH} levels")
        if isinstance(value, str):
            return self._counted(value, counts)
        if isinstance(value, Mapping):
            result: dict[Any, Any] = {}
            for key, item in value.items():
                name = self._walk(key, counts, depth)
                while name in result:
                    name = f"{name}'"
                known = isinstance(key, str) and isinstance(item, str)
                inner = self._under_name(key, item, counts) if known else item
                result[name] = self._walk(inner, counts, depth + 1)
            return result
        if isinstance(value, list | tuple):
            return [self._walk(item, counts, depth + 1) for item in value]
        return value

    def _counted(self, text: str, counts: dict[str, int]) -> str:
        clean, found = self.redact(text)
        for rule, count in found.items():
            counts[rule] = counts.get(rule, 0) + count
        return clean

    def _under_name(self, name: str, text: str, counts: dict[str, int]) -> str:
        """The text of a key, judged with its key: a password is known by nothing else."""
        head = f'"{name}": "'.encode("utf-8", "surrogatepass")
        if not self._hits(head):
            return text
        data = text.encode("utf-8", "surrogatepass")
        for start, end, rule in reversed(self._find(head + data + b'"')):
            if start >= len(head) and end <= len(head) + len(data):
                first, last = start - len(head), end - len(head)
                data = data[:first] + b"[redacted:%s]" % rule.encode() + data[last:]
                counts[rule] = counts.get(rule, 0) + 1
        return data.decode("utf-8", "surrogatepass")


def joined(pairs: Mapping[str, str]) -> str:
    """Names and values as one text, in the form in which rules know a name.

    Raises TypeError if one of them is no text.
    """
    return "\n".join(['"' + name + '": "' + text + '"' for name, text in pairs.items()])


def redactor_from(config: Mapping[str, Any]) -> Redactor:
    """The redactor with a user's ``rules`` and ``allow``, from parsed TOML. Raises InvalidInput."""
    for name in config:
        if name not in _SETTINGS:
            raise InvalidInput(f"redaction key {name!r} is not known: known are rules and allow")
    rules, allow = config.get("rules", []), config.get("allow", [])
    if not isinstance(rules, list):
        raise InvalidInput("rules must be a list of tables: begin each with [[rules]]")
    if not isinstance(allow, list):
        raise InvalidInput("allow must be a list of regular expressions")
    patterns = [pattern_of(raw, f"allow[{n}]") for n, raw in enumerate(allow)]
    return Redactor([rule_from_dict(raw) for raw in rules], patterns)


def _at(rule: Rule, data: bytes, places: Iterable[int]) -> Iterator[_Span]:
    """The secrets that a rule finds at the places of its keywords."""
    pattern, back = compiled(rule.pattern), rule.back or 0
    done = dull = tries = 0
    for place in places:
        begin = place - back
        match = pattern.match(data, begin) if begin >= done else None
        if match is None:
            continue
        span = rule.secret(match)
        if span:
            yield span
        # a secret may stand in what is none as a whole, but it is not looked for without end
        tries = tries + 1 if begin < dull else 0
        dull = match.end()
        if span or not rule.check or tries == _TRIES:
            done = match.end()


def _marked(span: _Span, marks: Sequence[_Span]) -> bool:
    """Whether a span begins in a mark: then it has been redacted already."""
    place = bisect_right(marks, span[0], key=itemgetter(0)) - 1
    return place >= 0 and span[0] < marks[place][1]


def _private(data: bytes) -> list[Found]:
    """What stands between private tags; an open one reaches to the end, inner ones do not count."""
    found, depth, begin = [], 0, 0
    for tag in _TAG.finditer(data):
        if not tag[1]:
            begin = begin if depth else tag.start()
            depth += 1
        elif depth:
            depth -= 1
            if not depth:
                found.append(Found(begin, tag.end(), PRIVATE))
    if depth:
        found.append(Found(begin, len(data), PRIVATE))
    return found


def _merged(data: bytes, found: list[Found], ranks: Mapping[str, int]) -> list[Found]:
    """Spans that overlap as one, named by the first rule of the table, on whole characters."""
    merged: list[Found] = []
    for start, end, rule in sorted(found):
        span = Found(_edge(data, start, -1), _edge(data, end, 1), rule)
        if merged and span.start < merged[-1].end:
            last = merged.pop()
            name = min(last.rule, rule, key=ranks.__getitem__)
            span = Found(last.start, max(span.end, last.end), name)
        merged.append(span)
    return merged


def _edge(data: bytes, place: int, step: int) -> int:
    """The nearest place in that direction that is not within a character."""
    while 0 < place < len(data) and data[place] & _TOP_BITS == _INNER:
        place += step
    return place
