"""Checks of what is installed: the package and what it needs, the commands, the settings."""

import hashlib
import os
import re
import shutil
import sys
from base64 import urlsafe_b64encode
from importlib import metadata
from typing import Final

from memoryd import __version__, client, config
from memoryd.edges.doctor.finding import Finding, note, ok, problem

PROGRAMS: Final = ("memory", "memoryd", "memory-hook")
_AGAIN: Final = "install memoryd again, for example with `pipx reinstall memoryd`"
_NAME: Final = re.compile(r"[\w.-]+")


def package(name: str = "memoryd") -> list[Finding]:
    """Whether the files of the package are as they were installed, and what it needs is there."""
    try:
        installed = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return [problem("package", f"{name} is not installed for this Python", _AGAIN)]
    changed = [str(file) for file in installed.files or () if not _whole(file)]
    missing = [need for need in map(_needed, installed.requires or ()) if need and _lacks(need)]
    found = []
    if changed:
        some = ", ".join(changed[:3])
        found.append(
            problem("package", f"{len(changed)} files are missing or were changed: {some}", _AGAIN)
        )
    if missing:
        found.append(problem("package", f"it lacks {', '.join(missing)}", _AGAIN))
    python = ".".join(map(str, sys.version_info[:3]))
    return found or [ok("package", f"memoryd {__version__} on Python {python}, whole")]


def _whole(file: metadata.PackagePath) -> bool:
    """Whether a file has the bytes that it was installed with; one without a hash is not judged."""
    if file.hash is None or file.hash.mode != "sha256":
        return True
    try:
        with open(str(file.locate()), "rb") as opened:
            digest = hashlib.file_digest(opened, "sha256").digest()
    except OSError:
        return False
    return urlsafe_b64encode(digest).rstrip(b"=").decode() == file.hash.value


def _needed(requirement: str) -> str:
    """The name in a requirement; "" for one that holds only for extras or other systems."""
    name, _, marker = requirement.partition(";")
    elsewhere = "extra" in marker or ("sys_platform" in marker and sys.platform not in marker)
    found = _NAME.match(name)
    return found[0] if found and not elsewhere else ""


def _lacks(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return True
    return False


def commands(beside: str = os.path.dirname(os.path.abspath(sys.executable))) -> list[Finding]:
    """Whether the programs are there, on PATH, and of this installation."""
    found = []
    hidden = []
    for name in PROGRAMS:
        own = f"{beside}/{name}"
        on_path = shutil.which(name)
        if not os.access(own, os.X_OK) and not on_path:
            found.append(problem("commands", f"{name} is neither {own} nor on PATH", _AGAIN))
        elif not on_path:
            hidden.append(name)
        elif os.access(own, os.X_OK) and not os.path.samefile(own, on_path):
            said = f"{name} on PATH is {on_path}, of another installation than {own}"
            found.append(note("commands", said, f"put {beside} first in PATH, or remove the other"))
    if hidden:
        said = f"not on PATH: {', '.join(hidden)} in {beside}"
        found.append(note("commands", said, f"add {beside} to PATH in your shell's profile"))
    return found or [ok("commands", f"{', '.join(PROGRAMS)} are on PATH")]


def configuration(start_dir: str) -> tuple[config.Settings | None, list[Finding]]:
    """The settings of the project, if they can be used, and what is to be said of them."""
    try:
        settings, values = client.load(start_dir)
        config.redactor(settings)
        _ = settings.socket_path
    except (config.ConfigError, ValueError) as error:
        how = "correct it; `memory config show` then shows every setting and its place"
        return None, [problem("configuration", str(error), how)]
    chosen = sum(value.source != "default" for value in values)
    said = f"project {settings.project}, {chosen} settings that are not defaults"
    return settings, [ok("configuration", said)]
