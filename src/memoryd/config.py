"""The settings of one daemon: frozen, read once, each with the place that it comes from.

Owns the list of keys, what each may be, and the order of the places: flags, the environment
(``MEMORYD_<KEY>``), ``.memoryd.toml`` in the project's root, the user's file, defaults. A value
that is not allowed is an error that names its place; nothing is corrected silently. A key with a
dot, ``group.name``, stands in the table ``[group]`` of a file; elsewhere the dot is an underscore.

``.memoryd.toml`` comes with a cloned repository and is not to be trusted: it may not choose
where data goes, also not to which model, who may connect, or what is kept out of the log.
"""

import os
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from memoryd import project

if TYPE_CHECKING:
    from memoryd.domain.redact import Redactor

PROJECT_FILE = ".memoryd.toml"
ROOT_FILE = "ROOT"  # in the data directory: the path of the root that a project id stands for

_PREFIX = "MEMORYD_"
# no settings of the daemon: where a client connects, whether hooks capture, and where a test
# has the daemon killed
_NO_SETTINGS = frozenset({"MEMORYD_ADDRESS", "MEMORYD_HOOK", "MEMORYD_FAILPOINT"})
_FILE_LIMIT = 64 * 1024
_MAX_PORT = 65535
_NOT_FROM_PROJECT = frozenset(
    {
        "data_dir",
        "runtime_dir",
        "listen",
        "token",
        "unified",
        "hook.transport",
        "hook.inject",
        "redact.rules",
    }
)
_GROUPS_NOT_FROM_PROJECT = ("model.", "backup.")
MODEL_LEVELS = ("segment", "day", "week", "month", "year")
_MODEL_NAME_LIMIT = 100
_SECRET = frozenset({"token", "model.key_env"})  # somebody may take them for the secret itself
_WORDS = {"true": True, "yes": True, "on": True, "1": True}
_WORDS |= {"false": False, "no": False, "off": False, "0": False}


class ConfigError(Exception):
    """A setting cannot be used; names its place, the key and what is allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that can be set, checked."""

    project: str
    project_root: str
    data_dir: str
    runtime_dir: str
    listen: str
    token: bool
    unified: bool
    workers: int
    max_streams: int
    max_concurrent_rpcs: int
    max_message_mib: int
    grace_seconds: float
    log_format: str
    log_level: str
    hook_transport: str
    hook_inject: str
    redact_rules: str
    timezone: str
    segment_gap_minutes: float
    segment_tokens: int
    segment_tool_tokens: int
    segment_overlap_minutes: float
    segment_overlap_tokens: int
    jobs_rollup_day: str
    jobs_rollup_week: str
    jobs_rollup_month: str
    jobs_rollup_year: str
    jobs_compact: str
    jobs_backup: str
    backup_dir: str
    backup_keep: int
    model_provider: str
    model_name: str
    model_base_url: str
    model_key_env: str
    model_key_file: str
    model_daily_tokens: int
    model_input_tokens: int
    model_output_tokens: int
    model_timeout_seconds: float
    model_levels: str

    @property
    def socket_path(self) -> str:
        """The unix socket that the daemon binds."""
        return project.socket_path(self.project, self.runtime_dir)


@dataclass(frozen=True, slots=True)
class Value:
    """One key, its value, and the place that decided it."""

    key: str
    value: object
    source: str


class _Key(NamedTuple):
    type: type
    default: object  # None: follows from the project
    allowed: str
    check: Callable[[Any], bool] = lambda _: True


def _between(kind: type, default: float, low: float, high: float) -> _Key:
    noun = "a whole number" if kind is int else "a number"
    return _Key(kind, default, f"{noun} from {low} to {high}", lambda v: low <= v <= high)


def _one_of(default: str, *others: str) -> _Key:
    names = (default, *others)
    return _Key(str, default, "one of " + ", ".join(names), lambda v: v in names)


def _is_loopback(listen: str) -> bool:
    if not listen:
        return True
    host, colon, port = listen.rpartition(":")
    if not colon or not (port.isascii() and port.isdigit() and len(port) <= len(str(_MAX_PORT))):
        return False
    return int(port) <= _MAX_PORT and (host == "localhost" or _is_loopback_literal(host))


def _is_loopback_literal(host: str) -> bool:
    import ipaddress

    with suppress(ValueError):
        if host.startswith("[") and host.endswith("]"):
            return "%" not in host and ipaddress.IPv6Address(host[1:-1]).is_loopback
        return ipaddress.IPv4Address(host).is_loopback
    return False


_FILE = _Key(
    str,
    "",
    "empty (none), or the path of a TOML file: absolute, or one that begins with ~",
    lambda path: not path or os.path.isabs(path),
)


def _is_zone(name: str) -> bool:
    import zoneinfo

    try:
        return name in {"", "UTC"} or bool(zoneinfo.ZoneInfo(name))
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        return False


def _is_cron(text: str) -> bool:
    from memoryd.domain import cron
    from memoryd.domain.errors import InvalidInput

    try:
        return bool(cron.parse(text))
    except InvalidInput:
        return False


def _cron(default: str) -> _Key:
    allowed = "a cron expression: minute, hour, day of the month, month, day of the week"
    return _Key(str, default, allowed, _is_cron)


def _is_model_url(url: str) -> bool:
    from urllib.parse import urlsplit

    with suppress(ValueError):
        parts = urlsplit(url)
        host = parts.hostname or ""
        literal = f"[{host}]" if ":" in host else host
        here = host == "localhost" or _is_loopback_literal(literal)
        plain = url.isascii() and url.isprintable() and not set(url) & set(" ?#@\\")
        port = parts.port is None or parts.port > 0
        safe = parts.scheme == "https" or (parts.scheme == "http" and here)
        return not url or (safe and plain and port and bool(host))
    return False


def _is_variable(name: str) -> bool:
    return not name or (name.isascii() and name.isidentifier() and not name.startswith(_PREFIX))


def _is_level_list(text: str) -> bool:
    return bool(text) and all(name in MODEL_LEVELS for name in text.split(","))


def _is_model_name(name: str) -> bool:
    return len(name) <= _MODEL_NAME_LIMIT and name.isprintable() and name == name.strip()


_DIRECTORY = _Key(str, None, "an absolute path, or one that begins with ~", os.path.isabs)
_KEY_FILE = _Key(
    str,
    "",
    "empty, or an absolute path, or one that begins with ~",
    lambda v: not v or os.path.isabs(v),
)
_SWITCH = "true or false"
_LISTEN = (
    "empty (no TCP), or HOST:PORT with PORT from 0 to 65535 and a HOST that only this machine "
    "can reach: 127.x.x.x, [::1] or localhost"
)
_ZONE = "empty (the system's when the store was made), or a name such as Europe/Berlin or UTC"
_PROVIDER = "empty (no model), anthropic or openai"
_MODEL_URL = (
    "empty (the provider's own), or https://..., or http://... with a host that only this machine "
    "can reach; without a user, a query or a fragment"
)
_MODEL_KEY = f"empty (the provider's usual one), or a variable that does not begin with {_PREFIX}"
_MODEL_LEVELS = "some of " + ",".join(MODEL_LEVELS) + ", with commas and no blanks between them"
_KEYS: Mapping[str, _Key] = {
    "data_dir": _DIRECTORY,
    "runtime_dir": _DIRECTORY,
    "listen": _Key(str, "", _LISTEN, _is_loopback),
    "token": _Key(bool, True, _SWITCH),
    "unified": _Key(bool, False, _SWITCH),
    "workers": _between(int, 32, 4, 256),
    "max_streams": _between(int, 8, 1, 255),
    "max_concurrent_rpcs": _between(int, 256, 1, 65536),
    "max_message_mib": _between(int, 32, 1, 256),
    "grace_seconds": _between(float, 10.0, 0, 14),
    "log_format": _one_of("text", "json"),
    "log_level": _one_of("info", "debug", "warning", "error"),
    "hook.transport": _one_of("spool", "rpc"),
    "hook.inject": _one_of("session", "prompt", "off"),
    "redact.rules": _FILE,
    "timezone": _Key(str, "", _ZONE, _is_zone),
    "segment.gap_minutes": _between(float, 30.0, 1, 1440),
    "segment.tokens": _between(int, 4_000, 100, 100_000),
    "segment.tool_tokens": _between(int, 400, 0, 100_000),
    "segment.overlap_minutes": _between(float, 5.0, 0, 60),
    "segment.overlap_tokens": _between(int, 500, 0, 10_000),
    "jobs.rollup_day": _cron("5 0 * * *"),
    "jobs.rollup_week": _cron("10 0 * * 1"),
    "jobs.rollup_month": _cron("15 0 * * 1"),  # months and years end with a week
    "jobs.rollup_year": _cron("20 0 * * 1"),
    "jobs.compact": _cron("30 4 * * 0"),
    "jobs.backup": _cron("15 3 * * *"),
    "backup.dir": _KEY_FILE,  # empty: none
    "backup.keep": _between(int, 7, 1, 1000),
    "model.provider": _Key(str, "", _PROVIDER, lambda v: v in {"", "anthropic", "openai"}),
    "model.name": _Key(str, "", f"a name of at most {_MODEL_NAME_LIMIT} letters", _is_model_name),
    "model.base_url": _Key(str, "", _MODEL_URL, _is_model_url),
    "model.key_env": _Key(str, "", _MODEL_KEY, _is_variable),
    "model.key_file": _KEY_FILE,
    "model.daily_tokens": _between(int, 200_000, 0, 1_000_000_000),
    "model.input_tokens": _between(int, 6_000, 500, 200_000),
    "model.output_tokens": _between(int, 2_000, 200, 32_000),
    "model.timeout_seconds": _between(float, 60.0, 1, 600),
    "model.levels": _Key(str, ",".join(MODEL_LEVELS), _MODEL_LEVELS, _is_level_list),
}
_GROUPS = frozenset(key.partition(".")[0] for key in _KEYS if "." in key)


def _field(key: str) -> str:
    """The name of a key where a dot cannot stand."""
    return key.replace(".", "_")


_VARIABLES = {_PREFIX + _field(key).upper(): key for key in _KEYS}


def load(
    start_dir: str,
    flags: Mapping[str, object] | None = None,
    environ: Mapping[str, str] = os.environ,
) -> tuple[Settings, list[Value]]:
    """Read the settings for the project of ``start_dir``, and where each of them comes from.

    A flag that is None counts as not given. ``environ`` is asked for ``MEMORYD_*`` and
    ``MEMORY_PROJECT_ID``; the XDG directories are the process's own. Raises ConfigError.
    """
    user_file = project.config_file()
    given = _from_flags(flags or {})
    variables = _from_environment(environ)
    user = _from_file(user_file)
    found = user | variables | given
    if "unified" in found and found["unified"].value:
        name, root = project.UNIFIED, ""
    else:
        name, root = _project(start_dir, environ.get("MEMORY_PROJECT_ID", ""), found)
    if root:
        own = os.path.join(root, PROJECT_FILE)
        found = user | _from_file(own, user_file=user_file) | variables | given
    defaults = {key: spec.default for key, spec in _KEYS.items()}
    defaults |= {"data_dir": project.data_dir(name), "runtime_dir": project.runtime_dir()}
    values = [found.get(key) or Value(key, defaults[key], "default") for key in _KEYS]
    fields: dict[str, Any] = {_field(value.key): value.value for value in values}
    settings = Settings(project=name, project_root=root, **fields)
    _check_together(settings, {value.key: value for value in values})
    return settings, values


def _project(start_dir: str, chosen: str, found: Mapping[str, Value]) -> tuple[str, str]:
    """Find the project's id and root. A chosen id's root is what its data directory says."""
    root = project.project_root(start_dir)
    own = project.id_of_root(root)
    if not chosen or chosen == own:
        return own, root
    try:
        project.check_project_id(chosen)
    except ValueError as error:
        raise ConfigError(f"environment MEMORY_PROJECT_ID: {error}") from None
    data_dir = str(found["data_dir"].value) if "data_dir" in found else project.data_dir(chosen)
    path = os.path.join(data_dir, ROOT_FILE)
    try:
        with open(path, "rb") as file:
            noted = os.fsdecode(file.read(_FILE_LIMIT).removesuffix(b"\n"))
    except FileNotFoundError:
        return chosen, root
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    if not os.path.isabs(noted) or "\0" in noted:
        raise ConfigError(f"{path}: must hold the absolute path of the project's root")
    return chosen, noted


def _from_flags(flags: Mapping[str, object]) -> dict[str, Value]:
    found = {}
    for key, raw in flags.items():
        name = "--" + ("no-" if raw is False else "") + _field(key).replace("_", "-")
        if key not in _KEYS:
            known = ["--" + _field(known).replace("_", "-") for known in _KEYS]
            raise _unknown("flag", name, known)
        if raw is not None:
            found[key] = _value(key, raw, f"flag {name}", text=True)
    return found


def _from_environment(environ: Mapping[str, str]) -> dict[str, Value]:
    found = {}
    for name, raw in environ.items():
        if name in _VARIABLES:
            key = _VARIABLES[name]
            found[key] = _value(key, raw, f"environment {name}", text=True)
        elif name.startswith(_PREFIX) and name not in _NO_SETTINGS:
            raise _unknown("environment", name, list(_VARIABLES))
    return found


def _from_file(path: str, *, user_file: str = "") -> dict[str, Value]:
    """Read what a file sets. ``user_file`` is given for a project's file, which may set less."""
    found = {}
    for key, raw in _flat(_toml(path)).items():
        if key not in _KEYS:
            raise _unknown(path, key, [k for k in _KEYS if not user_file or _open(k)])
        if user_file and not _open(key):
            raise ConfigError(
                f"{path}: {key} may not be set by a project's file, because that comes with the "
                f"repository: set it in {user_file}, as {_PREFIX}{_field(key).upper()} or as a flag"
            )
        found[key] = _value(key, raw, path)
    return found


def _open(key: str) -> bool:
    return key not in _NOT_FROM_PROJECT and not key.startswith(_GROUPS_NOT_FROM_PROJECT)


def _flat(content: Mapping[str, Any]) -> dict[str, Any]:
    """What a file sets, with the keys of its tables spelled with a dot."""
    found: dict[str, Any] = {}
    for key, raw in content.items():
        if isinstance(raw, dict) and (key in _GROUPS or key not in _KEYS):
            found |= {f"{key}.{name}": value for name, value in raw.items()}
        else:
            found[key] = raw
    return found


def _toml(path: str) -> dict[str, Any]:
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # opening a pipe would wait for ever
            raise ConfigError(f"{path}: is not a regular file")
        with open(path, "rb") as file:
            content = file.read(_FILE_LIMIT + 1)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    if len(content) > _FILE_LIMIT:
        raise ConfigError(f"{path}: is larger than {_FILE_LIMIT} bytes")
    import tomllib

    try:
        return tomllib.loads(content.decode())
    except RecursionError:
        raise ConfigError(f"{path}: is not TOML that can be read: nested too deeply") from None
    except ValueError as error:  # also what the decoder raises
        raise ConfigError(f"{path}: is not TOML that can be read: {error}") from error


def redactor(settings: Settings) -> "Redactor":
    """The redactor with the user's rules. Raises ConfigError that names their file."""
    from memoryd.domain.errors import InvalidInput
    from memoryd.domain.redact import redactor_from

    path = settings.redact_rules
    if path and not os.path.exists(path):  # rules that are missed would let secrets through
        raise ConfigError(f"redact.rules: there is no file {path}")
    try:
        return redactor_from(_toml(path) if path else {})
    except InvalidInput as error:
        raise ConfigError(f"{path}: {error}") from None


def _value(key: str, raw: object, source: str, *, text: bool = False) -> Value:
    """Check ``raw``; with ``text``, numbers and switches may come as strings."""
    spec = _KEYS[key]
    value = _from_text(spec.type, raw) if text and isinstance(raw, str) else raw
    if spec.type is float and type(value) is int:
        with suppress(OverflowError):
            value = float(value)
    if spec in (_DIRECTORY, _FILE, _KEY_FILE) and isinstance(value, str):
        value = os.path.expanduser(value)
    if type(value) is not spec.type or not spec.check(value):
        shown = "" if key in _SECRET else f" = {repr(raw)[:120]}"
        raise ConfigError(f"{source}: {key}{shown} is not allowed: it must be {spec.allowed}")
    return Value(key, value, source)


def _from_text(kind: type, text: str) -> object:
    if kind is bool:
        return _WORDS.get(text.lower(), text)
    with suppress(ValueError):
        return kind(text)
    return text


def _check_together(settings: Settings, values: Mapping[str, Value]) -> None:
    if settings.max_streams >= settings.workers:
        streams, workers = values["max_streams"], values["workers"]
        raise ConfigError(
            f"max_streams = {streams.value} ({streams.source}) must be below "
            f"workers = {workers.value} ({workers.source}), so that streams leave workers free"
        )
    if settings.model_provider and not settings.model_name:
        provider = values["model.provider"]
        raise ConfigError(
            f"{provider.source}: model.provider = {provider.value!r} needs model.name, the model "
            "that is to write summaries"
        )
    try:
        _ = settings.socket_path
    except ValueError as error:
        raise ConfigError(f"{values['runtime_dir'].source}: {error}") from None


def _unknown(source: str, name: str, known: list[str]) -> ConfigError:
    import difflib

    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else "known are " + ", ".join(known)
    return ConfigError(f"{source}: unknown key {name!r}: {hint}")
