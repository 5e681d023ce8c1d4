"""Starts the browser for a project."""

import os

from memoryd import client, project
from memoryd.edges.browse.app import Browser


def browse(start_dir: str, look: str = "") -> None:
    """Browse the memory of the project that a directory belongs to, until the user leaves.

    Raises ConfigError. A daemon that is not there is no error: the browser waits for it.
    """
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # its lines would fall into the picture
    made(start_dir, look).run()


def made(start_dir: str, look: str = "") -> Browser:
    """The browser of a project."""
    settings, _ = client.load(start_dir)
    return Browser(
        lambda: client.connect(start_dir),
        settings.project,
        note_project=project.project_id(start_dir) if settings.unified else "",
        look=look,
    )
