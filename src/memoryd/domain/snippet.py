"""The piece of a text that shows why it was found, and where in it the words are. Pure."""

from typing import Final, NamedTuple

from memoryd.domain import analyze

WIDTH: Final = 240
_SCANNED: Final = 4_000  # characters that are looked at word by word
_LOOKED_AT: Final = 12  # places of each word that are looked at
_LONG_WORD: Final = 80
_STEM: Final = 3  # letters that a word surely shares with its stem


class Snippet(NamedTuple):
    """A piece of a text, and the parts of it that answer the question, as pairs of places."""

    text: str
    offset: int  # where the piece begins
    highlights: tuple[tuple[int, int], ...]


def snippet(text: str, wanted: frozenset[str], width: int = WIDTH) -> Snippet:
    """The piece of ``text`` that holds the most of the wanted tokens."""
    marks = _marks(text, wanted)
    if not marks:
        return Snippet(text[:width], 0, ())
    begin = _best(marks, width)
    begin = 0 if len(text) <= width else min(max(0, begin - width // 6), len(text) - width)
    begin = _word_start(text, begin)
    end = min(len(text), begin + width)
    inside = tuple((a - begin, b - begin) for a, b, _ in marks if a >= begin and b <= end)
    return Snippet(text[begin:end], begin, inside)


def _marks(text: str, wanted: frozenset[str]) -> list[tuple[int, int, frozenset[str]]]:
    """Where the wanted tokens are.

    Only words that begin like one of them are analysed; if none is found so, accents may have
    been folded, and the beginning of the text is looked at word by word.
    """
    marks: list[tuple[int, int, frozenset[str]]] = []
    behind = 0
    for place in _rough(text.lower(), wanted):
        if place < behind:
            continue
        start = max(text.rfind(" ", behind, place), text.rfind("\n", behind, place))
        start = max(start + 1, behind, place - _LONG_WORD)
        for first, last, tokens in analyze.spans(text[start : place + _LONG_WORD]):
            if start + last > place:
                behind = start + last
                if found := wanted.intersection(tokens):
                    marks.append((start + first, behind, found))
                break
    if marks or not wanted or text.isascii():
        return marks
    return [
        (first, last, found)
        for first, last, tokens in analyze.spans(text[:_SCANNED])
        if (found := wanted.intersection(tokens))
    ]


def _rough(lower: str, wanted: frozenset[str]) -> list[int]:
    """Where something stands that begins like one of the wanted words."""
    places: list[int] = []
    for token in wanted:
        stem = token[: max(_STEM, len(token) - 2)]
        place = lower.find(stem)
        for _ in range(_LOOKED_AT):
            if place < 0:
                break
            places.append(place)
            place = lower.find(stem, place + len(stem))
    return sorted(places)


def _best(marks: list[tuple[int, int, frozenset[str]]], width: int) -> int:
    """Where the window begins that holds the most different tokens."""
    best, begin = 0, marks[0][0]
    for index, (first, _, _) in enumerate(marks):
        seen: set[str] = set()
        for _, last, found in marks[index : index + 50]:
            if last > first + width - width // 6:
                break
            seen |= found
        if len(seen) > best:
            best, begin = len(seen), first
    return begin


def _word_start(text: str, place: int) -> int:
    """The beginning of the word behind a place, unless it lies far away."""
    if place == 0 or text[place - 1].isspace():
        return place
    for ahead in range(place, min(place + 20, len(text))):
        if text[ahead].isspace():
            return ahead + 1
    return place
