"""The examples in help, README and docs run, and --json prints the fields that docs/json.md names."""

import glob
import json
import os
import re
import shlex
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import click
import pytest
from click.testing import CliRunner

from memoryd.daemon import _parser
from tests.faults.driver import House
from tests.unit.test_commands import ROOT, docs

# they wait for people or agents, change the user's services, or follow without end
LEFT_OUT = {"memory edit", "memory mcp", "memory browse", "memory demo", "memory service"}
# what takes away what other examples look at
LATE = ("forget", "wipe", "restore", "uninstall", "compact", "repair", "token")
EARLY = ("ingest", "remember", "todo add", "daily add")
BLOCK = re.compile(r"```(?:sh|bash|console)\n(.*?)```", re.DOTALL)
WIRE = ("memory_pb2", "note_pb2", "care_pb2", "erasure_pb2")
OPERATORS = frozenset("|&;<>()")


class Example(NamedTuple):
    """One call of a program: where it stands, its words, and whether it is all of its line."""

    place: str
    program: str
    line: str
    words: list[str]
    alone: bool


def calls(place: str, line: str) -> Iterator[Example]:
    """The calls of our programs in a line of shell; what stands far to the right is a remark."""
    line = re.split(r"\s{3,}|\s# ", line.strip())[0].removeprefix("$ ")
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>()")
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:
        return  # a text over several lines
    parts: list[list[str]] = [[]]
    skip = False
    for word in words:
        if skip:
            skip = False
        elif set(word) <= OPERATORS:
            skip = word[0] in "<>"
            if not skip:
                parts.append([])
        else:
            parts[-1].append(word)
    for part in parts:
        while part and re.fullmatch(r"\w+=.*", part[0]):
            part.pop(0)
        program = os.path.basename(part[0]) if part else ""
        if program in {"memory", "memoryd"} and "$" not in " ".join(part):
            yield Example(place, program, line, part[1:], alone=part == words)


def in_help() -> list[Example]:
    """The examples of every command, in its help."""
    found = []
    for path, command, _ in docs().commands():
        for line in (command.epilog or "").splitlines():
            if line.startswith("  "):
                found += list(calls(path, line))
    return found


def in_pages() -> list[Example]:
    """The calls in the shell blocks of README and docs."""
    found = []
    for page in (f"{ROOT}/README.md", *sorted(glob.glob(f"{ROOT}/docs/**/*.md", recursive=True))):
        with open(page, encoding="utf-8") as file:
            text = file.read()
        for block in BLOCK.findall(text):
            for line in block.replace("\\\n", " ").splitlines():
                found += list(calls(os.path.basename(page), line))
    return found


def parsed(words: list[str]) -> str:
    """The path of the command that words call. Raises click.UsageError if they do not fit it."""
    command: click.Command = docs().program
    ctx = command.make_context("memory", list(words))
    path = "memory"
    while isinstance(command, click.Group) and (rest := [*ctx._protected_args, *ctx.args]):
        name, below, rest = command.resolve_command(ctx, rest)
        assert below is not None
        assert name is not None
        ctx = below.make_context(name, rest, parent=ctx)
        path, command = f"{path} {name}", below
    return path


def test_every_example_fits_its_command() -> None:
    """No example names a command, option or value that there is not; files may be missing here."""
    examples = [*in_help(), *in_pages()]
    assert len(examples) > 80
    wrong = []
    for example in examples:
        try:
            if example.program == "memoryd":
                _parser().parse_args(example.words)
            else:
                parsed(example.words)
        except SystemExit as error:
            if error.code:
                wrong.append(f"{example.place}: {example.line}")
        except click.UsageError as error:
            if "does not exist" not in error.format_message():
                wrong.append(f"{example.place}: {example.line}: {error.format_message()}")
        except click.exceptions.Exit:
            continue  # --help, --version
    assert wrong == []


@pytest.fixture(scope="module")
def talk() -> Iterator[House]:
    """A daemon with a conversation, in whose project and environment this process is."""
    house = House()
    patch = pytest.MonkeyPatch()
    for name in list(os.environ):
        if name.startswith(("MEMORY", "XDG_", "CLAUDE", "CODEX", "COPILOT", "CURSOR", "GEMINI")):
            patch.delenv(name)
    for name in ("HOME", "XDG_RUNTIME_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        patch.setenv(name, house.env[name])
    patch.chdir(house.project)
    house.serve()
    lines = [
        {
            "session_id": "5f1c",
            "agent": "codex",
            "role": role,
            "text": text,
            "event_id": f"01JZ{n:022}",
        }
        | {"timestamp_ms": time.time_ns() // 1_000_000 - 90_000_000 + n * 60_000}
        for n, (role, text) in enumerate(
            (
                ("user", "Why did we drop the retry? The upload is flaky, connection reset."),
                ("assistant", "The retry hid the reset: TS2687. Please deploy the script again."),
            )
        )
    ]
    run(["ingest"], "\n".join(map(json.dumps, lines)))
    run(["jobs", "run", "rollup-day"])
    yield house
    patch.undo()
    house.close()


def run(words: list[str], data: str = "") -> Any:
    """Run `memory` in this process."""
    return CliRunner().invoke(docs().program, words, input=data, prog_name="memory")


def order(path: str) -> tuple[int, str]:
    """What writes comes first, what takes away last."""
    name = path.partition(" ")[2]
    return (-1 if name.startswith(EARLY) else 1 if any(w in name for w in LATE) else 0, path)


def test_examples_run_and_print_what_is_documented(talk: House) -> None:
    """Every example that stands alone on its line runs; its JSON has exactly the named fields."""
    wrong, seen = [], set()
    pages = [e for e in in_pages() if e.place != "commands.md"]  # which says what help says
    chosen = [e for e in [*in_help(), *pages] if e.alone and e.program == "memory"]
    chosen = [e for e in chosen if not {"-f", "--follow"} & set(e.words)]
    for example in sorted(chosen, key=lambda e: order(e.place)):
        try:
            path = parsed(example.words)
        except click.UsageError:
            continue  # names a file that is not here
        if any(path.startswith(name) for name in LEFT_OUT) or path not in docs().SHAPES:
            continue
        asked = ["--json"] if "only if asked" in docs().SHAPES[path].remark else []
        done = run([*example.words, *asked], "text")
        if "nor a file or directory" in done.output:
            continue
        if done.exit_code not in {0, 1} or not isinstance(done.exception, SystemExit | None):
            wrong.append(f"{example.line}: exit {done.exit_code}: {done.output}{done.exception!r}")
        elif done.exit_code == 0 and "--no-json" not in example.words:
            rows = [json.loads(line) for line in done.stdout.splitlines()]
            wrong += [f"{example.line}: {said}" for said in different(path, rows)]
            seen |= {path} if rows else set()
    assert wrong == []
    assert len(seen) > 25, sorted(seen)


def different(path: str, rows: list[dict[str, Any]]) -> list[str]:
    """What is printed and not documented for a command, or the other way round."""
    shape = docs().SHAPES[path]
    types = [shape.message, *re.findall(r"\b[A-Z]\w+\b", shape.remark)]
    allowed = []
    for name in types:
        if not name or any(name in dir(getattr(docs(), m)) for m in WIRE):
            fields = {f.name for f in docs().descriptor(name).fields} if name else set()
            allowed.append(fields | set(shape.fields))
            allowed.append(fields)
    if "with --" in shape.remark and not shape.message:
        return []  # other options, other fields
    more = set(re.findall(r"also (\w+)", shape.remark))
    printed = [set(row) - more for row in rows[:3]]
    return [f"prints {sorted(names ^ allowed[0])}" for names in printed if names not in allowed]
