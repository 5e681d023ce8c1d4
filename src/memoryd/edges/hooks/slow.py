"""What a hook does rarely: read the user's configuration, and look into a payload.

Loaded only when the configuration has changed, when a payload may hold a secret, or when it is
too long: each import here costs as much as all the rest of a hook.
"""

import os
from typing import TYPE_CHECKING

from memoryd import project

if TYPE_CHECKING:
    from memoryd.domain.redact import Redactor

_CUTS = (4 * 1024, 64 * 1024, 1024 * 1024)


def configured(problems: list[str]) -> tuple[str, str, str, str, str] | None:
    """What the user's file says: unified, data_dir, hook.transport, redact.rules, hook.inject.

    None if the file is no good; then ``problems`` says why.
    """
    from memoryd import config

    try:
        # no project is there, so that no project's file can have a say
        settings, values = config.load("/", environ={})
    except config.ConfigError as error:
        problems.append(str(error))
        return None
    source = {value.key: value.source for value in values}
    data_dir = "" if source["data_dir"] == "default" else settings.data_dir
    unified = "1" if settings.unified else "0"
    hook = settings.hook_transport, settings.redact_rules, settings.hook_inject
    return unified, data_dir, *hook


def keep(path: str, text: str) -> None:
    """Write a small file so that readers see the old one or the new one; or leave it."""
    directory = os.path.dirname(path)
    own = f"{path}.{os.getpid()}"
    try:
        project.private_dir(directory)
        fd = os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, os.fsencode(text))
        finally:
            os.close(fd)
        os.rename(own, path)
    except OSError:
        return


def redacted(payload: bytes, rules: str) -> bytes:
    """The payload without secrets; byte for byte as it was if it has none.

    What is not JSON is redacted as text: it will be set aside, and even there holds no secret.
    ``rules`` is the file of the user's own, or "". Raises ValueError if that cannot be used.
    """
    import json

    from memoryd.domain.errors import InvalidInput

    redactor = _redactor(rules)
    try:
        value, counts = redactor.redact_value(json.loads(payload))
    except (ValueError, RecursionError, InvalidInput):
        text, counts = redactor.redact(payload.decode("utf-8", "surrogateescape"))
        return text.encode("utf-8", "surrogateescape") if counts else payload
    return json.dumps(value).encode() if counts else payload


def _redactor(rules: str) -> "Redactor":
    from memoryd.domain.redact import Redactor

    if not rules:
        return Redactor(once=True)
    from memoryd import config

    try:
        settings, _ = config.load("/", environ={"MEMORYD_REDACT_RULES": rules})
        return config.redactor(settings)
    except config.ConfigError as error:
        raise ValueError(str(error)) from None


def shortened(payload: bytes, limit: int) -> bytes:
    """The payload with its longest texts cut, so that it fits. Raises ValueError if it cannot."""
    import json

    try:
        value = json.loads(payload)
        best = b""
        for longest in _CUTS:
            cut = json.dumps(_cut(value, longest)).encode()
            if len(cut) > limit:
                break
            best = cut
    except (ValueError, RecursionError):
        msg = f"the payload has {len(payload)} bytes, over the limit of {limit}, and is not JSON"
        raise ValueError(msg) from None
    if not best:
        msg = f"the payload has {len(payload)} bytes, over the limit of {limit}"
        raise ValueError(msg)
    return best


def _cut(value: object, longest: int) -> object:
    """The value with every text beyond ``longest`` cut, and a mark that says so."""
    if isinstance(value, str) and len(value) > longest:
        return f"{value[:longest]}\n[{len(value) - longest} characters left out by memory-hook]"
    if isinstance(value, dict):
        return {key: _cut(item, longest) for key, item in value.items()}
    if isinstance(value, list):
        return [_cut(item, longest) for item in value]
    return value
