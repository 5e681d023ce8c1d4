"""The entry point of `memory`: the group of commands, and how a run ends.

Owns the list of commands, loaded by name when they are used, and the exit codes. It may not
import what one command needs and another does not.
"""

import importlib
import io
import os
import sys
from typing import Any, Final

import click

from memoryd.edges.cli.output import Output, common, warn
from memoryd.edges.cli.pager import no_pager

# name of the command: the module that defines it, under the same name
_COMMANDS: Final = {
    "agents": "sessions",
    "browse": "browse",
    "backup": "care",
    "compact": "care",
    "completion": "completion",
    "config": "config",
    "context": "context",
    "coverage": "coverage",
    "daily": "pads",
    "demo": "demo",
    "doctor": "doctor",
    "edit": "pads",
    "event": "events",
    "events": "events",
    "export": "copy",
    "forget": "remember",
    "handoff": "handoff",
    "forget-events": "erase",
    "import": "import_",
    "import-notes": "copy",
    "ingest": "ingest",
    "install": "install",
    "jobs": "jobs",
    "mcp": "mcp",
    "notes": "notes",
    "rebuild": "jobs",
    "recall": "remember",
    "receipts": "erase",
    "redact": "redact",
    "reindex": "search",
    "related": "search",
    "remember": "remember",
    "repair": "care",
    "restore": "care",
    "search": "search",
    "service": "service",
    "sessions": "sessions",
    "show": "toc",
    "stats": "stats",
    "status": "status",
    "timeline": "toc",
    "toc": "toc",
    "todo": "pads",
    "token": "token",
    "uninstall": "install",
    "verify": "care",
    "wipe": "wipe",
}
# how the help groups them; what is named nowhere stands last
_SECTIONS: Final = {
    "Look": "status search related toc show timeline handoff context events event sessions agents "
    "browse stats",
    "Notes": "remember recall notes edit forget todo daily",
    "Capture": "install uninstall import coverage ingest redact",
    "Copies": "export import-notes backup restore",
    "Care": "doctor service config jobs rebuild reindex verify repair compact forget-events receipts "
    "wipe token",
}
_USAGE: Final = 2
_INTERRUPTED: Final = 130
_EPILOG: Final = """\b
Examples:
  memory status
  memory search "why did we drop the retry" --since 30d
  memory events --since 2h --role user
  memory events -f
  memory toc --since "last week"
  memory --project ~/src/api sessions --json

Ids may be shortened to what is unique of them wherever something is looked at. Long answers go
through $PAGER; NO_COLOR takes the colours away.

\b
Exit codes:
  0  fine
  1  something was refused
  2  usage or configuration
  3  the daemon is not running or cannot be reached
  4  not allowed
  5  something failed inside the daemon
"""


class Commands(click.Group):
    """A group that imports a command when it is called, and ends a run in one place."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The names of all commands."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """The command of that name, or None."""
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f"memoryd.edges.cli.{_COMMANDS[cmd_name]}")
        # a command whose name is a word of Python's own bears the name of its module
        own = cmd_name.replace("-", "_")
        name = own if hasattr(module, own) else _COMMANDS[cmd_name]
        command: click.Command = getattr(module, name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands in sections, in the order in which people need them."""
        left = dict.fromkeys(self.list_commands(ctx))
        for title, names in (*_SECTIONS.items(), ("More", " ".join(left))):
            known = [(name, self.get_command(ctx, name)) for name in names.split() if name in left]
            limit = formatter.width - 6 - max(map(len, left), default=0)
            rows = [(name, cmd.get_short_help_str(limit)) for name, cmd in known if cmd]
            left = {name: None for name in left if name not in dict(rows)}
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, and leave with the exit code that its end deserves."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except KeyboardInterrupt:
            ctx.exit(_INTERRUPTED)
        except BrokenPipeError:
            # the reader has seen enough; the interpreter must not try to print the rest
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(0)
        except Exception as error:
            code = _exit_code(error)
            if code is None:
                raise
            warn(f"memory: {error}")
            ctx.exit(code)
        return result


@click.group(
    cls=Commands,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="memoryd")
@click.option(
    "--project",
    "start_dir",
    metavar="DIR",
    default=".",
    type=click.Path(exists=True, file_okay=False),
    help="Any directory of the project.  [default: the working directory]",
)
@no_pager
@common
def main(output: Output, start_dir: str) -> None:
    """Read and write what memoryd remembers of this project."""
    output.start_dir = start_dir
    if isinstance(sys.stdout, io.TextIOWrapper):
        # JSON is UTF-8 wherever it goes; a terminal that lacks a character gets a stand-in
        encoding = None if sys.stdout.isatty() else "utf-8"
        sys.stdout.reconfigure(encoding=encoding, errors="replace")


def _exit_code(error: Exception) -> int | None:
    """The code for an error that was foreseen, None for any other."""
    from memoryd.client import ClientError
    from memoryd.config import ConfigError

    if isinstance(error, ClientError):
        return error.exit_code
    return _USAGE if isinstance(error, ConfigError) else None


if __name__ == "__main__":
    main()
