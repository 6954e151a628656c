"""AlterPartitionReassignments: with one broker the only replicas a partition can be given are those it has.

v1 can say that the number of replicas has to stay as it is.
"""

from __future__ import annotations

from moldau.broker.api import Answer, api
from moldau.broker.context import Context
from moldau.broker.requests.answers import by_size
from moldau.controller.image import ClusterImage
from moldau.controller.partitions import Refusal, assigned_partition
from moldau.core.errors import ErrorCode
from moldau.wire.api import ApiKey
from moldau.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)


@api(ApiKey.ALTER_PARTITION_REASSIGNMENTS, AlterPartitionReassignmentsRequest, versions=(0, 1))
def alter_partition_reassignments(request: AlterPartitionReassignmentsRequest, context: Context) -> Answer:
    image = context.services.controller.image
    rows = sum([1 + len(topic.partitions) for topic in request.topics])
    return by_size(lambda: _response(request, image), rows, context)


def _response(request: AlterPartitionReassignmentsRequest, image: ClusterImage) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_message=None,
        responses=[
            ReassignableTopicResponse(
                name=topic.name, partitions=[_reassign(image, topic.name, partition) for partition in topic.partitions]
            )
            for topic in request.topics
        ],
    )


def _reassign(image: ClusterImage, topic: str, wanted: ReassignablePartition) -> ReassignablePartitionResponse:
    refusal = _refusal(image, topic, wanted)
    return ReassignablePartitionResponse(
        partition_index=wanted.partition_index,
        error_code=ErrorCode.NONE if refusal is None else refusal.error,
        error_message=None if refusal is None else refusal.message,
    )


def _refusal(image: ClusterImage, name: str, wanted: ReassignablePartition) -> Refusal | None:
    topic, index = image.topics.get(name), wanted.partition_index
    if topic is None:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    if not 0 <= index < len(topic.partitions):
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{index}.")
    if wanted.replicas is None:
        return Refusal(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None)
    placed = assigned_partition(image, index, wanted.replicas, replication_factor=None)
    if isinstance(placed, Refusal):
        return placed
    # Another registered broker would have to copy the records first, and followers don't fetch yet.
    if placed.replicas != topic.partitions[index].replicas:
        return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "There is no replication to other brokers yet.")
    return None
