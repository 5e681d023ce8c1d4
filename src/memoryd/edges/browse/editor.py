"""Lets the user change a text in an editor of his own."""

import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping


class EditorFailed(Exception):
    """The editor did not start or gave up; nothing was changed."""


def changed(text: str, environ: Mapping[str, str] = os.environ) -> tuple[str, str]:
    """The text after the user was at it, and the file that holds it. Raises EditorFailed.

    The file stays, so that nothing is lost if the text cannot be written; whoever calls removes it.
    """
    editor = environ.get("VISUAL") or environ.get("EDITOR") or "vi"
    fd, path = tempfile.mkstemp(prefix="memory-", suffix=".md")
    try:
        with os.fdopen(fd, "w", encoding="utf-8", newline="") as file:
            file.write(text + "\n")  # editors end a file with a line's end
        subprocess.run([*shlex.split(editor), path], check=True)  # noqa: S603 - the user's own editor
        with open(path, encoding="utf-8", newline="") as file:
            return file.read().removesuffix("\n"), path
    except (OSError, ValueError) as error:
        os.unlink(path)
        raise EditorFailed(f"the editor {editor!r} cannot be used: set EDITOR ({error})") from None
    except subprocess.CalledProcessError as error:
        os.unlink(path)
        msg = f"the editor {editor!r} ended with {error.returncode}: nothing was changed"
        raise EditorFailed(msg) from None
