"""The model-written summarizer, which falls back to another one and says so. Derived.

Owns when a model is asked: within the day's budget, and not while it keeps failing. Whatever goes
wrong, there are words: the fallback's, under its name with ``+fallback`` behind it.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from memoryd.domain.costs import Ledger
from memoryd.domain.event import Event
from memoryd.domain.summarize import Digest, Summarizer, Summary
from memoryd.domain.toc import Level, Node
from memoryd.models.breaker import Breaker
from memoryd.models.client import Client, Failed
from memoryd.models.prompt import PROMPT_VERSION, Prompt, period_prompt, segment_prompt
from memoryd.models.reply import Unusable, read_digest, read_summary

_log = logging.getLogger(__name__)
_T = TypeVar("_T")

FALLBACK: Final = "+fallback"  # behind the name of the summarizer that stepped in
BUDGET_USED: Final = "the day's budget of tokens is used up"


class Written:
    """Has a model write. For one thread alone. Not deterministic."""

    def __init__(
        self,
        client: Client,
        fallback: Summarizer,
        ledger: Ledger,
        input_tokens: int,
        clock: Callable[[], float],
        on_error: Callable[[str, str], object],
    ) -> None:
        self.name = f"{client.name}/{PROMPT_VERSION}"
        self._client = client
        self._fallback = fallback
        self._ledger = ledger
        self._input_tokens = input_tokens
        self._clock = clock
        self._on_error = on_error
        self._breaker = Breaker()
        self._said = ""

    def segment(self, events: Sequence[Event], before: Sequence[Event]) -> Summary:
        """What happened in a segment; ``by`` says who wrote it if the model did not."""
        prompt = segment_prompt(events, before, self._input_tokens)
        words = self._ask(prompt, lambda text: read_summary(text, events))
        if words is not None:
            return words
        return self._fallback.segment(events, before)._replace(by=self._other())

    def period(self, level: Level, children: Sequence[Node]) -> Digest:
        """What happened in a period; ``by`` says who wrote it if the model did not."""
        prompt, bullets = period_prompt(level, children, self._input_tokens)
        words = self._ask(prompt, lambda text: read_digest(text, bullets)) if bullets else None
        if words is not None:
            return words
        return self._fallback.period(level, children)._replace(by=self._other())

    def pause(self) -> float:
        """For how many seconds it is of no use to ask, because the model keeps failing."""
        return self._breaker.left(self._clock())

    def close(self) -> None:
        """Let the connections go."""
        self._client.close()

    def _other(self) -> str:
        self._ledger.fell_back(self._client.name)
        return self._fallback.name + FALLBACK

    def _ask(self, prompt: Prompt, read: Callable[[str], _T]) -> _T | None:
        """What the model says, if it may be asked and what it says can be used."""
        if self.pause():
            return None
        ticket = self._ledger.reserve(self._client.name, prompt.tokens + self._client.output_tokens)
        if ticket is None:
            self._complain(BUDGET_USED)
            return None
        try:
            reply = self._client.ask(prompt)
        except Failed as failure:
            spent = prompt.tokens * failure.charged
            self._ledger.settle(ticket, spent, 0, failed=True)
            self._fail(str(failure), failure.wait_seconds)
            return None
        except Exception as error:  # noqa: BLE001 - whatever a library does, there must be words
            self._ledger.settle(ticket, prompt.tokens, 0, failed=True)
            self._fail(f"unexpected {type(error).__name__}")
            return None
        try:
            words = read(reply.text)
        except Unusable as error:
            self._ledger.settle(ticket, reply.input_tokens, reply.output_tokens, failed=True)
            self._fail(str(error))
            return None
        self._ledger.settle(ticket, reply.input_tokens, reply.output_tokens, failed=False)
        self._breaker.succeeded()
        self._said = ""
        return words

    def _fail(self, reason: str, wait_seconds: float = 0.0) -> None:
        self._breaker.failed(self._clock(), wait_seconds)
        self._complain(reason)

    def _complain(self, reason: str) -> None:
        """Say what is wrong, once until it changes."""
        if reason != self._said:
            self._said = reason
            said = f"{self._client.name}: {reason}"
            self._on_error("model", said)
            _log.warning("no words from the model", extra={"reason": said})
