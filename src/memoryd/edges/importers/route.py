"""Which daemon takes a conversation: the one of the project that its directory belongs to.

Owns the connections of one run, at most one per project, and what stood in their way.
"""

import json
import os
from collections.abc import Mapping
from typing import Final

from memoryd import client, config, project
from memoryd.client import Client, ClientError

UNKNOWN: Final = ""


class Destination:
    """A project and the daemon that takes its events, or the reason why none does."""

    def __init__(self, project_id: str, directory: str) -> None:
        self.project = project_id
        self.directory = directory
        self.client: Client | None = None
        self.problem = ""
        self.new = self.known = self.refused = self.lost = 0


class Routes:
    """Finds the destination of every directory. Closed by its user."""

    def __init__(self, *, here: str, into_here: bool, moved: Mapping[str, str]) -> None:
        """``here`` is the present project's directory, which takes all if ``into_here``."""
        self._here = here
        self._into_here = into_here
        self._moved = moved
        self._of_cwd: dict[str, tuple[Destination, str]] = {}
        self.destinations: dict[str, Destination] = {}

    def of(self, cwd: str) -> tuple[Destination, str]:
        """The destination of a directory, and the project to mark its events with."""
        found = self._of_cwd.get(cwd)
        if found is None:
            found = self._of_cwd[cwd] = self._find(cwd)
        return found

    def close(self) -> None:
        """End all connections."""
        for destination in self.destinations.values():
            if destination.client is not None:
                destination.client.close()

    def _find(self, cwd: str) -> tuple[Destination, str]:
        directory = self._directory(cwd)
        name = project.id_of_root(project.project_root(directory)) if directory else ""
        if self._into_here:
            return self._open(self._here, name or cwd[-200:]), name
        if not directory:
            unknown = self.destinations.setdefault(UNKNOWN, Destination(UNKNOWN, ""))
            unknown.problem = (
                "their transcripts do not say to which directory they belong: name it with "
                "--project-map, or take all with --into-this-project"
            )
            return unknown, ""
        destination = self._open(directory, name)
        settings = destination.client.settings if destination.client else None
        return destination, name if settings is not None and settings.unified else ""

    def _directory(self, cwd: str) -> str:
        """The directory, or the one that the map gives for it or for a directory above it."""
        if cwd in self._moved:
            return self._moved[cwd]
        above = cwd
        while above and above != os.path.dirname(above):
            above = os.path.dirname(above)
            if above in self._moved:
                return self._moved[above] + cwd[len(above) :]
        return cwd if os.path.isabs(cwd) else self._moved.get("", "")

    def _open(self, directory: str, name: str) -> Destination:
        try:
            environ = {k: v for k, v in os.environ.items() if k != "MEMORY_PROJECT_ID"}
            environ = dict(os.environ) if self._into_here else environ
            settings, _ = client.load(directory, environ)
        except (config.ConfigError, ValueError, OSError) as error:
            made = self.destinations.setdefault(name, Destination(name, directory))
            made.problem = str(error)
            return made
        known = self.destinations.get(settings.project)
        if known is not None:
            return known
        made = self.destinations[settings.project] = Destination(settings.project, directory)
        try:
            made.client = client.connect(directory, environ=environ)
        except (ClientError, config.ConfigError) as error:
            root = settings.project_root or directory
            made.problem = str(error).replace("`memoryd serve`", f"`memoryd serve` in {root}")
            if not os.path.isdir(root):
                made.problem = (
                    f"{root} is not on this machine: say where it is now with --project-map, or "
                    "take all with --into-this-project"
                )
        return made


def read_map(path: str) -> dict[str, str]:
    """The directories of a map file: a JSON object of old directory (or "") to new one.

    Raises ValueError, which names the file, if it is none.
    """
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError) as error:
        msg = f"project map {path} cannot be read: {error}"
        raise ValueError(msg) from None
    if not isinstance(found, dict) or not all(isinstance(v, str) for v in found.values()):
        msg = f"project map {path} is not a JSON object of directories, such as {{'/old': '/new'}}"
        raise ValueError(msg)
    return {old.rstrip("/"): os.path.abspath(os.path.expanduser(new)) for old, new in found.items()}
