"""The fields of the index, and a document's way into them and back. Derived.

Texts come in analysed, as tokens joined by spaces, and are not stored: what was erased from the
log must not live on here. What is stored of a document is its `Head`, and, in a document of its
own, the `State` that the commit stands for, so that both arrive on the disk together or not at
all.

Nodes and grips have a text field of their own: they repeat the telling words of events, which
would make these words look common where events are weighed. The engine weighs the length of a
text against the average over all documents, also those without any, so what has its words
elsewhere gets a text of usual length that says nothing.
"""

import json
from collections.abc import Iterable
from typing import Final, NamedTuple

import msgpack
import tantivy

from memoryd.domain import analyze
from memoryd.domain.document import (
    DERIVED,
    KIND_NAMES,
    ROLE_NAMES,
    TEXT_LIMIT,
    Document,
    Head,
    Kind,
    who_spoke,
)
from memoryd.domain.event import EventRole

FORMAT: Final = f"2.{analyze.VERSION}"  # of the fields here, and of the tokens in them
STATE_KEY: Final = "state"
_FILLER: Final = "\x1f"  # a token that no text gives
_FILLER_MOST: Final = 1_000
_PART: Final = "\x1f"  # ids are printable, so none holds it


class State(NamedTuple):
    """What a commit stands for: how far each source has been taken in."""

    store_id: str
    cursors: dict[str, int]  # the name of a source, and where in it the index stands
    events: int  # how many documents of events there must be
    format: str = FORMAT
    words: int = 0  # how many tokens these documents had together

    @property
    def usual(self) -> int:
        """How many tokens an event has on average."""
        return round(self.words / self.events) if self.events else 0

    def encode(self) -> bytes:
        """The stored bytes."""
        return json.dumps(self._asdict()).encode()

    @staticmethod
    def decode(stored: bytes) -> "State":
        """The state in its stored bytes. Raises ValueError, KeyError or TypeError."""
        return State(**json.loads(stored))


def build() -> tantivy.Schema:
    """The schema."""
    made = tantivy.SchemaBuilder()
    for name in ("key", "place", "kind", "agent", "session", "role", "project", "path", "scope"):
        made.add_text_field(name, tokenizer_name="raw", index_option="basic")
    for name in ("text", "gist"):
        made.add_text_field(name, tokenizer_name="whitespace", index_option="position")
    made.add_text_field("who", tokenizer_name="whitespace", index_option="basic")
    made.add_integer_field("time", fast=True)
    made.add_bytes_field("head", stored=True, indexed=False)
    return made.build()


def text_field(kinds: Iterable[Kind]) -> str:
    """The field that holds the words of documents of these kinds; none: events and notes."""
    wanted = frozenset(kinds)
    return "gist" if wanted and wanted <= DERIVED else "text"


def key_of(kind: int, id_: str) -> str:
    """The term that names a document."""
    return f"{kind}{_PART}{id_}"


def place_of(session: str, place: int) -> str:
    """The term that names a place in a session."""
    return f"{session}{_PART}{place}"


def fields(document: Document, usual: int) -> dict[str, object]:
    """The fields of a document; ``usual`` is how many tokens an event has on average."""
    text = document.text[:TEXT_LIMIT]
    tokens = analyze.tokens(text)
    who = analyze.tokens(who_spoke(document))
    head = Head(
        int(document.kind),
        document.id,
        document.sequence,
        document.time_ms,
        document.session,
        document.place,
        len(document.text),
        document.role,
        tuple(who),
        analyze.sketch(tokens),
        document.path,
        document.scope,
        document.number,
    )
    found: dict[str, object] = {
        "key": key_of(document.kind, document.id),
        "kind": KIND_NAMES[document.kind],
        "agent": document.agent,
        "project": document.project,
        text_field((document.kind,)): " ".join(tokens),
        "who": " ".join(who),
        "time": document.time_ms,
        "head": encode_head(head),
    }
    if "text" not in found:
        found["text"] = " ".join([_FILLER] * min(usual, _FILLER_MOST))
    if document.session:
        found["session"] = document.session
        if document.place:
            found["place"] = place_of(document.session, document.place)
    if document.role:
        found["role"] = ROLE_NAMES[EventRole(document.role)]
    if document.scope:
        found["scope"] = document.scope
    if document.path:
        found["path"] = list(document.path)
    return found


def encode_head(head: Head) -> bytes:
    """The stored bytes of a head."""
    packed: bytes = msgpack.packb(head)
    return packed


def decode_head(stored: bytes) -> Head:
    """The head in its stored bytes. Raises ValueError or TypeError."""
    return Head(*msgpack.unpackb(stored, use_list=False))
