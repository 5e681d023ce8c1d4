"""The tools for notes: recall, remember, forget. A note's revisions stay, so all can be undone."""

from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult
from pydantic import Field

from memoryd import client
from memoryd.edges.mcp.answer import Reply, reply, told
from memoryd.edges.mcp.items import Item, moment
from memoryd.edges.mcp.looking import BUDGET, Budget, Limit, asked, owner

Scope = Literal["", "project", "session", "global"]
Name = Annotated[str, Field(description="The name of the note, or an alias.")]
Session = Annotated[str, Field(description="The session, for scope session.")]
Words = Annotated[list[str], Field(description="May be empty.")]


def of_note(note: dict[str, Any]) -> Item:
    """A note, with who wrote it."""
    pinned = ", pinned" if note["pinned"] else ""
    return Item(
        id=note["name"],
        kind=note["kind"],
        when=moment(note["changed_ms"]),
        origin=f"{note['scope']} note by {note['author'] or 'somebody'}{pinned}",
        session=note["session_id"],
        text=note["content"],
    )


class Noting:
    """Tools over the notes of the project that a directory belongs to."""

    def __init__(self, start_dir: str) -> None:
        self._start_dir = start_dir

    def recall(
        self,
        query: Annotated[str, Field(description="Words; one with * at its end is a beginning.")],
        scope: Scope = "",
        limit: Limit = 5,
        budget: Budget = BUDGET,
    ) -> Reply:
        """Find notes: what people and agents chose to remember, such as decisions and conventions.

        The name of a note with limit 1 reads it alone.
        """

        def answer(connected: client.Client) -> CallToolResult:
            mine = owner(connected, self._start_dir)
            fields = {"query": query, "scope": scope, "limit": limit, "project": mine}
            found = connected.note("Recall", **fields)["notes"]
            return reply([of_note(hit["note"]) for hit in found], budget)

        return asked(self._start_dir, answer)

    def remember(  # noqa: PLR0913 - one parameter for each field of a note
        self,
        name: Annotated[str, Field(description="Short and lasting, such as deploy.")],
        content: Annotated[str, Field(min_length=1, description="Markdown, one fact per line.")],
        ctx: Context,
        *,
        mode: Literal["append", "overwrite"] = "append",
        scope: Literal["project", "session", "global"] = "project",
        session: Session = "",
        tags: Words = [],  # noqa: B006 - the schema shows it, and nobody changes it
        provenance: Annotated[list[str], Field(description="Ids that it stands on.")] = [],  # noqa: B006 - as above
    ) -> Reply:
        """Write a note, or add lines to the one of that name; those it holds already are left out.

        For what should outlast this session: decisions and their reasons, conventions, how-tos.
        """

        def answer(connected: client.Client) -> CallToolResult:
            made = connected.note(
                "Remember",
                name=name,
                content=content,
                mode=mode,
                scope=scope,
                session_id=session,
                tags=tags,
                provenance=provenance,
                author=author_of(ctx),
                project="" if scope == "global" else owner(connected, self._start_dir),
            )
            word = "created" if made["created"] else "changed" if made["changed"] else "unchanged"
            return told(f"note {name!r} {word}, revision {made['note']['revision']}")

        return asked(self._start_dir, answer)

    def forget_note(
        self, name: Name, ctx: Context, scope: Scope = "", session: Session = ""
    ) -> Reply:
        """Forget a note, if the user wants it so. Its revisions stay, and can be restored."""

        def answer(connected: client.Client) -> CallToolResult:
            connected.note(
                "Forget",
                name=name,
                scope=scope,
                session_id=session,
                author=author_of(ctx),
                project="" if scope == "global" else owner(connected, self._start_dir),
            )
            return told(f"note {name!r} forgotten; `memory notes restore` brings it back")

        return asked(self._start_dir, answer)


def author_of(ctx: Context) -> str:
    """The program that calls, as it calls itself."""
    params = ctx.session.client_params
    return params.client_info.name if params else "mcp"
