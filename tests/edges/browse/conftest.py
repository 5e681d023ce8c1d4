"""A daemon with the demo's story in it, and ways to sit before the browser."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from textual.pilot import Pilot, WaitForScreenTimeout
from textual.screen import Screen
from textual.widget import Widget

from memoryd import client
from memoryd.edges.browse.app import Browser
from memoryd.edges.demo import story
from tests.faults.driver import House

SECONDS = 60
EVIL = "Look at the [bold red]markup[/] \x1b]0;owned\x07 and \u202ethe arrows"
LONG = 260  # turns of the long session, more than is read at once

Walk = Callable[["Sitting"], Awaitable[None]]


class Sitting:
    """Somebody before the browser, with a daemon of the same house."""

    def __init__(self, app: Browser, pilot: Pilot[None], house: House) -> None:
        self.app = app
        self.pilot = pilot
        self.house = house

    async def press(self, *keys: str) -> None:
        """Press keys, each when the one before has been taken."""
        for key in keys:
            await self.app._press_keys([key])
            await self._settle()

    async def types(self, words: str) -> None:
        """Type words."""
        await self.press(*("space" if sign == " " else sign for sign in words))

    async def enters(self, room: type[Screen[Any]]) -> None:
        """Wait until a room is on the screen, whole."""
        await self.until(lambda: isinstance(self.app.screen, room), room.__name__)
        await self.until(lambda: self.app.screen.is_running, room.__name__)

    async def focuses(self, *kinds: type[Widget]) -> None:
        """Wait until something has the focus."""
        await self.until(lambda: isinstance(self.app.focused, kinds), str(kinds))

    async def until(self, done: Callable[[], object], what: str = "") -> None:
        """Wait for something to come true."""
        deadline = time.monotonic() + SECONDS
        while not done():
            if time.monotonic() > deadline:
                pytest.fail(f"never came true: {what}\n{self.text}")
            await self._settle()
            await asyncio.sleep(0.02)
            self.app.screen._on_timer_update()

    async def sees(self, *words: str) -> None:
        """Wait until words are on the screen."""
        for word in words:
            await self.until(lambda: word in self.text, word)  # noqa: B023 - called at once

    async def _settle(self) -> None:
        # the pilot waits for every widget on the screen, and one that goes meanwhile never answers
        with suppress(WaitForScreenTimeout):
            await self.pilot._wait_for_screen(timeout=3)

    async def hears(self, words: str) -> None:
        """Wait until something is told in passing."""
        told = self.app._notifications
        await self.until(lambda: any(words in each.message for each in told), words)

    @property
    def text(self) -> str:
        """What is on the screen."""
        strips = self.app.screen._compositor.render_strips()
        return "\n".join(strip.text.rstrip() for strip in strips)

    def client(self) -> client.Client:
        """A connection of one's own."""
        return connect(self.house)


def connect(house: House) -> client.Client:
    """A client of the daemon of a house."""
    return client.connect(house.project)


def sit(house: House, walk: Walk, size: tuple[int, int] = (80, 24)) -> None:
    """Open the browser and walk about in it."""

    async def run() -> None:
        app = Browser(lambda: connect(house), "harbour", look="memory-dark")
        async with app.run_test(size=size) as pilot:
            await walk(Sitting(app, pilot, house))

    asyncio.run(run())


def event(text: str, session: str = "s", **more: Any) -> dict[str, Any]:
    """An event with what it needs."""
    return {"session_id": session, "role": "user", "text": text, "agent": "claude-code"} | more


def long_session() -> list[dict[str, Any]]:
    """A session that is longer than what is read at once; many turns are of one moment."""
    start = round(datetime(2025, 3, 3, 10, tzinfo=UTC).timestamp() * 1000)
    return [
        event(
            f"Turn number {place} is about the lighthouse.",
            "long",
            event_id=f"long-{place:03}",
            timestamp_ms=start + place // 80 * 1000,
            role="user" if place % 2 == 0 else "assistant",
        )
        for place in range(LONG)
    ]


def tell(house: House) -> None:
    """Write the story, the long session and an evil event into the log of a house."""
    told = story.read()
    with connect(house) as connected:
        connected.ingest(story.events(told, datetime.now().astimezone()))
        connected.ingest(long_session())
        connected.ingest([event(EVIL, "evil", timestamp_ms=1_735_732_800_000)])
        for note in story.notes(told):
            connected.note("Remember", **note)
        deadline = time.monotonic() + SECONDS
        while True:
            status = connected.status()
            worked = not status["pump_lag_events"] and not status["toc_waiting"]
            if worked and status["indexed_sequence"] >= status["sequence"]:
                return
            assert time.monotonic() < deadline, "the story was not worked in"
            time.sleep(0.05)


@contextmanager
def settled() -> Iterator[House]:
    """A house in which we live ourselves, too."""
    made = House()
    try:
        with pytest.MonkeyPatch.context() as patch:
            for name in [name for name in os.environ if name.startswith("MEMORY")]:
                patch.delenv(name)
            for name in ("HOME", "XDG_RUNTIME_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
                patch.setenv(name, made.env[name])
            yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def harbour() -> Iterator[House]:
    """A house whose daemon remembers the story."""
    with settled() as made:
        made.serve()
        tell(made)
        yield made
