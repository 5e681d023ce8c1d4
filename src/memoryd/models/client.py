"""What every model provider offers, and the ways in which asking one can fail. Pure."""

from typing import NamedTuple, Protocol

from memoryd.models.prompt import Prompt


class Failed(Exception):
    """A model has not answered; says why, without any of what was sent or received."""

    def __init__(self, reason: str, *, wait_seconds: float = 0.0, charged: int = 0) -> None:
        """``charged``: how many requests were sent whose cost is not known."""
        super().__init__(reason)
        self.wait_seconds = wait_seconds
        self.charged = charged


class Unready(Exception):
    """A model cannot be asked as things are set up; says what to do."""


class Reply(NamedTuple):
    """What a model answered, and what it cost."""

    text: str
    input_tokens: int
    output_tokens: int


class Client(Protocol):
    """One model of one provider."""

    name: str  # provider and model, such as "anthropic/claude-haiku"
    output_tokens: int  # the most that it may answer

    def ask(self, prompt: Prompt) -> Reply:
        """Ask once, retrying within a limit of time. Raises Failed."""

    def close(self) -> None:
        """Let the connections go."""


class Access(NamedTuple):
    """Where a model is and how long to wait for it. Holds no key."""

    model: str
    base_url: str  # without a slash at the end; checked by the settings
    timeout_seconds: float
    output_tokens: int


def count(usage: object, *names: str) -> int | None:
    """The sum of the named figures of a provider's usage record; None if the first is not there."""
    if not isinstance(usage, dict):
        return None
    found = [usage.get(name) for name in names]
    if not _is_count(found[0]):
        return None
    return sum(figure for figure in found if isinstance(figure, int) and _is_count(figure))


def _is_count(figure: object) -> bool:
    return type(figure) is int and figure >= 0
