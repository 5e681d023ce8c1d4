"""Anthropic's Messages API."""

from typing import Any, Final

from memoryd.domain.segment import tokens
from memoryd.models.client import Access, Reply, count
from memoryd.models.prompt import Prompt
from memoryd.models.transport import Pace, Transport

BASE_URL: Final = "https://api.anthropic.com"
KEY_ENV: Final = "ANTHROPIC_API_KEY"
_VERSION: Final = "2023-06-01"


class Anthropic:
    """A model behind the Messages API."""

    def __init__(self, access: Access, key: str, pace: Pace) -> None:
        self.name = f"anthropic/{access.model}"
        self.output_tokens = access.output_tokens
        self._access = access
        headers = {"anthropic-version": _VERSION} | ({"x-api-key": key} if key else {})
        self._transport = Transport(access.base_url or BASE_URL, headers, pace)

    def ask(self, prompt: Prompt) -> Reply:
        """Ask once. Raises Failed."""
        body = {
            "model": self._access.model,
            "max_tokens": self.output_tokens,
            "system": prompt.system,
            "messages": [{"role": "user", "content": prompt.user}],
        }
        answer = self._transport.post("/v1/messages", body, self._access.timeout_seconds)
        text = _text(answer.get("content"))
        usage = answer.get("usage")
        taken = count(
            usage, "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"
        )
        given = count(usage, "output_tokens")
        return Reply(
            text,
            prompt.tokens if taken is None else taken,
            tokens(text) if given is None else given,
        )

    def close(self) -> None:
        """Let the connections go."""
        self._transport.close()


def _text(content: Any) -> str:
    """The text blocks of an answer; thinking and other blocks are not part of it."""
    blocks = content if isinstance(content, list) else []
    texts = [b.get("text") for b in blocks if isinstance(b, dict) and b.get("type") == "text"]
    return "".join(text for text in texts if isinstance(text, str))
