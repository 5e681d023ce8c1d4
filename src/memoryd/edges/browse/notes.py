"""The room of notes: list, read, write, edit in the user's editor, forget."""

import os
from typing import TYPE_CHECKING, Any, ClassVar

from textual import work
from textual.app import ComposeResult, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from memoryd.edges.browse import editor
from memoryd.edges.browse.rooms import Naming, Question, Room
from memoryd.edges.browse.words import DIM, line, shown
from memoryd.edges.cli import times
from memoryd.edges.cli.output import now_ms
from memoryd.edges.cli.remember import author_of
from memoryd.wire import ClientError

if TYPE_CHECKING:
    from memoryd.client import Client

Note = dict[str, Any]


class NotesRoom(Room):
    """Notes."""

    NAME = "notes"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("w", "write", "Write"),
        Binding("e,enter", "edit", "Edit"),
        Binding("d,delete", "forget", "Forget"),
        Binding("j", "move(1)", "Down", show=False),
        Binding("k", "move(-1)", "Up", show=False),
        Binding("escape", "app.leave", "Back"),
    ]

    def __init__(self, name: str = "", scope: str = "") -> None:
        super().__init__()
        self._wanted = (name, scope)
        self._notes: list[Note] = []

    def body(self) -> ComposeResult:
        """The names, and the note that is chosen."""
        with Horizontal():
            yield OptionList(id="names", markup=False)
            with VerticalScroll(id="note"):
                yield Static(id="content")

    def load(self) -> None:
        """Read the notes."""
        self.query_one(OptionList).focus()
        self._read()

    @property
    def chosen(self) -> Note | None:
        """The note under the cursor."""
        place = self.query_one(OptionList).highlighted
        return self._notes[place] if place is not None and place < len(self._notes) else None

    @work(exclusive=True, group="notes")
    async def _read(self) -> None:
        project = self.browser.note_project
        found = await self.ask(lambda client: list(client.notes(project=project)))
        if found is None:
            return
        # what is always at hand first, then what was changed last
        found.sort(key=lambda note: (not note["pinned"], -note["changed_ms"], note["name"]))
        now = now_ms()
        self._notes = found
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options([Option(_listed(note, now)) for note in found])
        if found:
            places = [(note["name"], note["scope"]) for note in found]
            options.highlighted = places.index(self._wanted) if self._wanted in places else 0
        self._show()

    def on_option_list_option_highlighted(self) -> None:
        """Show the note under the cursor."""
        self._show()

    def on_option_list_option_selected(self) -> None:
        """Edit the note that was chosen."""
        self.action_edit()

    def _show(self) -> None:
        note = self.chosen
        content = self.query_one("#content", Static)
        if note is None:
            content.update(Content("No notes yet: w writes one."))
            return
        self._wanted = (note["name"], note["scope"])
        content.update(_whole(note, now_ms()))
        self.query_one("#note").scroll_home(animate=False)

    def action_move(self, by: int) -> None:
        """Up or down the list."""
        options = self.query_one(OptionList)
        (options.action_cursor_down if by > 0 else options.action_cursor_up)()

    @work(exclusive=True, group="edit")
    async def action_write(self) -> None:
        """Ask for a name, and write a new note in the editor."""
        name = await self.browser.push_screen_wait(Naming("The name of the new note"))
        if not name:
            return
        if any(note["name"] == name and note["scope"] == "project" for note in self._notes):
            self.browser.notify(f"there is a note {shown(name)} already", markup=False)
            return
        note = {"name": name, "scope": "project", "content": "", "revision": 0}
        await self._edited(note)

    @work(exclusive=True, group="edit")
    async def action_edit(self) -> None:
        """Change the note in the editor."""
        note = self.chosen
        if note is not None:
            await self._edited(note)

    async def _edited(self, note: Note) -> None:
        """Have a note changed, and write it on top of the revision that was read."""
        try:
            with self.browser.suspend():
                text, path = editor.changed(note["content"])
        except SuspendNotSupported:
            self.browser.notify("an editor cannot be started here", severity="error")
            return
        except editor.EditorFailed as error:
            self.browser.notify(shown(str(error)), severity="error", markup=False)
            return
        self.browser.refresh()
        if text == note["content"]:
            os.unlink(path)
            self.browser.notify("nothing was changed")
            return
        sent = note | {"content": text, "author": author_of(None), "changed_ms": now_ms()}
        if not note["revision"]:
            sent["project"] = self.browser.note_project
        failure = await self.ask(lambda client: _written(client, sent))
        if failure == "":
            os.unlink(path)
            self._wanted = (note["name"], note["scope"])
            self._read()
        else:
            said = f"{failure or 'the daemon does not answer'}; your text is kept in {path}"
            self.browser.notify(shown(said), severity="error", timeout=15, markup=False)

    @work(exclusive=True, group="edit")
    async def action_forget(self) -> None:
        """Ask, and forget the note; its revisions stay."""
        note = self.chosen
        if note is None:
            return
        words = f"Forget the note {line(note['name'])}?\nmemory notes restore brings it back."
        if not await self.browser.push_screen_wait(Question(words)):
            return
        fields = {field: note[field] for field in ("name", "scope", "session_id", "project")}
        seen = note["revision"]
        done = await self.ask(
            lambda client: client.note(
                "Forget", **fields, author=author_of(None), expected_revision=seen
            )
        )
        if done is not None:
            self._read()


def _written(client: "Client", note: Note) -> str:
    """Write a note on top of the revision that was read; why it was refused, or nothing."""
    seen = note["revision"]
    try:
        if seen:
            client.note("ImportNotes", notes=[note | {"revision": seen + 1, "action": "edit"}])
        else:
            fields = {f: note[f] for f in ("name", "content", "scope", "author", "project")}
            client.note("Remember", **fields, mode="overwrite", expected_revision=0)
    except ClientError as error:
        return str(error)
    return ""


def _listed(note: Note, now: int) -> Content:
    told = note["scope"] if note["kind"] == "note" else f"{note['scope']} {note['kind']}"
    parts: list[Any] = [
        ("★ " if note["pinned"] else "", "$warning"),
        (line(note["name"]), "bold"),
        (f"\n{told}, {times.ago(note['changed_ms'], now)}", DIM),
    ]
    return Content.assemble(*parts)


def _whole(note: Note, now: int) -> Content:
    told = [note["scope"], note["category"], f"revision {note['revision']}"]
    told.append(f"{times.ago(note['changed_ms'], now)} by {note['author'] or 'somebody'}")
    if note["tags"]:
        told.append("tags " + ", ".join(note["tags"]))
    if note["aliases"]:
        told.append("also " + ", ".join(note["aliases"]))
    return Content.assemble(
        (line(note["name"]), "bold $primary"),
        "\n",
        (line(" · ".join(word for word in told if word)), DIM),
        "\n\n",
        shown(note["content"]),
    )
