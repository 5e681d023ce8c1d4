"""How the commands speak: human or JSON, colours, and nothing raw from the log on a terminal.

Owns the decision between human and JSON output, and every character that reaches the terminal:
event text comes from strangers, so control characters are shown, never obeyed. It may not import
rich before something is printed for a person.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, Final, TypeVar

import click

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

    from memoryd.client import Client

_F = TypeVar("_F", bound=Callable[..., Any])

# C1 controls (one of them begins escape sequences), line separators, bidirectional overrides, and
# the space without width, which hides where words are parted
_SPECIAL: Final = (
    *range(0x7F, 0xA0),
    0x061C,
    0x200B,
    0x200E,
    0x200F,
    *range(0x2028, 0x202F),
    *range(0x2066, 0x206A),
    0xFEFF,
    *range(0xFFF9, 0xFFFC),
)
_VISIBLE: Final[Mapping[int, str]] = (
    {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\n\t"}
    | {code: f"<U+{code:04X}>" for code in (*_SPECIAL, *range(0xE0000, 0xE0080))}
    | {0x7F: "\u2421"}
)
_JSON: Final[Mapping[int, str]] = {code: f"\\u{code:04x}" for code in _SPECIAL}

ROLE_STYLES: Final = {"user": "bold cyan", "assistant": "green", "tool": "yellow"}


def visible(text: str) -> str:
    """The text with every control character but newline and tab turned into a visible sign."""
    if text.isprintable():  # the usual case; also false for harmless spaces
        return text
    return text.translate(_VISIBLE).encode("utf-8", "backslashreplace").decode()


def one_line(text: str) -> str:
    """The text in one line, made visible."""
    return visible(text).replace("\n", "\u240a").replace("\t", "\u2409")


def json_line(value: object) -> str:
    """One line of JSON, readable, that no terminal and no line splitter can misread."""
    line = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if line.isascii() and "\x7f" not in line:
        return line
    return line.translate(_JSON).encode("utf-8", "backslashreplace").decode()


def size(count: int) -> str:
    """A count of bytes for people."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:  # noqa: PLR2004 - the unit's own size
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


@dataclass
class Output:
    """What the options of one run say, and the way to print by them."""

    start_dir: str = "."
    json: bool | None = None
    pager: bool = True
    paged: bool = False
    said: list[str] = field(default_factory=list)
    _console: "Console | None" = None

    @property
    def as_json(self) -> bool:
        """Whether to print JSON: as asked for, else if nobody watches."""
        return not sys.stdout.isatty() if self.json is None else self.json

    @property
    def console(self) -> "Console":
        """The terminal; follows NO_COLOR and TERM."""
        if self._console is None:
            self._console = _made()
        return self._console

    def into(self, file: IO[str], *, colours: bool) -> None:
        """Print for people into a file that somebody looks at, as if it were the terminal."""
        self.json, self.paged = False, True
        self._console = _made(file=file, force_terminal=colours, width=self.console.width)

    def connect(self) -> "Client":
        """A client of the project's daemon. Raises ClientError, ConfigError."""
        from memoryd import client

        self.quiet_grpc()
        return client.connect(self.start_dir)

    def quiet_grpc(self) -> None:
        """Keep gRPC from printing: its lines are not for people."""
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")

    def put(self, value: object) -> None:
        """Print one value as a line of JSON."""
        sys.stdout.write(json_line(value) + "\n")

    def line(self, value: object) -> None:
        """Print one value as a line of JSON, at once."""
        self.put(value)
        self.flush()

    def lines(self, values: Iterable[object]) -> None:
        """Print values as lines of JSON."""
        for value in values:
            self.put(value)
        self.flush()

    def flush(self) -> None:
        """Let out what has been printed."""
        sys.stdout.flush()

    def show(self, *parts: "RenderableType") -> None:
        """Print for people. What comes from the log must have been made visible."""
        self.console.print(*parts, soft_wrap=all(isinstance(part, str) for part in parts))


def _made(**options: Any) -> "Console":
    """A console that leaves it to its caller what a reader who has gone means."""
    from rich.console import Console

    class Plain(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return Plain(highlight=False, markup=False, emoji=False, **options)


def table(*columns: str, right: tuple[str, ...] = ()) -> "Table":
    """A table without lines; the first column keeps its words whole."""
    from rich.table import Table

    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for place, name in enumerate(columns):
        made.add_column(
            name,
            justify="right" if name in right else "left",
            overflow="fold",
            no_wrap=place > 0 and name in right,
        )
    return made


def say(text: str) -> None:
    """Print a line for people, made visible; with --json it waits in ``Output.said``."""
    ctx = click.get_current_context(silent=True)
    output = ctx.find_object(Output) if ctx else None
    if output is not None and output.json:
        output.said.append(text)
    else:
        click.echo(visible(text))


def warn(message: str) -> None:
    """Say something on stderr, made visible."""
    click.echo(visible(message), err=True)


def now_ms() -> int:
    """The present moment."""
    return time.time_ns() // 1_000_000


def common(command: _F) -> _F:
    """Let a command take --json too, and hand it the run's `Output` first."""
    command = click.option(
        "--json/--no-json",
        default=None,
        expose_value=False,
        callback=_set_json,
        help="JSON, or text for people. Without it: JSON unless stdout is a terminal.",
    )(command)
    return click.pass_obj(command)  # type: ignore[return-value]


def _set_json(ctx: click.Context, _param: click.Parameter, value: bool | None) -> None:  # noqa: FBT001 - click's signature
    output = ctx.ensure_object(Output)
    if value is not None:
        output.json = value
