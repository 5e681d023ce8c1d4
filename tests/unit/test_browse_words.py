"""What the browser shows of words from the log, and what it reads of a conversation. Pure."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from memoryd.edges.browse import conversation, theme, words
from memoryd.edges.browse.conversation import HELD, Conversation
from memoryd.edges.browse.talk import cut
from memoryd.wire import Page


@given(st.text(), st.text())
def test_whatever_was_said_is_shown_and_never_obeyed(text: str, other: str) -> None:
    """No control character but the line's end comes through, marked or not."""
    content = words.marked(f"{text}{other}{text}", other)
    plain = content.plain + words.line(text)
    assert not any(ord(sign) < 32 and sign != "\n" for sign in plain)
    assert not any(sign in plain for sign in "\x7f\x9b\u202e\u2066")
    assert bool(content.spans) == bool(other)


@given(st.lists(st.text(alphabet="ab \t", max_size=99), min_size=1, max_size=90), st.data())
def test_a_long_text_is_cut_around_what_is_marked(lines: list[str], data: st.DataObject) -> None:
    """The marked words are always among what is shown, and what is left out is told."""
    at = data.draw(st.integers(0, len(lines) - 1))
    lines[at] = "x" * data.draw(st.integers(0, 9_000)) + "the words"
    text = "\n".join(lines)
    for role in ("tool", "user"):
        shown, rest = cut(text, "the words", role, whole=False)
        assert "the words" in shown
        assert bool(rest) == (shown != text)
        assert shown.removeprefix("…") in text
        assert len(shown) < 5_000
    assert cut(text, "", "tool", whole=True) == (text, "")


def node(level: str, name: str) -> dict[str, Any]:
    """A node as the client gives it."""
    return {"node_id": f"toc:{level}:{name}", "level": level} | {
        "start_time_ms": 1_767_225_600_000,
        "end_time_ms": 1_767_229_200_000,
    }


def test_periods_have_names_for_people() -> None:
    """Short below their parents, whole on their own; a strange id is shown as it is."""
    assert words.short(node("year", "2026")) == "2026"
    assert words.short(node("month", "2026-01")) == "January"
    assert words.short(node("week", "2026-W05")) == "week 5"
    assert words.short(node("day", "2026-01-31")) == "Sat 31"
    assert words.short(node("day", "x\x1b")) == "x␛"
    assert words.period(node("month", "2026-01")) == "January 2026"
    assert words.period(node("week", "2026-W05")) == "week 5 of 2026, from 26 Jan"
    assert words.period(node("day", "2026-01-31")) == "Saturday 31 January 2026"
    assert words.period(node("day", "x")) == "x"
    assert " to " in words.period(node("segment", "01J"))


def test_the_look_fits_the_terminal() -> None:
    """Dark, unless the terminal says that its ground is light."""
    assert theme.first_theme({}) == theme.first_theme({"COLORFGBG": "15;0"}) == "memory-dark"
    assert theme.first_theme({"COLORFGBG": "0;15"}) == "memory-light"
    assert theme.other(theme.other("memory-dark")) == "memory-dark"


class Log:
    """A client that has one long session, eight events in each millisecond."""

    def __init__(self, count: int) -> None:
        self.all = [{"event_id": f"{n:05}", "timestamp_ms": n // 8} for n in range(count)]

    def events_page(self, _which: object, **asked: Any) -> Page:
        """One answer, as the daemon gives it."""
        since, until = asked.get("since_ms", 0), asked.get("until_ms", 10**9)
        fits = [e for e in self.all if since <= e["timestamp_ms"] <= until]
        if asked["newest"]:
            fits.reverse()
        start = int(asked["token"] or 0)
        end = start + asked["limit"]
        return Page(fits[start:end], end < len(fits), str(end))


@given(st.integers(0, 999), st.integers(1, 1000))
def test_a_conversation_is_walked_to_both_ends_without_gaps(start: int, count: int) -> None:
    """Wherever one begins, all events come in order, and never more are held than allowed."""
    log: Any = Log(count)
    begin = log.all[start % count]
    talk = Conversation("s", [begin], [begin])
    for older, edge in ((True, 0), (False, count - 1), (True, 0)):
        while talk.more(log, older=older):
            talk.let_go(newest=older)
            ids = [int(event["event_id"]) for event in talk.events]
            assert ids == list(range(ids[0], ids[0] + len(ids)))
            assert len(ids) <= HELD
        assert int(talk.events[0 if older else -1]["event_id"]) == edge
        assert talk.at_start if older else talk.at_end


def test_pages_are_smaller_than_what_is_held() -> None:
    """Else what was just read could be let go at once."""
    assert conversation.PAGE + 2 * conversation.AROUND < HELD
