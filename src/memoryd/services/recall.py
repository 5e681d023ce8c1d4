"""Finds notes by their words. Derived: follows from the notes, kept in memory, made anew at start.

Every look first asks the stores for their last sequence number and takes in what is new, so that
it also knows what other daemons have written to the global notes.
"""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from memoryd.domain.bm25 import Ranked, parse, words
from memoryd.domain.errors import InvalidInput
from memoryd.domain.note import Note, Place, Revision
from memoryd.services.paging import bounded
from memoryd.storage.notebook import NoteBook

LIMIT_DEFAULT: Final = 5
LIMIT: Final = 100
_NAME_WEIGHT: Final = 3

Wanted = Callable[[Revision], bool]
_Key = tuple[Place, str]


class Hit(NamedTuple):
    """A note that was found; scores compare within one answer."""

    revision: Revision
    score: float


class Recall:
    """The words of all notes. Safe to call from many threads."""

    def __init__(self, books: Sequence[NoteBook]) -> None:
        self._books = books
        self._seen = [0] * len(books)
        self._heads: dict[_Key, tuple[int, Revision]] = {}
        self._ranked: Ranked[_Key] = Ranked()
        self._lock = threading.Lock()

    def search(
        self, text: str, limit: int, wanted: Wanted | None, places: Sequence[int]
    ) -> list[Hit]:
        """The notes that fit best, with their contents. Raises InvalidInput without a word.

        ``places`` says which books can hold what is wanted: no other one is opened.
        """
        limit = bounded("limit", limit, LIMIT_DEFAULT, LIMIT)
        query = parse(text)
        if not query.words and not query.prefixes:
            raise InvalidInput("query holds no word to look for")
        with self._lock:
            for place in places:
                self._catch_up(place)
            heads = self._heads
            found = self._ranked.search(
                query,
                limit,
                lambda key: (-heads[key][1].note.changed_ms, key),
                wanted and (lambda key: wanted(heads[key][1])),
            )
            hits = [(*heads[key], score) for key, score in found]
        return [Hit(self._books[book].whole(head), score) for book, head, score in hits]

    def _catch_up(self, place: int) -> None:
        book, seen = self._books[place], self._seen[place]
        end = book.tail().sequence
        if end == seen:
            return
        if seen:
            for revision in book.after(seen):
                self._take(place, revision)
                self._seen[place] = revision.sequence
            return
        self._ranked.loading()
        for head in book.heads():
            if not head.forgotten:
                self._take(place, book.whole(head))
        self._seen[place] = end

    def _take(self, place: int, revision: Revision) -> None:
        note = revision.note
        key = (note.place, note.name)
        if revision.forgotten:
            self._ranked.remove(key)
            self._heads.pop(key, None)
            return
        self._ranked.put(key, _counts(note))
        self._heads[key] = (place, revision._replace(note=note._replace(content="")))


def _counts(note: Note) -> Counter[str]:
    counts = Counter(words(note.content))
    for title in (note.name, *note.aliases):
        for word in words(title):
            counts[word] += _NAME_WEIGHT
    return counts
