"""AlterPartitionReassignments: give partitions other replicas, or leave them with those that they had.

v1 can say that the number of replicas has to stay as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.broker.requests.answers import ROWS_MAX, Encoded, encoded
from moldau.controller.partitions.leaders import ELECTIONS_MAX
from moldau.controller.partitions.states import Refusal
from moldau.coordinator.long_work import chunks
from moldau.core.errors import ApiError, ErrorCode
from moldau.wire.api import ApiKey
from moldau.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)

if TYPE_CHECKING:
    from moldau.controller.partitions.reassignment import WantedReplicas


@api(ApiKey.ALTER_PARTITION_REASSIGNMENTS, AlterPartitionReassignmentsRequest, versions=(0, 1), forwarded=True)
async def alter_partition_reassignments(
    request: AlterPartitionReassignmentsRequest, context: Context
) -> AlterPartitionReassignmentsResponse | Encoded[AlterPartitionReassignmentsResponse]:
    from moldau.controller.partitions.reassignment import (
        WantedReplicas,  # a broker that is alone has nowhere to move anything
    )

    wanted = [
        WantedReplicas(topic.name, each.partition_index, None if each.replicas is None else tuple(each.replicas))
        for topic in request.topics
        for each in topic.partitions
    ]
    replies: list[Refusal | None] = []
    try:
        for some in chunks(wanted, ELECTIONS_MAX):
            replies += await _some(some, request, context)
    except ApiError as wrong:
        return AlterPartitionReassignmentsResponse(error_code=wrong.code, error_message=wrong.message)
    if len(wanted) > ROWS_MAX:
        return await encoded(lambda: _response(request, replies), context)
    return _response(request, replies)


async def _some(
    wanted: Sequence[WantedReplicas], request: AlterPartitionReassignmentsRequest, context: Context
) -> list[Refusal | None]:
    from moldau.controller.partitions.reassignment import decide_reassign

    services = context.services
    return await services.controller.write(
        lambda image: decide_reassign(
            image,
            wanted,
            config=services.config,
            may_change_replication_factor=request.allow_replication_factor_change,
        )
    )


def _response(
    request: AlterPartitionReassignmentsRequest, replies: list[Refusal | None]
) -> AlterPartitionReassignmentsResponse:
    left = iter(replies)
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_message=None,
        responses=[
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    ReassignablePartitionResponse(
                        partition_index=each.partition_index,
                        error_code=ErrorCode.NONE if refusal is None else refusal.error,
                        error_message=None if refusal is None else refusal.message,
                    )
                    for each, refusal in zip(topic.partitions, islice(left, len(topic.partitions)), strict=True)
                ],
            )
            for topic in request.topics
        ],
    )
