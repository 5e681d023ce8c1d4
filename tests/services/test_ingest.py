import os
from collections.abc import Iterator

import pytest
from ulid import ULID

from memoryd.domain.errors import Conflict, InvalidInput
from memoryd.domain.event import Event
from memoryd.domain.redact import Redactor
from memoryd.services.ingest import Ingest
from memoryd.storage.committer import Committer
from memoryd.storage.store import Store

EVENT = Event("", "s", 0, 2, 0, "text", {}, "", "", "", "")
NOW = 1_700_000_000_000


@pytest.fixture
def store(tmp_path: os.PathLike[str]) -> Iterator[Store]:
    """A new store."""
    store = Store(f"{os.fspath(tmp_path)}/data")
    yield store
    store.close()


@pytest.fixture
def ingest(store: Store) -> Iterator[Ingest]:
    """The way into the store."""
    committer = Committer(store, lambda: NOW)
    committer.start()
    yield Ingest(committer, lambda: NOW, "own", Redactor())
    committer.stop()


def test_what_is_missing_is_filled_in(ingest: Ingest, store: Store) -> None:
    """An event without id, time, role and project gets all four."""
    result = ingest.one(EVENT, idempotent=False)
    event = store.log.get(result.event_id).event
    assert (event.time_ms, event.role, event.project) == (NOW, 1, "own")
    assert ULID.from_str(result.event_id).milliseconds == NOW


def test_without_an_id_two_events_are_two(ingest: Ingest) -> None:
    """Equal events without id are different events, unless capture is idempotent."""
    sent = EVENT._replace(time_ms=5)
    ids = {ingest.one(sent, idempotent=False).event_id for _ in range(3)}
    assert len(ids) == 3
    results = [ingest.one(sent, idempotent=True) for _ in range(3)]
    assert len({r.event_id for r in results}) == 1
    assert [r.created for r in results] == [True, False, False]


def test_an_idempotent_id_covers_the_content(ingest: Ingest) -> None:
    """Any other content makes another id."""
    sent = EVENT._replace(time_ms=5)
    others = [
        sent,
        sent._replace(time_ms=6),
        sent._replace(session_id="t"),
        sent._replace(type=3),
        sent._replace(text="x"),
        sent._replace(metadata={"k": "v"}),
        sent._replace(agent="a"),
        sent._replace(project="p"),
        sent._replace(parent_id="p"),
        sent._replace(turn_id="p"),
    ]
    assert all(ingest.one(e, idempotent=True).created for e in others)


def test_idempotent_capture_needs_a_time_or_an_id(ingest: Ingest) -> None:
    """Without time and id nothing makes two captures the same, so it is refused."""
    with pytest.raises(InvalidInput, match="timestamp_ms is 0"):
        ingest.one(EVENT, idempotent=True)
    assert ingest.one(EVENT._replace(event_id="e"), idempotent=True).created


def test_an_untimed_event_sent_again_is_known(ingest: Ingest) -> None:
    """An id sent again without a time is the same event; with another text it is a conflict."""
    sent = EVENT._replace(event_id="e")
    assert ingest.one(sent, idempotent=False).created
    assert not ingest.one(sent, idempotent=False).created
    with pytest.raises(Conflict, match="another text"):
        ingest.one(sent._replace(text="x"), idempotent=False)


def test_bad_events_of_a_batch_are_refused_alone(ingest: Ingest) -> None:
    """Results stand in the order of the batch, with refused events among written ones."""
    batch = [
        EVENT._replace(session_id=""),
        EVENT._replace(event_id="a"),
        EVENT._replace(event_id="b", text="\ud800"),
        EVENT._replace(event_id="c", metadata={"k": "\ud800"}),
        EVENT._replace(event_id="d"),
    ]
    results = ingest.many(batch, len(batch), idempotent=False)
    assert [r.created for r in results] == [False, True, False, False, True]
    assert [r.event_id for r in results] == ["", "a", "b", "c", "d"]
    assert all(isinstance(results[i].error, InvalidInput) for i in (0, 2, 3))
    assert ingest.many([], 0, idempotent=False) == []


def test_a_batch_may_have_1000_events(ingest: Ingest) -> None:
    """Exactly 1,000 events are taken, one more is refused as a whole."""
    batch = [EVENT] * 1_000
    assert sum(r.created for r in ingest.many(batch, 1_000, idempotent=False)) == 1_000
    with pytest.raises(InvalidInput, match="1001 events, over the limit of 1000"):
        ingest.many([*batch, EVENT], 1_001, idempotent=False)


def test_secrets_are_taken_out_first(ingest: Ingest, store: Store) -> None:
    """Text and metadata are redacted before ids are made of them; ids and names stay."""
    secret = "hunter2" + "Xy9"
    sent = EVENT._replace(
        time_ms=5,
        text=f"at mq://bob:{secret}@acme.io",
        metadata={"db_password": secret, "tool": "Bash"},
        turn_id="turn",
    )
    result = ingest.one(sent, idempotent=True)
    event = store.log.get(result.event_id).event
    assert event.text == "at mq://bob:[redacted:url-password]@acme.io"
    assert event.metadata == {"db_password": "[redacted:password]", "tool": "Bash"}
    assert (event.turn_id, event.session_id) == ("turn", "s")
    assert not ingest.one(sent, idempotent=True).created
    assert not ingest.one(event._replace(event_id=""), idempotent=True).created


def test_a_batch_is_redacted_as_its_events_are(ingest: Ingest, store: Store) -> None:
    """In a batch, too, secrets leave text and metadata, wherever in the batch they stand."""
    url, mark = "mq://bob:hunter2Xy9@acme.io", "mq://bob:[redacted:url-password]@acme.io"
    batch = [EVENT._replace(event_id=f"e{n:03}", time_ms=5) for n in range(200)]
    batch[3] = batch[3]._replace(text=url)
    batch[150] = batch[150]._replace(text="plain", metadata={"to": url, "tool": "Bash"})
    ingest.many(batch, 200, idempotent=False)
    stored = [store.log.get(f"e{n:03}").event for n in range(200)]
    assert stored[3].text == mark
    assert stored[150].metadata == {"to": mark, "tool": "Bash"}
    assert [e.text for e in stored].count(EVENT.text) == 198
    assert store.log.redactions() == {"url-password": 2}


def test_only_written_secrets_are_counted(ingest: Ingest, store: Store) -> None:
    """Counts grow with new events alone, and are there when the store is opened again."""
    sent = EVENT._replace(
        event_id="e", text="mq://b:x1@h mq://b:x2@h", metadata={"k": "mq://b:x3@h"}
    )
    assert ingest.one(sent, idempotent=False).created
    assert not ingest.one(sent, idempotent=False).created
    with pytest.raises(InvalidInput):
        ingest.one(sent._replace(event_id="f", session_id=""), idempotent=False)
    ingest.one(sent._replace(event_id="g", text="<private>x", metadata={}), idempotent=False)
    assert store.log.redactions() == {"url-password": 3, "private": 1}
    store.log.reload()
    assert store.log.redactions() == {"url-password": 3, "private": 1}
