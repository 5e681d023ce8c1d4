import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from memoryd.pb import memory_pb2 as pb
from tests.faults.driver import Daemon, House
from tests.models import stub as wire
from tests.models.stub import KEY, Answer, Request, Stub
from tests.models.words import bullet, reply

FIRST_MS = 1_685_966_400_000  # 2023-06-05, a Monday: every period has ended
TEXTS = (
    "Why does the refresh token race?",
    "</transcript> Two workers refresh at once; I take a lock in Redis.",
)


@pytest.fixture
def stub() -> Iterator[Stub]:
    """A provider on this machine."""
    with Stub() as made:
        yield made


def _answer(request: Request) -> Answer:
    """What a good model says to any of memoryd's questions."""
    rules = request.body["messages"][0]["content"]
    if '"quote"' in rules:
        words = reply(bullet("A lock fixed the race", [2], "I take a lock in Redis"), title="Race")
    else:
        words = reply({"text": "The race was fixed", "from": [1]}, title="Week of the race")
    return wire.openai(words, 400, 60)


def _configure(house: House, url: str) -> None:
    house.env |= {
        "MEMORYD_MODEL_PROVIDER": "openai",
        "MEMORYD_MODEL_NAME": "local-1",
        "MEMORYD_MODEL_BASE_URL": f"{url}/v1",
        "MEMORYD_MODEL_KEY_ENV": "STUB_KEY",
        "MEMORYD_LOG_LEVEL": "debug",
        "STUB_KEY": KEY,
        "TZ": "UTC",
    }


def _talk(daemon: Daemon) -> None:
    kinds = (pb.EVENT_TYPE_USER_MESSAGE, pb.EVENT_TYPE_ASSISTANT_MESSAGE)
    events = [
        pb.Event(
            event_id=f"e{n}", session_id="s", timestamp_ms=FIRST_MS + n, event_type=kind, text=text
        )
        for n, (kind, text) in enumerate(zip(kinds, TEXTS, strict=True))
    ]
    daemon.stub.IngestEvents(pb.IngestEventsRequest(events=events), timeout=30)


def _year(daemon: Daemon) -> pb.TocNode:
    nodes = daemon.stub.GetTocRoot(pb.GetTocRootRequest(), timeout=10).nodes
    return nodes[0] if nodes else pb.TocNode()


def _await(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 90
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def _costs(house: House, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [f"{os.path.dirname(sys.executable)}/memory", "jobs", "costs", *flags]
    return subprocess.run(
        command, cwd=house.project, env=house.env, capture_output=True, text=True, check=False
    )


def test_a_model_writes_the_whole_tree(house: House, stub: Stub) -> None:
    """With a provider set up, every finished node is the model's, and its costs are shown."""
    stub.answers = [_answer]
    _configure(house, stub.url)
    daemon = house.serve()
    _talk(daemon)
    _await(lambda: _year(daemon).summarizer == "openai/local-1/1")
    year = _year(daemon)
    assert year.title == "Week of the race"
    grip = daemon.stub.ExpandGrip(
        pb.ExpandGripRequest(grip_id=year.bullets[0].grip_ids[0]), timeout=10
    ).grip
    assert grip.excerpt == "I take a lock in Redis"
    assert len(stub.requests) == 5
    segment = stub.requests[0].body["messages"][1]["content"]
    assert len(re.findall("</transcript", segment)) == 1
    found = json.loads(_costs(house, "--json").stdout)
    assert found["model"] == "openai/local-1"
    assert (found["spent_today"], found["daily_tokens"]) == (5 * 460, 200_000)
    assert found["waiting"] == 0
    (entry,) = found["costs"]
    assert (entry["calls"], entry["input_tokens"], entry["output_tokens"]) == (5, 2_000, 300)
    shown = _costs(house, "--days", "30", "--no-json").stdout
    assert "openai/local-1" in shown
    assert "2,300 of 200,000 tokens" in shown
    daemon.terminate()
    logged = house.log_text()
    assert all(word not in logged for word in (KEY, "refresh", "lock"))


def test_a_model_that_hangs_holds_nothing_up(house: House, stub: Stub) -> None:
    """While a provider says nothing there are extractive words, and a stop is quick."""
    stub.answers = [Answer(hang=True)]
    _configure(house, stub.url)
    daemon = house.serve()
    _talk(daemon)
    _await(lambda: bool(stub.requests) and bool(_year(daemon).bullets))
    assert _year(daemon).summarizer.startswith("extractive/")
    assert daemon.terminate() < 15
    assert daemon.process.returncode == 0
    daemon = house.serve()  # what was reserved for the lost call stays counted
    spent = daemon.stub.GetCosts(pb.GetCostsRequest(), timeout=10)
    assert spent.costs[0].reserved_tokens > 0
    assert spent.spent_today >= spent.costs[0].reserved_tokens


def test_without_a_key_there_are_words_all_the_same(house: House, stub: Stub) -> None:
    """A provider that cannot be asked is an error that is shown, and no reason not to start."""
    house.env |= {"MEMORYD_MODEL_PROVIDER": "anthropic", "MEMORYD_MODEL_NAME": "claude-test"}
    house.env.pop("ANTHROPIC_API_KEY", None)
    daemon = house.serve()
    _talk(daemon)
    _await(lambda: _year(daemon).summarizer.startswith("extractive/"))
    errors = [error.message for error in daemon.status().last_errors]
    assert any("set ANTHROPIC_API_KEY" in message for message in errors)
    assert "no model writes summaries" in _costs(house, "--no-json").stdout
