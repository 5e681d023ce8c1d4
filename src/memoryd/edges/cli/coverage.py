"""`memory coverage`: what the log holds of the conversations on disk, and what it lacks.

A turn is a person's prompt with what follows up to the next. It is captured if the log holds the
prompt, every tool result and the last reply; replies in between are told by transcripts alone.
"""

from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from memoryd.edges.cli import output as out
from memoryd.edges.cli import times
from memoryd.edges.cli.events import Time
from memoryd.edges.cli.import_ import prepared, report, take_all
from memoryd.edges.cli.output import Output, one_line
from memoryd.edges.cli.pager import pages

if TYPE_CHECKING:
    from memoryd.edges.importers.run import Seen

_SHOWN: Final = 3
_WORDS: Final = 60
_NOUNS: Final = {"user_message": "prompt", "assistant_message": "reply", "tool_result": "tool"}
_HELP = """\b
Examples:
  memory coverage
  memory coverage claude-code --since 7d
  memory coverage --heal                 import what is missing, and nothing else"""


class _Item(NamedTuple):
    time_ms: int
    kind: str
    held: bool
    words: str


class Session:
    """What a session's transcript tells, and what the log holds of it."""

    def __init__(self, agent: str, session_id: str) -> None:
        self.agent = agent
        self.session_id = session_id
        self.problem = ""
        self._items: dict[str, _Item] = {}

    def add(self, seen: "Seen") -> None:
        """Count an event of the transcript."""
        from memoryd.wire import TYPES

        event = seen.event
        kind = _NOUNS.get(TYPES[event.type - 1], "")
        if not kind or event.metadata.get("subagent") or event.metadata.get("compaction"):
            kind = "tool" if kind == "tool" else ""
        self.problem = seen.destination.problem
        words = event.text[:_WORDS].partition("\n")[0]
        # a conversation may lie in two files; what the first of them tells counts
        item = _Item(event.time_ms, kind, seen.held, words)
        self._items.setdefault(event.event_id, item)

    def turns(self) -> tuple[int, int, list[_Item]]:
        """How many turns are captured, how many there are, and what is missing."""
        turns: list[list[_Item]] = []
        told = [item for item in self._items.values() if item.kind]
        for item in sorted(told, key=lambda item: item.time_ms):
            if item.kind == "prompt" or not turns:
                turns.append([])
            turns[-1].append(item)
        missing = [_missing(turn) for turn in turns]
        gaps = [item for turn in missing for item in turn]
        return sum(not turn for turn in missing), len(turns), gaps


def _missing(turn: list[_Item]) -> list[_Item]:
    replies = [item for item in turn if item.kind == "reply"]
    wanted = [item for item in turn if item.kind in ("prompt", "tool")] + replies[-1:]
    return [item for item in wanted if not item.held]


@click.command(epilog=_HELP)
@click.argument("what", nargs=-1, metavar="[AGENT] [PATH]")
@click.option("--since", type=Time(end=False), default=0, metavar="T", help="Only from T on.")
@click.option(
    "--project-map",
    "project_map",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help="Directories that have another name now.",
)
@click.option(
    "--into-this-project", is_flag=True, help="Compare everything with the log of this project."
)
@click.option("--heal", is_flag=True, help="Import what is missing, and nothing else.")
@out.common
@pages
def coverage(output: Output, what: tuple[str, ...], since: int, **options: Any) -> None:
    """Compare the log with the transcripts on disk: captured and expected turns, and the gaps."""
    from memoryd.edges.importers.run import Options, Run

    sessions: dict[tuple[str, str], Session] = {}

    def watch(seen: "Seen") -> None:
        key = (seen.event.agent, seen.event.session_id)
        sessions.setdefault(key, Session(*key)).add(seen)

    heal = options.pop("heal")
    with prepared(output, what, **options) as (found, routes):
        wanted = [transcript for transcript in found if transcript.changed_ms >= since]
        take_all(Run(routes, Options(since_ms=since, dry=True), watch), wanted)
        if not heal:
            _report(output, list(sessions.values()))
            return
        lacking = {key for key, session in sessions.items() if session.turns()[2]}
        for place in routes.destinations.values():
            place.new = place.known = place.refused = place.lost = 0
        run = Run(routes, Options(since_ms=since, only=lacking))
        take_all(run, wanted)
        report(output, run, routes, dry=False)


def _report(output: Output, sessions: list[Session]) -> None:
    counted = [(session, *session.turns()) for session in sessions]
    if output.as_json:
        output.lines(
            {
                "agent": session.agent,
                "session_id": session.session_id,
                "captured": captured,
                "expected": expected,
                "problem": session.problem,
                "gaps": [item._asdict() for item in gaps],
            }
            for session, captured, expected, gaps in counted
        )
        return
    _show(output, counted)


def _show(output: Output, counted: list[tuple[Session, int, int, list[_Item]]]) -> None:
    from rich.text import Text

    if not counted:
        output.show("no transcripts found")
        return
    table = out.table("session", "captured", "agent", "missing", right=("captured",))
    for session, captured, expected, gaps in counted:
        style = "green" if captured == expected else "yellow"
        table.add_row(
            Text(one_line(session.session_id)),
            Text(f"{captured:,} / {expected:,}", style),
            session.agent,
            Text(one_line(session.problem) if session.problem else _gap_words(gaps)),
        )
    output.show(table)
    captured = sum(row[1] for row in counted)
    expected = sum(row[2] for row in counted)
    share = 100 * captured / expected if expected else 100
    output.show(f"\n{captured:,} of {expected:,} turns captured ({share:.1f}%)")
    if captured < expected:
        output.show(Text("memory coverage --heal imports what is missing", "dim"))


def _gap_words(gaps: list[_Item]) -> str:
    if not gaps:
        return ""
    counts = Counter(item.kind for item in gaps)
    words = ", ".join(f"{count:,} {kind}{'s' * (count > 1)}" for kind, count in counts.items())
    first = "; ".join(
        f"{times.stamp(item.time_ms)} {one_line(item.words)}" for item in gaps[:_SHOWN]
    )
    return f"{words.replace('replys', 'replies')}: {first}{' …' * (len(gaps) > _SHOWN)}"
