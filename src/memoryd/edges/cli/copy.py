"""`memory export`, `import-notes` and `import --jsonl`: a readable copy, there and back."""

import os
import sys
from collections import Counter
from contextlib import nullcontext
from typing import Any

import click

from memoryd.edges.cli import output as out
from memoryd.edges.cli.lines import read_lines
from memoryd.edges.cli.output import Output, one_line, warn
from memoryd.edges.cli.remember import project_of
from memoryd.wire import Refused

_EXPORT = """\b
Examples:
  memory export ~/memory-of-api        (then: mdbook serve ~/memory-of-api)
  memory export --jsonl backup.jsonl
  memory export --jsonl - | gzip > backup.jsonl.gz
"""
_IMPORT = """\b
Examples:
  memory import-notes ~/memory-of-api --dry-run
  memory import-notes ~/.pi/memory
  memory import-notes notes.jsonl
"""
_MARKS = {"create": "+", "change": "~", "forget": "-", "older": "<"}


@click.command(epilog=_EXPORT)
@click.argument("directory", required=False, type=click.Path(file_okay=False))
@click.option(
    "--jsonl",
    metavar="FILE",
    type=click.Path(dir_okay=False, allow_dash=True),
    help='Write everything as JSON lines, for memory import --jsonl; "-" is stdout.',
)
@click.option("--force", is_flag=True, help="Also replace files that were edited since.")
@out.common
def export(output: Output, directory: str | None, jsonl: str | None, *, force: bool) -> None:
    """Write a copy that people can read: a tree of Markdown in DIRECTORY.

    Only files that an earlier export wrote are replaced or removed, and only while nobody has
    edited them; all others are left alone.
    """
    if bool(directory) == bool(jsonl):
        raise click.UsageError("give either DIRECTORY or --jsonl FILE")
    if jsonl:
        _export_jsonl(output, jsonl)
        return
    from memoryd.edges.export import write_tree

    with output.connect() as client:
        try:
            done = write_tree(client, directory or ".", project_of(client, output), force=force)
        except OSError as error:
            raise Refused(f"the copy cannot be written: {error}") from None
    for path in done.edited:
        warn(f"{path}: was edited since the last export, and left alone")
    counts = {"written": len(done.written), "unchanged": done.unchanged}
    counts |= {"removed": len(done.removed), "edited": len(done.edited)}
    _say(output, counts)
    if done.edited:
        warn("memory: take the edits in with `memory import-notes`, or drop them with --force")
        raise click.exceptions.Exit(1)


def _export_jsonl(output: Output, path: str) -> None:
    from memoryd.edges.export import records

    counts: Counter[str] = Counter()
    temporary = f"{path}.tmp"
    with output.connect() as client:
        try:
            with nullcontext(sys.stdout) if path == "-" else _private(temporary) as file:
                for record in records(client):
                    counts[record["type"]] += 1
                    file.write(out.json_line(record) + "\n")
            if path != "-":
                os.replace(temporary, path)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise Refused(f"{path} cannot be written: {error}") from None
    if path != "-":
        _say(output, {f"{kind}s": counts[kind] for kind in ("event", "note", "node", "grip")})


def _private(path: str) -> Any:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    return os.fdopen(fd, "w", encoding="utf-8")


@click.command(epilog=_IMPORT)
@click.argument("source", type=click.Path(exists=True))
@click.option("--merge", "mode", flag_value="merge", default="merge", help="Add and change.")
@click.option("--replace", "mode", flag_value="replace", help="Also forget what is not there.")
@click.option("--dry-run", is_flag=True, help="Only show the difference.")
@out.common
def import_notes(output: Output, source: str, mode: str, *, dry_run: bool) -> None:
    """Take in notes from SOURCE.

    SOURCE is a tree that memory export wrote, a directory with MEMORY.md, SCRATCHPAD.md and
    files such as 2026-01-31.md, or a notes.jsonl. Files and lines that cannot be taken are
    reported; everything is checked before anything is changed.
    """
    from memoryd.edges.importers import notes

    try:
        found = notes.read(source)
    except OSError as error:
        raise Refused(f"{source} cannot be read: {error}") from None
    for problem in found.problems:
        warn(problem)
    if found.problems and mode == "replace":
        raise Refused("nothing was changed: --replace needs a source without faults")
    with output.connect() as client:
        steps = notes.plan(
            client, found, project_of(client, output), out.now_ms(), replace=mode == "replace"
        )
        if not dry_run:
            notes.apply(client, steps)
    _show_steps(output, steps, dry_run=dry_run)
    if found.problems:
        raise click.exceptions.Exit(1)


def _show_steps(output: Output, steps: list[Any], *, dry_run: bool) -> None:
    if dry_run:
        for step in steps:
            if output.as_json:
                output.put({k: v for k, v in step._asdict().items() if k != "sent"})
            elif step.action in _MARKS:
                scope = f"{step.scope} {one_line(step.session_id)}".strip()
                output.show(f"{_MARKS[step.action]} {one_line(step.name)}  ({scope})")
        if output.as_json:
            output.flush()
            return
    actions = ("create", "change", "forget", "unchanged", "older")
    counted = Counter(step.action for step in steps)
    _say(output, {action: counted[action] for action in actions})


def restore(output: Output, file: str) -> None:
    """Restore events and notes from what memory export --jsonl wrote, with the same ids."""
    from memoryd.edges.importers.jsonl import Restore

    source = sys.stdin.fileno() if file == "-" else os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    with output.connect() as client:
        run = Restore(client, lambda number, reason: warn(f"line {number}: {reason}"))
        try:
            run.take((line.number, line.data) for line in read_lines(source) if line is not None)
        finally:
            _say(output, run.counts)
            if file != "-":
                os.close(source)
    if run.counts["refused"]:
        raise click.exceptions.Exit(1)


def _say(output: Output, counts: dict[str, int]) -> None:
    if output.as_json:
        output.line(counts)
    else:
        output.show(", ".join(f"{count:,} {word}" for word, count in counts.items()))
