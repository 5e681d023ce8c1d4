"""The command `memory`: one file per command. Knows the client and the terminal, nothing deeper."""
