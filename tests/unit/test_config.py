import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from memoryd import project
from memoryd.config import ConfigError, Settings, Value, load, redactor

Flags = Mapping[str, object]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a user with empty XDG directories, and a repository ``work`` to stand in."""
    for variable in [name for name in os.environ if name.startswith("MEMORY")]:
        monkeypatch.delenv(variable)
    for name in ("data", "config", "run"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    (tmp_path / "work" / ".git").mkdir(parents=True)
    (tmp_path / "config" / "memoryd").mkdir()
    return tmp_path


def _user_file(home: Path, text: str) -> str:
    path = home / "config" / "memoryd" / "config.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def _project_file(home: Path, text: str) -> str:
    path = home / "work" / ".memoryd.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def _load_work(
    home: Path, flags: Flags | None = None, environ: Mapping[str, str] | None = None
) -> tuple[Settings, list[Value]]:
    return load(str(home / "work"), flags, environ or {})


def _source_of(values: list[Value], key: str) -> str:
    return next(value.source for value in values if value.key == key)


def _refusal(
    home: Path, flags: Flags | None = None, environ: Mapping[str, str] | None = None
) -> str:
    with pytest.raises(ConfigError) as caught:
        _load_work(home, flags, environ)
    return str(caught.value)


def test_defaults_stand_when_nothing_is_set(home: Path) -> None:
    """Without files, variables and flags every key has its default, and says so."""
    settings, values = _load_work(home)
    name = project.id_of_root(os.path.realpath(home / "work"))
    assert settings == Settings(
        project=name,
        project_root=os.path.realpath(home / "work"),
        data_dir=str(home / "data" / "memoryd" / name),
        runtime_dir=str(home / "run" / "memoryd"),
        listen="",
        token=True,
        unified=False,
        workers=32,
        max_streams=8,
        max_concurrent_rpcs=256,
        max_message_mib=32,
        grace_seconds=10.0,
        log_format="text",
        log_level="info",
        hook_transport="spool",
        hook_inject="session",
        redact_rules="",
        timezone="",
        segment_gap_minutes=30.0,
        segment_tokens=4_000,
        segment_tool_tokens=400,
        segment_overlap_minutes=5.0,
        segment_overlap_tokens=500,
        jobs_rollup_day="5 0 * * *",
        jobs_rollup_week="10 0 * * 1",
        jobs_rollup_month="15 0 * * 1",
        jobs_rollup_year="20 0 * * 1",
        jobs_compact="30 4 * * 0",
        jobs_backup="15 3 * * *",
        backup_dir="",
        backup_keep=7,
        model_provider="",
        model_name="",
        model_base_url="",
        model_key_env="",
        model_key_file="",
        model_daily_tokens=200_000,
        model_input_tokens=6_000,
        model_output_tokens=2_000,
        model_timeout_seconds=60.0,
        model_levels="segment,day,week,month,year",
    )
    assert {value.source for value in values} == {"default"}
    assert settings.socket_path == f"{home}/run/memoryd/{name}.sock"


def test_nearer_places_win(home: Path) -> None:
    """Flags win over the environment, that over the project's file, that over the user's file."""
    user = _user_file(home, "workers = 10\nmax_message_mib = 1\nlog_level = 'error'\nmax_streams=1")
    own = _project_file(home, "workers = 11\nmax_message_mib = 2\nlog_level = 'debug'")
    environ = {"MEMORYD_WORKERS": "12", "MEMORYD_MAX_MESSAGE_MIB": "3"}
    settings, values = _load_work(home, {"workers": 13, "log_format": None}, environ)
    assert (settings.workers, _source_of(values, "workers")) == (13, "flag --workers")
    assert (settings.max_message_mib, _source_of(values, "max_message_mib")) == (
        3,
        "environment MEMORYD_MAX_MESSAGE_MIB",
    )
    assert (settings.log_level, _source_of(values, "log_level")) == ("debug", own)
    assert (settings.max_streams, _source_of(values, "max_streams")) == (1, user)
    assert (settings.log_format, _source_of(values, "log_format")) == ("text", "default")


def test_the_project_file_is_the_roots(home: Path) -> None:
    """From a directory below the root, the root's file counts and the directory's own does not."""
    _project_file(home, "workers = 11")
    (home / "work" / "sub").mkdir()
    (home / "work" / "sub" / ".memoryd.toml").write_text("workers = 99", encoding="utf-8")
    settings, _ = load(str(home / "work" / "sub"), {}, {})
    assert settings.workers == 11


def test_empty_variable_overrides_a_file(home: Path) -> None:
    """An empty MEMORYD_LISTEN closes the TCP port that the user's file opens."""
    _user_file(home, "listen = '127.0.0.1:50051'")
    assert _load_work(home)[0].listen == "127.0.0.1:50051"
    assert _load_work(home, environ={"MEMORYD_LISTEN": ""})[0].listen == ""


@pytest.mark.parametrize(
    "listen", ["127.0.0.1:0", "127.9.8.7:65535", "[::1]:50051", "localhost:50051", ""]
)
def test_loopback_may_be_listened_on(home: Path, listen: str) -> None:
    """Any address that only this machine can reach is taken as it was written."""
    assert _load_work(home, {"listen": listen})[0].listen == listen


@pytest.mark.parametrize(
    "listen",
    [
        "0.0.0.0:50051",
        "[::]:50051",
        "192.168.1.2:50051",
        "example.org:50051",
        "localhost.example.org:1",
        "[::ffff:127.0.0.1]:1",
        "[::1%eth0]:1",
        "::1:50051",
        "127.1:50051",
        "127.0.0.1",
        "127.0.0.1:",
        "127.0.0.1:65536",
        "127.0.0.1:-1",
        "127.0.0.1:+1",
        "127.0.0.1:http",
        ":50051",
        " ",
    ],
)
def test_everything_but_loopback_is_refused(home: Path, listen: str) -> None:
    """An address that others can reach, or that is no address, is an error that says what is."""
    message = _refusal(home, {"listen": listen})
    assert message.startswith(f"flag --listen: listen = {listen!r} is not allowed")
    assert "[::1]" in message


@pytest.mark.parametrize(
    ("key", "bad"),
    [
        ("workers", "3"),
        ("workers", "257"),
        ("workers", "many"),
        ("workers", "8.5"),
        ("max_message_mib", "0"),
        ("max_message_mib", "9" * 5000),
        ("grace_seconds", "14.5"),
        ("grace_seconds", "-1"),
        ("grace_seconds", "nan"),
        ("log_format", "xml"),
        ("log_level", "INFO"),
        ("unified", "maybe"),
        ("data_dir", "relative/dir"),
        ("runtime_dir", ""),
    ],
)
def test_a_bad_variable_names_everything(home: Path, key: str, bad: str) -> None:
    """The message names the variable, the key, the value and what is allowed."""
    name = f"MEMORYD_{key.upper()}"
    message = _refusal(home, environ={name: bad})
    assert message.startswith(f"environment {name}: {key} = ")
    assert bad[:80] in message
    assert "it must be " in message


@pytest.mark.parametrize(
    "line",
    [
        "workers = '32'",
        "workers = true",
        "workers = 32.0",
        "log_level = 1",
        "token = 1",
        "token = 'true'",
        "listen = 50051",
        "grace_seconds = '1'",
        "grace_seconds = true",
        "grace_seconds = 1" + "0" * 400,
        "data_dir = []",
    ],
)
def test_a_file_must_use_the_right_type(home: Path, line: str) -> None:
    """In a file a number is a number and a string a string; the message names the file."""
    path = _user_file(home, line)
    message = _refusal(home)
    assert message.startswith(f"{path}: {line.split(maxsplit=1)[0]}")
    assert "it must be " in message


def test_text_becomes_numbers_and_switches(home: Path) -> None:
    """Variables are text, and so may flags be; whole numbers will do for a number of seconds."""
    environ = {
        "MEMORYD_WORKERS": "64",
        "MEMORYD_GRACE_SECONDS": "2.5",
        "MEMORYD_TOKEN": "No",
        "MEMORYD_UNIFIED": "0",
    }
    settings, _ = _load_work(home, {"max_streams": "16"}, environ)
    assert (settings.workers, settings.max_streams, settings.grace_seconds) == (64, 16, 2.5)
    assert (settings.token, settings.unified) == (False, False)
    _user_file(home, "grace_seconds = 3")
    seconds = _load_work(home)[0].grace_seconds
    assert (type(seconds), seconds) == (float, 3.0)


def test_a_switch_that_is_off_is_called_by_its_no_flag(home: Path) -> None:
    """The place of a switch turned off by a flag is the flag that the user typed."""
    settings, values = _load_work(home, {"token": False})
    assert (settings.token, _source_of(values, "token")) == (False, "flag --no-token")


def test_a_token_put_into_the_switch_is_not_shown(home: Path) -> None:
    """Who takes MEMORYD_TOKEN for the token itself gets an error that does not repeat it."""
    message = _refusal(home, environ={"MEMORYD_TOKEN": "s3cr3t"})
    assert "MEMORYD_TOKEN" in message
    assert "true or false" in message
    assert "s3cr3t" not in message


def test_unknown_keys_are_errors_with_a_suggestion(home: Path) -> None:
    """A misspelt key is named with its place and the nearest right one."""
    assert _refusal(home, environ={"MEMORYD_LISTNE": "x"}) == (
        "environment: unknown key 'MEMORYD_LISTNE': did you mean MEMORYD_LISTEN?"
    )
    assert _refusal(home, {"log_fromat": "x"}) == (
        "flag: unknown key '--log-fromat': did you mean --log-format?"
    )
    path = _project_file(home, "worker = 5")
    assert _refusal(home) == f"{path}: unknown key 'worker': did you mean workers?"
    path = _user_file(home, "[zzz]\nx = 5")
    assert _refusal(home).startswith(f"{path}: unknown key 'zzz.x': known are data_dir, ")


def test_a_clients_variable_is_no_setting(home: Path) -> None:
    """A shell that tells clients where to connect, or hooks to be off, can still start a daemon."""
    environ = {"MEMORYD_ADDRESS": "127.0.0.1:1", "MEMORYD_HOOK": "off"}
    _, values = _load_work(home, environ=environ)
    assert {value.source for value in values} == {"default"}


@pytest.mark.parametrize(
    "line",
    [
        "data_dir = '/x'",
        "runtime_dir = '/x'",
        "listen = '127.0.0.1:1'",
        "redact.rules = '/tmp/rules.toml'",
        "token = false",
        "unified = true",
        "hook.transport = 'rpc'",
        "hook.inject = 'off'",
    ],
)
def test_a_repository_cannot_move_data_or_open_doors(home: Path, line: str) -> None:
    """What decides where data goes and who connects is refused in the project's file."""
    path = _project_file(home, line)
    key = line.split(maxsplit=1)[0]
    message = _refusal(home)
    assert message.startswith(f"{path}: {key} may not be set by a project's file")
    assert project.config_file() in message
    variable = "MEMORYD_" + key.upper().replace(".", "_")
    assert variable in message


def test_a_repository_cannot_send_anything_to_a_model(home: Path) -> None:
    """Whether, where and with which key text leaves the machine is not for a project's file."""
    for key in ("provider", "name", "base_url", "key_env", "key_file", "levels"):
        path = _project_file(home, f"[model]\n{key} = 'openai'")
        message = _refusal(home)
        assert message.startswith(f"{path}: model.{key} may not be set by a project's file")
        assert f"MEMORYD_MODEL_{key.upper()}" in message
    for key in ("daily_tokens", "timeout_seconds"):
        _project_file(home, f"[model]\n{key} = 7")
        assert f"model.{key} may not be set by a project's file" in _refusal(home)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "https://api.example.com",
        "https://gateway.example.com:8443/anthropic",
        "http://127.0.0.1:11434/v1",
        "http://localhost:8080",
        "http://[::1]:8000/v1",
    ],
)
def test_a_model_may_be_here_or_behind_tls(home: Path, url: str) -> None:
    """An address is taken if only this machine can read along."""
    settings, _ = _load_work(home, environ={"MEMORYD_MODEL_BASE_URL": url})
    assert settings.model_base_url == url


@pytest.mark.parametrize(
    "url",
    [
        "http://api.example.com",
        "http://192.168.1.5:11434/v1",
        "http://localhost.example.com",
        "http://127.0.0.1.example.com",
        "http://localhost@example.com",
        "https://user:pass@example.com",
        "https://",
        "https://example.com/?x=1",
        "https://example.com/#x",
        "https://example.com:99999",
        "https://exa mple.com",
        "https://[::1",
        "ftp://localhost",
        "file:///etc/passwd",
        "localhost:11434",
    ],
)
def test_no_other_address_of_a_model_is_taken(home: Path, url: str) -> None:
    """In the clear, or spelled so that two readers see two hosts: refused."""
    assert "is not allowed: it must be" in _refusal(home, environ={"MEMORYD_MODEL_BASE_URL": url})


def test_a_provider_needs_a_model(home: Path) -> None:
    """Which model writes is the user's choice: there is no default that could grow old."""
    assert "needs model.name" in _refusal(home, environ={"MEMORYD_MODEL_PROVIDER": "anthropic"})
    path = _user_file(home, "[model]\nprovider = 'openai'\nname = 'qwen3:8b'\nlevels = 'day,week'")
    settings, values = _load_work(home)
    assert (settings.model_provider, settings.model_name) == ("openai", "qwen3:8b")
    assert {v.key for v in values if v.source == path} == {
        "model.provider",
        "model.name",
        "model.levels",
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PROVIDER", "gemini"),
        ("LEVELS", ""),
        ("LEVELS", "day,decade"),
        ("KEY_FILE", "relative/key"),
        ("DAILY_TOKENS", "-1"),
        ("NAME", "a\nb"),
    ],
)
def test_a_setting_of_a_model_is_checked(home: Path, name: str, value: str) -> None:
    """A value that is not allowed is refused by name."""
    message = _refusal(home, environ={f"MEMORYD_MODEL_{name}": value})
    assert f"model.{name.lower()}" in message
    assert "is not allowed" in message


def test_a_key_in_the_wrong_place_is_not_shown(home: Path) -> None:
    """Somebody who gives the key for the name of its variable does not find it in a log."""
    message = _refusal(home, environ={"MEMORYD_MODEL_KEY_ENV": "sk-ant-api03-secret"})
    assert "model.key_env is not allowed" in message
    assert "secret" not in message


def test_a_suggestion_is_one_that_the_file_may_use(home: Path) -> None:
    """A misspelt key in the project's file is not led to a key that is refused there."""
    _project_file(home, "listne = 'x'")
    assert "did you mean listen" not in _refusal(home)


@pytest.mark.parametrize(
    "content",
    [b"workers = \n", b"workers = 5\nworkers = 6\n", b"\xff\xfe", b"a = " + b"[" * 20000],
)
def test_broken_toml_is_named(home: Path, content: bytes) -> None:
    """A file that is not TOML is an error that names the file, whatever is in it."""
    path = home / "work" / ".memoryd.toml"
    path.write_bytes(content)
    assert _refusal(home).startswith(f"{path}: is not TOML that can be read: ")


def test_broken_toml_is_located(home: Path) -> None:
    """The message says where in the file the mistake is."""
    _user_file(home, "workers = 5\nlog_level = \n")
    assert "line 2" in _refusal(home)


def test_a_strange_file_is_refused(home: Path) -> None:
    """A pipe or a huge file under the name of the settings neither hangs nor fills memory."""
    path = home / "work" / ".memoryd.toml"
    os.mkfifo(path)
    assert _refusal(home) == f"{path}: is not a regular file"
    path.unlink()
    path.write_bytes(b"#" * (64 * 1024 + 1))
    assert "is larger than" in _refusal(home)


def test_home_is_expanded(home: Path) -> None:
    """A tilde in a directory stands for the user's home."""
    _user_file(home, "runtime_dir = '~/r'\ndata_dir = '~/d'")
    settings, _ = _load_work(home)
    assert (settings.runtime_dir, settings.data_dir) == (f"{home}/r", f"{home}/d")


def test_streams_leave_workers_free(home: Path) -> None:
    """max_streams must be below workers; the message says where both come from."""
    message = _refusal(home, {"workers": 8})
    assert "max_streams = 8 (default) must be below workers = 8 (flag --workers)" in message
    assert _load_work(home, {"workers": 9})[0].workers == 9


def test_a_socket_path_that_cannot_be_bound_is_refused(home: Path) -> None:
    """A runtime directory too deep for a unix socket is found here, not at the bind."""
    message = _refusal(home, {"runtime_dir": "/" + "d" * 120})
    assert message.startswith("flag --runtime-dir: socket path ")


def test_unified_is_one_project_without_a_root(home: Path) -> None:
    """With unified = true every directory is the same project, and no project's file counts."""
    _user_file(home, "unified = true")
    _project_file(home, "workers = 11")
    settings, _ = _load_work(home, environ={"MEMORY_PROJECT_ID": "other"})
    assert (settings.project, settings.project_root) == (project.UNIFIED, "")
    assert settings.data_dir == project.data_dir(project.UNIFIED)
    assert settings.workers == 32


def test_a_chosen_id_finds_its_root(home: Path) -> None:
    """A service that knows only the id reads the root, and its file, from the data directory."""
    _project_file(home, "workers = 11")
    root = os.path.realpath(home / "work")
    environ = {"MEMORY_PROJECT_ID": project.id_of_root(root)}
    data = home / "data" / "memoryd" / environ["MEMORY_PROJECT_ID"]
    assert load(str(home), {}, environ)[0].project_root == os.path.realpath(home)
    data.mkdir(parents=True)
    (data / "ROOT").write_text(root + "\n", encoding="utf-8")
    settings, _ = load(str(home), {}, environ)
    assert (settings.project, settings.project_root) == (environ["MEMORY_PROJECT_ID"], root)
    assert settings.workers == 11


def test_a_root_stays_its_own(home: Path) -> None:
    """In the directory that the chosen id stands for, the noted root is not asked."""
    root = os.path.realpath(home / "work")
    environ = {"MEMORY_PROJECT_ID": project.id_of_root(root)}
    data = home / "data" / "memoryd" / environ["MEMORY_PROJECT_ID"]
    data.mkdir(parents=True)
    (data / "ROOT").write_text("/elsewhere", encoding="utf-8")
    assert _load_work(home, environ=environ)[0].project_root == root


def test_a_root_that_is_no_path_is_refused(home: Path) -> None:
    """A note of the root that holds anything but an absolute path is an error that names it."""
    (home / "d").mkdir()
    (home / "d" / "ROOT").write_text("relative", encoding="utf-8")
    environ = {"MEMORY_PROJECT_ID": "api", "MEMORYD_DATA_DIR": f"{home}/d"}
    assert _refusal(home, environ=environ).startswith(f"{home}/d/ROOT: must hold")


def test_an_unusable_id_is_refused(home: Path) -> None:
    """A chosen id that cannot name a file is an error that names the variable."""
    message = _refusal(home, environ={"MEMORY_PROJECT_ID": "../x"})
    assert message.startswith("environment MEMORY_PROJECT_ID: project id '../x' is not usable")


def test_no_file_no_parser(home: Path) -> None:
    """The TOML parser is loaded only if there is a file to read."""
    program = (
        "import sys; from memoryd.config import load; load('.'); print('tomllib' in sys.modules)"
    )
    shown = subprocess.run(
        [sys.executable, "-c", program],
        cwd=home / "work",
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout == "False\n"


def test_rules_of_the_user_make_the_redactor(home: Path) -> None:
    """The file that redact.rules names adds rules; without it the built-in ones stand."""
    rules = home / "rules.toml"
    rules.write_text("[[rules]]\nid = 'ticket'\npattern = 'ACME-[0-9]+'\n", encoding="utf-8")
    _user_file(home, f"[redact]\nrules = '{rules}'")
    settings, _ = _load_work(home)
    assert redactor(settings).redact("see ACME-12").text == "see [redacted:ticket]"
    plain, _ = _load_work(home, {}, {"MEMORYD_REDACT_RULES": ""})
    assert redactor(plain).redact("see ACME-12").counts == {}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "redact.rules: there is no file "),
        ("rules = 1", "rules must be a list"),
        ("[[rules]]\nid = 'x'\npattern = '('", "rule x: pattern does not compile"),
        ("= 1", "is not TOML that can be read"),
    ],
)
def test_rules_that_cannot_be_used_are_refused(
    home: Path, content: str | None, reason: str
) -> None:
    """A missing or wrong file of rules is an error that names it: nothing runs unprotected."""
    rules = home / "rules.toml"
    if content is not None:
        rules.write_text(content, encoding="utf-8")
    settings, _ = _load_work(home, {}, {"MEMORYD_REDACT_RULES": str(rules)})
    with pytest.raises(ConfigError) as caught:
        redactor(settings)
    assert reason in str(caught.value)
    assert str(rules) in str(caught.value)


def test_rules_stand_at_an_absolute_path(home: Path) -> None:
    """A relative path would mean another file in every directory."""
    message = _refusal(home, {}, {"MEMORYD_REDACT_RULES": "rules.toml"})
    assert "redact.rules = 'rules.toml' is not allowed" in message
