import tempfile
from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryd.domain.errors import Conflict, InvalidInput, NotFound
from memoryd.domain.event import Event, Recorded
from memoryd.domain.keys import time_floor
from memoryd.domain.session import AgentStats
from memoryd.services.query import EventQuery, Query
from memoryd.storage import codec
from memoryd.storage.committer import Committer
from memoryd.storage.log import Draft, Log
from memoryd.storage.store import Store, check_range


def event(event_id: str, time_ms: int = 5, session: str = "s", **more: Any) -> Event:
    """An event of a user."""
    made = Event(event_id, session, time_ms, 2, 1, f"text {event_id}", {}, "a", "p", "", "")
    return made._replace(**more)


def write(log: Log, *events: Event) -> list[int]:
    """Append in one batch; the sequence numbers."""
    results = log.append([Draft(e, timed=True) for e in events], 1_000)
    for result in results:
        if result.error is not None:
            raise result.error
    return [result.sequence for result in results]


def test_an_event_comes_back_as_it_was(store: Store) -> None:
    """What was appended is found by its id, with its number, arrival and store."""
    sent = event("e", metadata={"k": "v"}, parent_id="x", turn_id="y")
    results = store.log.append([Draft(sent, timed=True)], 77)
    assert results[0][:3] == ("e", 1, True)
    assert store.log.get("e") == Recorded(sent, 1, 77, store.store_id)
    with pytest.raises(NotFound, match="there is no event f"):
        store.log.get("f")


def test_the_same_event_again_changes_nothing(store: Store) -> None:
    """A known event keeps its number and arrival and is not written again."""
    write(store.log, event("e"))
    before = store.log.tail
    results = store.log.append([Draft(event("e"), timed=True)], 2_000)
    assert results[0][:3] == ("e", 1, False)
    assert store.log.tail == before
    assert store.log.get("e").arrival_ms == 1_000


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"session_id": "t"}, "session_id"),
        ({"time_ms": 6}, "timestamp_ms"),
        ({"type": 3}, "event_type"),
        ({"text": "x"}, "text"),
        ({"metadata": {"k": "v"}}, "metadata"),
        ({"agent": ""}, "agent"),
        ({"turn_id": "t"}, "turn_id"),
    ],
)
def test_other_content_under_a_known_id_is_a_conflict(
    store: Store, change: dict[str, Any], name: str
) -> None:
    """An event never changes: the refusal names the field, and the others are written."""
    write(store.log, event("e"))
    drafts = [event("e")._replace(**change), event("f")]
    refused, taken = store.log.append([Draft(e, timed=True) for e in drafts], 1_000)
    assert isinstance(refused.error, Conflict)
    assert f"with another {name}:" in str(refused.error)
    assert (taken.created, taken.sequence) == (True, 2)
    assert store.log.get("e").event == event("e")


def test_a_time_that_the_daemon_gave_is_no_conflict(store: Store) -> None:
    """An event sent again without a time is the same event."""
    write(store.log, event("e", 5))
    assert store.log.append([Draft(event("e", 99), timed=False)], 1)[0].error is None


def test_one_id_twice_in_a_batch(store: Store) -> None:
    """Inside one batch the second of two equal events is known, a different one a conflict."""
    sent = [event("e"), event("e"), event("e", text="other"), event("f")]
    results = store.log.append([Draft(e, timed=True) for e in sent], 1_000)
    assert [r.created for r in results] == [True, False, False, True]
    assert [r.sequence for r in results] == [1, 1, 0, 2]
    assert isinstance(results[2].error, Conflict)
    stats = store.log.session("s")
    assert stats is not None
    assert stats.events == 2


@pytest.mark.parametrize("change", [{"text": "\ud800"}, {"metadata": {"k": "\udfff"}}])
def test_an_event_that_is_not_unicode_is_refused_alone(
    store: Store, change: dict[str, Any]
) -> None:
    """A lone surrogate is refused without a trace, and the next event is written."""
    sent = [event("e", session="bad")._replace(**change), event("f")]
    refused, taken = store.log.append([Draft(e, timed=True) for e in sent], 1_000)
    assert isinstance(refused.error, InvalidInput)
    assert taken.sequence == 1
    assert store.log.session("bad") is None
    assert list(check_range(store.db, store.log)) == []


def test_late_events_stand_at_their_time(store: Store) -> None:
    """An event that arrives late is read at its time, and last in the order of writing."""
    write(store.log, event("a", 10), event("c", 30))
    write(store.log, event("b", 20), event("aa", 10))
    assert [r.event.event_id for _, r in store.log.by_time()] == ["a", "aa", "b", "c"]
    backward = [r.event.event_id for _, r in store.log.by_time(reverse=True)]
    assert backward == ["c", "b", "aa", "a"]
    assert [r.event.event_id for r in store.log.after(0)] == ["a", "c", "b", "aa"]
    assert [r.sequence for r in store.log.after(2)] == [3, 4]
    assert store.log.span() == (10, 30)


def test_pending_counts_what_waits(store: Store) -> None:
    """The outbox tells how many events wait, and when the oldest of them was written."""
    assert store.log.pending() == (0, 0)
    store.log.append([Draft(event("a"), timed=True), Draft(event("b"), timed=True)], 50)
    store.log.append([Draft(event("c"), timed=True)], 60)
    assert store.log.pending() == (3, 50)


HISTORY = st.lists(
    st.lists(
        st.builds(
            event,
            event_id=st.integers(0, 30).map(lambda n: f"e{n}"),
            time_ms=st.integers(1, 40),
            session=st.sampled_from(["s", "t", "\u00fc", "s\u00df", "x" * 200]),
            agent=st.sampled_from(["", "a", "b"]),
            project=st.sampled_from(["p", "q"]),
        ),
        min_size=1,
        max_size=8,
    ),
    max_size=6,
)


def recount(log: Log) -> None:
    """Compare the statistics with a plain count of the events."""
    events = [recorded.event for _, recorded in log.by_time()]
    by_session, by_agent = defaultdict(list), defaultdict(list)
    for one in events:
        by_session[one.session_id].append(one)
        by_agent[one.agent].append(one)
    sessions = dict(log.sessions())
    assert set(sessions) == set(by_session)
    assert log.session_count == len(sessions)
    assert sorted(s.number for s in sessions.values()) == list(range(1, len(sessions) + 1))
    for session_id, own in by_session.items():
        stats = sessions[session_id]
        assert stats == log.session(session_id)
        times = [e.time_ms for e in own]
        assert stats[1:4] == (len(own), min(times), max(times))
        assert sorted(stats.agents) == sorted({e.agent for e in own})
        assert sorted(stats.projects) == sorted({e.project for e in own})
        assert [r.event for _, r in log.by_session(session_id)] == own
        backward = [r.event for _, r in log.by_session(session_id, reverse=True)]
        assert backward == own[::-1]
    counted = {}
    for agent, own in by_agent.items():
        times = [e.time_ms for e in own]
        met = len({e.session_id for e in own})
        counted[agent] = AgentStats(len(own), met, min(times), max(times))
    assert log.agents() == counted


@settings(max_examples=25, deadline=None)
@given(HISTORY)
def test_any_history_is_kept_and_counted(history: list[list[Event]]) -> None:
    """For any history the order, the numbers and the statistics are right, also after reopening."""
    with tempfile.TemporaryDirectory() as directory:
        store = Store(f"{directory}/data")
        first: dict[str, Event] = {}
        for batch in history:
            store.log.append([Draft(e, timed=True) for e in batch], 1_000)
            for one in batch:
                first.setdefault(one.event_id, one)
        in_order = [r.event for _, r in store.log.by_time()]
        assert in_order == sorted(first.values(), key=lambda e: (e.time_ms, e.event_id))
        assert [r.sequence for r in store.log.after(0)] == list(range(1, len(first) + 1))
        assert [r.event for r in store.log.after(0)] == list(first.values())
        assert list(check_range(store.db, store.log)) == []
        recount(store.log)
        kept = (store.log.tail, list(store.log.by_time()), store.log.pending())
        store.sync()
        store.close()
        again = Store(f"{directory}/data")
        assert (again.log.tail, list(again.log.by_time()), again.log.pending()) == kept
        recount(again.log)
        again.close()


def test_by_session_gives_only_that_session(store: Store) -> None:
    """A session's events come alone, bounded by time, and an unknown session has none."""
    write(store.log, *(event(f"e{n}", n, session="st"[n % 2]) for n in range(1, 21)))
    write(store.log, event("u", 5, session="u"))
    own = [r.event.time_ms for _, r in store.log.by_session("s")]
    assert own == list(range(2, 21, 2))
    bounded = store.log.by_session("s", time_floor(4), time_floor(11), reverse=True)
    assert [r.event.time_ms for _, r in bounded] == [10, 8, 6, 4]
    assert list(store.log.by_session("nobody")) == []


def test_a_small_range_of_a_large_log_reads_little(
    store: Store, committer: Committer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A range of 50 events in a log of 20,000 reads about 50 of them."""
    for start in range(0, 20_000, 4_000):
        drafts = [
            Draft(event(f"e{n:06}", 1_000 + n, session=f"s{n % 400}"), timed=True)
            for n in range(start, start + 4_000)
        ]
        committer.append(drafts)
    read, touched = codec.read_event, []

    def counting(value: bytes) -> Recorded:
        touched.append(1)
        return read(value)

    monkeypatch.setattr(codec, "read_event", counting)
    query = Query(store.log, committer)
    for newest_first in (False, True):
        touched.clear()
        asked = EventQuery(from_ms=11_000, to_ms=11_049, newest_first=newest_first)
        assert len(query.events(asked, lambda: True).events) == 50
        assert 50 <= len(touched) <= 55
    touched.clear()
    asked = EventQuery(filter=asked.filter._replace(session_id="s7"))
    assert len(query.events(asked, lambda: True).events) == 50
    assert 50 <= len(touched) <= 55
