import base64
import os
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryd.domain.errors import Cancelled, InvalidInput, NotFound
from memoryd.domain.event import TIME_LIMIT_MS, Event, Recorded
from memoryd.services import query as query_module
from memoryd.services.paging import read_token
from memoryd.services.query import EventQuery, Filter, Query, SessionQuery
from memoryd.storage.committer import Committer
from memoryd.storage.log import Draft
from memoryd.storage.store import Store

SESSIONS = ("s", "t", "ü")


def event(number: int, time_ms: int, session: str, text: str = "") -> Event:
    """An event whose other fields follow from its number."""
    role = number % 4 + 1
    type_ = number % 8 + 1
    agent, project = ("", "a", "b")[number % 3], ("p", "q")[number % 2]
    return Event(f"e{number:05}", session, time_ms, type_, role, text, {}, agent, project, "", "")


def opened(directory: str, events: list[Event]) -> tuple[Store, Query]:
    """A store that holds the events, and a query on it."""
    store = Store(f"{directory}/data")
    if events:
        store.log.append([Draft(e, timed=True) for e in events], 1)
    return store, Query(store.log, Committer(store, lambda: 1))


def alive() -> bool:
    """Answer for a caller that waits."""
    return True


def pages(query: Query, asked: EventQuery) -> Iterator[list[Recorded]]:
    """Every page to the end."""
    while True:
        page = query.events(asked, alive)
        yield page.events
        if not page.token:
            return
        asked = asked._replace(token=page.token)


EVENTS = st.lists(
    st.tuples(st.integers(1, 30), st.sampled_from(SESSIONS), st.integers(0, 900)), max_size=40
).map(lambda rows: [event(n, t, s, "x" * size) for n, (t, s, size) in enumerate(rows)])


@settings(max_examples=40, deadline=None)
@given(
    EVENTS,
    st.integers(1, 45),
    st.sampled_from([1, 300, 1_500, 5_000, 0]),
    st.sampled_from(["", *SESSIONS, "nobody"]),
    st.tuples(st.integers(0, 31), st.integers(0, 31)),
)
def test_paging_returns_every_event_once(
    events: list[Event], limit: int, max_bytes: int, session: str, span: tuple[int, int]
) -> None:
    """Pages of any size and byte bound hold each wanted event once, in order, both ways."""
    wanted = [
        e
        for e in sorted(events, key=lambda e: (e.time_ms, e.event_id))
        if (not session or e.session_id == session)
        and e.time_ms >= span[0]
        and (not span[1] or e.time_ms <= span[1])
    ]
    with tempfile.TemporaryDirectory() as directory:
        store, query = opened(directory, events)
        for newest_first in (False, True):
            asked = EventQuery(
                from_ms=span[0],
                to_ms=span[1],
                filter=Filter(session_id=session),
                newest_first=newest_first,
                limit=limit,
                max_bytes=max_bytes,
            )
            found = list(pages(query, asked))
            got = [recorded.event for page in found for recorded in page]
            assert got == (wanted[::-1] if newest_first else wanted)
            for page in found:
                assert len(page) <= limit
                size = sum(len(r.event.text) for r in page)
                assert len(page) <= 1 or not max_bytes or size <= max_bytes
            assert all(found[:-1])
        store.close()


@pytest.fixture(scope="module")
def filled() -> Iterator[Query]:
    """A query on 240 events, one each millisecond."""
    with tempfile.TemporaryDirectory() as directory:
        events = [event(n, n + 1, SESSIONS[n % 3]) for n in range(240)]
        store, query = opened(directory, events)
        yield query
        store.close()


def ids(query: Query, asked: EventQuery) -> list[int]:
    """The numbers of the events on the first page."""
    return [int(r.event.event_id[1:]) for r in query.events(asked, alive).events]


def test_both_ends_of_a_range_belong_to_it(filled: Query) -> None:
    """From and to are inclusive, and 0 leaves an end open."""
    assert ids(filled, EventQuery(from_ms=11, to_ms=13)) == [10, 11, 12]
    assert ids(filled, EventQuery(from_ms=11, to_ms=11, newest_first=True)) == [10]
    assert ids(filled, EventQuery(to_ms=2)) == [0, 1]
    assert ids(filled, EventQuery(from_ms=239)) == [238, 239]
    assert ids(filled, EventQuery(from_ms=13, to_ms=11)) == []
    assert ids(filled, EventQuery(to_ms=TIME_LIMIT_MS, limit=1, newest_first=True)) == [239]


@pytest.mark.parametrize(
    ("wanted", "fits"),
    [
        (Filter(agent="a"), lambda e: e.agent == "a"),
        (Filter(project="q"), lambda e: e.project == "q"),
        (Filter(roles=frozenset({1, 4})), lambda e: e.role in {1, 4}),
        (Filter(types=frozenset({8})), lambda e: e.type == 8),
        (
            Filter("t", "a", "p", frozenset({1}), frozenset({5})),
            lambda e: e[1:5:2] + e[7:9] == ("t", 5, "a", "p") and e.role == 1,
        ),
        (Filter("s", roles=frozenset({2})), lambda e: e.session_id == "s" and e.role == 2),
        (Filter(agent="nobody"), lambda e: False),
    ],
)
def test_filters_leave_what_fits(filled: Query, wanted: Filter, fits: Any) -> None:
    """Each filter alone and all together leave exactly the events that fit."""
    everything = [r.event for p in pages(filled, EventQuery(limit=1_000)) for r in p]
    assert len(everything) == 240
    got = [r.event for p in pages(filled, EventQuery(filter=wanted, limit=7)) for r in p]
    expected = [e for e in everything if fits(e)]
    assert got == expected


@pytest.mark.parametrize(
    "change",
    [
        {"from_ms": 1},
        {"to_ms": 9},
        {"newest_first": True},
        {"filter": Filter(agent="a")},
        {"filter": Filter(session_id="s")},
        {"filter": Filter(roles=frozenset({1}))},
    ],
)
def test_a_token_of_another_question_is_refused(filled: Query, change: dict[str, Any]) -> None:
    """A token goes with its question, of which only limit and max_bytes may change."""
    token = filled.events(EventQuery(limit=5), alive).token
    assert ids(filled, EventQuery(limit=2, max_bytes=900, token=token)) == [5, 6]
    with pytest.raises(InvalidInput, match="continuation_token"):
        filled.events(EventQuery(token=token)._replace(**change), alive)


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=30) | st.binary(max_size=30).map(lambda b: base64.b64encode(b).decode()))
def test_garbage_is_no_token(garbage: str) -> None:
    """Whatever is no token of ours is refused as the caller's mistake."""
    if garbage:
        with pytest.raises(InvalidInput, match="continuation_token"):
            read_token(garbage, "another question")


@pytest.mark.parametrize(
    "asked",
    [
        EventQuery(limit=-1),
        EventQuery(max_bytes=-1),
        EventQuery(from_ms=-1),
        EventQuery(to_ms=TIME_LIMIT_MS + 1),
    ],
)
def test_bad_bounds_are_refused(filled: Query, asked: EventQuery) -> None:
    """Negative numbers and times out of range are refused."""
    with pytest.raises(InvalidInput, match=r"limit|max_bytes|from_|to_"):
        filled.events(asked, alive)


def test_a_page_has_100_events_unless_told(filled: Query) -> None:
    """Without a limit a page has 100 events, and never more than 1,000."""
    assert len(ids(filled, EventQuery())) == 100
    assert len(ids(filled, EventQuery(limit=2**31 - 1))) == 240


def test_a_scan_pauses_and_goes_on(filled: Query, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search for something rare answers with empty pages and a token, and misses nothing."""
    monkeypatch.setattr(query_module, "_SCAN_LIMIT", 50)
    wanted = EventQuery(from_ms=1, filter=Filter(types=frozenset({8}), agent="b", project="q"))
    found = [[int(r.event.event_id[1:]) for r in page] for page in pages(filled, wanted)]
    assert len(found) >= 5
    assert [n for page in found for n in page] == list(range(23, 240, 24))


def test_a_scan_ends_when_nobody_waits(filled: Query, monkeypatch: pytest.MonkeyPatch) -> None:
    """A caller that has gone ends the scan."""
    monkeypatch.setattr(query_module, "_ASK_EVERY", 10)
    with pytest.raises(Cancelled):
        filled.events(EventQuery(limit=200), lambda: False)


@pytest.mark.parametrize("event_id", ["", "a\nb", "x" * 257, "\ud800"])
def test_an_id_that_cannot_be_is_refused(filled: Query, event_id: str) -> None:
    """An id that no event can have is the caller's mistake, not a missing event."""
    with pytest.raises(InvalidInput, match="event_id"):
        filled.event(event_id)


def test_one_event(filled: Query) -> None:
    """An event is found by its id, and an unknown id is named."""
    assert filled.event("e00007").event.time_ms == 8
    with pytest.raises(NotFound, match="e99999"):
        filled.event("e99999")


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 25), st.integers(1, 9)), max_size=40), st.integers(1, 8))
def test_paging_returns_every_session_once(rows: list[tuple[int, int]], limit: int) -> None:
    """Pages of sessions hold each session once, most recently active first."""
    events = [event(n, time_ms, f"s{who}") for n, (who, time_ms) in enumerate(rows)]
    latest: dict[str, int] = {}
    for one in events:
        latest[one.session_id] = max(one.time_ms, latest.get(one.session_id, 0))
    with tempfile.TemporaryDirectory() as directory:
        store, query = opened(directory, events)
        got: list[str] = []
        asked = SessionQuery(limit=limit)
        while True:
            page, token = query.sessions(asked)
            assert len(page) <= limit
            got += [session for session, _ in page]
            if not token:
                break
            asked = asked._replace(token=token)
        assert got == sorted(latest, key=lambda s: (-latest[s], s))
        store.close()


def test_sessions_are_filtered(tmp_path: os.PathLike[str]) -> None:
    """Sessions are chosen by agent, project and time of activity, and tokens go with it."""
    events = [
        event(0, 10, "one")._replace(agent="a", project="p"),
        event(1, 20, "one")._replace(agent="b", project="p"),
        event(2, 30, "two")._replace(agent="b", project="q"),
    ]
    store, query = opened(os.fspath(tmp_path), events)

    def found(**asked: Any) -> list[str]:
        return [session for session, _ in query.sessions(SessionQuery(**asked))[0]]

    assert found() == ["two", "one"]
    assert found(agent="a") == ["one"]
    assert found(agent="b", project="q") == ["two"]
    assert found(since_ms=21) == ["two"]
    assert found(since_ms=20) == ["two", "one"]
    assert found(until_ms=29) == ["one"]
    assert [agent for agent, _ in query.agents()] == ["b", "a"]
    _, token = query.sessions(SessionQuery(limit=1))
    with pytest.raises(InvalidInput, match="continuation_token"):
        query.sessions(SessionQuery(limit=1, agent="b", token=token))
    store.close()


def test_tail_follows_the_order_of_writing(tmp_path: os.PathLike[str]) -> None:
    """A tail gives what is synced behind a number, filtered, until nobody listens."""
    store = Store(f"{os.fspath(tmp_path)}/data")
    committer = Committer(store, lambda: 1)
    committer.start()
    events = [event(n, 100 - n, SESSIONS[n % 3]) for n in range(9)]
    committer.append([Draft(e, timed=True) for e in events])
    query = Query(store.log, committer)
    tail = query.tail(2, Filter(session_id="t"), alive)
    assert [next(tail).sequence for _ in range(2)] == [5, 8]
    assert list(query.tail(0, Filter(), lambda: False)) == []
    committer.stop()
    store.close()
