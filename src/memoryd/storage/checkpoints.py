"""Checkpoints: small named values that the pump and the jobs must find again after a restart."""

from typing import Any

from memoryd.storage import codec
from memoryd.storage.db import Database


class Checkpoints:
    """The checkpoints in an open database. Each name has one writer."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def get(self, name: str) -> Any:
        """What was kept under a name, with tuples turned to lists, or None."""
        stored = self._db.get("checkpoints", name.encode())
        return codec.read(stored, "checkpoint") if stored is not None else None

    def put(self, name: str, content: object, *, sync: bool = False) -> None:
        """Keep something. Raises ReadOnly if it cannot be written."""
        batch = self._db.batch()
        batch.put(name.encode(), codec.value(content), self._db.handle("checkpoints"))
        self._db.write(batch)
        if sync:
            self._db.sync()
