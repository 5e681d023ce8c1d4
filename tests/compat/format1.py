"""Writes a store of format 1 byte by byte, as docs/format.md of that time had it.

Uses nothing of memoryd, so that no change of its code can change what format 1 was.
"""

import os
import uuid
import zlib
from hashlib import sha256
from struct import pack
from typing import Any

import msgpack
from rocksdict import Options, Rdict, WriteBatch

FAMILIES = [
    "events",
    "event_ids",
    "journal",
    "session_events",
    "sessions",
    "agents",
    "outbox",
    "toc_nodes",
    "toc_latest",
    "toc_changes",
    "toc_segments",
    "toc_dirty",
    "toc_open",
    "grips",
    "toc_unwritten",
    "ledger",
    "injections",
    "checkpoints",
    "notes",
    "note_heads",
    "note_aliases",
    "meta",
]
NOTES = ("notes", "note_heads", "note_aliases")
STORE_ID = uuid.UUID("0f8e2c55-94f5-4c6b-8b43-6f1f6ad7a111")
TEXTS = ("why is the build slow?", "the cache is cold", "thanks")


def value(content: Any) -> bytes:
    """A value of version 1."""
    packed: bytes = msgpack.packb(content)
    return b"\x01" + packed


def mark(path: str, sequence: int, chain: bytes) -> None:
    """A high-water mark, the same in both slots."""
    body = pack(">8sQ16s32s", b"memoryd1", sequence, STORE_ID.bytes, chain)
    slot = body + pack(">I", zlib.crc32(body))
    with open(path, "wb") as file:
        file.write(slot.ljust(512, b"\0") + slot)


def write(data_dir: str, *, notes: bool = True) -> None:
    """Make a store with three events; without ``notes``, one from before there were any."""
    os.makedirs(data_dir, mode=0o700)
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    names = [name for name in FAMILIES if notes or name not in NOTES]
    db = Rdict(f"{data_dir}/db", options, {name: Options(raw_mode=True) for name in names})
    batch = WriteBatch(raw_mode=True)

    def put(family: str, key: bytes, stored: bytes) -> None:
        batch.put(key, stored, db.get_column_family_handle(family))

    chain = bytes(32)
    for number, text in enumerate(TEXTS, 1):
        time_ms, event_id = 1_700_000_000_000 - number * 1_000, f"e{number}"
        fields: tuple[Any, ...] = (event_id, "s", time_ms, 2, 1, {}, "a", "p", "", "")
        head = msgpack.packb((*fields, number, 1_700_000_000_500, str(STORE_ID)))
        chain = sha256(chain + sha256(head + sha256(text.encode()).digest()).digest()).digest()
        key = pack(">Q", time_ms) + event_id.encode()
        put("events", key, value((head, text)))
        put("event_ids", event_id.encode(), b"\x01" + pack(">QQ", time_ms, number))
        put("journal", pack(">Q", number), b"\x01" + chain + key)
        put("session_events", pack(">I", 1) + key, b"")
    first, last = 1_700_000_000_000 - len(TEXTS) * 1_000, 1_700_000_000_000 - 1_000
    put("sessions", b"s", value((1, len(TEXTS), first, last, ("a",), ("p",))))
    put("agents", b"a", value((len(TEXTS), 1, first, last)))
    put("outbox", pack(">Q", 1), value((len(TEXTS), 1_700_000_000_500)))
    put("meta", b"format", b"1")
    put("meta", b"store_id", str(STORE_ID).encode())
    put("meta", b"created_ms", b"1700000000000")
    put("meta", b"session_count", b"\x011")
    db.write(batch)
    db.close()
    mark(f"{data_dir}/HIGHWATER", len(TEXTS), chain)
    if notes:
        mark(f"{data_dir}/HIGHWATER-NOTES", 0, bytes(32))
