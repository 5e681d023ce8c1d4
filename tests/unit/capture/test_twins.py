from memoryd.domain.capture import Received, from_hook
from memoryd.domain.capture.build import Source, said
from memoryd.domain.capture.twins import WINDOW_MS, Pairing, find_twin
from memoryd.domain.event import Event, EventType

USER, REPLY, STOP = (
    EventType.USER_MESSAGE,
    EventType.ASSISTANT_MESSAGE,
    EventType.SUBAGENT_STOP,
)
T = 1_790_000_000_000


def made(type_: EventType, text: str, at: int, key: str, session: str = "s") -> Event:
    """An event that a hook told (key "hook") or a transcript (key "source_ids")."""
    source = Source("claude-code", session, T + at, metadata={key: "x"})
    return said(source, type_, text, event_id=f"{key} {at}")[0]


def live(type_: EventType, text: str, at: int) -> Event:
    """An event that a hook told."""
    return made(type_, text, at, "hook")


def stored(type_: EventType, text: str, at: int, session: str = "s") -> Event:
    """An event from a transcript."""
    return made(type_, text, at, "source_ids", session)


def test_words_meet_within_the_window() -> None:
    """The same words of the same kind, near in time, are one thing; white space does not count."""
    pairing = Pairing([live(USER, "fix  it\n", 500), live(REPLY, "done", 9000)])
    assert pairing.take(stored(USER, "fix it", 0))
    assert pairing.take(stored(REPLY, "done", 4000))
    assert not pairing.take(stored(USER, "fix it", 100))


def test_what_is_said_twice_is_taken_twice() -> None:
    """Each event of the log has at most one twin."""
    pairing = Pairing([live(USER, "yes", 0), live(USER, "yes", 5000)])
    assert [pairing.take(stored(USER, "yes", at)) for at in (10, 5010, 9000)] == [True, True, False]


def test_far_away_is_something_else() -> None:
    """Outside of the window the same words are another event."""
    pairing = Pairing([live(USER, "yes", 0)])
    assert not pairing.take(stored(USER, "yes", WINDOW_MS + 1))


def test_kinds_do_not_mix() -> None:
    """A reply is no prompt; a subagent's last words are a reply in its transcript."""
    pairing = Pairing([live(USER, "yes", 0), live(STOP, "two", 0)])
    assert not pairing.take(stored(REPLY, "yes", 0))
    assert pairing.take(stored(REPLY, "two", 0))


def test_redacted_words_meet_their_originals() -> None:
    """A text in the log may have lost a secret that the transcript still holds."""
    pairing = Pairing([live(USER, "use [redacted:aws-key] for [redacted:x], please", 0)])
    assert not pairing.take(stored(USER, "use AKIA for prod", 0))
    assert pairing.take(stored(USER, "use AKIA123 for the prod, please", 0))


def test_known_ids_are_known() -> None:
    """An event that was imported before is known by its id, whatever its time."""
    known = stored(USER, "a", 0)
    assert Pairing([known]).take(known)


def test_imported_events_are_no_twins_of_imported_ones() -> None:
    """What one source tells twice happened twice."""
    assert not Pairing([stored(USER, "a", 0)]).take(stored(USER, "a", 1))


def test_notify_stamps_at_the_end_of_a_turn() -> None:
    """A prompt that Codex' notify reports comes as late as its turn is long."""
    payload = {"type": "agent-turn-complete", "thread-id": "s", "input-messages": ["go"]}
    reported = from_hook(Received("codex", "", T + 900_000, ""), payload)
    assert Pairing(reported).take(stored(USER, "go", 0))


def test_the_drain_finds_an_imported_twin() -> None:
    """A hook's event that comes after the import is recognised; the nearest counts."""
    nearby = [stored(USER, "go", 9000), stored(USER, "go", 300), stored(USER, "go", 1, "other")]
    assert find_twin(live(USER, "go", 0), nearby) == nearby[1].event_id
    assert find_twin(live(USER, "stop", 0), nearby) == ""
    assert find_twin(live(USER, "go", 0), [live(USER, "go", 1)]) == ""


def test_calls_without_an_id_meet_by_their_first_line() -> None:
    """Hooks of some agents give no id of the call."""
    payload = {"sessionId": "s", "toolName": "bash", "toolArgs": {"command": "ls"}}
    hooked = from_hook(Received("copilot", "postToolUse", T, ""), payload)[0]
    assert hooked.event_id == ""
    source = Source("copilot", "s", T + 5, metadata={"source_ids": "x", "tool_name": "bash"})
    twin = said(source, EventType.TOOL_RESULT, "bash: ls\n\nREADME", event_id="e")[0]
    assert find_twin(hooked, [twin]) == "e"
