"""One parser under atheris: `python -m tests.fuzz.target PARSER [libFuzzer's options]`.

`scripts/soak fuzz` starts one of these per parser. Bytes choose a sample, places in it and what to
put there; a run ends badly with any exception but InvalidInput, or if one input takes too long.
"""

import json
import sys
from typing import Any

import atheris

with atheris.instrument_imports(include=["memoryd.domain"]):
    from memoryd.domain.capture import Received, from_hook, harness
    from memoryd.domain.capture.render import value_text
    from memoryd.domain.capture.transcripts import READERS, Place, from_transcript
    from memoryd.domain.errors import InvalidInput
    from memoryd.domain.event import checked

from tests.unit.capture.samples import PAYLOADS, TRANSCRIPTS

_WORDS = ("user", "text", "tool_use", "tool_result", "<system-reminder>", "type", "id", "content")
_DEPTH = 4


def main() -> None:
    """Fuzz the parser that the first argument names."""
    name = sys.argv.pop(1)
    kind, _, agent = name.partition(":")

    def test(data: bytes) -> None:
        source = atheris.FuzzedDataProvider(data)
        if kind == "hook":
            _hook(agent, source)
        elif kind == "transcript":
            _transcript(agent, source)
        else:
            text = source.ConsumeUnicode(1 << 16)
            harness.words(text)
            harness.strip_trailing(text)
            value_text(text)

    atheris.Setup(sys.argv, test)
    atheris.Fuzz()


def _hook(agent: str, source: Any) -> None:
    samples = [(event, payload) for name, event, payload in PAYLOADS if name == agent]
    event, payload = source.PickValueInList(samples)
    try:
        events = from_hook(Received(agent, event, 1, "/x"), _changed(payload, source))
    except InvalidInput:
        return
    for made in events:
        checked(made)


def _transcript(agent: str, source: Any) -> None:
    records = _changed(TRANSCRIPTS[agent], source)
    if not isinstance(records, list):
        return
    reader = READERS[agent](Place("n", "f"))
    if reader.surveys:
        for record in records:
            if reader.survey(record):
                break
    for made in from_transcript(reader, enumerate(records, 1)):
        checked(made)
    if reader.unexplained:
        msg = f"{reader.unexplained} records have no fate"
        raise AssertionError(msg)


def _changed(value: Any, source: Any) -> Any:
    """The value with other values in a few of its places, or one from the bytes alone."""
    if source.ConsumeIntInRange(0, 9) == 0:
        try:
            return json.loads(source.ConsumeUnicode(4096))
        except (ValueError, RecursionError):
            return value
    changed = json.loads(json.dumps(value))
    for _ in range(source.ConsumeIntInRange(1, 4)):
        changed = _put(changed, source)
    return changed


def _put(value: Any, source: Any) -> Any:
    deeper = isinstance(value, dict | list) and value and source.ConsumeIntInRange(0, 7)
    if not deeper:
        return _anything(source, _DEPTH)
    key = source.PickValueInList(
        list(value) if isinstance(value, dict) else list(range(len(value)))
    )
    value[key] = _put(value[key], source)
    return value


def _anything(source: Any, depth: int) -> Any:
    kinds = ("none", "bool", "int", "float", "word", "text", "list", "dict")
    kind = source.PickValueInList(list(kinds if depth else kinds[:6]))
    simple = {
        "bool": source.ConsumeBool,
        "int": lambda: source.ConsumeInt(9),
        "float": source.ConsumeFloat,
        "word": lambda: source.PickValueInList(list(_WORDS)),
        "text": lambda: source.ConsumeUnicode(200),
    }
    if kind in simple:
        return simple[kind]()
    inner = (
        [_anything(source, depth - 1) for _ in range(source.ConsumeIntInRange(0, 4))]
        if depth
        else []
    )
    if kind == "dict":
        return {source.PickValueInList(list(_WORDS)): value for value in inner}
    return inner if kind == "list" else None


if __name__ == "__main__":
    main()
