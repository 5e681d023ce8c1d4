import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryd.domain.capture import claude_code, copilot, cursor, gemini
from memoryd.edges.install import edit, jsonc, merge
from memoryd.edges.install.agents import AGENTS, Agent
from memoryd.edges.install.errors import Refused
from memoryd.edges.install.merge import Hook, Wanted

PROGRAM = "/opt/my tools/memory-hook"
WITH_HOOKS = [agent for agent in AGENTS.values() if agent.entry]
ONE = Wanted((Hook("Stop", {"hooks": [{"command": PROGRAM, "args": ["--agent", "x"]}]}),))

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)
events = st.sampled_from(
    ["Stop", "SessionStart", "sessionStart", "postToolUse", "AfterTool", "Other"]
)
foreign = st.fixed_dictionaries({}, optional={"hooks": st.lists(json_values, max_size=2)}) | (
    json_values
)
hook_tables = st.dictionaries(events, st.lists(foreign, max_size=3), max_size=3)
documents = st.builds(
    lambda before, hooks, after: before | hooks | after,
    st.dictionaries(st.text(max_size=6), json_values, max_size=3),
    st.fixed_dictionaries({}, optional={"hooks": hook_tables}),
    st.dictionaries(st.text(max_size=6), json_values, max_size=2),
)
indents = st.sampled_from([None, 1, 2, 4, "\t"])
ends = st.sampled_from(["\n", "\r\n"])


def pruned(document: dict[str, Any]) -> dict[str, Any]:
    """A document without what is empty under ``hooks``, and without a version."""
    hooks = {k: v for k, v in document.get("hooks", {}).items() if v != []}
    rest = {k: v for k, v in document.items() if k not in {"hooks", "version"}}
    return rest | ({"hooks": hooks} if hooks else {})


@pytest.mark.parametrize("agent", WITH_HOOKS, ids=lambda a: a.name)
@settings(max_examples=60, deadline=None)
@given(document=documents, indent=indents, end=ends)
def test_installing_and_uninstalling_leaves_the_data_alone(
    agent: Agent, document: dict[str, Any], indent: int | str | None, end: str
) -> None:
    """Any object: our entries come and go, and all the rest says what it said, in its order."""
    text = json.dumps(document, indent=indent, ensure_ascii=False).replace("\n", end)
    wanted = agent.wanted(PROGRAM)
    try:
        made = merge.merged(text, wanted)
    except Refused:
        assert "hooks" in document
        assert not isinstance(document["hooks"], dict)
        return
    entries = json.loads(made)["hooks"]
    for hook in wanted.hooks:
        assert hook.entry in entries[hook.event]
    assert merge.merged(made, wanted) == made
    back = json.loads(merge.without(made, wanted))
    assert pruned(back) == pruned(document)
    assert list(pruned(back)) == list(pruned(document))


gaps = st.sampled_from(["", " ", "\n", "\n  ", "\r\n\t", " // no\n", "/* no */", " /* a\nb */ "])


@st.composite
def untidy(draw: st.DrawFn, value: Any) -> str:
    """A value as somebody might have typed it, with comments anywhere."""

    def gap() -> str:
        return draw(gaps)

    if not isinstance(value, (dict, list)):
        return gap() + json.dumps(value) + gap()
    if isinstance(value, dict):
        names = [gap() + json.dumps(key) + gap() + ":" for key in value]
        inner = [name + draw(untidy(v)) for name, v in zip(names, value.values(), strict=True)]
        opening, closing = "{}"
    else:
        inner = [draw(untidy(v)) for v in value]
        opening, closing = "[]"
    comma = draw(st.sampled_from(["", ","])) if inner else ""
    return gap() + opening + ",".join(inner) + comma + gap() + closing + gap()


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_any_text_with_comments_survives(data: st.DataObject) -> None:
    """However a file is typed, it comes back to the byte."""
    document = data.draw(documents.filter(bool))
    text = data.draw(untidy(document))
    assert jsonc.plain(jsonc.parse(text)) == document
    made = merge.merged(text, ONE)
    back = merge.without(made, ONE)
    assert made.count("no") == text.count("no")
    if all(document.get("hooks", {"": [1]}).values()) and document.get("hooks", 1) != {}:
        assert back == text


@settings(max_examples=200, deadline=None)
@given(value=json_values, indent=st.sampled_from(["  ", "\t"]))
def test_what_is_written_is_json(value: Any, indent: str) -> None:
    """A value that is written on lines says what it said."""
    assert json.loads(edit.rendered(value, indent)) == value


@settings(max_examples=200, deadline=None)
@given(document=documents, indent=indents)
def test_the_reader_reads_what_json_reads(document: dict[str, Any], indent: Any) -> None:
    """On plain JSON the tree says what `json` says."""
    text = json.dumps(document, indent=indent)
    assert jsonc.plain(jsonc.parse(text)) == document


@settings(max_examples=300, deadline=None)
@given(text=st.text(alphabet='{}[]",:/*\\ \n\r\t01e-.truefalsn', max_size=30))
def test_the_reader_takes_no_more_than_json_and_comments(text: str) -> None:
    """Whatever `json` takes is taken alike; other texts give a tree or Broken, nothing else."""
    try:
        expected = json.loads(text)
    except ValueError:
        expected = ...
    try:
        found = jsonc.plain(jsonc.parse(text))
    except jsonc.Broken:
        found = ...
    assert found == expected or expected is ...


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"a" 1}',
        '{"a": 1 "b": 2}',
        "{'a': 1}",
        '{"a": 01}',
        "[1, , 2]",
        '{"a": "\n"}',
        '{"a": 1} x',
        "/* open",
        "nul",
        '{"a": "\\q"}',
        "[" * 200 + "]" * 200,
    ],
)
def test_a_broken_text_is_refused(text: str) -> None:
    """What no agent could read is not read here either."""
    with pytest.raises(jsonc.Broken):
        jsonc.parse(text)


def test_an_error_names_its_line() -> None:
    """The message says where to look."""
    with pytest.raises(jsonc.Broken, match="line 3: a comma or } is missing"):
        jsonc.parse('{\n  "a": 1\n  "b": 2\n}')


ORIGINALS = {
    "two spaces": '{\n  "model": "opus"\n}\n',
    "four spaces": '{\n    "model": "opus",\n    "env": {\n        "A": "1"\n    }\n}',
    "tabs": '{\n\t"model": "opus"\n}\n',
    "one line": '{"model": "opus"}',
    "minified": '{"model":"opus","list":[1,2]}',
    "carriage returns": '{\r\n  "model": "opus"\r\n}\r\n',
    "comments": '// mine\n{\n  "model": "opus" // the big one\n  /* the end */\n}\n// over\n',
    "a comment before the end": '{\n  "model": "opus", // big\n  // "old": 1\n}\n',
    "a comma at the end": '{\n  "model": "opus",\n}\n',
    "a comma at the end of one line": '{ "model": "opus", }',
    "foreign hooks": '{\n  "hooks": {\n    "Stop": [\n      {"hooks": [{"type": "command", '
    '"command": "say done"}]}\n    ],\n    "PreToolUse": [{"matcher": "Bash", "hooks": []}]\n  },\n'
    '  "model": "opus"\n}\n',
    "foreign hooks for one": '{"hooks": {"Stop": [ {"hooks": [{"command": "x"}]} ]}, "z": 1}',
    "odd spaces": '  {   "model" :"opus" ,\n "b":2\n     ,"hooks": { "Stop" : [ 1 ,\n 2 ] } }  ',
    "escapes": '{\n  "h\\u006foks ": "\\ud83d\\ude00 \u00e9 \\/"\n}\n',
    "numbers": '{\n  "a": 1.0e+2,\n  "b": -0.0,\n  "c": 123456789012345678901234567890\n}\n',
    "a key twice": '{\n  "a": 1,\n  "a": 2\n}\n',
}


@pytest.mark.parametrize("text", ORIGINALS.values(), ids=ORIGINALS)
def test_what_was_there_stays_byte_for_byte(text: str) -> None:
    """Taking our entries out of a file that had others restores it to the byte."""
    made = merge.merged(text, ONE)
    assert made != text
    assert merge.hooks_in(made) == list(ONE.hooks)
    assert merge.without(made, ONE) == text


@pytest.mark.parametrize("text", ORIGINALS.values(), ids=ORIGINALS)
def test_nothing_is_taken_away(text: str) -> None:
    """Every line of the file is still there, at most with a comma more."""
    kept = [line.replace(",", "") for line in merge.merged(text, ONE).splitlines()]
    if "\n" in text.strip() and not text.startswith("  {"):
        assert [line for line in text.splitlines() if line.replace(",", "") not in kept] == []


def test_indentation_is_the_files_own() -> None:
    """New lines are indented as the others are, with the same line ends."""
    made = merge.merged('{\r\n\t"a": 1\r\n}\r\n', ONE)
    assert made.startswith('{\r\n\t"a": 1,\r\n\t"hooks": {\r\n\t\t"Stop": [\r\n\t\t\t{\r\n')
    assert "\n" not in made.replace("\r\n", "")


@pytest.mark.parametrize("text", ["", "  \n", "{}", "{ }", "{\n}", "{\n  // nothing yet\n}\n"])
def test_an_empty_file_gets_a_readable_one(text: str) -> None:
    """Where nothing stood, entries are written on lines of their own, below comments."""
    made = merge.merged(text, ONE)
    assert '\n  "hooks": {\n    "Stop": [\n      {\n' in made
    assert ("// nothing yet" in made) == ("//" in text)
    assert merge.hooks_in(merge.without(made, ONE)) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[]", "does not hold an object"),
        ('{"hooks": []}', "hooks is not an object"),
        ('{"hooks": {"Stop": {}}}', "Stop is not a list"),
        ('{"hooks": {}, "hooks": {}}', "more than once"),
    ],
)
def test_a_shape_that_is_not_known_is_refused(text: str, problem: str) -> None:
    """Where entries cannot be put, nothing is put."""
    with pytest.raises(Refused, match=problem):
        merge.merged(text, ONE)


def test_an_older_entry_is_replaced() -> None:
    """An entry with another path or limit, from an earlier installation, gives way to the new."""
    older = AGENTS["codex"].wanted("/old/venv/bin/memory-hook")
    newer = AGENTS["codex"].wanted(PROGRAM)
    text = '{\n  "hooks": {\n    "Stop": [\n      {"hooks": [{"command": "x"}]}\n    ]\n  }\n}\n'
    made = merge.merged(merge.merged(text, older), newer)
    assert "/old/venv" not in made
    assert merge.hooks_in(made) == sorted(newer.hooks, key=lambda hook: hook.event)
    assert merge.without(made, newer) == text


def test_our_command_is_found_in_a_group_of_others() -> None:
    """A command of ours that somebody moved into a group of theirs goes; the group stays."""
    text = (
        '{"hooks": {"Stop": [{"matcher": "x", "hooks": [{"command": "mine"}, '
        '{"command": "memory-hook --agent codex"}]}]}}'
    )
    assert json.loads(merge.without(text, ONE)) == {
        "hooks": {"Stop": [{"matcher": "x", "hooks": [{"command": "mine"}]}]}
    }


@pytest.mark.parametrize(
    "command", ["my-memory-hook --agent codex", "echo memory-hook --agent x", "memory-hook", "'"]
)
def test_a_command_of_others_is_not_ours(command: str) -> None:
    """Only a program called memory-hook that is told an agent is ours."""
    text = json.dumps({"hooks": {"Stop": [{"hooks": [{"command": command}]}]}})
    assert merge.hooks_in(text) == []
    assert merge.without(text, ONE) == text


def test_a_change_that_would_do_harm_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """If editing the text ever touched something else, the comparison stops it."""
    monkeypatch.setattr(edit, "inserted", lambda *_: '{"hooks": {}}')
    with pytest.raises(Refused, match="edit it by hand"):
        merge.merged('{"a": 1}', ONE)


def test_every_registered_event_is_understood() -> None:
    """The daemon makes something of every event for which a process is started."""
    understood = {
        "claude-code": claude_code.HANDLERS,
        "codex": claude_code.HANDLERS,
        "gemini": gemini._HANDLERS,
        "copilot": copilot._HANDLERS,
        "cursor": cursor._HANDLERS,
    }
    for agent in WITH_HOOKS:
        assert set(agent.events) <= understood[agent.name].keys()


@pytest.mark.parametrize("agent", WITH_HOOKS, ids=lambda a: a.name)
def test_no_event_can_deny_anything(agent: Agent) -> None:
    """No hook is registered where an agent asks for permission, and all end soon."""
    denying = {"pretooluse", "beforetool", "permissionrequest", "subagentstart"}
    if agent.name in {"copilot", "cursor"}:
        denying |= {"beforeshellexecution", "beforemcpexecution", "beforereadfile"}
    asked = {event.lower() for event in agent.events}
    if agent.name != "cursor":
        denying -= {"subagentstart"}
    assert not asked & denying
    for hook in agent.wanted(PROGRAM).hooks:
        (handler,) = merge.handlers(hook.entry)
        limit = handler.get("timeout", handler.get("timeoutSec"))
        assert limit in {1, 5, 5000}
        assert merge.command_line(handler)[:3] == [PROGRAM, "--agent", agent.name]
