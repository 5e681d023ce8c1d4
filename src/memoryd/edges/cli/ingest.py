"""`memory ingest`: events from JSON lines into the log.

Owns the reading of lines and the count of what became of them. A line that cannot be taken is
reported by its number, and the rest goes on.
"""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final

import click

from memoryd.edges.cli import names, times
from memoryd.edges.cli import output as out
from memoryd.edges.cli.lines import LINE_LIMIT, Line, read_lines
from memoryd.edges.cli.output import Output, warn

if TYPE_CHECKING:
    from rich.progress import Progress

    from memoryd.client import Client

_BATCH_EVENTS: Final = 1000
_BATCH_BYTES: Final = 8 * 1024 * 1024
_HELP = """\b
Examples:
  memory ingest --idempotent history.jsonl
  echo '{"session_id":"s1","role":"user","text":"hello"}' | memory ingest

\b
Fields: session_id, text, event_type or role; and, if known, event_id, timestamp_ms (or timestamp,
as ISO text), agent, metadata, project, parent_id, turn_id.
"""


@click.command(epilog=_HELP)
@click.argument("file", default="-", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option(
    "--idempotent",
    is_flag=True,
    help="Make missing ids from the content, so that the same lines again change nothing. "
    "Every line needs a time.",
)
@click.option(
    "--session",
    type=names.SESSION,
    default="",
    metavar="S",
    help="The session of lines that name none.",
)
@click.option("--agent", default="", metavar="A", help="The agent of lines that name none.")
@out.common
def ingest(output: Output, file: str, session: str, agent: str, *, idempotent: bool) -> None:
    """Write events to the log from JSON lines, one object per event.

    Reads FILE, or stdin without FILE or with "-". Lines that cannot be taken are reported on
    stderr with their number; the others are written.
    """
    with output.connect() as client, _opened(file) as source:
        defaults = {"session_id": session, "agent": agent, "project": _project(client, output)}
        run = Ingest(client, defaults, idempotent=idempotent)
        try:
            with _progress(source) as bar:
                run.take(read_lines(source), bar)
        finally:
            _summary(output, run)
    if run.refused:
        raise click.exceptions.Exit(1)


class Ingest:
    """One run: lines in, batches out, and the count of what became of them."""

    def __init__(
        self, client: "Client", defaults: dict[str, str], *, idempotent: bool = False
    ) -> None:
        self.created = self.known = self.refused = 0
        self._client = client
        self._defaults = {field: value for field, value in defaults.items() if value}
        self._idempotent = idempotent
        self._batch: list[tuple[int, dict[str, Any]]] = []
        self._bytes = 0

    def take(self, lines: Iterator[Line | None], bar: "Progress | None" = None) -> None:
        """Write all lines; a source that pauses has what it gave written at once."""
        for line in lines:
            if line is None:
                self.send()
                continue
            size = len(line.data or b"")
            if self._bytes + size > _BATCH_BYTES:
                self.send()
            try:
                event = parse_line(line)
            except ValueError as error:
                self._refuse(line.number, str(error))
                event = None
            if event is not None:
                self._batch.append((line.number, self._defaults | event))
                self._bytes += size
            if len(self._batch) == _BATCH_EVENTS:
                self.send()
            if bar is not None:
                bar.advance(bar.task_ids[0], size + 1)
        self.send()

    def send(self) -> None:
        """Write what has gathered. Raises ClientError."""
        batch, self._batch, self._bytes = self._batch, [], 0
        if not batch:
            return
        results = self._client.ingest((event for _, event in batch), idempotent=self._idempotent)
        for (number, _), result in zip(batch, results, strict=True):
            if result["error_code"] or result["error"]:
                self._refuse(number, result["error"])
            elif result["created"]:
                self.created += 1
            else:
                self.known += 1

    def _refuse(self, number: int, reason: str) -> None:
        self.refused += 1
        warn(f"line {number}: {reason}")


def parse_line(line: Line) -> dict[str, Any] | None:
    """The event of a line, or None if the line is blank. Raises ValueError with the reason."""
    if line.data is None:
        msg = f"longer than {LINE_LIMIT // 1024 // 1024} MiB"
        raise ValueError(msg)
    data = line.data.removeprefix(b"\xef\xbb\xbf") if line.number == 1 else line.data
    if not data.strip():
        return None
    try:
        event = json.loads(data.decode())
    except UnicodeDecodeError as error:
        msg = f"not UTF-8 at byte {error.start + 1}"
        raise ValueError(msg) from None
    except json.JSONDecodeError as error:
        msg = f"not JSON: {error.msg} at column {error.colno}"
        raise ValueError(msg) from None
    except (ValueError, RecursionError) as error:
        msg = f"not JSON that can be read: {error}"
        raise ValueError(msg) from None
    if not isinstance(event, dict):
        msg = "not a JSON object"
        raise ValueError(msg)  # noqa: TRY004 - one kind of error for a bad line
    return _timed({field: value for field, value in event.items() if value not in (None, "")})


def _timed(event: dict[str, Any]) -> dict[str, Any]:
    """The event with ``timestamp`` read into ``timestamp_ms``."""
    if "timestamp" not in event:
        return event
    if "timestamp_ms" in event:
        msg = "timestamp and timestamp_ms are both given: take one"
        raise ValueError(msg)
    text = event.pop("timestamp")
    if not isinstance(text, str):
        msg = "timestamp is not ISO text: milliseconds belong into timestamp_ms"
        raise ValueError(msg)  # noqa: TRY004 - one kind of error for a bad line
    return event | {"timestamp_ms": times.parse_iso(text)}


def _project(client: "Client", output: Output) -> str:
    """The project to mark events with, in a store that several projects share."""
    if not client.settings.unified:
        return ""
    from memoryd import project

    return project.project_id(output.start_dir)


@contextmanager
def _opened(file: str) -> Iterator[int]:
    if file == "-":
        if sys.stdin.isatty():
            warn("reading JSON lines from the terminal: end with Ctrl-D")
        yield sys.stdin.fileno()
        return
    source = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield source
    finally:
        os.close(source)


def _progress(source: int) -> Any:
    """A bar on stderr if somebody watches and there is something to wait for."""
    if not sys.stderr.isatty() or os.isatty(source):
        return nullcontext()
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

    bar = Progress(
        BarColumn(),
        DownloadColumn(binary_units=True),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    bar.add_task("", total=os.fstat(source).st_size or None)
    return bar


def _summary(output: Output, run: Ingest) -> None:
    counts = {"created": run.created, "known": run.known, "refused": run.refused}
    if output.as_json:
        output.line(counts)
    else:
        output.show(", ".join(f"{count:,} {word}" for word, count in counts.items()))
