"""How what was found is shown: results, sessions, nodes, the places in a node."""

from typing import Any

from memoryd.domain.origin import MARK
from memoryd.edges.cli import output as out
from memoryd.edges.cli import times
from memoryd.edges.cli.output import Output, one_line, visible


def say_state(answer: dict[str, Any]) -> None:
    """Say so if the index has not seen everything yet."""
    if answer["index_state"] != "ready":
        state = answer["index_state"]
        out.warn(f"memory: the search index is {state}: more may be found later")


def show_results(output: Output, results: list[dict[str, Any]]) -> None:
    """Print what a search has found."""
    if not results:
        output.show("nothing found")
        return
    from rich.padding import Padding
    from rich.text import Text

    now = out.now_ms()
    for found in results:
        what = _what(found)
        head = Text.assemble(
            (f"{times.ago(found['timestamp_ms'], now):<9} ", "dim"),
            (f"{what:<10}", out.ROLE_STYLES.get(what, "blue")),
            (f" {one_line(found['doc_id'])}", "dim"),
            (f"  {one_line(found['title'] or found['session_id'])}", "bold"),
        )
        if found["less_trusted"]:
            head.append(f"  {MARK.strip()}", "yellow")
        if found.get("store_project"):
            head.append(f"  {one_line(found['store_project'])}", "magenta")
        output.show(head)
        output.show(Padding(_snippet(found), (0, 0, 0, 4), expand=False))
        if found["reasons"]:
            why = ", ".join(f"{r['name']} {r['value']:.2f}" for r in found["reasons"])
            output.show(Text(f"    {found['score']:.2f} = {why}", "dim"))


def _what(found: dict[str, Any]) -> str:
    """Who spoke; of what nobody spoke, what it is: the level of a node, grip or note."""
    kind: str = found["doc_type"]
    if kind == "event":
        return str(found["role"])
    return str(found["doc_id"]).split(":")[1] if kind == "toc_node" else kind


def _snippet(found: dict[str, Any]) -> Any:
    """The piece of text with its words in bold, in one paragraph."""
    from rich.text import Text

    text, made, behind = found["snippet"], Text(), 0
    for mark in found["highlights"]:
        made.append(visible(text[behind : mark["start"]]))
        made.append(visible(text[mark["start"] : mark["end"]]), "bold yellow")
        behind = mark["end"]
    made.append(visible(text[behind:]))
    return made


def show_sessions(output: Output, found: list[dict[str, Any]]) -> None:
    """Print sessions, each with its best turns."""
    if not found:
        output.show("nothing found")
        return
    from rich.text import Text

    now = out.now_ms()
    for place, hit in enumerate(found):
        session = hit["session"]
        head = Text.assemble(
            ("\n" if place else "", ""),
            ("session ", "dim"),
            (one_line(session["session_id"]), "bold"),
            (f"  {one_line(', '.join(filter(None, session['agents'])))}", "magenta"),
            (
                f"  {session['event_count']:,} events, {times.ago(session['last_event_ms'], now)}",
                "dim",
            ),
        )
        output.show(head)
        show_results(output, hit["results"])


def show_nodes(output: Output, found: list[dict[str, Any]]) -> None:
    """Print the nodes that speak of something, with the places."""
    if output.as_json:
        output.lines(found)
        return
    from rich.text import Text

    for node in found:
        output.show(
            Text.assemble(
                (one_line(node["node_id"]), "cyan"), "  ", (one_line(node["title"]), "bold")
            )
        )
        _show_matches(output, node["matches"])
    if not found:
        output.show("nothing found")


def show_matches(output: Output, found: dict[str, Any]) -> None:
    """Print where in a node some words occur."""
    if output.as_json:
        output.line(found)
        return
    _show_matches(output, found["matches"])
    if not found["matched"]:
        output.show("nothing found")


def _show_matches(output: Output, matches: list[dict[str, Any]]) -> None:
    from rich.padding import Padding
    from rich.text import Text

    for match in matches:
        text = Text.assemble((f"{match['field']:<9}", "dim"), visible(match["text"]))
        text.append("".join(f"  {one_line(grip)}" for grip in match["grip_ids"]), "dim")
        output.show(Padding(text, (0, 0, 0, 4), expand=False))
