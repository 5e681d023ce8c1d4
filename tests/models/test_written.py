import os
from collections.abc import Iterator
from zoneinfo import ZoneInfo

import pytest

from memoryd.domain.calendar import Calendar
from memoryd.domain.costs import Spent
from memoryd.domain.summarize import Summarizer
from memoryd.domain.toc import Level
from memoryd.models.breaker import Breaker
from memoryd.models.client import Failed, Reply
from memoryd.models.prompt import Prompt
from memoryd.models.written import Written
from memoryd.services.costs import Budget
from memoryd.storage.store import Store
from tests.models.words import bullet, node, reply, said
from tests.services.words import Plain

NOON = 1_790_000_000_000  # 2026-09-21 in Berlin
EVENTS = said("Why does the refresh token race?", "I take a lock in Redis.")
GOOD = reply(bullet("A lock was taken", [2], "I take a lock in Redis."))


class Model:
    """A client that answers what it is told."""

    name = "test/model"
    output_tokens = 100

    def __init__(self) -> None:
        self.answer: Reply | Exception = Reply(GOOD, 300, 50)
        self.asked: list[Prompt] = []
        self.closed = False

    def ask(self, prompt: Prompt) -> Reply:
        """Answer."""
        self.asked.append(prompt)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def close(self) -> None:
        """Note the end."""
        self.closed = True


class Desk:
    """A writer, and everything that it uses."""

    def __init__(self, store: Store, daily_tokens: int) -> None:
        self.model = Model()
        self.now_ms = NOON
        self.seconds = 0.0
        self.errors: list[str] = []
        calendar = Calendar(ZoneInfo("Europe/Berlin"))
        self.budget = Budget(store.ledger, calendar, lambda: self.now_ms, daily_tokens)
        self.written = Written(
            self.model, Plain(), self.budget, 4_000, lambda: self.seconds, self._note
        )

    def _note(self, operation: str, message: str) -> None:
        self.errors.append(f"{operation}: {message}")

    def spent(self) -> Spent:
        """What stands in the ledger for today."""
        entries = self.budget.costs(1).days
        return entries[0].spent if entries else Spent()


@pytest.fixture
def store(tmp_path: os.PathLike[str]) -> Iterator[Store]:
    """A store of its own."""
    made = Store(f"{os.fspath(tmp_path)}/data")
    yield made
    made.close()


@pytest.fixture
def desk(store: Store) -> Desk:
    """A writer with money to spend."""
    return Desk(store, 1_000_000)


def test_a_model_writes_and_is_paid(desk: Desk) -> None:
    """What the model says is taken, under its name, and what it took is written down."""
    writer: Summarizer = desk.written
    summary = writer.segment(EVENTS, [])
    assert [p.text for p in summary.points] == ["A lock was taken"]
    assert (writer.name, summary.by) == ("test/model/1", "")
    assert desk.spent() == Spent(calls=1, input_tokens=300, output_tokens=50)
    assert desk.errors == []
    desk.written.close()
    assert desk.model.closed


def test_a_model_writes_periods(desk: Desk) -> None:
    """A period's bullets are the model's, with the grips of those that they name."""
    desk.model.answer = Reply(reply({"text": "All of it", "from": [1, 2]}), 10, 5)
    digest = desk.written.period(Level.DAY, [node("a", "one", "two")])
    assert digest.bullets[0].grip_ids == ("grip:a:0", "grip:a:1")
    assert digest.by == ""


@pytest.mark.parametrize(
    "answer",
    [
        Failed("out of reach", charged=2),
        Reply("no JSON", 300, 50),
        Reply(reply(bullet("Made up", [1], "We moved to Postgres")), 300, 50),
        RuntimeError("SECRET"),
    ],
)
def test_a_failure_falls_back_and_says_so(desk: Desk, answer: Reply | Exception) -> None:
    """Whatever goes wrong, there are the fallback's words, marked; costs stay counted."""
    desk.model.answer = answer
    summary = desk.written.segment(EVENTS, [])
    assert summary.by == "plain/1+fallback"
    assert summary._replace(by="") == Plain().segment(EVENTS, [])
    digest = desk.written.period(Level.DAY, [node("a", "one")])
    assert digest.by == "plain/1+fallback"
    spent = desk.spent()
    assert (spent.calls, spent.failures, spent.fallbacks, spent.reserved) == (2, 2, 2, 0)
    assert spent.input_tokens >= 600
    assert len(desk.errors) == 1
    assert "SECRET" not in desk.errors[0]


def test_a_period_without_bullets_asks_nobody(desk: Desk) -> None:
    """Where there is nothing to name, there is nothing to ask."""
    assert desk.written.period(Level.DAY, [node("a")]).by == "plain/1+fallback"
    assert desk.model.asked == []


def test_the_budget_stops_calls(store: Store) -> None:
    """When the day's tokens are used up the model is not asked; the next day it is."""
    desk = Desk(store, 3_000)
    desk.model.answer = Reply(GOOD, 900, 100)
    wrote = [desk.written.segment(EVENTS, []).by for _ in range(8)]
    asked = len(desk.model.asked)
    assert wrote == [""] * asked + ["plain/1+fallback"] * (8 - asked)
    assert 1 <= asked <= 3
    assert desk.spent().tokens <= 3_000
    assert desk.spent().fallbacks == 8 - asked
    assert desk.errors == ["model: test/model: the day's budget of tokens is used up"]
    desk.now_ms += 24 * 3_600_000
    assert desk.written.segment(EVENTS, []).by == ""


def test_a_budget_of_nothing_asks_nobody(store: Store) -> None:
    """A budget of 0 tokens means what it says."""
    desk = Desk(store, 0)
    assert desk.written.segment(EVENTS, []).by == "plain/1+fallback"
    assert desk.model.asked == []


def test_the_ledger_survives_a_restart(tmp_path: os.PathLike[str]) -> None:
    """What was spent before a restart counts after it, also what was cut off."""
    path = f"{os.fspath(tmp_path)}/data"
    store = Store(path)
    desk = Desk(store, 3_000)
    desk.written.segment(EVENTS, [])
    assert desk.budget.reserve("test/model", 2_500) is not None
    store.close()
    store = Store(path)
    desk = Desk(store, 3_000)
    assert desk.spent() == Spent(calls=2, input_tokens=300, output_tokens=50, reserved=2_500)
    assert desk.written.segment(EVENTS, []).by == "plain/1+fallback"
    store.close()


def test_a_dead_model_is_left_alone_for_a_while(desk: Desk) -> None:
    """After three failures in a row nobody is asked until a pause is over, then once."""
    desk.model.answer = Failed("out of reach")
    for _ in range(9):
        desk.written.segment(EVENTS, [])
    assert len(desk.model.asked) == 3
    assert desk.written.pause() == 60.0
    desk.seconds += 61
    for _ in range(3):
        desk.written.segment(EVENTS, [])
    assert len(desk.model.asked) == 4
    assert desk.written.pause() == 120.0
    desk.seconds += 121
    desk.model.answer = Reply(GOOD, 1, 1)
    assert desk.written.segment(EVENTS, []).by == ""
    assert desk.written.pause() == 0.0


def test_a_provider_that_asks_for_time_gets_it() -> None:
    """One failure alone makes nobody wait, unless the provider says so; no wait is endless."""
    breaker = Breaker()
    breaker.failed(0.0)
    assert breaker.left(0.0) == 0.0
    breaker.failed(0.0, 45.0)
    assert breaker.left(5.0) == 40.0
    for _ in range(50):
        breaker.failed(100.0, 1e9)
    assert breaker.left(100.0) == 1_800.0
    breaker.succeeded()
    assert breaker.left(100.0) == 0.0


def test_nothing_is_written_down_after_the_end(desk: Desk) -> None:
    """A call that outlives the daemon's store asks for no leave and settles nothing."""
    ticket = desk.budget.reserve("test/model", 10)
    assert ticket is not None
    desk.budget.close()
    desk.budget.settle(ticket, 5, 5, failed=False)
    assert desk.budget.reserve("test/model", 10) is None
    assert desk.spent() == Spent(calls=1, reserved=10)
