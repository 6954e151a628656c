"""DescribeQuorum: the metadata store told as Kafka tells its quorum: every broker may control, so each is a voter.

v1 tells when each voter was seen last, v2 has messages for errors and the nodes of the quorum.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from moldau.broker.api import api
from moldau.broker.context import Context, Services
from moldau.broker.requests.answers import Encoded, encoded
from moldau.core.errors import ErrorCode
from moldau.wire.api import ApiKey
from moldau.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    PartitionData,
    ReplicaState,
    TopicData,
)

if TYPE_CHECKING:
    from moldau.broker.peers import Peers

METADATA_TOPIC = "__cluster_metadata"
API_VERSIONS_VERSION = 3
PURPOSE = "quorum"
ANSWER_MS_MAX = 1_000  # a broker that takes longer is told of as one that was never seen
UNKNOWN = -1


@api(ApiKey.DESCRIBE_QUORUM, DescribeQuorumRequest, versions=(0, 2), forwarded=True)
async def describe_quorum(
    request: DescribeQuorumRequest, context: Context
) -> DescribeQuorumResponse | Encoded[DescribeQuorumResponse]:
    if not _is_metadata_log(request):
        return await encoded(lambda: _refused(request), context)
    services = context.services
    partition = await _metadata_log(services)
    voters = [voter.replica_id for voter in partition.current_voters]
    return DescribeQuorumResponse(
        error_message=None,
        topics=[TopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
        nodes=[_node(services, voter) for voter in voters] if context.version >= 2 else [],
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


async def _metadata_log(services: Services) -> PartitionData:
    controller, now_ms = services.controller, services.clock.now_ms()
    image, high_watermark = controller.image, controller.position
    leader = ReplicaState(
        replica_id=image.controller_id,
        log_end_offset=high_watermark,
        last_fetch_timestamp=now_ms,
        last_caught_up_timestamp=now_ms,
    )
    others = [broker for broker in image.brokers.values() if broker.id != leader.replica_id]
    followers = [_follower(services, broker.id, high_watermark) for broker in others if not broker.fenced]
    unseen = [_unseen(broker.id) for broker in others if broker.fenced]
    voters = [leader, *unseen, *await asyncio.gather(*followers)]
    return PartitionData(
        error_message=None,
        leader_id=leader.replica_id,
        leader_epoch=controller.epoch,
        high_watermark=high_watermark,
        current_voters=sorted(voters, key=lambda voter: voter.replica_id),
    )


async def _follower(services: Services, broker_id: int, high_watermark: int) -> ReplicaState:
    """How far a broker has read the store only that broker knows; it tells everybody as the epoch of its features."""
    from moldau.replication.channel import ChannelError
    from moldau.wire.messages.api_versions import ApiVersionsRequest

    request = ApiVersionsRequest(client_software_name="moldau", client_software_version="1")
    channel = _peers(services).channels.to(broker_id, PURPOSE)
    try:
        answer = await channel.ask(request, API_VERSIONS_VERSION, timeout_ms=ANSWER_MS_MAX)
    except ChannelError:
        return _unseen(broker_id)
    now_ms = services.clock.now_ms()
    position: int = answer.finalized_features_epoch
    return ReplicaState(
        replica_id=broker_id,
        log_end_offset=position,
        last_fetch_timestamp=now_ms,
        last_caught_up_timestamp=now_ms if position >= high_watermark else UNKNOWN,
    )


def _unseen(broker_id: int) -> ReplicaState:
    return ReplicaState(
        replica_id=broker_id,
        log_end_offset=UNKNOWN,
        last_fetch_timestamp=UNKNOWN,
        last_caught_up_timestamp=UNKNOWN,
    )


def _node(services: Services, broker_id: int) -> Node:
    """Where it listens to other brokers."""
    peers = services.peers
    endpoint = None if peers is None else peers.endpoint_of(broker_id)
    if peers is None or endpoint is None:
        return Node(node_id=broker_id)
    return Node(node_id=broker_id, listeners=[Listener(peers.listener_name, endpoint.host, endpoint.port)])


def _peers(services: Services) -> Peers:
    assert services.peers is not None, "a broker that knows of others can ask them"
    return services.peers
