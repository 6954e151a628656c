"""DescribeQuorum: the metadata store told as Kafka tells its quorum, with the controller as the only voter.

v1 tells when each voter was seen last, v2 has messages for errors and the nodes of the quorum.
"""

from __future__ import annotations

from moldau.broker.api import Answer, api
from moldau.broker.context import Context, Services
from moldau.broker.requests.answers import by_size
from moldau.core.errors import ErrorCode
from moldau.wire.api import ApiKey
from moldau.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Node,
    PartitionData,
    ReplicaState,
    TopicData,
)

METADATA_TOPIC = "__cluster_metadata"


@api(ApiKey.DESCRIBE_QUORUM, DescribeQuorumRequest, versions=(0, 2))
def describe_quorum(request: DescribeQuorumRequest, context: Context) -> Answer:
    rows = sum([1 + len(topic.partitions) for topic in request.topics])
    if not _is_metadata_log(request):
        return by_size(lambda: _refused(request), rows, context)
    services = context.services
    return DescribeQuorumResponse(
        error_message=None,
        topics=[TopicData(topic_name=METADATA_TOPIC, partitions=[_metadata_log(services)])],
        nodes=[Node(node_id=services.controller.image.controller_id)] if context.version >= 2 else [],
    )


def _is_metadata_log(request: DescribeQuorumRequest) -> bool:
    """Whether it asks for the one partition that has a quorum, and for nothing else."""
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        return False
    topic = request.topics[0]
    return topic.topic_name == METADATA_TOPIC and topic.partitions[0].partition_index == 0


def _refused(request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    return DescribeQuorumResponse(
        error_message=None,
        topics=[
            TopicData(
                topic_name=topic.topic_name, partitions=[_unknown(each.partition_index) for each in topic.partitions]
            )
            for topic in request.topics
        ],
    )


def _unknown(index: int) -> PartitionData:
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return PartitionData(partition_index=index, error_code=error, error_message=error.message)


def _metadata_log(services: Services) -> PartitionData:
    controller, now_ms = services.controller, services.clock.now_ms()
    voter = ReplicaState(
        replica_id=controller.image.controller_id,
        log_end_offset=controller.position,
        last_fetch_timestamp=now_ms,
        last_caught_up_timestamp=now_ms,
    )
    return PartitionData(
        error_message=None,
        leader_id=controller.image.controller_id,
        leader_epoch=controller.epoch,
        high_watermark=controller.position,
        current_voters=[voter],
    )
