"""Examples in help: a command of a group shows those of its group that call it."""

import click


def shared(group: click.Group) -> None:
    """Give every command of a group that has no examples those from the group's own help."""
    lines = [line for line in (group.epilog or "").splitlines() if line.startswith("  ")]
    for name, command in group.commands.items():
        own = [line for line in lines if f"memory {group.name} {name}" in line]
        if own and not command.epilog:
            word = "Examples" if len(own) > 1 else "Example"
            command.epilog = "\n".join(("\b", f"{word}:", *own))
