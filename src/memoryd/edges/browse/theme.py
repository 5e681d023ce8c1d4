"""The two looks of the browser, light and dark, and which of them to begin with."""

from collections.abc import Mapping
from typing import Final

from textual.theme import Theme

DARK: Final = Theme(
    name="memory-dark",
    primary="#7cc0ff",
    secondary="#a9b4c2",
    accent="#c6a0f6",
    success="#8fd694",
    warning="#f0c674",
    error="#ff7b72",
    foreground="#dde3ea",
    background="#141517",
    surface="#1b1d20",
    panel="#26292d",
    dark=True,
    variables={
        "quiet": "#8f979f",
        "line": "#41464c",
        "footer-key-foreground": "#7cc0ff",
    },
)
LIGHT: Final = Theme(
    name="memory-light",
    primary="#0b5cad",
    secondary="#57606a",
    accent="#7a3ea8",
    success="#1a7f37",
    warning="#9a6700",
    error="#c62828",
    foreground="#1f2328",
    background="#ffffff",
    surface="#f6f8fa",
    panel="#e6eaef",
    dark=False,
    variables={
        "quiet": "#656f7b",
        "line": "#c4ccd6",
        "footer-key-foreground": "#0b5cad",
    },
)
# what the browser adds to a theme's variables, for terminals that have only their own colours
PLAIN: Final = {"quiet": "ansi_default", "line": "ansi_default"}
# what COLORFGBG names a light background with
_LIGHT_GROUNDS: Final = frozenset(("7", "15"))


def first_theme(environ: Mapping[str, str]) -> str:
    """The look that fits the terminal, as far as it says: dark unless its ground is light."""
    ground = environ.get("COLORFGBG", "").rpartition(";")[2]
    return LIGHT.name if ground in _LIGHT_GROUNDS else DARK.name


def other(name: str) -> str:
    """The other look."""
    return DARK.name if name == LIGHT.name else LIGHT.name
