"""memoryd: a local daemon that remembers what AI coding agents did."""

__version__ = "0.1.0"
