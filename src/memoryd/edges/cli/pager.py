"""Long answers through $PAGER, for people at a terminal, and never for a pipe.

Owns the pager's process: it gets what the command prints, and the command waits for its end. An
answer that fits on the screen passes through less as if it were not there (LESS=FRX).
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from typing import IO, TYPE_CHECKING, Any, Final, TypeVar

import click

from memoryd.edges.cli.output import Output

if TYPE_CHECKING:
    import subprocess

_F = TypeVar("_F", bound=Callable[..., Any])
_LESS: Final = "FRX"
_COLOURS: Final = frozenset(("less", "bat", "batcat", "most", "moar"))  # let escapes through


def pages(command: _F) -> _F:
    """Let a command, which takes an `Output` first, print through the pager. Not what follows."""

    @wraps(command)
    def run(output: Output, *args: Any, **options: Any) -> Any:
        if options.get("follow"):
            return command(output, *args, **options)
        with opened(output):
            return command(output, *args, **options)

    return no_pager(run)  # type: ignore[return-value]


def no_pager(command: _F) -> _F:
    """Let a command take --no-pager."""
    return click.option(
        "--no-pager",
        is_flag=True,
        expose_value=False,
        callback=_set,
        help="Print at once, not through $PAGER.",
    )(command)


def _set(ctx: click.Context, _param: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's signature
    if value:
        ctx.ensure_object(Output).pager = False


@contextmanager
def opened(output: Output) -> Iterator[None]:
    """Have everything printed go through the pager, if somebody looks and wants one."""
    words = _words() if output.pager and not output.as_json and _watched() else []
    if not words:
        yield
        return
    import subprocess

    environment = {"LESS": _LESS, **os.environ}
    pager = subprocess.Popen(  # noqa: S603 - the user's own pager
        words, stdin=subprocess.PIPE, env=environment, text=True, encoding="utf-8", errors="replace"
    )
    before = sys.stdout
    pipe: IO[str] = pager.stdin  # type: ignore[assignment]
    name = os.path.basename(words[0])
    raw = "R" in environment["LESS"].upper() if name == "less" else name in _COLOURS
    output.into(pipe, colours=raw)
    sys.stdout = pipe
    try:
        with suppress(BrokenPipeError):  # the reader has seen enough
            yield
    finally:
        sys.stdout = before
        with suppress(BrokenPipeError):
            pipe.close()
        _wait(pager)


def _watched() -> bool:
    return sys.stdout.isatty() and sys.stdin.isatty()


def _words() -> list[str]:
    """The command line of the pager; none if the user wants none, or it is not there."""
    import shlex
    import shutil

    try:
        words = shlex.split(os.environ.get("PAGER", "less"))
    except ValueError:
        return []
    if not words or words == ["cat"] or not shutil.which(words[0]):
        return []
    return words


def _wait(pager: "subprocess.Popen[str]") -> None:
    """Wait for the pager; Ctrl-C is its business meanwhile."""
    import signal

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        pager.wait()
    finally:
        signal.signal(signal.SIGINT, before)
