"""Costs by local day: leave to spend within a daily budget, and what was spent."""

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import NamedTuple

from memoryd.domain.calendar import Calendar
from memoryd.domain.costs import DaySpent, Spent, Ticket
from memoryd.domain.errors import InvalidInput, MemorydError
from memoryd.domain.toc import Level
from memoryd.storage.ledger import Ledger

DAYS_LIMIT = 3660


class Costs(NamedTuple):
    """What was spent, newest day first, and what may be spent today."""

    days: list[DaySpent]
    today: str
    spent_today: int
    daily_tokens: int


class Writing(NamedTuple):
    """Who writes summaries, and how many wait for it."""

    budget: "Budget"
    model: str  # empty: none
    waiting: Callable[[], int]


class Budget:
    """Keeps to a daily budget of tokens. Safe to call from many threads."""

    def __init__(
        self, ledger: Ledger, calendar: Calendar, clock_ms: Callable[[], int], daily_tokens: int
    ) -> None:
        self._ledger = ledger
        self._calendar = calendar
        self._clock_ms = clock_ms
        self._daily_tokens = daily_tokens
        self._lock = threading.Lock()
        self._closed = False

    def reserve(self, model: str, tokens: int) -> Ticket | None:
        """Count tokens as spent today, or give None if that cannot be, or not be written down."""
        day = self._today()
        with self._lock:
            try:
                if self._closed or not self._ledger.reserve(day, model, tokens, self._daily_tokens):
                    return None
            except MemorydError:
                return None
        return Ticket(day, model, tokens)

    def settle(
        self, ticket: Ticket, input_tokens: int, output_tokens: int, *, failed: bool
    ) -> None:
        """Put what a call has cost in the place of what was reserved."""
        cost = Spent(
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            reserved=-ticket.tokens,
            failures=int(failed),
        )
        self._add(ticket.day, ticket.model, cost)

    def fell_back(self, model: str) -> None:
        """Count a summary that another summarizer had to write."""
        self._add(self._today(), model, Spent(fallbacks=1))

    def costs(self, days: int) -> Costs:
        """What was spent on the last so many days. Raises InvalidInput."""
        if not 1 <= days <= DAYS_LIMIT:
            raise InvalidInput(f"days {days} is out of range: it lies between 1 and {DAYS_LIMIT}")
        last = self._calendar.period(self._clock_ms(), Level.DAY).first
        first = last - timedelta(days=days - 1)
        found = list(self._ledger.days(first.isoformat(), last.isoformat()))
        today = last.isoformat()
        spent = sum(entry.spent.tokens for entry in found if entry.day == today)
        found.sort(key=lambda entry: entry.model)
        found.sort(key=lambda entry: entry.day, reverse=True)
        return Costs(found, today, spent, self._daily_tokens)

    def close(self) -> None:
        """Write nothing any more: the store is about to close. A reservation stays counted."""
        with self._lock:
            self._closed = True

    def _add(self, day: str, model: str, more: Spent) -> None:
        with self._lock:
            if self._closed:
                return
            try:
                self._ledger.add(day, model, more)
            except MemorydError:
                return  # the disk is full, say: the reservation stays counted

    def _today(self) -> str:
        return self._calendar.period(self._clock_ms(), Level.DAY).first.isoformat()
