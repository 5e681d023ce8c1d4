import threading

from memoryd.domain.costs import DaySpent, Spent
from memoryd.storage.store import Store


def test_days_and_models_are_kept_apart(store: Store) -> None:
    """What is added to one day and model changes no other; days come in order."""
    ledger = store.ledger
    ledger.add("2026-10-08", "b", Spent(calls=1, input_tokens=5))
    ledger.add("2026-10-07", "a", Spent(calls=1, output_tokens=2))
    ledger.add("2026-10-07", "b", Spent(fallbacks=1))
    ledger.add("2026-10-07", "a", Spent(calls=1, output_tokens=3, failures=1))
    assert list(ledger.days("2026-10-07", "2026-10-07")) == [
        DaySpent("2026-10-07", "a", Spent(calls=2, output_tokens=5, failures=1)),
        DaySpent("2026-10-07", "b", Spent(fallbacks=1)),
    ]
    assert [d.day for d in ledger.days("2026-10-01", "2026-10-31")][-1] == "2026-10-08"
    assert list(ledger.days("2026-10-09", "2026-10-31")) == []


def test_a_limit_holds_over_all_models(store: Store) -> None:
    """Tokens of all models of a day count against one limit; another day has its own."""
    ledger = store.ledger
    assert ledger.reserve("2026-10-07", "a", 60, 100)
    assert not ledger.reserve("2026-10-07", "b", 60, 100)
    assert ledger.reserve("2026-10-07", "b", 40, 100)
    assert ledger.reserve("2026-10-08", "b", 60, 100)


def test_many_threads_spend_no_more_than_the_limit(store: Store) -> None:
    """Reading, adding and writing are one step, whoever does it at the same time."""
    granted: list[bool] = []

    def spend() -> None:
        for _ in range(50):
            granted.append(store.ledger.reserve("2026-10-07", "a", 10, 1_000))
            store.ledger.add("2026-10-07", "a", Spent(fallbacks=1))

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert granted.count(True) == 100
    (entry,) = store.ledger.days("2026-10-07", "2026-10-07")
    assert entry.spent == Spent(calls=100, reserved=1_000, fallbacks=400)
