"""Every command is documented, has an example, and every call of the contract has a command."""

import ast
import importlib.util
import os
from collections.abc import Iterator
from functools import cache
from importlib.machinery import SourceFileLoader
from types import ModuleType
from typing import Any

import click
import pytest

from memoryd.pb import care_pb2, erasure_pb2, memory_pb2, note_pb2

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CLIENTS = ("client", "toc_client", "note_client", "care_client", "erasure_client")
# how the clients' methods make a call
CALLING = {"_call", "_stream", "note", "_stream_care", "_erasure_stream", "_erasure_call"}
# calls that another program of ours makes, and the module that does
ELSEWHERE = {"IngestEvent": ("memory-hook", "memoryd.edges.hooks.direct")}


@cache
def docs() -> ModuleType:
    """The script that writes the reference."""
    loader = SourceFileLoader("scripts_docs", f"{ROOT}/scripts/docs")
    spec = importlib.util.spec_from_loader("scripts_docs", loader)
    assert spec is not None
    made = importlib.util.module_from_spec(spec)
    loader.exec_module(made)
    return made


def leaves() -> list[tuple[str, click.Command]]:
    """Every command that does something."""
    found = docs().commands()
    return [(path, cmd) for path, cmd, _ in found if not isinstance(cmd, click.Group)]


def test_every_command_has_help() -> None:
    """Every command and group says in a sentence what it does."""
    lacking = [path for path, command, _ in docs().commands() if not (command.help or "").strip()]
    assert lacking == []


def test_every_option_has_help() -> None:
    """Every option of every command says what it means."""
    lacking = [
        f"{path} {option.opts[0]}"
        for path, command, _ in docs().commands()
        for option in command.params
        if isinstance(option, click.Option)
        and not option.hidden
        and not (option.help or "").strip()
    ]
    assert lacking == []


def test_every_command_has_an_example() -> None:
    """The help of every command shows a call of it."""
    lacking = [path for path, command in leaves() if path not in (command.epilog or "")]
    # options of the program itself may stand before the command
    lacking = [p for p in lacking if p.partition(" ")[2] not in (dict(leaves())[p].epilog or "")]
    assert lacking == []


def test_every_command_takes_json() -> None:
    """--json is everywhere, and what it prints is described."""
    lacking = [
        path for path, command in leaves() if not any("--json" in p.opts for p in command.params)
    ]
    assert lacking == []
    assert sorted(path for path, _ in leaves()) == sorted(docs().SHAPES)


@pytest.mark.parametrize("page", ["docs/commands.md", "docs/json.md"])
def test_the_reference_is_fresh(page: str) -> None:
    """The pages are what scripts/docs writes."""
    with open(f"{ROOT}/{page}", encoding="utf-8") as file:
        assert file.read() == docs().PAGES[page](), f"{page} is stale: run scripts/docs"


def tree(module: str) -> ast.Module:
    """The source of a module of ours."""
    path = f"{ROOT}/src/{module.replace('.', '/')}"
    path = f"{path}/__init__.py" if os.path.isdir(path) else f"{path}.py"
    with open(path, encoding="utf-8") as file:
        return ast.parse(file.read())


def calls(node: ast.AST) -> Iterator[tuple[str, list[str]]]:
    """The names that are called, with the texts that they are given."""
    for call in ast.walk(node):
        if isinstance(call, ast.Call):
            name = getattr(call.func, "attr", getattr(call.func, "id", ""))
            yield (
                name,
                [
                    a.value
                    for a in call.args
                    if isinstance(a, ast.Constant) and isinstance(a.value, str)
                ],
            )


@cache
def methods() -> dict[str, set[str]]:
    """The client's methods that make each call of the contract."""
    found: dict[str, set[str]] = {}
    for module in CLIENTS:
        for function in ast.walk(tree(f"memoryd.{module}")):
            if not isinstance(function, ast.FunctionDef):
                continue
            for name, texts in calls(function):
                if name in CALLING and texts:
                    found.setdefault(texts[0], set()).add(function.name)
    # a method may go through one that is private
    for rpc, names in found.items():
        private = {name for name in names if name.startswith("_")}
        for module in CLIENTS:
            for function in ast.walk(tree(f"memoryd.{module}")):
                if isinstance(function, ast.FunctionDef) and private & {
                    n for n, _ in calls(function)
                }:
                    found[rpc] = found[rpc] | {function.name}
    return found


@cache
def used() -> set[str]:
    """What the commands call, and the texts they hand over, in all modules that they import."""
    seen: set[str] = set()
    todo = {cmd.callback.__module__ for _, cmd in leaves() if cmd.callback is not None}
    todo |= {
        f"memoryd.edges.cli.{name}" for name in docs().program.list_commands(None) if _is(name)
    }
    names: set[str] = set()
    while todo:
        module = todo.pop()
        if module in seen:
            continue
        seen.add(module)
        source = tree(module)
        names |= {name for name, _ in calls(source)} | {
            t for _, texts in calls(source) for t in texts
        }
        names |= {n.attr for n in ast.walk(source) if isinstance(n, ast.Attribute)}
        todo |= set(_imports(source)) - seen
    return names


def _is(name: str) -> bool:
    return os.path.exists(f"{ROOT}/src/memoryd/edges/cli/{name}.py")


def _imports(source: ast.Module) -> Iterator[str]:
    """The modules of the edges that a module imports, but for the servers and hooks."""
    for node in ast.walk(source):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("memoryd.edges"):
            for name in (node.module, *(f"{node.module}.{a.name}" for a in node.names)):
                path = f"{ROOT}/src/{str(name).replace('.', '/')}"
                inside = not str(name).startswith(("memoryd.edges.mcp", "memoryd.edges.hooks"))
                if inside and (os.path.isfile(f"{path}.py") or os.path.isdir(path)):
                    yield str(name)


def services() -> list[Any]:
    """The services of ours: those of the contract."""
    files = (memory_pb2, note_pb2, care_pb2, erasure_pb2)
    return [made for file in files for made in file.DESCRIPTOR.services_by_name.values()]


def test_every_call_has_a_command() -> None:
    """What the daemon can do can be done from the command line."""
    unreached = []
    for service in services():
        for rpc in service.methods_by_name:
            if rpc in ELSEWHERE:
                makes = methods()[rpc] & {name for name, _ in calls(tree(ELSEWHERE[rpc][1]))}
            elif service.name == "NoteService":  # called by its name
                makes = {rpc} & (
                    used() | (set(methods()) if methods().get(rpc, set()) & used() else set())
                )
            else:
                makes = methods().get(rpc, set()) & used()
            if not makes:
                unreached.append(f"{service.name}.{rpc}")
    assert unreached == []


def test_the_list_of_other_programs_is_right() -> None:
    """What is said to be called elsewhere is a call of the contract."""
    known = {rpc for service in services() for rpc in service.methods_by_name}
    assert set(ELSEWHERE) <= known


WHEN = ("--since", "--until", "--between", "--at", "--on")


def when_options() -> list[tuple[str, click.Option]]:
    """Every option that takes a point in time."""
    return [
        (f"{path} {option.opts[0]}", option)
        for path, command, _ in docs().commands()
        for option in command.params
        if isinstance(option, click.Option) and set(option.opts) & set(WHEN)
    ]


@pytest.mark.parametrize("words", ["yesterday", "last tuesday", "2w", "2026-01-31", "3 days ago"])
def test_every_time_is_written_as_people_write_it(words: str) -> None:
    """All options for times take the same words, and none takes nonsense."""
    assert len(when_options()) > 10
    for name, option in when_options():
        given: Any = (words,) * option.nargs if option.nargs > 1 else words
        made = option.type_cast_value(click.Context(click.Command("x")), given)
        for moment in made if isinstance(made, tuple) else (made,):
            assert isinstance(moment, int), name
            assert moment > 0, name
        bad: Any = ("whenever",) * option.nargs if option.nargs > 1 else "whenever"
        with pytest.raises(click.BadParameter):
            option.type_cast_value(click.Context(click.Command("x")), bad)
