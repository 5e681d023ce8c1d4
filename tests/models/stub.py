"""A model provider on this machine: speaks the real wire formats, and misbehaves as it is told."""

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self

KEY = "sk-test-0123456789"


class Answer(NamedTuple):
    """What the provider does with one request."""

    status: int = 200
    body: bytes = b"{}"
    headers: tuple[tuple[str, str], ...] = ()
    hang: bool = False  # say nothing until the stub ends
    drop: bool = False  # close the connection without a word
    dribble: bool = False  # byte after byte, for ever


class Request(NamedTuple):
    """What came in."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class Stub:
    """Answers what was queued; when nothing is left, the last answer again."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.answers: list[Answer | Callable[[Request], Answer]] = []
        self.ended = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def next(self, request: Request) -> Answer:
        """Note a request; give its answer."""
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return answer if isinstance(answer, Answer) else answer(request)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _handler(stub: Stub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers["content-length"])
            body = json.loads(self.rfile.read(length))
            headers = {name.lower(): value for name, value in self.headers.items()}
            self._answer(stub.next(Request(self.path, headers, body)))

        def _answer(self, answer: Answer) -> None:
            if answer.hang:
                stub.ended.wait()
            if answer.hang or answer.drop:
                self.close_connection = True
                return
            length = 10_000_000 if answer.dribble else len(answer.body)
            self.send_response(answer.status)
            for name, value in answer.headers:
                self.send_header(name, value)
            self.send_header("content-length", str(length))
            self.end_headers()
            self.wfile.write(answer.body)
            while answer.dribble and not stub.ended.wait(0.02):
                try:
                    self.wfile.write(b" ")
                    self.wfile.flush()
                except OSError:
                    self.close_connection = True
                    return

        def log_message(self, *_: object) -> None:
            pass

    return Handler


def anthropic(text: str, taken: int = 100, given: int = 20) -> Answer:
    """An answer of the Messages API."""
    return _json(
        {
            "id": "msg_01",
            "type": "message",
            "role": "assistant",
            "model": "claude-test",
            "content": [{"type": "text", "text": text}],
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": {
                "input_tokens": taken,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0,
                "output_tokens": given,
            },
        }
    )


def openai(text: str | None, taken: int = 100, given: int = 20) -> Answer:
    """An answer of chat completions."""
    usage = {
        "prompt_tokens": taken,
        "completion_tokens": given,
        "total_tokens": taken + given,
    }
    message = {"role": "assistant", "content": text, "refusal": None}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    return _json(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": "test",
            "choices": [choice],
            "usage": usage,
        }
    )


def refused(status: int, kind: str, *headers: tuple[str, str]) -> Answer:
    """An error as Anthropic says it; OpenAI's has the same fields, and more."""
    error = {"type": "error", "error": {"type": kind, "message": "the prompt was: SECRET TEXT"}}
    return _json(error)._replace(status=status, headers=headers)


def _json(content: object) -> Answer:
    return Answer(
        body=json.dumps(content).encode(), headers=(("content-type", "application/json"),)
    )
