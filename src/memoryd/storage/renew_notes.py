"""The notes' part of making a store anew: what can be read of them, and the names that follow."""

from collections.abc import Iterator

from memoryd.domain.chain import digest
from memoryd.domain.errors import StoreDamaged
from memoryd.domain.keys import split_sequence_key
from memoryd.storage.notebook import name_key, read_head, seal
from memoryd.storage.walk import Link


def note_links(entries: Iterator[tuple[bytes, bytes]]) -> Iterator[Link]:
    """Every revision that can be read, as an entry of the chain; nonsense is passed over."""
    for key, value in entries:
        try:
            chain, head, hashed = seal(value)
            if read_head(head).sequence == split_sequence_key(key):
                yield Link(split_sequence_key(key), digest(head, hashed), chain)
        except (StoreDamaged, ValueError):
            continue


def rebuild_names(revisions: list[bytes]) -> Iterator[tuple[str, bytes, bytes]]:
    """The entries of names and aliases for these revisions, in their order: family, key, value."""
    heads: dict[bytes, bytes] = {}
    aliases: dict[bytes, bytes] = {}
    owned: dict[bytes, list[bytes]] = {}
    for stored in revisions:
        _, head, _ = seal(stored)
        revision = read_head(head)
        note = revision.note
        key = name_key(note.place, note.name)
        for alias in owned.pop(key, []):
            aliases.pop(alias, None)
        heads[key] = head
        if not revision.forgotten:
            owned[key] = [name_key(note.place, alias) for alias in note.aliases]
            aliases |= dict.fromkeys(owned[key], note.name.encode())
    for key, head in heads.items():
        yield "note_heads", key, b"\x01" + head
    for key, name in aliases.items():
        yield "note_aliases", key, b"\x01" + name
