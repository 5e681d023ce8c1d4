import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from memoryd.models import anthropic, openai
from memoryd.models.anthropic import Anthropic
from memoryd.models.client import Access, Client, Failed, Unready
from memoryd.models.key import read_key
from memoryd.models.openai import OpenAI
from memoryd.models.prompt import Prompt
from memoryd.models.transport import Pace
from tests.models import stub as wire
from tests.models.stub import KEY, Answer, Stub

PROMPT = Prompt("the rules", "the fenced text")
NOW = 1_790_000_000.0


class Time:
    """A clock that only waiting moves."""

    def __init__(self) -> None:
        self.waited: list[float] = []
        self.stopping = False

    def pace(self) -> Pace:
        """What a client gets."""
        return Pace(lambda: sum(self.waited), lambda: NOW, self.wait, lambda: 1.0)

    def wait(self, seconds: float) -> bool:
        """Note how long somebody wanted to wait."""
        self.waited.append(seconds)
        return self.stopping


@pytest.fixture
def stub() -> Iterator[Stub]:
    """A provider on this machine."""
    with Stub() as made:
        yield made


@pytest.fixture
def clock() -> Time:
    """A clock of its own."""
    return Time()


@pytest.fixture(params=[Anthropic, OpenAI])
def client(request: Any, stub: Stub, clock: Time) -> Iterator[Client]:
    """A client of either provider."""
    make: Callable[..., Client] = request.param
    made = make(Access("test-1", stub.url, 30.0, 500), KEY, clock.pace())
    yield made
    made.close()


def _good(client: Client, text: str = "hello") -> Answer:
    return wire.anthropic(text) if isinstance(client, Anthropic) else wire.openai(text)


def _failure(client: Client) -> Failed:
    with pytest.raises(Failed) as caught:
        client.ask(PROMPT)
    said = str(caught.value)
    assert KEY not in said
    assert "SECRET" not in said
    return caught.value


def test_anthropic_is_asked_as_it_wants_to_be(stub: Stub, clock: Time) -> None:
    """The Messages API gets its headers and its body; text and usage come back."""
    stub.answers = [wire.anthropic("words", 123, 45)]
    client = Anthropic(Access("claude-test", stub.url, 30.0, 500), KEY, clock.pace())
    assert client.ask(PROMPT) == ("words", 123, 45)
    assert client.name == "anthropic/claude-test"
    client.close()
    (request,) = stub.requests
    assert request.path == "/v1/messages"
    assert request.headers["x-api-key"] == KEY
    assert request.headers["anthropic-version"] == "2023-06-01"
    assert request.headers["content-type"] == "application/json"
    assert request.body == {
        "model": "claude-test",
        "max_tokens": 500,
        "system": "the rules",
        "messages": [{"role": "user", "content": "the fenced text"}],
    }


def test_openai_is_asked_as_it_wants_to_be(stub: Stub, clock: Time) -> None:
    """Chat completions get their headers and their body; text and usage come back."""
    stub.answers = [wire.openai("words", 123, 45)]
    client = OpenAI(Access("qwen3:8b", stub.url + "/v1", 30.0, 500), KEY, clock.pace())
    assert client.ask(PROMPT) == ("words", 123, 45)
    client.close()
    (request,) = stub.requests
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body == {
        "model": "qwen3:8b",
        "max_tokens": 500,
        "response_format": {"type": "json_object"},
        "messages": [
            {"role": "system", "content": "the rules"},
            {"role": "user", "content": "the fenced text"},
        ],
    }


def test_a_local_model_needs_no_key(stub: Stub, clock: Time) -> None:
    """Without a key no header is sent that would hold one."""
    for make in (Anthropic, OpenAI):
        stub.answers = [wire.openai("x")]
        client = make(Access("m", stub.url, 30.0, 500), "", clock.pace())
        client.ask(PROMPT)
        client.close()
    assert not any({"authorization", "x-api-key"} & set(r.headers) for r in stub.requests)


def test_cached_input_counts(stub: Stub, clock: Time) -> None:
    """What was read from or written to a cache is input too."""
    usage = b'{"input_tokens": 5, "cache_read_input_tokens": 7, "output_tokens": 2}'
    body = b'{"content": [{"type": "thinking"}, {"type": "text", "text": "x"}], "usage": %s}'
    stub.answers = [Answer(body=body % usage)]
    client = Anthropic(Access("m", stub.url, 30.0, 500), KEY, clock.pace())
    assert client.ask(PROMPT) == ("x", 12, 2)
    client.close()


@pytest.mark.parametrize("body", [b"{}", b'{"content": 1, "choices": [], "usage": {"x": -1}}'])
def test_a_provider_that_counts_nothing_is_counted(client: Client, stub: Stub, body: bytes) -> None:
    """Without usage the tokens are estimated, so that a budget holds all the same."""
    stub.answers = [Answer(body=body)]
    assert client.ask(PROMPT) == ("", PROMPT.tokens, 0)


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 529])
def test_what_may_pass_is_tried_again(client: Client, stub: Stub, clock: Time, status: int) -> None:
    """After an error that may pass, the same is sent again, later each time."""
    stub.answers = [*[wire.refused(status, "overloaded_error")] * 3, _good(client)]
    assert client.ask(PROMPT).text == "hello"
    assert clock.waited == [1.0, 2.0, 4.0]
    assert [r.body for r in stub.requests] == [stub.requests[0].body] * 4


def test_it_is_not_tried_for_ever(client: Client, stub: Stub, clock: Time) -> None:
    """After four attempts the failure stands; it says what the provider called it."""
    stub.answers = [wire.refused(500, "api_error")]
    failure = _failure(client)
    assert str(failure) == "127.0.0.1 has answered with status 500 (api_error)"
    assert (failure.charged, len(stub.requests)) == (0, 4)


@pytest.mark.parametrize(
    ("header", "value", "seconds"),
    [
        ("retry-after", "7", 7.0),
        ("retry-after-ms", "1500", 1.5),
        ("retry-after", "Mon, 21 Sep 2026 14:13:31 GMT", 11.0),
        ("retry-after", "soon", 1.0),
        ("retry-after", "-5", 1.0),
    ],
)
def test_retry_after_is_honoured(
    client: Client, stub: Stub, clock: Time, header: str, value: str, seconds: float
) -> None:
    """A provider that says how long to wait is waited for, in any of its ways to say it."""
    stub.answers = [wire.refused(429, "rate_limit_error", (header, value)), _good(client)]
    client.ask(PROMPT)
    assert clock.waited == [seconds]


def test_a_long_wait_is_left_to_the_caller(client: Client, stub: Stub, clock: Time) -> None:
    """A wait beyond the time limit is not begun; the failure says how long it would be."""
    stub.answers = [wire.refused(429, "rate_limit_error", ("retry-after", "3600"))]
    assert _failure(client).wait_seconds == 3600.0
    assert clock.waited == []
    assert len(stub.requests) == 1


def test_stopping_ends_the_waiting(client: Client, stub: Stub, clock: Time) -> None:
    """When the daemon stops, nothing is tried again."""
    clock.stopping = True
    stub.answers = [wire.refused(500, "api_error")]
    _failure(client)
    assert len(stub.requests) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413])
def test_what_will_not_pass_is_not_tried_again(client: Client, stub: Stub, status: int) -> None:
    """A refusal that would come again is final at once."""
    stub.answers = [wire.refused(status, "Not A Kind: SECRET")]
    assert str(_failure(client)) == f"127.0.0.1 has answered with status {status}"
    assert len(stub.requests) == 1


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_no_redirect_is_followed(client: Client, stub: Stub, status: int) -> None:
    """The key and the text go to the configured address and nowhere else."""
    with Stub() as other:
        other.answers = [Answer()]
        stub.answers = [Answer(status, headers=(("location", f"{other.url}/steal"),))]
        assert "not followed" in str(_failure(client))
        assert other.requests == []
    assert len(stub.requests) == 1


@pytest.mark.parametrize("body", [b"", b"<html>", b"[1]", b'{"a":' * 50_000, b"\xff\xfe"])
def test_an_answer_that_is_no_json_is_a_failure(client: Client, stub: Stub, body: bytes) -> None:
    """An answer in another form is refused, and counts as charged."""
    stub.answers = [Answer(body=body)]
    assert _failure(client).charged == 1


def test_an_endless_answer_is_cut_off(client: Client, stub: Stub) -> None:
    """An answer may not fill the memory."""
    stub.answers = [Answer(body=b" " * (5 * 1024 * 1024))]
    assert "too much" in str(_failure(client))


def test_a_dropped_connection_is_tried_again(client: Client, stub: Stub) -> None:
    """A connection that ends without an answer may have cost something, and is tried again."""
    stub.answers = [Answer(drop=True), Answer(drop=True), _good(client)]
    assert client.ask(PROMPT).text == "hello"


def test_a_dead_address_is_a_failure(clock: Time) -> None:
    """Where nobody listens, nothing was sent and nothing charged."""
    with Stub() as gone:
        url = gone.url
    for make in (Anthropic, OpenAI):
        client = make(Access("m", url, 30.0, 500), KEY, clock.pace())
        failure = _failure(client)
        assert "cannot be reached" in str(failure)
        assert failure.charged == 0
        client.close()


@pytest.mark.parametrize("answer", [Answer(hang=True), Answer(dribble=True)])
@pytest.mark.parametrize("make", [Anthropic, OpenAI])
def test_a_provider_that_hangs_is_left(
    stub: Stub, answer: Answer, make: Callable[..., Client]
) -> None:
    """Neither silence nor one byte after another can hold a summary up for ever."""
    import time

    stub.answers = [answer]
    pace = Pace(time.monotonic, time.time, lambda _seconds: False, lambda: 0.0)
    client = make(Access("m", stub.url, 0.3, 500), KEY, pace)
    assert _failure(client).charged >= 1
    client.close()


def test_nothing_is_logged(client: Client, stub: Stub, caplog: pytest.LogCaptureFixture) -> None:
    """Neither key nor text stands in any log, at any level."""
    caplog.set_level(logging.DEBUG)
    stub.answers = [wire.refused(500, "api_error"), _good(client, "SECRET WORDS")]
    client.ask(PROMPT)
    logged = "".join(f"{r.getMessage()}{vars(r)}" for r in caplog.records)
    assert all(word not in logged for word in (KEY, "SECRET", "fenced text"))
    assert KEY not in repr(vars(client))


def test_a_key_comes_from_a_private_file_or_the_environment(tmp_path: Any) -> None:
    """A file that is named wins; one that others may read is refused; the key is never shown."""
    path = os.fspath(tmp_path / "key")
    with open(path, "w", encoding="ascii") as file:
        file.write(KEY + "\n")
    os.chmod(path, 0o644)
    with pytest.raises(Unready, match="others may read") as caught:
        read_key(path, "X", {})
    assert KEY not in str(caught.value)
    os.chmod(path, 0o600)
    assert read_key(path, "X", {"X": "other"}) == KEY
    assert read_key("", "X", {"X": f" {KEY} "}) == KEY
    assert read_key("", "X", {}) == ""
    for wrong in (os.fspath(tmp_path), f"{path}.gone"):
        with pytest.raises(Unready):
            read_key(wrong, "X", {"X": KEY})
    with pytest.raises(Unready, match="one line") as caught:
        read_key("", "X", {"X": "two\nlines"})
    assert "two" not in str(caught.value)


def test_nothing_of_models_is_loaded_until_one_is_set_up() -> None:
    """A daemon without a model pays neither time nor memory for it."""
    code = (
        "import sys, memoryd.daemon, memoryd.writing, memoryd.scheduler\n"
        "print([m for m in sys.modules if m.startswith(('httpx', 'memoryd.models'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_usual_addresses_are_encrypted() -> None:
    """What is not set goes to the provider itself."""
    assert anthropic.BASE_URL.startswith("https://")
    assert openai.BASE_URL.startswith("https://")
