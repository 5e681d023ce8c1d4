"""The conversations that everybody is given, and what they are asked: the same in every run."""

import itertools
import json
import random
import time
from collections.abc import Iterator
from typing import Final, NamedTuple

STEP_MS: Final = 60_000
SESSION: Final = 200  # events
DAY_MS: Final = 86_400_000
_HOUR_MS: Final = 3_600_000
AGENTS: Final = ("claude-code", "codex", "gemini")
ROLES: Final = ("user", "assistant", "tool")
ASKED: Final = 60  # questions of each kind

_LETTERS: Final = "bcdfghklmnprstvz"
_VOWELS: Final = "aeiou"
_VOCABULARY: Final = 60_000
_LENGTHS: Final = (4, 12, 30, 60, 90, 120, 250)  # words in an event
_RARE: Final = slice(15_000, 30_000)
_COMMON: Final = slice(60, 260)


class Said(NamedTuple):
    """One event, as plain values."""

    event_id: str
    session_id: str
    time_ms: int
    role: str
    agent: str
    text: str

    def line(self) -> str:
        """The event as a line of a transcript."""
        return json.dumps(self._asdict()) + "\n"


class Questions(NamedTuple):
    """What is searched for: texts of a few words each."""

    rare: list[str]
    common: list[str]
    asked: list[str]


class Corpus:
    """Events of made-up words that are as frequent as words are in English; the last is an hour old."""

    def __init__(self, total: int) -> None:
        self._start_ms = time.time_ns() // 1_000_000 - total * STEP_MS - _HOUR_MS
        chance = random.Random(7)
        made: dict[str, None] = {}
        while len(made) < _VOCABULARY:
            syllables = chance.choice((1, 2, 2, 3, 3))
            word = "".join(
                chance.choice(_LETTERS) + chance.choice(_VOWELS) for _ in range(syllables)
            )
            made[word + chance.choice(_LETTERS)] = None
        self._words = list(made)
        self._shares = list(itertools.accumulate(1 / (n + 8) for n in range(_VOCABULARY)))

    def events(self, first: int, count: int) -> Iterator[Said]:
        """So many events from a number on."""
        chance = random.Random(f"from {first}")
        for number in range(first, first + count):
            words = chance.choices(self._words, cum_weights=self._shares, k=chance.choice(_LENGTHS))
            yield Said(
                event_id=f"event-{number:08}",
                session_id=session(number),
                time_ms=self.time_ms(number),
                role=ROLES[number % len(ROLES)],
                agent=AGENTS[number // SESSION % len(AGENTS)],
                text=" ".join(words),
            )

    def time_ms(self, number: int) -> int:
        """The time of an event's number."""
        return self._start_ms + number * STEP_MS

    def day(self, number: int) -> tuple[int, int]:
        """First and last moment of the day in which an event lies."""
        start = self.time_ms(number) // DAY_MS * DAY_MS
        return start, start + DAY_MS - 1

    def questions(self) -> Questions:
        """One rare word; three common ones; and a question of six telling words."""
        chance = random.Random(11)
        rare, common = self._words[_RARE], self._words[_COMMON]
        telling = self._words[_COMMON.stop : _RARE.start]
        weights = [1 / (n + 8) for n in range(_COMMON.stop, _RARE.start)]
        return Questions(
            rare=chance.sample(rare, ASKED),
            common=[" ".join(chance.sample(common, 3)) for _ in range(ASKED)],
            asked=[" ".join(chance.choices(telling, weights, k=6)) for _ in range(ASKED)],
        )


def session(number: int) -> str:
    """The session of an event's number."""
    return f"session-{number // SESSION:06}"
