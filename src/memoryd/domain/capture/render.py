"""Tool calls and message contents as text that a person likes to read. Pure.

Owns how a call with its input, output and error is written down, and what stands in for data
that is no text. Lossless for words; images and other bytes become a short description.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from memoryd.domain.capture.harness import strip_ours

_FIRST_LINE: Final = (
    "command",
    "cmd",
    "file_path",
    "filePath",
    "absolute_path",
    "notebook_path",
    "pattern",
    "query",
    "path",
    "url",
    "description",
    "subject",
    "skill",
    "prompt",
)
_FILE_FIELDS: Final = (
    "file_path",
    "filePath",
    "absolute_path",
    "notebook_path",
    "path",
    "filename",
)
# what a result repeats from its input, or says only to programs
_UNTOLD: Final = frozenset(("yield_time_ms", "max_output_tokens", "timeout_ms"))
_ECHOED: Final = frozenset(
    (
        "oldString",
        "newString",
        "originalFile",
        "original_file",
        "structuredPatch",
        "userModified",
        "replaceAll",
        "isImage",
        "noOutputExpected",
        "oldTodos",
        "interrupted",
        "returnCodeInterpretation",
        "usage",
        "rawOutputPath",
    )
)
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
_DATA_URL: Final = re.compile(r"data:([\w.+/-]{1,80});base64,")
_LONG_BASE64: Final = 1024
_BASE64_LINE: Final = 60
_CONTROLS: Final = frozenset(map(chr, (*range(9), 11, *range(14, 27), *range(28, 32))))
_LOOKED_AT: Final = 4096
_ODD: Final = 8
_TASK: Final = frozenset(("content", "status"))
_SILENT: Final = ("thinking", "redacted_thinking", "reasoning")
_NUMBERED: Final = re.compile(r"^ *\d{1,9}\u2192", re.MULTILINE)
_TOO_DEEP: Final = "[a value that is nested too deeply to show]"


class Call(NamedTuple):
    """One call of a tool, with what came of it."""

    name: str
    input: object
    output: object
    error: str = ""


def call_text(call: Call) -> str:
    """The call as text: name and main argument, other arguments, output, error."""
    head = [_headline(call.name, call.input)]
    head.extend(_other_arguments(call.input))
    parts = ["\n".join(head)]
    said = value_text(call.output).strip("\n")
    if said.strip():
        parts.append(said)
    failed = strip_ours(call.error).strip()
    if failed and failed != said.strip():
        parts.append(f"error: {failed}")
    return "\n\n".join(parts)


def unnumbered(text: str) -> str:
    """A file's text as a tool read it, without the numbers before its lines."""
    return _NUMBERED.sub("", text) if _NUMBERED.match(text) else text


def file_path(arguments: object) -> str:
    """The file that a call is about, or ""."""
    if isinstance(arguments, dict):
        for field in _FILE_FIELDS:
            value = arguments.get(field)
            if isinstance(value, str) and value:
                return value
    return ""


def value_text(value: object) -> str:
    """Any JSON value as readable text."""
    if value is None:
        return ""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, bool | int | float):
        return _json(value)
    if isinstance(value, list):
        return _list_text(value)
    if isinstance(value, dict):
        return _object_text(value)
    return ""


def content_text(content: object) -> str:
    """The words of a message's content: text, or blocks of which the texts are joined."""
    if isinstance(content, str):
        return plain(content)
    if isinstance(content, list):
        return "\n\n".join(part for part in map(_block_text, content) if part)
    return value_text(content)


def plain(text: str) -> str:
    """The text, or what stands for it if it is no text; without our own injected block."""
    if len(text) >= _LONG_BASE64 and " " not in text[:_LOOKED_AT] and _is_base64(text):
        url = _DATA_URL.match(text)
        return f"[{url[1] if url else 'base64 data'}, about {_size(len(text) * 3 // 4)}]"
    look = text[:_LOOKED_AT]
    odd = sum(c in _CONTROLS for c in look)
    if "\0" in look or (odd > _ODD and odd * 10 > len(look)):
        return f"[binary data, {_size(len(text))}]"
    return strip_ours(text)


def _is_base64(text: str) -> bool:
    """Whether a text is base64 in one line, or in lines of one length."""
    url = _DATA_URL.match(text)
    first, *others = text[url.end() if url else 0 :].strip().splitlines() or [""]
    even = all(len(line) == len(first) for line in others[:-1])
    long = len(first) >= _BASE64_LINE and even and (not others or len(others[-1]) <= len(first))
    return long and all(_BASE64.fullmatch(line) for line in (first, *others))


def _headline(name: str, arguments: object) -> str:
    main = _main_argument(arguments)
    if main is None:
        if isinstance(arguments, str) and arguments.strip():
            return f"{name}: {plain(arguments).strip()}"
        return name
    return f"{name}: {value_text(arguments[main]).strip()}"  # type: ignore[index]


def _main_argument(arguments: object) -> str | None:
    if not isinstance(arguments, dict):
        return None
    for field in _FIRST_LINE:
        value = arguments.get(field)
        if (isinstance(value, str) and value.strip()) or (isinstance(value, list) and value):
            return field
    return None


def _other_arguments(arguments: object) -> Iterator[str]:
    if isinstance(arguments, list) and arguments:
        yield _list_text(arguments)
    if not isinstance(arguments, dict):
        return
    main = _main_argument(arguments)
    for field, value in arguments.items():
        if field != main and field not in _UNTOLD and value not in (None, "", [], {}):
            yield _field_text(str(field), value)


def _field_text(field: str, value: object) -> str:
    said = value_text(value).strip("\n")
    if "\n" not in said:
        return f"{field}: {said}"
    indented = "\n".join(f"  {line}" if line else "" for line in said.split("\n"))
    return f"{field}:\n{indented}"


def _list_text(values: list[Any]) -> str:
    if all(isinstance(v, dict) and isinstance(v.get("type"), str) for v in values):
        return content_text(values)
    if all(isinstance(v, str | int | float) for v in values):
        separator = "\n" if any(isinstance(v, str) and len(v) > 40 for v in values) else ", "  # noqa: PLR2004
        return separator.join(value_text(v) for v in values)
    if all(isinstance(v, dict) and v.keys() >= _TASK for v in values):
        return "\n".join(
            f"- {value_text(v['content'])} ({value_text(v['status'])})" for v in values
        )
    return _json(values)


def _object_text(value: dict[str, Any]) -> str:
    """An object as lines; the usual shapes of results as their words alone."""
    stdout, stderr = value.get("stdout"), value.get("stderr")
    if isinstance(stdout, str) or isinstance(stderr, str):
        return _streams(value)
    if isinstance(value.get("type"), str):
        block = _block_text(value)
        if block or "file" in value:
            return block
    for field in ("content", "output", "result", "text", "message"):
        inner = value.get(field)
        if isinstance(inner, str) or (isinstance(inner, list) and inner):
            return content_text(inner)
    shown = {k: v for k, v in value.items() if k not in _ECHOED and v not in (None, "", [], {})}
    if all(isinstance(v, str | bool | int | float) for v in shown.values()):
        return "\n".join(_field_text(str(k), v) for k, v in shown.items())
    return _json(shown)


def _streams(value: dict[str, Any]) -> str:
    out, err = value_text(value.get("stdout")), value_text(value.get("stderr"))
    code = value.get("exitCode", value.get("exit_code"))
    parts = [out.strip("\n")] if out.strip() else []
    if err.strip():
        parts.append(f"stderr: {err.strip()}")
    if isinstance(code, int) and code:
        parts.append(f"exit code {code}")
    if value.get("interrupted") is True:
        parts.append("interrupted")
    return "\n".join(parts)


def _block_text(block: object) -> str:
    """One block of a message, or of a tool's result."""
    if not isinstance(block, dict):
        return value_text(block)
    if block.get("type") in _SILENT:
        return ""
    for field in ("text", "tool_name"):
        if isinstance(block.get(field), str):
            return plain(block[field])
    inner = block.get("content")
    if isinstance(inner, str | list):
        return content_text(inner)
    return _data_text(block)


def _data_text(block: dict[str, Any]) -> str:
    """A block that carries a file or bytes."""
    kind = str(block.get("type") or "data")
    file = block.get("file")
    if isinstance(file, dict) and isinstance(file.get("content"), str):
        return plain(file["content"])
    data = block.get("source", block.get("inlineData"))
    if not isinstance(data, dict):
        data = file if isinstance(file, dict) else block
    for field in ("data", "base64", "url", "image_url"):
        if isinstance(data.get(field), str):
            media = data.get("media_type") or data.get("mimeType") or data.get("mime") or kind
            shown = plain(data[field])
            return (
                shown if field == "url" else f"[{media}, about {_size(len(data[field]) * 3 // 4)}]"
            )
    rest = {key: value for key, value in block.items() if key != "type"}
    return _json(rest) if rest else ""


def _json(value: object) -> str:
    try:
        return plain(json.dumps(value, ensure_ascii=False, default=str))
    except (RecursionError, ValueError):
        return _TOO_DEEP


def _size(count: int) -> str:
    if count < 1024:  # noqa: PLR2004
        return f"{count} bytes"
    return f"{count // 1024:,} KiB" if count < 1024 * 1024 else f"{count / 1024 / 1024:,.1f} MiB"
