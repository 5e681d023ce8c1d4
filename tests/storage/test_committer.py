import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from memoryd.domain.errors import DiskFull, ReadOnly, Stopping
from memoryd.domain.event import Event
from memoryd.storage import committer as committer_module
from memoryd.storage.committer import Committer
from memoryd.storage.highwater import Mark
from memoryd.storage.log import Draft
from memoryd.storage.store import Store, check_range


def draft(event_id: str) -> Draft:
    """A draft of an event."""
    return Draft(Event(event_id, "s", 5, 2, 1, "text", {}, "", "p", "", ""), timed=True)


def full() -> None:
    """Do as a full disk does."""
    raise DiskFull("the disk is full")


def until(seconds: float, done: threading.Event) -> None:
    """Wait for an event that must come."""
    assert done.wait(seconds)


def test_concurrent_appends_share_commits(
    store: Store, committer: Committer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests that come while a sync is under way share the next one."""
    sync = store.db.sync

    def slow() -> None:
        time.sleep(0.005)
        sync()

    monkeypatch.setattr(store.db, "sync", slow)
    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(lambda n: committer.append([draft(f"e{n}")])[0], range(320)))
    assert {r.sequence for r in results} == set(range(1, 321))
    assert 0 < committer.commits < 160
    assert committer.synced == 320
    assert [r.event_id for r in results] == [f"e{n}" for n in range(320)]
    assert list(check_range(store.db, store.log)) == []


def test_each_request_gets_its_own_results(committer: Committer) -> None:
    """Requests of different sizes that share a commit get back what is theirs."""

    def send(n: int) -> list[str]:
        drafts = [draft(f"e{n}-{i}") for i in range(n % 7 + 1)]
        return [r.event_id for r in committer.append(drafts)]

    with ThreadPoolExecutor(8) as pool:
        for n, got in enumerate(pool.map(send, range(60))):
            assert got == [f"e{n}-{i}" for i in range(n % 7 + 1)]


def test_a_fault_refuses_all_who_wait_and_heals(
    store: Store, committer: Committer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk refuses every waiting request and is reported once, until a sync succeeds."""
    told: list[ReadOnly | None] = []
    committer.on_fault = told.append
    with monkeypatch.context() as patch:
        patch.setattr(store.db, "sync", full)
        with ThreadPoolExecutor(8) as pool:
            waiting = [pool.submit(committer.append, [draft(f"e{n}")]) for n in range(24)]
        assert all(isinstance(w.exception(), DiskFull) for w in waiting)
        assert isinstance(committer.fault, DiskFull)
        assert len(told) == 1
        assert told[0] is not None
        assert committer.synced == 0
        assert store.highwater.mark.sequence == 0
    result = committer.append([draft("later")])[0]
    assert result.created
    assert committer.fault is None
    assert told[1:] == [None]
    assert committer.synced == store.log.tail.sequence == store.highwater.mark.sequence
    assert list(check_range(store.db, store.log)) == []


def test_a_duplicate_waits_for_the_sync_that_failed(
    store: Store, committer: Committer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An event whose sync failed is not acknowledged as known before a sync has succeeded."""
    synced: list[int] = []
    sync = store.db.sync

    def counting() -> None:
        synced.append(1)
        sync()

    with monkeypatch.context() as patch:
        patch.setattr(store.db, "sync", full)
        for _ in range(3):
            with pytest.raises(DiskFull):
                committer.append([draft("e")])
    monkeypatch.setattr(store.db, "sync", counting)
    result = committer.append([draft("e")])[0]
    assert (result.created, result.sequence) == (False, 1)
    assert synced == [1]
    assert committer.synced == 1


def test_a_known_event_needs_no_sync(committer: Committer) -> None:
    """Sending a synced event again costs no commit."""
    committer.append([draft("e")])
    before = committer.commits
    assert not committer.append([draft("e")])[0].created
    assert committer.commits == before


def test_the_disk_is_tried_without_requests(
    store: Store, committer: Committer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a fault the log comes back by itself, whatever error the tries meet meanwhile."""
    monkeypatch.setattr(committer_module, "_PROBE_SECONDS", 0.02)
    healed, tried = threading.Event(), threading.Event()
    committer.on_fault = lambda fault: None if fault else healed.set()
    advance = store.highwater.advance

    def failing(mark: Mark) -> None:
        if tried.is_set():
            advance(mark)
            return
        if threading.current_thread().name == "committer" and committer.fault:
            tried.set()
        msg = "input/output error"
        raise OSError(msg)

    monkeypatch.setattr(store.highwater, "advance", failing)
    with pytest.raises(ReadOnly):
        committer.append([draft("e")])
    until(10, tried)
    until(10, healed)
    assert committer.fault is None
    assert not committer.append([draft("e")])[0].created
    assert committer.synced == 1


def test_unexpected_errors_are_answered(
    store: Store, committer: Committer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error that nobody foresaw refuses the request, shows no content, and ends nothing."""

    def broken() -> None:
        msg = "secret"
        raise RuntimeError(msg)

    with monkeypatch.context() as patch:
        patch.setattr(store.db, "sync", broken)
        with pytest.raises(ReadOnly, match=r"\(RuntimeError\)"):
            committer.append([draft("e")])
    assert committer.append([draft("f")])[0].created


def test_waiting_ends_with_growth_or_time(committer: Committer) -> None:
    """Who waits for growth is woken by it, and otherwise by the end of the time."""
    assert committer.wait_beyond(0, 0.01) == 0
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(committer.wait_beyond, 0, 10)
        committer.append([draft("e")])
        assert waiting.result(5) == 1


def test_after_stop_nothing_is_taken(store: Store) -> None:
    """A stopped committer refuses, and stopping one that never ran does nothing."""
    committer = Committer(store, lambda: 1)
    committer.stop()
    with pytest.raises(Stopping):
        committer.append([draft("e")])
