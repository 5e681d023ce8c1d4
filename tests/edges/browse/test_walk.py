"""Every key of the browser, against a real daemon with the story of the demo in it."""

import asyncio
import time

import pytest
from textual.widgets import Input, OptionList

from memoryd.edges.browse.contents import TreeRoom
from memoryd.edges.browse.node import Bullet, NodePane
from memoryd.edges.browse.notes import NotesRoom
from memoryd.edges.browse.rooms import Help
from memoryd.edges.browse.search import SearchRoom
from memoryd.edges.browse.status import StatusRoom
from memoryd.edges.browse.talk import TalkRoom, Turn
from memoryd.edges.browse.tree import TocTree
from tests.edges.browse.conftest import LONG, SECONDS, Sitting, sit
from tests.faults.driver import House

pytestmark = pytest.mark.usefixtures("harbour")
WIDE = 60  # columns in which the node stands beside the tree


def tree_of(you: Sitting) -> TocTree:
    """The tree."""
    return you.app.screen_stack[0].query_one(TocTree)


def level(you: Sitting) -> str:
    """The level of the node under the cursor."""
    node = tree_of(you).cursor_node
    return str(node.data["level"]) if node and node.data else ""


async def at_newest_day(you: Sitting) -> None:
    """Wait until the browser is open on the newest day."""
    await you.until(lambda: level(you) == "day", "the cursor on a day")
    await you.until(lambda: you.app.screen.query(Bullet), "bullets")
    if you.app.size.width >= WIDE:  # where the node has room beside the tree
        first = you.app.screen.query(Bullet).first
        await you.until(lambda: first().region.height, "in their places")


def test_it_opens_on_the_newest_day(harbour: House) -> None:
    """Years to segments on the left with counts and marks, the day on the right, the keys below."""

    async def walk(you: Sitting) -> None:
        await at_newest_day(you)
        await you.sees("▾ ", "week ", "●", "Deleting is not switched on yet", "/ Search", "q Quit")
        await you.sees("● live")
        assert "7 events" in you.text

    sit(harbour, walk)


def test_levels_are_read_when_they_are_opened(harbour: House) -> None:
    """Left closes and climbs, right opens; what is below a year is not read before."""

    async def walk(you: Sitting) -> None:
        await at_newest_day(you)
        first = tree_of(you).root.children[0]
        assert not first.children
        for _ in range(6):
            await you.press("left")
        await you.until(lambda: level(you) == "year", "a year")
        tree_of(you).move_cursor(first)
        await you.press("right")
        await you.until(lambda: first.children, "the months of the first year")
        await you.until(lambda: first.is_expanded, "it is open")
        await you.press("enter")
        await you.until(lambda: not first.is_expanded, "it is closed")
        await you.press("enter", "j", "k", "down")
        await you.until(lambda: level(you) == "month", "the cursor on a month")

    sit(harbour, walk)


def test_from_a_segment_to_the_evidence_and_back(harbour: House) -> None:
    """Enter on a segment goes to its words, on a bullet to its excerpt in the conversation."""

    async def walk(you: Sitting) -> None:
        await at_newest_day(you)
        await you.press("down")
        await you.until(lambda: level(you) == "segment", "a segment")
        await you.press("enter")
        await you.focuses(Bullet)
        await you.press("down", "up", "enter")
        await you.enters(TalkRoom)
        await you.sees("Last point of the review", "session tidy-outbox")
        (mark,) = you.app.screen.query(".evidence")
        await you.until(lambda: mark.region.height, "the mark")
        await you.press("pagedown", "j", "k", "g", "x", "x", "escape")
        await you.enters(TreeRoom)
        await you.press("left")
        await you.focuses(TocTree)
        await you.press("right", "o")
        await you.enters(TalkRoom)
        await you.press("backspace")
        await you.enters(TreeRoom)

    sit(harbour, walk)


def test_a_bullet_with_several_grips_shows_each(harbour: House) -> None:
    """The brackets go to the other evidence of the same bullet, and around."""

    async def walk(you: Sitting) -> None:
        await at_newest_day(you)
        grips = [grip for bullet in you.app.screen.query(Bullet) for grip in bullet.grip_ids][:2]
        you.app.push_screen(TalkRoom.of_grips(grips))
        await you.sees("evidence 1 of 2")
        await you.press("right_square_bracket")
        await you.sees("evidence 2 of 2")
        await you.press("right_square_bracket")
        await you.sees("evidence 1 of 2")
        await you.press("left_square_bracket")
        await you.sees("evidence 2 of 2")

    sit(harbour, walk)


def test_a_conversation_is_read_on_at_both_ends(harbour: House) -> None:
    """From the middle of a long session one gets to its first turn and to its last."""

    async def walk(you: Sitting) -> None:
        await at_newest_day(you)
        room = TalkRoom.of_event("long-130", "Turn number 130")
        you.app.push_screen(room)
        await you.sees("Turn number 130")
        assert len(room.query(Turn)) < LONG

        async def go(key: str, turn: str) -> None:
            deadline = time.monotonic() + SECONDS
            while f"Turn number {turn} " not in you.text:
                assert time.monotonic() < deadline, you.text
                await you.press(key)
                await asyncio.sleep(0.05)

        await go("home", "0")
        await go("end", str(LONG - 1))
        await you.press("g")
        await you.sees("Turn number 130")
        ids = [turn.event["event_id"] for turn in room.query(Turn)]
        assert ids == sorted(set(ids))
        assert len(ids) == LONG

    sit(harbour, walk)


def test_search_as_you_type_and_go_there(harbour: House) -> None:
    """Results come while one types; Enter opens an event in its conversation."""

    async def walk(you: Sitting) -> None:
        await at_newest_day(you)
        await you.press("slash")
        await you.enters(SearchRoom)
        await you.types("dropped for good")
        await you.sees("found", "dropped for good")
        await you.press("down", "up", "pagedown", "pageup", "enter")
        await you.enters(TalkRoom)
        await you.sees("session outbox-design")
        await you.press("escape")
        await you.enters(SearchRoom)
        assert you.app.screen.query_one(Input).value == "dropped for good"
        await you.press("escape")
        await you.enters(TreeRoom)

    sit(harbour, walk)


def test_search_is_filtered_by_kind_agent_and_time(harbour: House) -> None:
    """F2, F3 and F4 go through the filters; what is found goes to where it belongs."""

    async def walk(you: Sitting) -> None:
        await at_newest_day(you)
        await you.press("slash")
        await you.types("outbox")
        await you.sees("found")
        await you.press("f2", "f2")
        await you.sees("kind: nodes", "day  ")
        await you.press("enter")
        await you.enters(TreeRoom)
        await you.sees("Build the outbox as decided in 004")
        await you.until(lambda: you.app.screen.query(Bullet), "its bullets")
        await you.press("slash")
        await you.types("outbox")
        await you.press("f2", "f2", "f2")
        await you.sees("kind: grips")
        await you.press("f2")
        await you.sees("kind: notes", "note ")
        await you.press("enter")
        await you.enters(NotesRoom)
        await you.sees("Never send without the key")
        await you.press("escape", "f3")
        await you.sees("agent: c")
        await you.press("f4", "f4")
        await you.sees("time: 7 days")

    sit(harbour, walk)


def test_grips_are_found_and_opened(harbour: House) -> None:
    """A grip among the results opens with its excerpt marked."""

    async def walk(you: Sitting) -> None:
        await at_newest_day(you)
        await you.press("slash")
        await you.types("idempotency")
        await you.press("f2", "f2", "f2")
        await you.sees("kind: grips")
        await you.until(lambda: "grip  " in you.text, "a grip")
        await you.press("enter")
        await you.enters(TalkRoom)
        await you.until(lambda: you.app.screen.query(".evidence"), "the evidence")

    sit(harbour, walk)


def test_the_timeline_is_shortened_lengthened_and_left_by_enter(harbour: House) -> None:
    """Arrows change the span; Enter goes to the node in the tree."""

    async def walk(you: Sitting) -> None:
        await at_newest_day(you)
        await you.press("t")
        await you.sees("the last 7 days", "by segment")
        await you.press("right")
        await you.sees("the last 30 days", "by ")
        await you.press("left", "left", "left")
        await you.sees("today")
        await you.press(*["right"] * 9)
        await you.sees("everything")
        await you.press("j", "k", "enter")
        await you.enters(TreeRoom)

    sit(harbour, walk)


def test_the_status_has_pictures_jobs_and_years(harbour: House) -> None:
    """Heatmap, bars, sparklines, the daemon and its jobs; arrows go to other years."""

    async def walk(you: Sitting) -> None:
        await at_newest_day(you)
        await you.press("s")
        await you.sees("Events per day, the last year", "Who", "claude-code", "Ingest", "■", "▁")
        await you.sees("Daemon", "rollup-day", "Jobs")
        await you.press("left", "left")
        await you.sees("2025")
        await you.press("right", "right", "right")
        await you.sees("the last year")
        await you.enters(StatusRoom)

    sit(harbour, walk, size=(120, 50))


def test_help_looks_home_and_quit(harbour: House) -> None:
    """? shows the keys, l turns light and dark, b goes back to the tree, q ends."""

    async def walk(you: Sitting) -> None:
        await at_newest_day(you)
        await you.press("question_mark")
        await you.enters(Help)
        await you.sees("timeline, notes, status")
        await you.press("escape", "l")
        await you.until(lambda: you.app.theme == "memory-light", "memory-light")
        await you.press("l")
        await you.until(lambda: you.app.theme == "memory-dark", "memory-dark")
        await you.press("n", "t", "s")
        await you.enters(StatusRoom)
        await you.until(lambda: len(you.app.screen_stack) == 2, "no room upon another")
        await you.press("s", "b")
        await you.enters(TreeRoom)
        await you.press("tab")
        await you.focuses(NodePane, Bullet)
        await you.press("escape")
        await you.focuses(TocTree)
        await you.press("q")
        await you.until(lambda: you.app._exit, "the end")

    sit(harbour, walk)


def test_the_mouse_does_what_keys_do(harbour: House) -> None:
    """A click opens a period, a bullet, a result, and turns a filter."""

    async def walk(you: Sitting) -> None:
        await at_newest_day(you)
        await you.pilot.click(Bullet)
        await you.enters(TalkRoom)
        await you.until(lambda: you.app.screen.query(Turn), "turns")
        await you.pilot.click(Turn)
        await you.press("escape", "slash")
        await you.pilot.click("#kind")
        await you.sees("kind: events")
        await you.types("outbox")
        await you.until(lambda: you.app.screen.query_one(OptionList).option_count, "results")
        await you.pilot.click(OptionList, offset=(5, 1))
        await you.enters(TalkRoom)
        await you.press("b")
        first = tree_of(you)
        await you.pilot.click(first, offset=(4, 0))
        await you.until(lambda: level(you) == "year", "a year")

    sit(harbour, walk)


def test_words_from_the_log_are_never_obeyed(harbour: House) -> None:
    """Markup and escape sequences are shown as they are, in the tree, the node, search and talk."""

    async def walk(you: Sitting) -> None:
        await at_newest_day(you)
        await you.press("slash")
        await you.types("markup")
        await you.sees("[bold red]", "[/]")
        for sign in ("\x1b", "\x07", "\u202e"):
            assert sign not in you.text
        await you.press("enter")
        await you.enters(TalkRoom)
        await you.sees("[bold red]", "␛]0;owned␇", "<U+202E>")
        await you.press("b")
        you.app.reveal("toc:day:2025-01-01")
        await you.sees("[bold red]")
        assert "\x1b" not in you.text

    sit(harbour, walk)


@pytest.mark.parametrize("size", [(80, 24), (200, 60), (40, 10)])
def test_it_fits_terminals_of_all_sizes(harbour: House, size: tuple[int, int]) -> None:
    """Every room opens without a word that runs out of its line."""

    async def walk(you: Sitting) -> None:
        await at_newest_day(you)
        for key in ("slash", "t", "n", "s", "question_mark"):
            await you.press("escape" if key != "slash" else "b", key)
            await asyncio.sleep(0.1)
            assert all(len(row) <= size[0] for row in you.text.splitlines())
            await you.press("escape")

    sit(harbour, walk, size=size)


def test_without_colours_the_choice_is_still_seen(
    harbour: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With NO_COLOR there are only the terminal's own colours, and the cursor is reversed."""
    monkeypatch.setenv("NO_COLOR", "1")

    async def walk(you: Sitting) -> None:
        await at_newest_day(you)
        segments = [
            segment for strip in you.app.screen._compositor.render_strips() for segment in strip
        ]
        assert any(segment.style and segment.style.reverse for segment in segments)
        await you.press("l", "s")
        await you.sees("█", "░")
        await you.press("n", "question_mark")

    sit(harbour, walk, size=(100, 40))
