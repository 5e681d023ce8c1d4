from memoryd.storage.injections import Injection, Injections
from memoryd.storage.store import Store

GIVEN = Injection(
    "s", 0, 1_000, "claude-code", "q", 8_192, "text \u00e9\n", (("notes", "whole", ("a",), ()),)
)


def test_what_was_given_is_read_back_as_it_was(store: Store) -> None:
    """A block is found by its session and number, with everything that was told of it."""
    ledger = store.injections
    first = ledger.add(GIVEN)
    second = ledger.add(GIVEN._replace(time_ms=2_000, text="other\n", sections=()))
    other = ledger.add(GIVEN._replace(session_id="s1"))
    assert [first.number, second.number, other.number] == [1, 2, 1]
    again = Injections(store.db)
    assert again.count("s") == 2
    assert [again.get("s", 1), again.get("s", 2), again.get("s1", 1)] == [first, second, other]
    assert again.get("s", 3) is None
    assert again.count("") == again.count("nobody") == 0


def test_an_agent_looked_when_it_was_last_given_something(store: Store) -> None:
    """The mark of an agent is the time of its newest block, whatever the session."""
    ledger = store.injections
    ledger.add(GIVEN)
    ledger.add(GIVEN._replace(session_id="t", time_ms=3_000))
    ledger.add(GIVEN._replace(agent="codex", time_ms=9_000))
    assert (ledger.last_ms("claude-code"), ledger.last_ms("codex")) == (3_000, 9_000)
    assert ledger.last_ms("claude") == ledger.last_ms("") == 0
