"""The browser for the terminal: `memory browse`. Only this room knows Textual."""
