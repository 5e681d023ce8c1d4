"""CareService: each method turns what a service tells into a stream of answers."""

from collections.abc import Callable, Iterable, Iterator

import grpc

from memoryd.pb import care_pb2 as pb
from memoryd.pb import care_pb2_grpc as pb_grpc
from memoryd.services.backup import Made
from memoryd.services.care import Care
from memoryd.services.verify import Problem, Verdict


class CareServicer(pb_grpc.CareServiceServicer):
    """The service. Errors go up to the interceptor, which answers them."""

    def __init__(self, care: Care, stopping: Callable[[], bool]) -> None:
        self._care = care
        self._stopping = stopping

    def Backup(
        self, request: pb.BackupRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.BackupResponse]:
        """Back the store up."""
        told = self._care.backup(request.destination, request.keep, self._alive(context))
        for word in told:
            if isinstance(word, Made):
                fields = word._asdict()
                yield pb.BackupResponse(done=word.size, total=word.size, finished=True, **fields)
            else:
                yield pb.BackupResponse(done=word.done, total=word.total)

    def Verify(
        self, request: pb.VerifyRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.VerifyResponse]:
        """Check everything."""
        for word in self._care.verify(self._alive(context)):
            if isinstance(word, Verdict):
                problems = map(_problem, word.problems)
                summary = _summary(word)
                yield pb.VerifyResponse(problems=problems, finished=True, summary=summary)
            elif isinstance(word, Problem):
                yield pb.VerifyResponse(part=word.part, problems=[_problem(word)])
            else:
                yield pb.VerifyResponse(**word._asdict())

    def Compact(
        self, request: pb.CompactRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.CompactResponse]:
        """Merge all tables."""
        for word in self._care.compact(self._alive(context)):
            yield pb.CompactResponse(**word._asdict())

    def _alive(self, context: grpc.ServicerContext) -> Callable[[], bool]:
        return lambda: context.is_active() and not self._stopping()


def _problem(problem: Problem) -> pb.VerifyProblem:
    return pb.VerifyProblem(**problem._asdict())


def _summary(verdict: Verdict) -> pb.VerifySummary:
    return pb.VerifySummary(
        events=verdict.events,
        sequence=verdict.sequence,
        revisions=verdict.revisions,
        nodes=verdict.nodes,
        grips=verdict.grips,
        indexed=verdict.indexed,
        global_revisions=verdict.global_revisions,
        event_gaps=_gaps(verdict.event_gaps),
        note_gaps=_gaps(verdict.note_gaps),
    )


def _gaps(gaps: Iterable[tuple[int, int, bytes, int]]) -> list[pb.RecordedGap]:
    return [
        pb.RecordedGap(first=first, last=last, repaired_ms=repaired_ms)
        for first, last, _, repaired_ms in gaps
    ]
