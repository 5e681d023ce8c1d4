from hypothesis import given
from hypothesis import strategies as st

from memoryd.domain.segment import tokens
from memoryd.edges.mcp.budget import LEAST, fit
from memoryd.edges.mcp.items import Item

TEXTS = st.lists(st.text(alphabet="ab \n\u4e2d", max_size=3_000), max_size=30)


def items(texts: list[str]) -> list[Item]:
    """Events with these texts."""
    return [Item(f"id{place}", "event", text=text) for place, text in enumerate(texts)]


@given(TEXTS, st.integers(200, 3_000))
def test_what_is_kept_fits(texts: list[str], budget: int) -> None:
    """The first items are kept in their order, cut but never changed, and fit if more than one."""
    fitted = fit(items(texts), budget)
    assert [item.id for item in fitted.items] == [f"id{i}" for i in range(len(fitted.items))]
    assert len(fitted.items) + fitted.left_out == len(texts)
    assert bool(fitted.items) == bool(texts)
    for item, text in zip(fitted.items, texts, strict=False):
        kept, cut, _ = item.text.partition(" [cut, ")
        assert text.startswith(kept) if cut else text == item.text
    if len(fitted.items) > 1:
        assert sum(tokens(item.text) for item in fitted.items) < budget + 10 * fitted.cut


def test_short_texts_leave_their_room_to_long_ones() -> None:
    """One long text among short ones gets what they do not need."""
    fitted = fit(items(["short", "a" * 10_000, "short"]), 1_000)
    assert fitted.left_out == 0
    assert fitted.cut == 1
    assert tokens(fitted.items[1].text) > 700


def test_what_says_nothing_is_left_out() -> None:
    """Rather than all texts cut to nothing, few are kept that say something."""
    fitted = fit(items(["a" * 1_000] * 50), 500)
    assert fitted.left_out > 0
    assert all(tokens(item.text) >= LEAST for item in fitted.items)
