"""The table of contents on the wire: each method turns a request into one call of a service."""

import grpc

from memoryd.domain import origin
from memoryd.domain.errors import InvalidInput
from memoryd.domain.lookup import Found, Match, SearchField
from memoryd.domain.toc import Bullet, Grip, Node
from memoryd.pb import memory_pb2 as pb
from memoryd.rpc import convert
from memoryd.services.toc import Contents, Question


class ContentsServicer:
    """The methods that read nodes and grips."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents

    def GetTocRoot(
        self, request: pb.GetTocRootRequest, context: grpc.ServicerContext
    ) -> pb.GetTocRootResponse:
        """The years."""
        return pb.GetTocRootResponse(nodes=map(self._node, self._contents.root()))

    def GetNode(
        self, request: pb.GetNodeRequest, context: grpc.ServicerContext
    ) -> pb.GetNodeResponse:
        """One node."""
        node = self._contents.node(request.node_id, request.version)
        return pb.GetNodeResponse(node=self._node(node))

    def BrowseToc(
        self, request: pb.BrowseTocRequest, context: grpc.ServicerContext
    ) -> pb.BrowseTocResponse:
        """A page of children."""
        children, token = self._contents.children(
            request.parent_id, request.limit, request.continuation_token
        )
        return pb.BrowseTocResponse(
            children=map(self._node, children),
            continuation_token=token or None,
            has_more=bool(token),
        )

    def ExpandGrip(
        self, request: pb.ExpandGripRequest, context: grpc.ServicerContext
    ) -> pb.ExpandGripResponse:
        """A grip and what was said around it."""
        found = self._contents.expand(
            request.grip_id,
            request.events_before if request.HasField("events_before") else None,
            request.events_after if request.HasField("events_after") else None,
        )
        return pb.ExpandGripResponse(
            grip=from_grip(found.grip, found.session_id),
            events_before=map(convert.from_recorded, found.before),
            excerpt_events=map(convert.from_recorded, found.evidence),
            events_after=map(convert.from_recorded, found.after),
        )

    def SearchNode(
        self, request: pb.SearchNodeRequest, context: grpc.ServicerContext
    ) -> pb.SearchNodeResponse:
        """Matches in one node."""
        node, matches = self._contents.search_node(request.node_id, _question(request))
        return pb.SearchNodeResponse(
            matched=bool(matches),
            matches=map(_match, matches),
            node_id=node.node_id,
            level=int(node.level),  # type: ignore[arg-type]
        )

    def SearchChildren(
        self, request: pb.SearchChildrenRequest, context: grpc.ServicerContext
    ) -> pb.SearchChildrenResponse:
        """The best of the nodes below."""
        found, more = self._contents.search_below(
            request.parent_id, request.child_level, _question(request), context.is_active
        )
        return pb.SearchChildrenResponse(results=map(_result, found), has_more=more)

    def GetTimeline(
        self, request: pb.GetTimelineRequest, context: grpc.ServicerContext
    ) -> pb.GetTimelineResponse:
        """What happened between two times."""
        line = self._contents.timeline(
            request.from_timestamp_ms,
            request.to_timestamp_ms,
            request.token_budget,
            request.level,
        )
        return pb.GetTimelineResponse(
            nodes=map(self._node, line.nodes),
            level=int(line.level),  # type: ignore[arg-type]
            tokens=line.tokens,
            truncated=line.truncated,
        )

    def _node(self, node: Node) -> pb.TocNode:
        sources = self._contents.sources(node)
        return pb.TocNode(
            node_id=node.node_id,
            level=int(node.level),  # type: ignore[arg-type]
            title=node.title,
            summary=node.summary or None,
            bullets=map(_bullet, node.bullets, sources),
            keywords=node.keywords,
            child_node_ids=node.child_ids,
            start_time_ms=node.start_ms,
            end_time_ms=node.end_ms,
            version=node.version,
            session_ids=node.session_ids,
            agents=node.agents,
            event_count=node.event_count,
            summarizer=node.summarizer,
            provisional=node.provisional,
            parent_id=self._contents.parent_id(node),
            less_trusted=any(map(origin.less_trusted, sources)),
        )


def _bullet(bullet: Bullet, sources: list[str]) -> pb.TocBullet:
    return pb.TocBullet(
        text=bullet.text,
        grip_ids=bullet.grip_ids,
        sources=sources,
        less_trusted=origin.less_trusted(sources),
    )


def from_grip(grip: Grip, session_id: str) -> pb.Grip:
    """A grip as a message."""
    return pb.Grip(
        grip_id=grip.grip_id,
        excerpt=grip.excerpt,
        event_id_start=grip.first_event_id,
        event_id_end=grip.last_event_id,
        timestamp_ms=grip.time_ms,
        source=grip.source,
        node_id=grip.node_id,
        session_id=session_id,
    )


def _question(message: pb.SearchNodeRequest | pb.SearchChildrenRequest) -> Question:
    try:
        fields = frozenset(SearchField(field) for field in message.fields)
    except ValueError:
        raise InvalidInput(f"fields {list(message.fields)} holds one that is not known") from None
    return Question(message.query, fields, message.limit, message.token_budget)


def _match(match: Match) -> pb.SearchMatch:
    return pb.SearchMatch(
        field=int(match.field),  # type: ignore[arg-type]
        text=match.text,
        grip_ids=match.grip_ids,
        score=match.score,
    )


def _result(found: Found) -> pb.SearchNodeResult:
    return pb.SearchNodeResult(
        node_id=found.node.node_id,
        title=found.node.title,
        level=int(found.node.level),  # type: ignore[arg-type]
        matches=map(_match, found.matches),
        relevance_score=found.score,
    )
