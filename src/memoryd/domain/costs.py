"""Costs: what models were asked, what that took, and leave to spend. Pure.

What was spent is neither truth about the conversation nor derived from it: it cannot be made
again, and so it survives a rebuild.
"""

from typing import NamedTuple, Protocol


class Ticket(NamedTuple):
    """Leave to spend: tokens that count as spent until what a call has cost is known."""

    day: str
    model: str
    tokens: int


class Spent(NamedTuple):
    """What one model took on one day."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    reserved: int = 0  # of calls under way, or that were cut off by the end of the daemon
    failures: int = 0  # calls that gave nothing to use
    fallbacks: int = 0  # summaries that another summarizer wrote instead

    @property
    def tokens(self) -> int:
        """What counts against a budget."""
        return self.input_tokens + self.output_tokens + self.reserved

    def plus(self, other: "Spent") -> "Spent":
        """Both together, nothing below zero."""
        return Spent(*(max(0, a + b) for a, b in zip(self, other, strict=True)))


class DaySpent(NamedTuple):
    """What one model took on one local day, such as 2026-10-07."""

    day: str
    model: str
    spent: Spent


class Ledger(Protocol):
    """Where spending is written down, before and after."""

    def reserve(self, model: str, tokens: int) -> Ticket | None:
        """Count tokens as spent today, or give None if the day's budget does not hold them."""

    def settle(
        self, ticket: Ticket, input_tokens: int, output_tokens: int, *, failed: bool
    ) -> None:
        """Put what a call has cost in the place of what was reserved."""

    def fell_back(self, model: str) -> None:
        """Count a summary that another summarizer had to write."""
