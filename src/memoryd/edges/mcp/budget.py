"""Items made to fit into so many tokens. Pure.

All texts get the same room, and what short ones do not need goes to the long ones. If the room
would be too small to say anything, the last items are left out.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from memoryd.domain.segment import tokens
from memoryd.edges.mcp.items import Item

LEAST: Final = 40  # tokens of a text that still say something
_FRAME: Final = 90  # what an answer has around its items
_LONGEST_TOKEN: Final = 4  # characters of a token, at most, as tokens are counted here


class Fitted(NamedTuple):
    """The items that fit, and how many were left out and how many cut."""

    items: list[Item]
    left_out: int
    cut: int


def fit(items: Sequence[Item], budget: int) -> Fitted:
    """As many of the first items as fit, long texts cut to one length."""
    room = max(budget - _FRAME, LEAST)
    heads = [_head(item) for item in items]
    needs = [tokens(item.text[: room * _LONGEST_TOKEN]) + 1 for item in items]
    count = len(items)
    while count > 1 and _least(heads[:count], needs[:count]) > room:
        count -= 1
    share = _share(needs[:count], room - sum(heads[:count]))
    kept = [_clipped(item, share) for item in items[:count]]
    cut = sum(short is not item for short, item in zip(kept, items, strict=False))
    return Fitted(kept, len(items) - count, cut)


def _head(item: Item) -> int:
    """What all but the text of an item takes; ids and dates take twice what words do."""
    return 2 * tokens(f"{item.id}{item.kind}{item.when}{item.origin}{item.session}") + 10


def _least(heads: Sequence[int], needs: Sequence[int]) -> int:
    return sum(heads) + sum(min(need, LEAST) for need in needs)


def _share(needs: Sequence[int], room: int) -> int:
    """The most that each text may have, so that all of them fit into the room."""
    left, count = room, len(needs)
    for need in sorted(needs):
        if need * count > left:
            break
        left, count = left - need, count - 1
    return max(left // count, LEAST) if count else max(room, LEAST)


def _clipped(item: Item, most: int) -> Item:
    text = item.text
    if len(text) <= most * _LONGEST_TOKEN and tokens(text) <= most:
        return item
    length = min(len(text), most * _LONGEST_TOKEN)
    while length and tokens(text[:length]) > most:
        length = length * most // (tokens(text[:length]) + 1)
    return item._replace(text=f"{text[:length]} [cut, {len(text) - length:,} more characters]")
