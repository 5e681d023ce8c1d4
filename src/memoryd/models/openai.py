"""OpenAI's chat completions, which Ollama, llama.cpp, vLLM and others speak as well."""

from typing import Any, Final

from memoryd.domain.segment import tokens
from memoryd.models.client import Access, Reply, count
from memoryd.models.prompt import Prompt
from memoryd.models.transport import Pace, Transport

BASE_URL: Final = "https://api.openai.com/v1"
KEY_ENV: Final = "OPENAI_API_KEY"


class OpenAI:
    """A model behind chat completions."""

    def __init__(self, access: Access, key: str, pace: Pace) -> None:
        self.name = f"openai/{access.model}"
        self.output_tokens = access.output_tokens
        self._access = access
        headers = {"authorization": f"Bearer {key}"} if key else {}
        base_url = access.base_url or BASE_URL
        self._transport = Transport(base_url, headers, pace)
        # OpenAI's newer models refuse the old name of this limit; other servers know no other
        own = base_url == BASE_URL
        self._limit_name = "max_completion_tokens" if own else "max_tokens"

    def ask(self, prompt: Prompt) -> Reply:
        """Ask once. Raises Failed."""
        body = {
            "model": self._access.model,
            self._limit_name: self.output_tokens,
            "response_format": {"type": "json_object"},
            "messages": [
                {"role": "system", "content": prompt.system},
                {"role": "user", "content": prompt.user},
            ],
        }
        answer = self._transport.post("/chat/completions", body, self._access.timeout_seconds)
        text = _text(answer.get("choices"))
        usage = answer.get("usage")
        taken, given = count(usage, "prompt_tokens"), count(usage, "completion_tokens")
        return Reply(
            text,
            prompt.tokens if taken is None else taken,
            tokens(text) if given is None else given,
        )

    def close(self) -> None:
        """Let the connections go."""
        self._transport.close()


def _text(choices: Any) -> str:
    try:
        content = choices[0]["message"]["content"]
    except (TypeError, KeyError, IndexError):
        return ""
    return content if isinstance(content, str) else ""
