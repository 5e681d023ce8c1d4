"""Pure values and rules: no clock, disk, network, logging or environment."""
