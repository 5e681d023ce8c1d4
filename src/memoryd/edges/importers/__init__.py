"""Transcripts on disk: where they are, how they are read, and how they get to their daemons."""
