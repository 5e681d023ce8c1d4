"""The browser while the log grows, and while the daemon is away."""

from collections.abc import Iterator

import pytest

from memoryd.edges.browse.talk import TalkRoom, Turn
from memoryd.edges.browse.tree import TocTree
from tests.edges.browse.conftest import Sitting, event, settled, sit
from tests.faults.driver import House


@pytest.fixture
def home() -> Iterator[House]:
    """A house of its own, whose daemon may be stopped."""
    with settled() as made:
        yield made


def say(you: Sitting, text: str, session: str = "s") -> None:
    """Have an agent say something."""
    with you.client() as connected:
        connected.ingest([event(text, session)])


def test_it_follows_what_is_written(home: House) -> None:
    """An empty memory says how to begin; then segments appear and conversations go on."""
    home.serve()

    async def walk(you: Sitting) -> None:
        await you.sees("Nothing is remembered yet", "memory demo")
        say(you, "Please repair the lamp of the lighthouse before the storm comes.")
        await you.sees("1 event in the last minute", "Please repair the lamp", "●")
        tree = you.app.screen.query_one(TocTree)
        await you.until(lambda: tree.cursor_node, "a cursor")
        say(you, "Then tell the harbour master that the ferries can run again.", "other")
        await you.until(lambda: tree.last_line == 5, "a second segment")
        await you.press("end", "enter", "o")
        await you.enters(TalkRoom)
        await you.until(lambda: len(you.app.screen.query(Turn)) == 1, "one turn")
        say(you, "And thank the crew.", "other")
        await you.sees("And thank the crew.")

    sit(home, walk)


def test_a_lost_daemon_is_told_and_found_again(home: House) -> None:
    """Without a daemon there is a banner in every room; when it comes, all is read anew."""

    async def walk(you: Sitting) -> None:
        await you.sees("is not running", "○ offline")
        for key in ("n", "t", "s", "b"):
            await you.press(key)
            await you.sees("○ offline", "trying again")
        daemon = home.serve()
        await you.sees("● live", "Nothing is remembered yet")
        assert "trying again" not in you.text
        say(you, "Please repair the lamp of the lighthouse before the storm comes.")
        await you.sees("Please repair the lamp")
        daemon.process.terminate()
        daemon.process.wait(30)
        await you.sees("○ offline")
        await you.sees("Please repair the lamp")
        home.serve()
        await you.sees("● live")
        say(you, "Then tell the harbour master that the ferries can run again.")
        await you.sees("2 events")

    sit(home, walk)
