"""`memory status`: what the daemon is, what it holds and how it is doing."""

from typing import Any

import click

from memoryd.edges.cli import output as out
from memoryd.edges.cli import times
from memoryd.edges.cli.output import Output, one_line


@click.command(epilog="\b\nExample:\n  memory status --json | jq .sequence")
@out.common
def status(output: Output) -> None:
    """Show what the daemon of this project holds and how it is doing."""
    with output.connect() as client:
        answer = client.status()
    if output.as_json:
        output.line(answer)
    else:
        _show(output, answer)


def _show(output: Output, answer: dict[str, Any]) -> None:
    from rich.text import Text

    now = out.now_ms()
    grid = out.table("", "")
    grid.show_header = False
    for name, value in _rows(answer, now):
        style = "bold red" if name == "writable" and not answer["writable"] else ""
        grid.add_row(Text(name, "dim"), Text(one_line(value), style))
    output.show(grid)
    if answer["last_errors"]:
        output.show(Text("\nlatest errors", "bold red"))
        for error in answer["last_errors"]:
            said = f"  {times.ago(error['time_ms'], now)}  {error['operation']}: {error['message']}"
            output.show(Text(one_line(f"{said}  ({error['error_id']})")))


def _rows(answer: dict[str, Any], now: int) -> list[tuple[str, str]]:
    rows = [
        ("project", answer["project"]),
        ("root", answer["project_root"]),
        ("daemon", f"{answer['version']}, pid {answer['pid']}, up {_up(answer)}"),
        ("listens at", ", ".join(answer["endpoints"])),
        ("data", f"{answer['data_dir']} ({out.size(answer['disk_bytes'])})"),
        ("store", f"{answer['store_id']}, format {answer['format_version']}"),
        ("memory", out.size(answer["memory_bytes"])),
        ("events", f"{answer['sequence']:,}"),
        ("sessions", f"{answer['sessions']:,}"),
        ("agents", f"{answer['agents']:,}"),
    ]
    if answer["last_event_ms"]:
        first, last = answer["first_event_ms"], answer["last_event_ms"]
        rows.append(("first event", f"{times.ago(first, now)} ({times.stamp(first)})"))
        rows.append(("last event", f"{times.ago(last, now)} ({times.stamp(last)})"))
    if answer["pump_lag_events"]:
        waited = times.length(answer["pump_lag_ms"])
        rows.append(("waiting", f"{answer['pump_lag_events']:,} events, the oldest for {waited}"))
    if answer["spool_files"]:
        rows.append(("spool", f"{answer['spool_files']:,} payloads to be drained"))
    if answer["spool_bad"]:
        rows.append(("set aside", f"{answer['spool_bad']:,} payloads that cannot be read"))
    if answer["redactions"]:
        rows.append(("redacted", _redacted(answer["redactions"])))
    if answer["toc_waiting"]:
        rows.append(("to derive", f"{answer['toc_waiting']:,} periods of the table of contents"))
    rows.append(("search", _search(answer)))
    rows.append(("writable", "yes" if answer["writable"] else f"no: {answer['write_error']}"))
    return [(name, value) for name, value in rows if value]


def _redacted(counts: dict[str, int]) -> str:
    most_first = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    kinds = ", ".join(f"{rule} {count:,}" for rule, count in most_first)
    return f"{sum(counts.values()):,} secrets: {kinds}"


def _up(answer: dict[str, Any]) -> str:
    return times.length(answer["uptime_ms"])


def _search(answer: dict[str, Any]) -> str:
    state = answer["index_state"].replace("_", " ")
    behind = answer["sequence"] - answer["indexed_sequence"]
    return f"{state}, {behind:,} events to go" if behind > 0 else state
