"""OpenCode has no settings for hooks: a plugin file of ours is copied to where it loads plugins.

Owns which of the two plugins fits, and the one line in it that differs per machine.
"""

import json
import os
import re
import shutil
import subprocess
from importlib import resources
from typing import Final

from memoryd.edges.install.errors import Refused

_MARK: Final = "// memoryd plugin for OpenCode"
_PROGRAM_LINE: Final = re.compile(r'^const PROGRAM = (".*")$', re.MULTILINE)
_VERSION_LIMIT_S: Final = 10.0


def rendered(program: str, major: int) -> str:
    """The plugin for a major version of OpenCode, which runs ``program``."""
    name = "memoryd.ts" if major < 2 else "memoryd-2.ts"  # noqa: PLR2004 - a version
    line = f"const PROGRAM = {json.dumps(program, ensure_ascii=False)}"
    return _PROGRAM_LINE.sub(lambda _: line, _template(name), count=1)


def is_ours(text: str) -> bool:
    """Whether a plugin file is one that was written here."""
    return text.lstrip().startswith(_MARK)


def program_in(text: str) -> str:
    """The program that an installed plugin runs, "" if it names none."""
    found = _PROGRAM_LINE.search(text)
    try:
        return str(json.loads(found[1])) if found else ""
    except ValueError:
        return ""


def major_version() -> int:
    """The major version of the OpenCode on this machine; 1 if it does not say."""
    program = shutil.which("opencode")
    if not program:
        return 1
    try:
        done = subprocess.run(  # noqa: S603 - no shell
            [program, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            text=True,
            errors="replace",
            timeout=_VERSION_LIMIT_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return 1
    found = re.search(r"\b(\d{1,4})\.\d+", done.stdout)
    return int(found[1]) if found else 1


def _template(name: str) -> str:
    packaged = resources.files("memoryd").joinpath("plugin", "opencode", name)
    if packaged.is_file():
        return packaged.read_text(encoding="utf-8")
    checkout = os.path.dirname(os.path.dirname(str(resources.files("memoryd"))))
    try:
        with open(os.path.join(checkout, "plugin", "opencode", name), encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        raise Refused(f"the plugin file {name} is missing: install memoryd again") from None
