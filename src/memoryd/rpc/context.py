"""The context block on the wire."""

import grpc

from memoryd.domain import context as block
from memoryd.domain.context import Told
from memoryd.pb import memory_pb2 as pb
from memoryd.services.context import Ask, ContextBlocks

_STATES = {
    block.WHOLE: pb.CONTEXT_STATE_WHOLE,
    block.CUT: pb.CONTEXT_STATE_CUT,
    block.OMITTED: pb.CONTEXT_STATE_OMITTED,
    block.UNAVAILABLE: pb.CONTEXT_STATE_UNAVAILABLE,
}


class ContextServicer:
    """The method that gives an agent what it should know."""

    def __init__(self, blocks: ContextBlocks) -> None:
        self._blocks = blocks

    def GetContext(
        self, request: pb.GetContextRequest, context: grpc.ServicerContext
    ) -> pb.GetContextResponse:
        """A block for now, or one that was given."""
        if request.as_of_session:
            given = self._blocks.as_of(request.as_of_session, request.as_of_number)
        else:
            ask = Ask(
                request.session_id,
                request.agent,
                request.query,
                request.project,
                tuple(request.sections),
            )
            given = self._blocks.make(
                ask, request.budget_bytes, request.budget_tokens, inject=request.inject
            )
        return pb.GetContextResponse(
            text=given.text,
            sections=map(_section, given.sections),
            bytes=len(given.text.encode()),
            budget_bytes=given.budget,
            number=given.number,
            timestamp_ms=given.time_ms,
        )


def _section(told: Told) -> pb.ContextSection:
    return pb.ContextSection(
        name=told.name,
        state=_STATES[told.state],
        included=told.included,
        left_out=told.left_out,
    )
