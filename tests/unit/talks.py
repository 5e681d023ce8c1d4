"""Small conversations for the tests of the summarizer."""

from collections.abc import Sequence

from memoryd.domain.event import ROLE_OF_TYPE, Event, EventType
from memoryd.domain.toc import Bullet, Level, Node

USER, ASSISTANT, TOOL = (
    EventType.USER_MESSAGE,
    EventType.ASSISTANT_MESSAGE,
    EventType.TOOL_RESULT,
)


def event(type_: EventType, text: str, **metadata: str) -> Event:
    """An event with nothing but words and metadata."""
    return Event("", "s", 0, type_, ROLE_OF_TYPE[type_], text, metadata, "", "", "", "")


def said(*turns: tuple[EventType, str]) -> list[Event]:
    """A conversation of events in their order."""
    return [event(type_, text) for type_, text in turns]


def node(
    number: int, title: str, bullets: Sequence[str], keywords: Sequence[str], count: int = 5
) -> Node:
    """A segment's node whose bullets have a grip each."""
    lines = tuple(Bullet(text, (f"grip:{number}:{n}",), 0.6) for n, text in enumerate(bullets))
    return Node(
        f"n{number}", Level.SEGMENT, title, title, lines, tuple(keywords), (), number, number, 1,
        ("s",), ("a",), count, "extractive/1", provisional=False,
    )  # fmt: skip


BUG = [
    *said(
        (USER, "The nightly export crashes since yesterday, can you find out why?"),
        (ASSISTANT, "I'll help you with that. Let me look at the export job first."),
    ),
    event(
        TOOL,
        "Bash: pytest tests/test_export.py\ndescription: Run the export tests\n\n    rows = fetch(day)\nTypeError: fetch() missing 1 required argument: 'zone'\n1 failed in 0.4s",
        tool_name="Bash",
        error="exit code 1",
    ),
    *said(
        (
            ASSISTANT,
            "Found it! The root cause is that `fetch()` in `export/rows.py` takes a time zone since the calendar rewrite, and the nightly job still calls it without one.\n\n```python\nrows = fetch(day)\n```\n\nLet me fix this now.",
        ),
    ),
    event(
        TOOL,
        "Edit: /repo/export/rows.py\nold_string: fetch(day)\nnew_string: fetch(day, zone)\n\nok",
        tool_name="Edit",
        file_path="/repo/export/rows.py",
    ),
    *said(
        (
            ASSISTANT,
            "I've fixed the crash: `nightly()` now passes the zone of the tenant to `fetch()`. All 14 tests pass. Still open: the weekly report has the same bug, we left it for a follow-up. Would you like me to continue?",
        ),
    ),
]

DECISION = said(
    (
        USER,
        "Should we keep sessions in Postgres or move them somewhere else? Logins are slow at peak.",
    ),
    (
        ASSISTANT,
        "Great question! There are two options.\n\n## Options\n\n| Store | Latency |\n|---|---|\n| Postgres | 9 ms |\n| Redis | 1 ms |\n\nI recommend Redis because session rows are rewritten on every request and bloat the table.",
    ),
    (USER, "Agreed, we go with Redis instead of Postgres, but keep the audit log in Postgres."),
    (
        ASSISTANT,
        "Moved the session store to Redis with a time to live of 30 days. The audit log stays in Postgres.",
    ),
)

CHINESE = said(
    (USER, "登录接口一直超时，请帮我看看是什么原因。"),
    (
        ASSISTANT,
        "让我先看一下日志。原因是连接池太小，高峰期所有连接都被占用了。我把连接池从10改成了50，超时问题已经修复。下一步需要加监控。",
    ),
)
JAPANESE = said(
    (USER, "ビルドが失敗します。原因を調べてください。"),
    (
        ASSISTANT,
        "原因はキャッシュの設定ミスでした。キャッシュのキーにバージョンを追加しました。これでビルドは成功しました！",
    ),
)
GERMAN = said(
    (USER, "Warum schlägt der Import der Kundendaten fehl? Bitte beheben."),
    (
        ASSISTANT,
        "Die Ursache liegt im Datumsformat, z.B. wird 03.04.2024 als amerikanisches Datum gelesen. Wir haben uns für ISO-Daten entschieden, statt das Format zu raten. Der Fehler ist behoben und alle Tests laufen durch.",
    ),
)
OUTPUT = [
    event(
        TOOL,
        f"Read: /repo/src/part{n}.py\n\n     1\tdef part{n}():\n     2\t    return {n}\n",
        tool_name="Read",
    )
    for n in range(4)
]
