"""`memory doctor`: is everything as it has to be, and if not, what to do.

Each check is one small function that gives findings. It reads, asks the daemon, and sends probes
that are never written; it repairs nothing.
"""
