"""The daemon's own work on the wire: its jobs, and deriving everything again."""

from collections.abc import Callable, Iterator

import grpc

from memoryd.domain.errors import NotFound
from memoryd.pb import memory_pb2 as pb
from memoryd.services.jobs import Jobs, JobStatus
from memoryd.services.pump import Pump
from memoryd.services.rebuild import rebuild


class WorkServicer:
    """The methods that show and steer what runs by itself."""

    def __init__(
        self,
        pump: Pump,
        jobs: Jobs,
        running: Callable[[], bool],
        stopping: Callable[[], bool],
    ) -> None:
        self._pump = pump
        self._jobs = jobs
        self._running = running
        self._stopping = stopping

    def RebuildToc(
        self, request: pb.RebuildTocRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.RebuildTocResponse]:
        """Derive everything again."""
        for progress in rebuild(self._pump, context.is_active, self._stopping):
            yield pb.RebuildTocResponse(**progress._asdict())

    def GetSchedulerStatus(
        self, request: pb.GetSchedulerStatusRequest, context: grpc.ServicerContext
    ) -> pb.GetSchedulerStatusResponse:
        """Every job."""
        return pb.GetSchedulerStatusResponse(
            scheduler_running=self._running(), jobs=map(_job, self._jobs.status())
        )

    def PauseJob(
        self, request: pb.PauseJobRequest, context: grpc.ServicerContext
    ) -> pb.PauseJobResponse:
        """Have a job wait."""
        try:
            self._jobs.pause(request.job_name)
        except NotFound as error:
            return pb.PauseJobResponse(success=False, error=str(error))
        return pb.PauseJobResponse(success=True)

    def ResumeJob(
        self, request: pb.ResumeJobRequest, context: grpc.ServicerContext
    ) -> pb.ResumeJobResponse:
        """End a pause."""
        try:
            self._jobs.resume(request.job_name)
        except NotFound as error:
            return pb.ResumeJobResponse(success=False, error=str(error))
        return pb.ResumeJobResponse(success=True)

    def RunJob(self, request: pb.RunJobRequest, context: grpc.ServicerContext) -> pb.RunJobResponse:
        """Run a job now."""
        return pb.RunJobResponse(job=_job(self._jobs.run(request.job_name)))


def _job(status: JobStatus) -> pb.JobStatusProto:
    record = status.record
    return pb.JobStatusProto(
        job_name=status.name,
        cron_expr=status.cron,
        last_run_ms=record.last_run_ms,
        last_duration_ms=record.last_duration_ms,
        last_result=record.last_result,  # type: ignore[arg-type]
        last_error=record.last_error or None,
        next_run_ms=status.next_ms,
        run_count=record.runs,
        error_count=record.errors,
        is_running=status.running,
        is_paused=record.paused,
        last_run_metadata=record.metadata,
    )
