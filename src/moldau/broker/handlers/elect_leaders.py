"""ElectLeaders: v0 elects the preferred replica, from v1 on also any living one.

A partition here is led by its first replica for as long as its broker lives, so there is never an election to hold.
"""

from __future__ import annotations

from moldau.broker.api import Answer, api
from moldau.broker.context import Context
from moldau.broker.requests.answers import by_size
from moldau.controller.image import ClusterImage
from moldau.core.errors import ErrorCode
from moldau.core.ids import NO_LEADER
from moldau.wire.api import ApiKey
from moldau.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

PREFERRED, UNCLEAN = 0, 1


@api(ApiKey.ELECT_LEADERS, ElectLeadersRequest, versions=(0, 2))
def elect_leaders(request: ElectLeadersRequest, context: Context) -> Answer:
    image, kind, asked = context.services.controller.image, request.election_type, request.topic_partitions
    if kind not in (PREFERRED, UNCLEAN):
        return ElectLeadersResponse(error_code=ErrorCode.INVALID_REQUEST)
    if asked is None:
        rows = sum([1 + len(topic.partitions) for topic in image.topics.values()])
        return by_size(lambda: _elected([_every_partition(image, name, kind) for name in image.topics]), rows, context)

    def results() -> list[ReplicaElectionResult]:
        return [
            ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[_elect(image, topic.topic, index, kind) for index in topic.partitions],
            )
            for topic in asked
        ]

    return by_size(lambda: _elected(results()), sum([1 + len(topic.partitions) for topic in asked]), context)


def _elected(results: list[ReplicaElectionResult]) -> ElectLeadersResponse:
    return ElectLeadersResponse(replica_election_results=results)


def _every_partition(image: ClusterImage, topic: str, election_type: int) -> ReplicaElectionResult:
    """Who asks for all partitions does not hear of those that need nothing."""
    held = (_elect(image, topic, index, election_type) for index in range(len(image.topics[topic].partitions)))
    return ReplicaElectionResult(
        topic=topic, partition_result=[each for each in held if each.error_code != ErrorCode.ELECTION_NOT_NEEDED]
    )


def _elect(image: ClusterImage, name: str, index: int, election_type: int) -> PartitionResult:
    topic = image.topics.get(name)
    if topic is None:
        return _refused(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    if not 0 <= index < len(topic.partitions):
        return _refused(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}")
    partition = topic.partitions[index]
    if partition.leader == partition.replicas[0] or (election_type == UNCLEAN and partition.leader != NO_LEADER):
        return _refused(index, ErrorCode.ELECTION_NOT_NEEDED)
    if election_type == PREFERRED:
        return _refused(index, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)
    return _refused(index, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)


def _refused(index: int, error: ErrorCode, message: str | None = None) -> PartitionResult:
    return PartitionResult(partition_id=index, error_code=error, error_message=message or error.message)
