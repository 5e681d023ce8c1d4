"""Changes notes: remember, edit, forget, restore, archive, import. On the side of truth."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from memoryd.domain import notetext
from memoryd.domain.errors import Conflict, InvalidInput, NotFound, Outdated
from memoryd.domain.event import Event
from memoryd.domain.note import (
    ACTIONS,
    MODES,
    SCRATCHPAD,
    WRITE_LIMIT,
    Note,
    Place,
    Revision,
    check_text,
    check_word,
    checked,
    place_of,
    unique,
)
from memoryd.domain.redact import Redactor
from memoryd.services.note_stores import Address, Stores
from memoryd.storage.notebook import Desk, NoteStore

LocalTime = Callable[[int], tuple[str, str]]


class Wish(NamedTuple):
    """What is to be remembered. None and empty fields leave a note as it is."""

    address: Address
    content: str = ""
    aliases: tuple[str, ...] = ()
    kind: str = ""
    category: str = ""
    tags: tuple[str, ...] = ()
    mode: str = ""
    author: str = ""
    provenance: tuple[str, ...] = ()
    pinned: bool | None = None
    expected: int | None = None
    heading: str = ""


class Remembered(NamedTuple):
    """What became of a wish."""

    revision: Revision
    created: bool
    changed: bool
    dropped: int


class Change(NamedTuple):
    """Who changes a note, and which revision of it they have seen (None: any)."""

    author: str = ""
    expected: int | None = None


class Imported(NamedTuple):
    """A revision as a copy holds it; number 0 stands for the next one."""

    note: Note
    revision: int = 0
    action: str = "import"


class Notes:
    """The way into the notes. Safe to call from many threads."""

    def __init__(
        self, stores: Stores, clock_ms: Callable[[], int], local: LocalTime, redactor: Redactor
    ) -> None:
        """``local`` tells the day and the time of day where the user is."""
        self._stores = stores
        self._redactor = redactor
        self._clock_ms = clock_ms
        self._local = local

    def remember(self, wish: Wish) -> Remembered:
        """Write a note, or add to it. Raises InvalidInput, Conflict, Outdated, ReadOnly."""
        check_word("mode", wish.mode or "append", MODES)
        check_text("content", wish.content, WRITE_LIMIT, "write it in parts")
        check_text("heading", wish.heading, WRITE_LIMIT, "shorten it")
        wish = wish._replace(
            content=self._redacted(wish.content), heading=self._redacted(wish.heading)
        )
        now = self._clock_ms()
        moment = self._local(now)
        name = wish.address.name or {"daily": moment[0], "scratchpad": SCRATCHPAD}.get(wish.kind)
        address = wish.address._replace(name=name or "", scope=wish.address.scope or "project")
        (place,) = self._stores.places(address)

        def work(desk: Desk) -> Remembered:
            before = desk.living(place, address.name)
            _expect(before, wish.expected)
            old = before.note if before else _blank(place, address, wish.kind, now)
            if wish.kind and wish.kind != old.kind:
                msg = f"note {old.name!r} is of kind {old.kind}, which cannot change to {wish.kind}"
                raise InvalidInput(msg)
            new, dropped = _fulfilled(old, wish, moment)
            if before and checked(new) == old:
                return Remembered(before, created=False, changed=False, dropped=dropped)
            new = new._replace(changed_ms=now, author=wish.author or old.author)
            return Remembered(desk.put(new, "remember"), before is None, True, dropped)

        return self._stores.of(place).change(work)

    def edit(self, address: Address, old: str, new: str, change: Change) -> Revision:
        """Replace a text that occurs once. Raises InvalidInput, NotFound, Outdated, ReadOnly."""
        check_text("new", new, WRITE_LIMIT, "write it in parts")
        new = self._redacted(new)
        return self._change(
            address,
            "edit",
            change,
            lambda note: note._replace(content=notetext.edit(note.content, old, new)),
        )

    def set_aliases(self, address: Address, aliases: tuple[str, ...], change: Change) -> Revision:
        """Give a note exactly these aliases. Raises Conflict if one belongs to another note."""
        return self._change(address, "aliases", change, lambda note: note._replace(aliases=aliases))

    def forget(self, address: Address, change: Change) -> Revision:
        """Let a note go; its revisions stay. Raises NotFound, Outdated, ReadOnly."""
        return self._change(address, "forget", change, lambda note: note._replace(content=""))

    def restore(self, address: Address, revision: int, change: Change) -> Revision:
        """Make an earlier revision the present one; 0 stands for the last that lived."""
        book, head = self._stores.locate(address, forgotten=True)
        for earlier in book.history(head):
            if not earlier.forgotten and revision in {0, earlier.revision}:
                break
        else:
            msg = f"note {head.note.name!r} has no revision {revision} that could be restored"
            raise NotFound(msg)

        def work(desk: Desk) -> Revision:
            now = desk.book.head(head.note.place, head.note.name)
            _expect(now, change.expected)
            return desk.put(self._signed(earlier.note, change), "restore")

        return self._stores.of(head.note.place).change(work)

    def archive(
        self, address: Address, summary: str, messages: int, note: Note
    ) -> tuple[Revision, bool]:
        """Keep the summary of a session as an archive and in the log of the day, at once.

        ``note`` gives author and provenance. The same summary again changes nothing.
        """
        if not address.session_id:
            raise InvalidInput("session_id is empty: an archive is that of a session")
        if not summary.strip() or messages < 0:
            raise InvalidInput("content is empty" if messages >= 0 else "message_count is negative")
        check_text("content", summary, WRITE_LIMIT, "shorten it")
        summary = self._redacted(summary)
        name = notetext.archive_name(address.session_id, messages, summary)
        made = self._archive(address._replace(name=name), self._clock_ms())
        made = made._replace(author=note.author, provenance=note.provenance)
        return self._archived(made, notetext.compaction_heading(messages), summary)

    def archive_event(self, event: Event, project: str) -> bool:
        """Keep the summary that an event of the log holds, under its own time.

        Whether it is new: one that was kept before, even if forgotten since, is left alone.
        Raises InvalidInput, Conflict, ReadOnly or Stopping.
        """
        name = notetext.event_archive_name(event.session_id, event.event_id)
        address = Address(name, session_id=event.session_id, project=project)
        made = self._archive(address, event.time_ms)
        kept = self._stores.own.book.head(made.place, name) is not None
        if kept or not event.text.strip():
            return False
        made = made._replace(author=event.agent, provenance=(event.event_id,))
        return self._archived(made, notetext.compaction_heading(None), event.text)[1]

    def _archive(self, address: Address, time_ms: int) -> Note:
        place = place_of("project", self._stores.project(address.project), "")
        return _blank(place, address, "archive", time_ms)

    def _archived(self, made: Note, heading: str, summary: str) -> tuple[Revision, bool]:
        """Write an archive and its entry in the log of its day, unless there is that archive."""
        day, clock = self._local(made.created_ms)
        place, now = made.place, self._clock_ms()
        made = made._replace(
            content=notetext.archive_text(made.session_id, day, clock, heading, summary)
        )

        def work(desk: Desk) -> tuple[Revision, bool]:
            known = desk.living(place, made.name)
            if known is not None:
                return known, False
            log = desk.living(place, day)
            daily = log.note if log else _blank(place, Address(day), "daily", now)
            if daily.kind != "daily":
                raise Conflict(f"note {day!r} is of kind {daily.kind}: rename it, it is in the way")
            daily = daily._replace(
                content=notetext.daily_entry(daily.content, day, clock, heading, summary),
                author=made.author or daily.author,
                changed_ms=now,
            )
            desk.put(daily, "remember")
            return desk.put(made, "remember"), True

        return self._stores.own.change(work)

    def take(self, items: list[Imported], *, dry_run: bool) -> list[tuple[int, bool]]:
        """Write revisions as a copy holds them; for each its number, and whether it is new.

        Checks all before it changes any. Raises InvalidInput, Conflict, ReadOnly.
        """
        items = [item._replace(note=self._marked(item.note)) for item in items]
        parts: list[tuple[NoteStore, dict[int, Imported]]] = []
        for store in (self._stores.own, self._stores.shared):
            places = [n for n, i in enumerate(items) if self._stores.of(i.note.place) is store]
            if places:
                parts.append((store, {n: items[n] for n in places}))
        results: dict[int, tuple[int, bool]] = {}
        if dry_run or len(parts) > 1:
            for store, part in parts:
                results |= store.change(partial(_taken, part, dry=True))
        if not dry_run:
            for store, part in parts:
                results |= store.change(partial(_taken, part, dry=False))
        return [results[n] for n in range(len(items))]

    def _change(
        self, address: Address, action: str, change: Change, how: Callable[[Note], Note]
    ) -> Revision:
        _, head = self._stores.locate(address)
        place, name = head.note.place, head.note.name

        def work(desk: Desk) -> Revision:
            before = desk.living(place, name)
            if before is None:
                raise NotFound(f"there is no note {name!r}")
            _expect(before, change.expected)
            after = checked(how(before.note))
            if after == before.note and action != "forget":
                return before
            return desk.put(self._signed(after, change), action)

        return self._stores.of(place).change(work)

    def _signed(self, note: Note, change: Change) -> Note:
        return note._replace(changed_ms=self._clock_ms(), author=change.author or note.author)

    def _marked(self, note: Note) -> Note:
        now = self._clock_ms()
        project = "" if note.scope == "global" else self._stores.project(note.project)
        created = note.created_ms or note.changed_ms or now
        changed = note.changed_ms or created
        note = checked(note._replace(project=project, created_ms=created, changed_ms=changed))
        return note._replace(content=self._redacted(note.content))

    def _redacted(self, text: str) -> str:
        return self._redactor.redact(text).text


def _blank(place: Place, address: Address, kind: str, now: int) -> Note:
    """A note of which nothing is known but where it is."""
    return Note(
        address.name,
        kind=kind or "note",
        scope=place.scope,
        session_id=address.session_id,
        project=place.project,
        created_ms=now,
        changed_ms=now,
    )


def _fulfilled(old: Note, wish: Wish, moment: tuple[str, str]) -> tuple[Note, int]:
    """The note as it is wished, and how many lines were left out."""
    adding = wish.mode != "overwrite"
    content, dropped = wish.content, 0
    if wish.heading and old.kind != "daily":
        raise InvalidInput("heading is given: only an entry in a daily log has one")
    if adding and old.kind == "daily":
        content = old.content
        if wish.content.strip() or wish.heading.strip():
            day = old.name
            content = notetext.daily_entry(old.content, day, moment[1], wish.heading, wish.content)
    elif adding and old.kind == "archive":
        content = notetext.join(old.content, wish.content)
    elif adding and old.content:
        content, dropped = notetext.append(old.content, wish.content)
    new = old._replace(
        content=content,
        aliases=_listed(old.aliases, wish.aliases, adding=adding),
        category=wish.category or old.category,
        tags=_listed(old.tags, wish.tags, adding=adding),
        provenance=_listed(old.provenance, wish.provenance, adding=adding),
        pinned=old.pinned if wish.pinned is None else wish.pinned,
    )
    return new, dropped


def _listed(old: tuple[str, ...], new: tuple[str, ...], *, adding: bool) -> tuple[str, ...]:
    return unique((*old, *new)) if adding else new or old


def _expect(present: Revision | None, expected: int | None) -> None:
    """Raise Outdated unless the present revision is the expected one."""
    number = present.revision if present else 0
    if expected is None or expected == number:
        return
    if present is None:
        raise Outdated(f"expected_revision is {expected}, but there is no such note")
    name = present.note.name
    msg = f"note {name!r} is at revision {number}, not {expected}: look at it, then try again"
    raise Outdated(msg)


def _taken(part: dict[int, Imported], desk: Desk, *, dry: bool) -> dict[int, tuple[int, bool]]:
    results = {place: _take_one(desk, item) for place, item in part.items()}
    if dry:
        desk.puts.clear()
    return results


def _take_one(desk: Desk, item: Imported) -> tuple[int, bool]:
    check_word("action", item.action, ACTIONS)
    note = item.note
    head = desk.book.head(note.place, note.name)
    present = head.revision if head else 0
    number = item.revision or present + 1
    if head is not None and number <= present:
        known = next(r for r in desk.book.history(head) if r.revision == number)
        if known.note != note or known.forgotten != (item.action == "forget"):
            raise Conflict(
                f"note {note.name!r} has another revision {number}: it was left as it is"
            )
        return number, False
    if number != present + 1:
        raise InvalidInput(f"note {note.name!r}: revision {number} does not follow {present}")
    return desk.put(note, item.action).revision, True
