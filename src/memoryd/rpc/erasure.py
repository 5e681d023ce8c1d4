"""ErasureService: planning, erasing, receipts, and the token for TCP."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

import grpc

from memoryd.domain.erasure import Entry, Outcome, Receipt, Which
from memoryd.domain.event import Recorded
from memoryd.pb import erasure_pb2 as pb
from memoryd.pb import erasure_pb2_grpc as pb_grpc
from memoryd.services.erasure import Eraser, Progress

_PORTION: Final = 500
_WORDS: Final = 80


class ErasureServicer(pb_grpc.ErasureServiceServicer):
    """The service. Errors go up to the interceptor, which answers them."""

    def __init__(self, eraser: Eraser, rotate: Callable[[], str]) -> None:
        """``rotate`` makes a new token, and returns the path of its file."""
        self._eraser = eraser
        self._rotate = rotate

    def Plan(
        self, request: pb.PlanErasureRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.PlanErasureResponse]:
        """Which events are meant."""
        until = self._eraser.end()
        found = self._eraser.find(_which(request.filter), until, context.is_active)
        named: list[tuple[int, str]] = []
        while portion := list(islice(found, _PORTION)):
            named += [(recorded.sequence, recorded.event.event_id) for recorded in portion]
            yield pb.PlanErasureResponse(events=map(_planned, portion))
        yield pb.PlanErasureResponse(
            complete=True,
            count=len(named),
            log_sequence=until,
            digest=self._eraser.digest(iter(named)),
        )

    def Erase(
        self, request: pb.EraseRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.EraseProgress]:
        """Erase what a plan named."""
        which = _which(request.filter)
        receipt = self._eraser.begin(which, request.log_sequence, request.digest, request.reason)
        yield pb.EraseProgress(receipt=receipt.number, step="receipt")
        yield from map(_progress, self._eraser.progress(receipt.number, context.is_active))

    def FollowErasure(
        self, request: pb.FollowErasureRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.EraseProgress]:
        """How far an erasure is."""
        yield from map(_progress, self._eraser.progress(request.receipt, context.is_active))

    def ListReceipts(
        self, request: pb.ListReceiptsRequest, context: grpc.ServicerContext
    ) -> pb.ListReceiptsResponse:
        """Every erasure."""
        found = self._eraser.receipts()
        return pb.ListReceiptsResponse(receipts=[_receipt(*each) for each in found])

    def GetReceipt(
        self, request: pb.GetReceiptRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.ReceiptEvents]:
        """The events of a receipt."""
        entries = iter(self._eraser.receipt(request.number).entries)
        while portion := list(islice(entries, _PORTION)):
            yield pb.ReceiptEvents(events=map(_erased, portion))

    def RotateToken(
        self, request: pb.RotateTokenRequest, context: grpc.ServicerContext
    ) -> pb.RotateTokenResponse:
        """Make a new token."""
        return pb.RotateTokenResponse(path=self._rotate())


def _which(message: pb.ErasureFilter) -> Which:
    return Which(
        frozenset(message.session_ids),
        frozenset(message.event_ids),
        message.from_timestamp_ms,
        message.to_timestamp_ms,
        message.matching,
    )


def _planned(recorded: Recorded) -> pb.PlannedEvent:
    event = recorded.event
    return pb.PlannedEvent(
        event_id=event.event_id,
        session_id=event.session_id,
        timestamp_ms=event.time_ms,
        role=event.role,  # type: ignore[arg-type]
        agent=event.agent,
        sequence=recorded.sequence,
        words=" ".join(event.text[: 4 * _WORDS].split())[:_WORDS],
    )


def _progress(progress: Progress) -> pb.EraseProgress:
    made = pb.EraseProgress(receipt=progress.receipt, step=progress.step, error=progress.error)
    if progress.outcome is not None:
        made.outcome.CopyFrom(_outcome(progress.outcome))
    return made


def _outcome(outcome: Outcome) -> pb.ErasureOutcome:
    return pb.ErasureOutcome(
        time_ms=outcome.time_ms,
        texts=outcome.texts,
        short_texts=outcome.short,
        files=outcome.files,
        bytes=outcome.bytes,
        elsewhere=outcome.elsewhere,
        remains=outcome.remains,
    )


def _receipt(receipt: Receipt, outcome: Outcome | None) -> pb.ErasureReceipt:
    made = pb.ErasureReceipt(
        number=receipt.number,
        time_ms=receipt.time_ms,
        uid=receipt.who.uid,
        user=receipt.who.user,
        reason=receipt.who.reason,
        events=len(receipt.entries),
    )
    if outcome is not None:
        made.outcome.CopyFrom(_outcome(outcome))
    return made


def _erased(entry: Entry) -> pb.ErasedEvent:
    return pb.ErasedEvent(
        event_id=entry.event_id,
        session_id=entry.session_id,
        timestamp_ms=entry.time_ms,
        sequence=entry.sequence,
        text_sha256=entry.text_hash.hex(),
        digest=entry.digest.hex(),
    )
