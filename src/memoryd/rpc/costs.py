"""What models took, on the wire."""

import grpc

from memoryd.domain.costs import DaySpent
from memoryd.pb import memory_pb2 as pb
from memoryd.services.costs import Writing

_DAYS = 7


class CostsServicer:
    """The method that shows what models took."""

    def __init__(self, writing: Writing) -> None:
        self._writing = writing

    def GetCosts(
        self, request: pb.GetCostsRequest, context: grpc.ServicerContext
    ) -> pb.GetCostsResponse:
        """What was spent, and what may be."""
        found = self._writing.budget.costs(request.days or _DAYS)
        return pb.GetCostsResponse(
            costs=map(_costs, found.days),
            model=self._writing.model,
            today=found.today,
            spent_today=found.spent_today,
            daily_tokens=found.daily_tokens,
            waiting=self._writing.waiting(),
        )


def _costs(entry: DaySpent) -> pb.ModelCosts:
    spent = entry.spent
    return pb.ModelCosts(
        day=entry.day,
        model=entry.model,
        calls=spent.calls,
        input_tokens=spent.input_tokens,
        output_tokens=spent.output_tokens,
        reserved_tokens=spent.reserved,
        failures=spent.failures,
        fallbacks=spent.fallbacks,
    )
