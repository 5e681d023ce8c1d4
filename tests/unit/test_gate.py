import json
import random
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryd.domain.gate import suspicious
from memoryd.domain.redact import RULES, Redactor
from memoryd.domain.rule import Rule
from tests.unit import planted
from tests.unit.test_redact import ORDINARY, TEXTS

REDACTOR = Redactor()
ONCE = Redactor(once=True)


def _covered(text: str) -> None:
    """Fail if the redactor changes the text, plain or as JSON, and the gate does not see it."""
    forms = [
        json.dumps({"a": [text]}),
        json.dumps({"a": [text]}, ensure_ascii=False),
        json.dumps({"a": text}).replace("/", "\\/").replace("<", "\\u003c"),
    ]
    if REDACTOR.redact(text).counts:
        assert suspicious(text.encode("utf-8", "surrogatepass"))
        for form in forms:
            assert suspicious(form.encode("utf-8", "surrogatepass")), form


@pytest.mark.parametrize(("rule", "template"), planted.ALL)
def test_the_gate_sees_every_kind(rule: str, template: str) -> None:
    """Every planted secret is seen, in text and in JSON."""
    rng = random.Random(rule)
    for _ in range(20):
        _covered(planted.plant(rule, template, rng).text)


@pytest.mark.parametrize(
    "text",
    [
        "secret_access_key -,+++/pQ7z/001123456789aBcDeFgHiJkLmNoPqRs",
        "AWS secret access key was: +++/pQ7z/001123456789aBcDeFgHiJkLmNoPqRs",
        "<userpass>it's'7xz</userpass>",
        "password = \"'it's'4me\"",
        "password\t=\tabc123x",
        'token: Optional[str] = "9fK2lmQ8zPq4"',
        ":\\/\\/bob:hunter2@acme.io",
        "a <private>b",
        "tool ---pwd hunter2x9",
    ],
)
def test_the_gate_sees_odd_forms(text: str) -> None:
    """Forms that a narrower gate has missed: words, tags, quotes in quotes, escaped slashes."""
    assert REDACTOR.redact(text).counts
    _covered(text)


@settings(max_examples=300, deadline=None)
@given(TEXTS)
def test_the_gate_covers_the_redactor(text: str) -> None:
    """Whatever the redactor would change, the gate flags."""
    _covered(text)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_the_gate_covers_every_pattern(rule: Rule) -> None:
    """Whatever a rule's pattern matches and the redactor changes, the gate flags."""

    @settings(max_examples=15, deadline=None, database=None)
    @given(st.from_regex(rule.pattern))
    def check(data: bytes) -> None:
        _covered(data.decode("utf-8", "replace"))

    check()


@given(st.dictionaries(st.text(max_size=9), TEXTS, max_size=3))
@settings(max_examples=200, deadline=None)
def test_the_gate_covers_values(value: dict[str, str]) -> None:
    """A value that the redactor changes because of its key is flagged in its JSON."""
    named = {f"{key}password": text for key, text in value.items()}
    if REDACTOR.redact_value(named).counts:
        assert suspicious(json.dumps(named).encode())


def test_most_ordinary_text_passes() -> None:
    """The gate is not simply shut: of lines that only look like secrets, many pass."""
    passed = [text for text in ORDINARY if not suspicious(text.encode())]
    assert len(passed) >= len(ORDINARY) // 3
    payload: dict[str, object] = {
        "session_id": "0189dfb2-4a5e-7f60-8b1c-2d3e4f5a6b7c",
        "cwd": "/home/bob/src/app",
    }
    payload |= {"transcript_path": "/home/bob/.claude/p/x.jsonl", "usage": {"input_tokens": 1234}}
    assert not suspicious(json.dumps(payload).encode())
    assert not suspicious(b"")


def test_the_gate_loads_nothing() -> None:
    """It costs the hook no import beyond its own package."""
    code = (
        "import sys; before = set(sys.modules); import memoryd.domain.gate;"
        "print(sorted(set(sys.modules) - before))"
    )
    out = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, check=True)
    assert out.stdout.decode().strip() == "['memoryd', 'memoryd.domain', 'memoryd.domain.gate']"


@pytest.mark.parametrize(
    "text",
    [
        "the authorization middleware rejects unauthenticated_requests",
        "a bearer of responsibilities_and_duties",
        "primary key: customer_identifier_column",
        "deployed to vercel and netlify today",
    ],
)
def test_names_without_a_value_pass(text: str) -> None:
    """A name that a secret could follow is no secret while none does."""
    assert not suspicious(json.dumps({"a": text}).encode())


@given(TEXTS)
@settings(max_examples=100, deadline=None)
def test_a_redactor_made_for_one_text_finds_the_same(text: str) -> None:
    """It differs in how it is made, and in nothing that it finds."""
    assert ONCE.redact(text) == REDACTOR.redact(text)
