"""MemoryService: each method turns a request into one call of a service."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import grpc

from memoryd.pb import memory_pb2 as pb
from memoryd.pb import memory_pb2_grpc as pb_grpc
from memoryd.rpc import convert, finding
from memoryd.rpc.contents import ContentsServicer
from memoryd.rpc.context import ContextServicer
from memoryd.rpc.costs import CostsServicer
from memoryd.rpc.work import WorkServicer
from memoryd.services.context import ContextBlocks
from memoryd.services.costs import Writing
from memoryd.services.indexer import Indexer
from memoryd.services.ingest import Ingest
from memoryd.services.jobs import Jobs
from memoryd.services.pump import Pump
from memoryd.services.query import Query
from memoryd.services.resolve import Resolver
from memoryd.services.search import Search
from memoryd.services.status import ErrorBook, Figures
from memoryd.services.toc import Contents


class Identity(NamedTuple):
    """What a daemon is, for as long as it runs."""

    project: str
    project_root: str
    version: str
    format_version: int
    store_id: str
    data_dir: str
    pid: int
    started_ms: int
    endpoints: tuple[str, ...]


class Services(NamedTuple):
    """What the servicer calls."""

    ingest: Ingest
    query: Query
    contents: Contents
    pump: Pump
    jobs: Jobs
    scheduler_running: Callable[[], bool]
    writing: Writing
    search: Search
    indexer: Indexer
    context: ContextBlocks
    resolver: Resolver
    figures: Callable[[], Figures]
    errors: ErrorBook
    clock_ms: Callable[[], int]
    open_streams: Callable[[], int]
    stopping: Callable[[], bool]


class MemoryServicer(
    ContentsServicer, ContextServicer, WorkServicer, CostsServicer, pb_grpc.MemoryServiceServicer
):
    """The service. Errors go up to the interceptor, which answers them."""

    def __init__(self, services: Services, identity: Identity) -> None:
        ContentsServicer.__init__(self, services.contents)
        ContextServicer.__init__(self, services.context)
        WorkServicer.__init__(
            self, services.pump, services.jobs, services.scheduler_running, services.stopping
        )
        CostsServicer.__init__(self, services.writing)
        self._services = services
        self._identity = identity

    def IngestEvent(
        self, request: pb.IngestEventRequest, context: grpc.ServicerContext
    ) -> pb.IngestEventResponse:
        """Append one event."""
        event = convert.to_event(request.event)
        result = self._services.ingest.one(event, idempotent=request.idempotent)
        return pb.IngestEventResponse(
            event_id=result.event_id,
            created=result.created,
            deduplicated=not result.created,
            sequence=result.sequence,
        )

    def IngestEvents(
        self, request: pb.IngestEventsRequest, context: grpc.ServicerContext
    ) -> pb.IngestEventsResponse:
        """Append a batch."""
        results = self._services.ingest.many(
            map(convert.to_event, request.events),
            len(request.events),
            idempotent=request.idempotent,
            restoring=request.restoring,
        )
        return convert.from_appended(results)

    def GetEvent(
        self, request: pb.GetEventRequest, context: grpc.ServicerContext
    ) -> pb.GetEventResponse:
        """One event by its id."""
        recorded = self._services.query.event(request.event_id)
        return pb.GetEventResponse(event=convert.from_recorded(recorded))

    def GetEvents(
        self, request: pb.GetEventsRequest, context: grpc.ServicerContext
    ) -> pb.GetEventsResponse:
        """A page of events."""
        page = self._services.query.events(convert.to_event_query(request), context.is_active)
        return pb.GetEventsResponse(
            events=map(convert.from_recorded, page.events),
            has_more=bool(page.token),
            continuation_token=page.token,
        )

    def TailEvents(
        self, request: pb.TailEventsRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.TailEventsResponse]:
        """Follow the log."""
        after = None if request.from_now else request.after_sequence
        wanted = convert.to_filter(request)

        def alive() -> bool:
            return context.is_active() and not self._services.stopping()

        for recorded in self._services.query.tail(after, wanted, alive):
            yield pb.TailEventsResponse(event=convert.from_recorded(recorded))

    def GetStatus(
        self, request: pb.GetStatusRequest, context: grpc.ServicerContext
    ) -> pb.GetStatusResponse:
        """How the daemon is doing."""
        identity = self._identity
        figures = self._services.figures()
        return pb.GetStatusResponse(
            **identity._asdict(),
            **figures._asdict(),
            uptime_ms=max(0, self._services.clock_ms() - identity.started_ms),
            writable=not figures.write_error,
            last_errors=[pb.ErrorReport(**e._asdict()) for e in self._services.errors.latest()],
            open_streams=self._services.open_streams(),
            probes=self._services.errors.probes(),
            index_state=int(self._services.indexer.state()),  # type: ignore[arg-type]
            indexed_sequence=self._services.indexer.sequence(),
        )

    def ListSessions(
        self, request: pb.ListSessionsRequest, context: grpc.ServicerContext
    ) -> pb.ListSessionsResponse:
        """A page of sessions."""
        sessions, token = self._services.query.sessions(convert.to_session_query(request))
        return pb.ListSessionsResponse(
            sessions=[convert.from_session(*item) for item in sessions],
            has_more=bool(token),
            continuation_token=token,
        )

    def ListAgents(
        self, request: pb.ListAgentsRequest, context: grpc.ServicerContext
    ) -> pb.ListAgentsResponse:
        """Every agent."""
        agents = self._services.query.agents()
        return pb.ListAgentsResponse(agents=[convert.from_agent(*item) for item in agents])

    def ResolveId(
        self, request: pb.ResolveIdRequest, context: grpc.ServicerContext
    ) -> pb.ResolveIdResponse:
        """The ids that begin so."""
        found, more = self._services.resolver.resolve(
            request.prefix, frozenset(request.kinds), request.limit, request.project
        )
        ids = [pb.ResolvedId(id=i, kind=int(kind)) for kind, i in found]  # type: ignore[arg-type]
        return pb.ResolveIdResponse(ids=ids, has_more=more)

    def TeleportSearch(
        self, request: pb.TeleportSearchRequest, context: grpc.ServicerContext
    ) -> pb.TeleportSearchResponse:
        """The best documents for a question."""
        answer = self._services.search.teleport(finding.to_search(request))
        return finding.from_answer(answer, explain=request.explain)

    def SearchSessions(
        self, request: pb.SearchSessionsRequest, context: grpc.ServicerContext
    ) -> pb.SearchSessionsResponse:
        """The sessions that matter for a question."""
        wanted = finding.to_search(request.search)
        found, documents, state = self._services.search.sessions(wanted, request.hits_per_session)
        explain = request.search.explain
        return pb.SearchSessionsResponse(
            sessions=[finding.from_session_hit(hit, explain=explain) for hit in found],
            total_docs=documents,
            index_state=int(state),  # type: ignore[arg-type]
        )

    def FindRelated(
        self, request: pb.FindRelatedRequest, context: grpc.ServicerContext
    ) -> pb.FindRelatedResponse:
        """What is like an event or a node."""
        wanted = finding.to_search(request.search)
        answer = self._services.search.related(request.event_id, request.node_id, wanted)
        return finding.from_related(answer, explain=request.search.explain)

    def GetIndexStatus(
        self, request: pb.GetIndexStatusRequest, context: grpc.ServicerContext
    ) -> pb.GetIndexStatusResponse:
        """How the index is doing."""
        return finding.from_status(self._services.indexer.status())

    def RebuildIndex(
        self, request: pb.RebuildIndexRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.RebuildIndexResponse]:
        """Make the index anew, telling how far it is."""

        def alive() -> bool:
            return context.is_active() and not self._services.stopping()

        for status in self._services.indexer.rebuilding(alive):
            yield finding.from_progress(status)
