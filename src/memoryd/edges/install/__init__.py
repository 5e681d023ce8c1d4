"""Putting `memory-hook` into the settings of agents, and taking it out again."""
