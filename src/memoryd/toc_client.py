"""The client's calls that read the table of contents and steer the daemon's own work.

The other half of `client.Client`, which has the connection. Plain dicts go out, as `wire` spells
them.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from memoryd.wire import LEVELS, Refused, plain

LONG_TIMEOUT: Final = 3600.0


class TocCalls:
    """Calls on a connection. Every one can raise ClientError."""

    if TYPE_CHECKING:  # the client's own
        _pb: Any
        _stub: Any
        _metadata: Any

        def _call(self, method: str, request: object, timeout: float | None = None) -> Any: ...
        def _stream(self, method: str, request: object) -> Iterator[Any]: ...

    def toc_root(self) -> list[dict[str, Any]]:
        """The years, oldest first."""
        answer = self._call("GetTocRoot", self._pb.GetTocRootRequest())
        return [plain(node) for node in answer.nodes]

    def node(self, node_id: str, version: int = 0) -> dict[str, Any]:
        """One node. Raises Refused if there is none."""
        request = self._pb.GetNodeRequest(node_id=node_id, version=version)
        return plain(self._call("GetNode", request).node)

    def children(self, parent_id: str) -> Iterator[dict[str, Any]]:
        """The nodes right below one, oldest first, however many answers it takes."""
        token, more = None, True
        while more:
            request = self._pb.BrowseTocRequest(parent_id=parent_id, continuation_token=token)
            answer = self._call("BrowseToc", request)
            token, more = answer.continuation_token, answer.has_more
            yield from map(plain, answer.children)

    def nodes(self, parent_id: str = "") -> Iterator[dict[str, Any]]:
        """All nodes below one, each before its children."""
        for node in self.children(parent_id):
            yield node
            if node["child_node_ids"]:
                yield from self.nodes(node["node_id"])

    def expand(self, grip_id: str, *, before: int = 3, after: int = 3) -> dict[str, Any]:
        """A grip, and the events before, under and after it."""
        request = self._pb.ExpandGripRequest(
            grip_id=grip_id, events_before=before, events_after=after
        )
        return plain(self._call("ExpandGrip", request))

    def search_node(self, node_id: str, query: str, *, limit: int = 0) -> dict[str, Any]:
        """Where in a node the words of a question occur, best first. Raises Missing."""
        request = self._pb.SearchNodeRequest(node_id=node_id, query=query, limit=limit)
        return plain(self._call("SearchNode", request))

    def search_children(
        self, parent_id: str, query: str, *, level: str = "", limit: int = 0
    ) -> list[dict[str, Any]]:
        """The nodes below one that speak of a question, best first."""
        request = self._pb.SearchChildrenRequest(
            parent_id=parent_id, query=query, child_level=_level(level), limit=limit
        )
        return [plain(found) for found in self._call("SearchChildren", request).results]

    def timeline(
        self, *, since_ms: int = 0, until_ms: int = 0, tokens: int = 0, level: str = ""
    ) -> dict[str, Any]:
        """What happened between two times, at the finest level that fits into so many tokens."""
        request = self._pb.GetTimelineRequest(
            from_timestamp_ms=since_ms,
            to_timestamp_ms=until_ms,
            token_budget=tokens,
            level=_level(level),
        )
        return plain(self._call("GetTimeline", request))

    def rebuild_toc(self) -> Iterator[dict[str, Any]]:
        """Have the table of contents derived again; how far it is, until it has finished."""
        for progress in self._stream("RebuildToc", self._pb.RebuildTocRequest()):
            yield plain(progress)

    def jobs(self) -> list[dict[str, Any]]:
        """The jobs of the daemon."""
        answer = self._call("GetSchedulerStatus", self._pb.GetSchedulerStatusRequest())
        return [plain(job) for job in answer.jobs]

    def pause_job(self, name: str) -> None:
        """Have a job wait. Raises Refused if there is none of that name."""
        answer = self._call("PauseJob", self._pb.PauseJobRequest(job_name=name))
        if not answer.success:
            raise Refused(answer.error)

    def resume_job(self, name: str) -> None:
        """End a pause. Raises Refused if there is no job of that name."""
        answer = self._call("ResumeJob", self._pb.ResumeJobRequest(job_name=name))
        if not answer.success:
            raise Refused(answer.error)

    def run_job(self, name: str) -> dict[str, Any]:
        """Run a job and wait for its end. Raises Refused if there is none of that name."""
        request = self._pb.RunJobRequest(job_name=name)
        return plain(self._call("RunJob", request, LONG_TIMEOUT).job)

    def costs(self, days: int) -> dict[str, Any]:
        """What models took on the last so many days, and what may be spent today."""
        return plain(self._call("GetCosts", self._pb.GetCostsRequest(days=days)))


def _level(word: str) -> int:
    if word and word not in LEVELS:
        raise Refused(f"level {word!r} is not known: take one of {', '.join(LEVELS)}")
    return LEVELS.index(word) + 1 if word else 0
