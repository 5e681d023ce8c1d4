"""The demo's story: told so that it ends now, whatever the day."""

from datetime import UTC, datetime, timedelta

import pytest

from memoryd.edges.demo import story

NOW = datetime(2026, 11, 18, 13, 0, tzinfo=UTC)
DAY_MS = 86_400_000


@pytest.mark.parametrize("days", range(8))
def test_the_story_ends_now_and_its_friday_is_one(days: int) -> None:
    """Nothing lies in the future, last week has its share, and the quiet Friday is a Friday."""
    now = (NOW + timedelta(days=days)).astimezone()
    told = story.events(story.read(), now)
    times = [event["timestamp_ms"] for event in told]
    now_ms = round(now.timestamp() * 1000)
    assert times == sorted(times)
    assert now_ms - 15 * 60_000 < times[-1] <= now_ms
    assert times[0] > now_ms - 330 * DAY_MS
    assert sum(time > now_ms - 8 * DAY_MS for time in times) > 30
    friday = next(e for e in told if e["session_id"] == "friday-watch")
    assert datetime.fromtimestamp(friday["timestamp_ms"] / 1000).astimezone().weekday() == 4


def test_the_story_is_whole() -> None:
    """Two agents, unique ids, sessions in the order in which they refer to each other."""
    told = story.events(story.read(), NOW.astimezone())
    assert len({event["event_id"] for event in told}) == len(told) > 100
    assert {event["agent"] for event in told} == {"claude-code", "codex"}
    assert {event["role"] for event in told} == {"user", "assistant", "tool"}
    first = {event["session_id"]: event["timestamp_ms"] for event in reversed(told)}
    order = ["double-sms", "outbox-design", "outbox-build", "friday-watch", "clock-change"]
    order += ["backup-drill", "review-outbox", "wrong-numbers", "tidy-outbox"]
    assert sorted(order, key=first.__getitem__) == order
    assert all(note["content"] for note in story.notes(story.read()))
