"""What agents run: the command that captures what happens."""
