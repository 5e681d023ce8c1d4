import json
import re
import shlex
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import click
import pytest

from memoryd import __version__
from memoryd.domain.capture import Received, from_hook
from memoryd.edges.cli.main import main
from memoryd.edges.install import opencode
from memoryd.edges.install.agents import AGENTS

PLUGIN = Path(__file__).parents[2] / "plugin"
TEXTS = [*PLUGIN.rglob("*.md")]
EVENTS = {
    "session.start",
    "chat.message",
    "message.completed",
    "tool.execute.after",
    "session.compacted",
    "session.error",
    "session.end",
}

# Writes its arguments and its stdin as one line.
FAKE_HOOK = """#!/bin/sh
printf '%s\\t%s\\n' "$*" "$(cat)" >> "$(dirname "$0")/said"
"""


def test_the_plugin_is_whole() -> None:
    """The manifest names the plugin and the version of the package; the marketplace lists it."""
    manifest = json.loads((PLUGIN / ".claude-plugin" / "plugin.json").read_text())
    market = json.loads((PLUGIN / ".claude-plugin" / "marketplace.json").read_text())
    assert manifest["name"] == "memoryd"
    assert manifest["version"] == __version__
    (entry,) = market["plugins"]
    assert (entry["name"], entry["source"]) == ("memoryd", "./")
    assert {"name", "owner", "plugins"} <= market.keys()


def test_its_hooks_are_those_that_install_writes() -> None:
    """Plugin and `memory install claude-code` register the same; the plugin finds it on PATH."""
    hooks = json.loads((PLUGIN / "hooks" / "hooks.json").read_text())
    assert hooks == AGENTS["claude-code"].wanted("memory-hook").document()


def test_its_server_is_a_command_of_ours() -> None:
    """The plugin starts `memory mcp`, found on PATH."""
    servers = json.loads((PLUGIN / ".mcp.json").read_text())["mcpServers"]
    (server,) = servers.values()
    assert server["command"] == "memory"
    (name,) = server["args"]
    assert main.get_command(click.Context(main), name) is not None


@pytest.mark.parametrize("path", TEXTS, ids=lambda p: p.stem)
def test_texts_have_a_description(path: Path) -> None:
    """Skill and commands begin with a header that says what they are for."""
    header = path.read_text().split("---\n")[1]
    assert re.search(r"^description: .{20,1000}$", header, re.MULTILINE)
    if path.name == "SKILL.md":
        assert f"\nname: {path.parent.name}\n" in f"\n{header}"


@pytest.mark.parametrize("path", TEXTS, ids=lambda p: p.stem)
def test_every_command_that_is_taught_exists(path: Path) -> None:
    """Each `memory ...` in skill and commands has a known command and known options."""
    text = " ".join(path.read_text().split())
    found = re.findall(r"`(memory [^`]*)`", text) + re.findall(r"sh (memory [^|`]*)", text)
    assert found
    for line in found:
        words = shlex.split(line.split(" 2>")[0])
        command = main.get_command(click.Context(main), words[1])
        assert command is not None, line
        known = {o for p in command.params for o in (*p.opts, *p.secondary_opts)}
        assert {word for word in words if word.startswith("-")} <= known, line


class Node:
    """Runs a plugin file under node with a script, and gathers what it sends."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        program = directory / "memory hook"
        program.write_text(FAKE_HOOK)
        program.chmod(0o755)
        self.program = str(program)

    def run(self, major: int, script: str, *, program: str = "") -> None:
        """Load the plugin as `plugin` and run a script, which must succeed."""
        text = opencode.rendered(program or self.program, major)
        (self.directory / "plugin.mjs").write_text(text)
        (self.directory / "run.mjs").write_text(f'import * as plugin from "./plugin.mjs"\n{script}')
        done = subprocess.run(
            [shutil.which("node") or "node", "run.mjs"],
            cwd=self.directory,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")

    def said(self, count: int) -> list[dict[str, Any]]:
        """The payloads, in the order of their times; waits until so many have come."""
        path = self.directory / "said"
        deadline = time.monotonic() + 30
        lines: list[str] = []
        while len(lines) < count and time.monotonic() < deadline:
            lines = path.read_text().splitlines() if path.exists() else []
            time.sleep(0.02)
        payloads = []
        for line in lines:
            arguments, _, payload = line.partition("\t")
            payloads.append(json.loads(payload))
            assert arguments == f"--agent opencode {payloads[-1]['event']}"
        assert len(payloads) == count
        assert {payload["event"] for payload in payloads} <= EVENTS
        for payload in payloads:
            received = Received(agent="opencode", event="", time_ms=1, cwd="/")
            (event,) = from_hook(received, payload)
            assert (event.session_id, event.time_ms) == ("s", payload["time"])
        return sorted(payloads, key=lambda payload: (payload["time"], payload["event"]))


@pytest.fixture
def node(tmp_path: Path) -> Node:
    """Node, if this machine has it."""
    if not shutil.which("node"):
        pytest.skip("node is missing")
    return Node(tmp_path)


def test_the_plugin_for_opencode_1_sends_a_conversation(node: Node) -> None:
    """Start, prompt, tools, reply, summary and error are sent once each, in the documented shape."""
    node.run(
        1,
        """
const hooks = await plugin.MemorydPlugin({ directory: process.cwd() })
const tell = (type, properties) => hooks.event({ event: { type, properties } })
const part = (messageID, id, text, more) =>
  tell("message.part.updated", { part: { type: "text", id, messageID, sessionID: "s", text, ...more } })
const reply = (id, completed, more) =>
  tell("message.updated", { info: { id, sessionID: "s", role: "assistant", time: { completed },
    providerID: "p", modelID: "m", mode: "build", ...more } })
await tell("session.created", { info: { id: "s", title: "T", directory: process.cwd(), time: { created: 1 } } })
await tell("session.updated", { info: { id: "s", directory: process.cwd(), parentID: "up" } })
await hooks["chat.message"]({ sessionID: "s", messageID: "u1", agent: "build" },
  { message: {}, parts: [{ type: "text", text: "Hello" }, { type: "text", text: "no", synthetic: true }] })
await hooks["tool.execute.after"]({ tool: "bash", sessionID: "s", callID: "c1", args: { command: "ls" } },
  { title: "ls", output: "a b", metadata: {} })
await tell("message.part.updated", { part: { type: "tool", tool: "read", callID: "c2", sessionID: "s",
  state: { status: "error", input: { path: "x" }, error: "gone", time: { start: 5, end: 7 } } } })
await part("a1", "p1", "He")
await part("a1", "p1", "Here")
await part("a1", "p2", "it is")
await reply("a1", undefined)
await reply("a1", 3)
await reply("a1", 3)
await part("a2", "p3", "All of it")
await reply("a2", 4, { summary: true })
await tell("session.error", { sessionID: "s", error: { name: "E", data: { message: "quota" } } })
await tell("session.error", {})
await tell("nobody.knows", null)
await tell("session.created", null)
await hooks["chat.message"](null, null)
await hooks["tool.execute.after"](null, null)
""",
    )
    by_event: dict[str, list[dict[str, Any]]] = {}
    for payload in node.said(7):
        assert payload["sessionID"] == "s"
        assert payload["directory"] == str(node.directory)
        by_event.setdefault(payload["event"], []).append(payload)
    (start,) = by_event["session.start"]
    assert (start["title"], start["time"]) == ("T", 1)
    (prompt,) = by_event["chat.message"]
    assert (prompt["text"], prompt["messageID"], prompt["parentID"]) == ("Hello", "u1", "up")
    failed, used = by_event["tool.execute.after"]
    assert (used["tool"], used["args"], used["output"]) == ("bash", {"command": "ls"}, "a b")
    assert (failed["callID"], failed["error"], failed["duration"]) == ("c2", "gone", 2)
    (reply,) = by_event["message.completed"]
    assert (reply["text"], reply["model"], reply["time"]) == ("Here\n\nit is", "p/m", 3)
    (summary,) = by_event["session.compacted"]
    assert summary["summary"] == "All of it"
    (error,) = by_event["session.error"]
    assert error["error"] == "quota"


def test_the_plugin_for_opencode_2_sends_a_conversation(node: Node) -> None:
    """The same by the interface of version 2; events of other directories are left to others."""
    node.run(
        2,
        """
const hooks = {}
const here = process.cwd()
const told = (type, data, more) => ({ type, data: { sessionID: "s", ...data }, ...more })
const events = [
  told("session.created", { title: "T", parentID: "up", location: { directory: here } },
    { id: "e1", created: 1, location: { directory: here } }),
  told("session.created", { sessionID: "z" }, { id: "e2", location: { directory: "/elsewhere" } }),
  told("session.text.ended", { assistantMessageID: "a1", ordinal: 0, text: "Here" }, { id: "e3" }),
  told("session.text.ended", { assistantMessageID: "a1", ordinal: 1, text: "it is" }, { id: "e4" }),
  told("session.text.ended", { assistantMessageID: "a2", ordinal: 0, text: "Done" }, { id: "e5" }),
  told("session.execution.succeeded", {}, { id: "e6" }),
  told("session.execution.succeeded", {}, { id: "e6" }),
  told("session.compaction.ended", { text: "All of it" }, { id: "e7" }),
  told("session.execution.failed", { error: { message: "quota" } }, { id: "e8" }),
  { type: "session.created" },
  { type: "nobody.knows", data: null },
]
const ctx = {
  location: { directory: here },
  session: { get: async () => { throw new Error("no") }, hook: async (n, f) => { hooks[n] = f } },
  tool: { hook: async (n, f) => { hooks[n] = f } },
  event: { subscribe: async function* () { yield* events } },
}
if (plugin.default.id !== "memoryd") throw new Error("no id")
const end = await plugin.default.setup(ctx)
hooks.prompt({ sessionID: "s", messageID: "u1", prompt: { text: "Hello" } })
hooks["execute.after"]({ tool: "shell", sessionID: "s", id: "c1", input: { command: "ls" },
  status: "completed", result: { content: [{ type: "text", text: "a b" }] } })
hooks["execute.after"]({ tool: "read", sessionID: "s", id: "c2", input: {}, status: "error",
  error: { message: "gone" } })
hooks.prompt(null)
hooks["execute.after"](undefined)
end()
""",
    )
    payloads = node.said(8)
    found = sorted((p["event"], p.get("text") or p.get("callID") or "") for p in payloads)
    assert found == [
        ("chat.message", "Hello"),
        ("message.completed", "Done"),
        ("message.completed", "Here\n\nit is"),
        ("session.compacted", ""),
        ("session.error", ""),
        ("session.start", ""),
        ("tool.execute.after", "c1"),
        ("tool.execute.after", "c2"),
    ]
    tools = {p["callID"]: p for p in payloads if p["event"] == "tool.execute.after"}
    assert tools["c1"]["output"] == "a b"
    assert tools["c2"]["error"] == "gone"
    assert {p["sessionID"] for p in payloads} == {"s"}


@pytest.mark.parametrize("major", [1, 2])
def test_a_missing_program_disturbs_nobody(node: Node, major: int) -> None:
    """If memory-hook is gone, the plugin does its part without a word."""
    script = {
        1: """
const hooks = await plugin.MemorydPlugin({ directory: "/nowhere" })
await hooks.event({ event: { type: "session.created", properties: { info: { id: "s" } } } })
""",
        2: """
await plugin.default.setup({ event: { subscribe: () => { throw new Error("no") } } })
""",
    }[major]
    node.run(major, script, program="/nowhere/memory-hook")
