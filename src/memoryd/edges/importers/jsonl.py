"""Everything from the JSON lines that `export` writes, back into a daemon, with the same ids.

Lenient: a line that cannot be taken is counted and reported with its number; the rest goes on.
"""

import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from memoryd.edges.export import JSONL_VERSION
from memoryd.wire import Refused

if TYPE_CHECKING:
    from memoryd.client import Client

_BATCH: Final = 500
_DERIVED: Final = ("node", "grip")  # the daemon makes them again
_BATCH_BYTES: Final = 8 * 1024 * 1024


class Restore:
    """One run: numbered lines in, batches out, and the count of what became of them."""

    def __init__(self, client: "Client", complain: Callable[[int, str], None]) -> None:
        words = ("events", "notes", "known", "derived", "skipped", "refused")
        self.counts = dict.fromkeys(words, 0)
        self._client = client
        self._complain = complain
        self._batch: list[tuple[int, dict[str, Any]]] = []
        self._kind = ""
        self._bytes = 0

    def take(self, lines: Iterable[tuple[int, bytes | None]]) -> None:
        """Take all lines. Raises ClientError if the daemon cannot be reached."""
        for number, data in lines:
            if data is not None and not data.strip():
                continue
            try:
                kind, record = parse(data)
            except ValueError as error:
                self._refuse(number, str(error))
                continue
            if kind not in {"event", "note"}:
                self.counts["derived" if kind in _DERIVED else "skipped"] += kind != "memoryd"
                continue
            size = len(data or b"")
            if (
                kind != self._kind
                or len(self._batch) == _BATCH
                or self._bytes + size > _BATCH_BYTES
            ):
                self._send()
            self._kind = kind
            self._batch.append((number, record))
            self._bytes += size
        self._send()

    def _send(self) -> None:
        batch, self._batch, self._bytes = self._batch, [], 0
        if batch and self._kind == "event":
            self._send_events(batch)
        elif batch:
            self._send_notes(batch)

    def _send_events(self, batch: list[tuple[int, dict[str, Any]]]) -> None:
        results = self._client.ingest((event for _, event in batch), restoring=True)
        for (number, _), result in zip(batch, results, strict=True):
            if result["error_code"] or result["error"]:
                self._refuse(number, result["error"])
            else:
                self.counts["events" if result["created"] else "known"] += 1

    def _send_notes(self, batch: list[tuple[int, dict[str, Any]]]) -> None:
        try:
            answer = self._client.note("ImportNotes", notes=[note for _, note in batch])
        except Refused as error:
            if len(batch) == 1:
                self._refuse(batch[0][0], str(error))
                return
            for one in batch:
                self._send_notes([one])
            return
        for result in answer["results"]:
            self.counts["notes" if result["written"] else "known"] += 1

    def _refuse(self, number: int, reason: str) -> None:
        self.counts["refused"] += 1
        self._complain(number, reason)


def parse(data: bytes | None) -> tuple[str, dict[str, Any]]:
    """The type of a line and its other fields. Raises ValueError with the reason."""
    if data is None:
        msg = "too long"
        raise ValueError(msg)
    try:
        record = json.loads(data.decode())
    except (ValueError, RecursionError):
        msg = "not JSON in UTF-8"
        raise ValueError(msg) from None
    if not isinstance(record, dict) or not isinstance(record.get("type"), str):
        msg = 'not a JSON object with a "type"'
        raise ValueError(msg)  # noqa: TRY004 - one kind of error for a bad line
    kind = record.pop("type")
    if kind == "memoryd" and record.get("version") != JSONL_VERSION:
        msg = f"version {record.get('version')} is not known: this memory reads {JSONL_VERSION}"
        raise ValueError(msg)
    if kind == "event":
        for field in ("arrival_ms", "sequence", "store_id"):
            record.pop(field, None)
    return kind, record
