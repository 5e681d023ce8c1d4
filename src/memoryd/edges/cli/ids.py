"""Ids as people give them: shortened to what is unique.

What is looked at may be named by how it begins. What is written, erased or made may not: a name
that means something else tomorrow is no name to write to.
"""

from typing import TYPE_CHECKING, Any, Final

from memoryd.wire import Missing, Refused

if TYPE_CHECKING:
    from memoryd.client import Client

EVENT: Final = ("event",)
SESSION: Final = ("session",)
NODE: Final = ("node",)
EVENT_OR_NODE: Final = ("event", "node")
OPENS: Final = ("event", "node", "grip")
NOTE: Final = ("note",)
_LISTED: Final = 10


def whole(client: "Client", text: str, kinds: tuple[str, ...], project: str = "") -> str:
    """The one id that begins with a text, or the text itself if none does.

    Raises Refused, with the ids, if several do.
    """
    if not text:
        return text
    found, more = client.resolve(text, kinds, limit=_LISTED, project=project)
    if not found:
        return text
    if len(found) > 1:
        listed = "".join(f"\n  {item['kind']:<8} {item['id']}" for item in found)
        rest = "\n  ..." if more else ""
        raise Refused(f"{text!r} begins several ids: give more of one{listed}{rest}")
    return str(found[0]["id"])


def note(client: "Client", method: str, address: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Call a method of notes on a note whose name may be shortened. Raises Missing, Refused.

    Its whole name and its aliases come first.
    """
    session = whole(client, address["session_id"], SESSION)
    address = address | {"session_id": session}
    try:
        return client.note(method, **address, **fields)
    except Missing:
        name = whole(client, address["name"], NOTE, address["project"])
        if name == address["name"]:
            raise
    return client.note(method, **address | {"name": name}, **fields)


def meant(client: "Client", address: dict[str, Any]) -> str:
    """Which notes somebody may have meant who named none that is there, as words."""
    found, _ = client.resolve(address["name"], NOTE, limit=_LISTED, project=address["project"])
    names = ", ".join(item["id"] for item in found)
    return f": did you mean {names}?" if names else ""
