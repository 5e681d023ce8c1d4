"""Receipts of erasures: who erased which events, and how it ended. Append-only; truth.

An erasure has two entries: the `Receipt`, written before anything goes, and the `Outcome`,
written when all is done and searched. One without the other is work to be finished.
"""

from collections.abc import Iterator
from typing import Final

from rocksdict import WriteBatch

from memoryd.domain.erasure import Entry, Outcome, Receipt, Who
from memoryd.domain.errors import NotFound, StoreDamaged
from memoryd.domain.keys import sequence_key, split_sequence_key
from memoryd.storage import codec
from memoryd.storage.db import Database

_FAMILY: Final = "receipts"
_BEGUN: Final = "erasure"
_ENDED: Final = "erased"


class Receipts:
    """The receipts in an open database. Writing is for the committer's thread alone."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def next_number(self) -> int:
        """The number of the next entry."""
        last = next(self._db.scan(_FAMILY, reverse=True), None)
        return split_sequence_key(last[0]) + 1 if last else 1

    def begin(self, batch: WriteBatch, receipt: Receipt) -> None:
        """Have a batch keep an erasure that begins, under its own number."""
        who = [receipt.who.uid, receipt.who.user, receipt.who.reason]
        entries = [list(entry) for entry in receipt.entries]
        self._put(batch, receipt.number, [_BEGUN, receipt.time_ms, who, entries])

    def end(self, batch: WriteBatch, outcome: Outcome) -> None:
        """Have a batch keep how an erasure ended."""
        self._put(batch, self.next_number(), [_ENDED, outcome.time_ms, *_figures(outcome)])

    def _put(self, batch: WriteBatch, number: int, content: list[object]) -> None:
        batch.put(sequence_key(number), codec.value(content), self._db.handle(_FAMILY))

    def all(self) -> Iterator[tuple[Receipt, Outcome | None]]:
        """Every erasure in order, and how it ended."""
        begun: dict[int, Receipt] = {}
        ended: dict[int, Outcome] = {}
        for key, stored in self._db.scan(_FAMILY):
            found = _read(split_sequence_key(key), stored)
            if isinstance(found, Receipt):
                begun[found.number] = found
            elif found is not None:
                ended[found.receipt] = found
        for number, receipt in begun.items():
            yield receipt, ended.get(number)

    def get(self, number: int) -> tuple[Receipt, Outcome | None]:
        """One erasure. Raises NotFound."""
        for receipt, outcome in self.all():
            if receipt.number == number:
                return receipt, outcome
        raise NotFound(f"there is no receipt {number}")

    def unfinished(self) -> list[Receipt]:
        """The erasures that were begun and not ended, in order."""
        return [receipt for receipt, outcome in self.all() if outcome is None]

    def digests(self) -> dict[str, tuple[int, bytes]]:
        """Of every event that a receipt names, its sequence number and its digest."""
        return {
            entry.event_id: (entry.sequence, entry.digest)
            for receipt, _ in self.all()
            for entry in receipt.entries
        }


def _figures(outcome: Outcome) -> list[object]:
    receipt, _, texts, short, files, size, elsewhere, remains = outcome
    return [receipt, texts, short, files, size, list(elsewhere), list(remains)]


def _read(number: int, stored: bytes) -> Receipt | Outcome | None:
    """A receipt or an outcome; None for an entry of another kind."""
    try:
        kind, time_ms, *rest = codec.read(stored, "receipt")
        if kind == _BEGUN:
            who, entries = rest
            return Receipt(number, time_ms, Who(*who), tuple(Entry(*e) for e in entries))
        if kind == _ENDED:
            receipt, texts, short, files, size, elsewhere, remains = rest
            return Outcome(
                receipt, time_ms, texts, short, files, size, tuple(elsewhere), tuple(remains)
            )
    except (ValueError, TypeError) as error:
        raise StoreDamaged(
            f"receipt {number} makes no sense: run `memoryd verify`, and restore the data "
            "directory from a copy"
        ) from error
    return None
