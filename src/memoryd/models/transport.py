"""HTTP to one model provider: time limits, retries, and nothing followed elsewhere.

The only module that knows httpx, which it loads when one is made. Neither the key, nor what is
sent, nor what comes back is ever logged or part of an error.
"""

import json
import logging
import re
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

from memoryd.models.client import Failed

if TYPE_CHECKING:
    import httpx

_ATTEMPTS: Final = 4
_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 20.0
_CONNECT_SECONDS: Final = 10.0
_REPLY_LIMIT: Final = 4 * 1024 * 1024
_AGAIN: Final = frozenset({408, 429, 500, 502, 503, 504, 529})
_OK: Final = 200
_ERROR_KIND: Final = re.compile(r"[a-z_]{1,40}")
_LOOPBACK: Final = frozenset({"localhost", "::1"})


class Pace(NamedTuple):
    """What makes waiting testable."""

    clock: Callable[[], float]  # seconds that only grow
    now: Callable[[], float]  # seconds since 1970
    wait: Callable[[float], bool]  # waits; says whether to give up
    jitter: Callable[[], float]  # from 0 to 1


class _Again(Exception):
    """An attempt that has failed and may be repeated."""

    def __init__(self, reason: str, *, after: float | None = None, charged: bool = False) -> None:
        super().__init__(reason)
        self.after = after
        self.charged = charged


class Transport:
    """Sends JSON to one address and takes JSON back."""

    def __init__(self, base_url: str, headers: Mapping[str, str], pace: Pace) -> None:
        import httpx

        for name in ("httpx", "httpcore"):
            logging.getLogger(name).setLevel(logging.WARNING)  # below that, they log headers
        self._httpx = httpx
        self._base = base_url.rstrip("/")
        self.host = urlsplit(base_url).hostname or ""
        self._pace = pace
        here = self.host in _LOOPBACK or self.host.startswith("127.")
        self._client: httpx.Client = httpx.Client(
            headers={**headers, "content-type": "application/json"},
            follow_redirects=False,
            trust_env=not here,  # a proxy is for the way out only
        )

    def post(self, path: str, body: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """Send, and repeat what may be repeated, within about so many seconds. Raises Failed."""
        deadline = self._pace.clock() + seconds
        content = json.dumps(body).encode()
        charged = 0
        for attempt in range(_ATTEMPTS):
            try:
                return self._once(path, content, deadline)
            except _Again as failure:
                charged += failure.charged
                last = failure
            except Failed as failure:
                failure.charged += charged
                raise
            pause = self._pause(attempt) if last.after is None else last.after
            if attempt == _ATTEMPTS - 1 or self._pace.clock() + pause >= deadline:
                break
            if self._pace.wait(pause):
                break
        raise Failed(str(last), wait_seconds=last.after or 0.0, charged=charged) from None

    def close(self) -> None:
        """Let the connections go."""
        self._client.close()

    def _pause(self, attempt: int) -> float:
        """Twice as long each time, and somewhere between half and whole, so that many spread."""
        whole = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0**attempt)
        return whole * (0.5 + 0.5 * self._pace.jitter())

    def _once(self, path: str, content: bytes, deadline: float) -> dict[str, Any]:
        httpx = self._httpx
        left = max(0.001, deadline - self._pace.clock())
        timeout = httpx.Timeout(left, connect=min(left, _CONNECT_SECONDS))
        try:
            with self._client.stream(
                "POST", self._base + path, content=content, timeout=timeout
            ) as response:
                if response.status_code != _OK:
                    raise self._refusal(response, deadline)
                return _object(self._body(response, deadline))
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise _Again(f"{self.host} cannot be reached ({type(error).__name__})") from None
        except (httpx.TransportError, httpx.StreamError, httpx.DecodingError) as error:
            said = f"{self.host} has not answered ({type(error).__name__})"
            raise _Again(said, charged=True) from None

    def _body(self, response: "httpx.Response", deadline: float) -> bytes:
        content = bytearray()
        for chunk in response.iter_bytes():
            content += chunk
            if len(content) > _REPLY_LIMIT:
                raise Failed(f"{self.host} has answered too much", charged=1)
            if self._pace.clock() > deadline:
                raise Failed(f"{self.host} has taken too long to answer", charged=1)
        return bytes(content)

    def _refusal(self, response: "httpx.Response", deadline: float) -> Exception:
        status = response.status_code
        said = f"{self.host} has answered with status {status}"
        if response.is_redirect:
            return Failed(f"{said}, a redirect, which is not followed")
        if kind := _error_kind(self._body(response, deadline)):
            said = f"{said} ({kind})"
        if status in _AGAIN:
            return _Again(said, after=self._retry_after(response.headers))
        return Failed(said)

    def _retry_after(self, headers: Mapping[str, str]) -> float | None:
        """The seconds that a provider asks for, in any of the three ways to say it."""
        for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
            text = headers.get(name, "")
            if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text):
                return float(text) * unit
        try:
            at = parsedate_to_datetime(headers.get("retry-after", ""))
            return max(0.0, at.timestamp() - self._pace.now())
        except (ValueError, OverflowError):
            return None


def _object(content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Failed("the answer is not a JSON object", charged=1)
    return found


def _error_kind(content: bytes) -> str:
    """The provider's word for what is wrong; its sentence might repeat what was sent."""
    try:
        error = json.loads(content)["error"]
        words = (error.get("type"), error.get("code"))
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return ""
    known = [w for w in words if isinstance(w, str) and _ERROR_KIND.fullmatch(w)]
    return known[0] if known else ""
