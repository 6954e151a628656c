"""The topic: made if it is missing, refused if it is one that would lose schemas."""

from __future__ import annotations

from moldau.client.cluster import Cluster, Refused, check
from moldau.core.errors import ErrorCode
from moldau.wire.messages import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
)
from moldau.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig
from moldau.wire.messages.describe_configs import DescribeConfigsResource

TOPIC_RESOURCE = 2
REPLICAS = 3


class UnfitTopic(Exception):
    """One line that says what is wrong with it."""


def prepare(cluster: Cluster, topic: str, replicas: int = REPLICAS) -> None:
    """Raises UnfitTopic, NoAnswer or Refused."""
    if not _partitions(cluster, topic):
        _create(cluster, topic, min(replicas, len(cluster.nodes())))
    partitions = cluster.patiently(lambda: cluster.metadata([topic]), lambda found: [found.topics[0].error_code])
    count = len(partitions.topics[0].partitions)
    if count > 1:
        raise UnfitTopic(f"topic {topic} has {count} partitions; schemas need one, so that all read the same order")
    policy = _cleanup_policy(cluster, topic)
    if policy is not None and policy != "compact":
        raise UnfitTopic(
            f"topic {topic} has cleanup.policy={policy} and would lose schemas; set it to compact:"
            f" moldau topics alter {topic} --config cleanup.policy=compact"
        )


def _partitions(cluster: Cluster, topic: str) -> int:
    found = cluster.metadata([topic]).topics[0]
    if found.error_code not in {ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE}:
        raise Refused(found.error_code)
    return len(found.partitions)


def _create(cluster: Cluster, topic: str, replicas: int) -> None:
    wanted = CreatableTopic(
        name=topic,
        num_partitions=1,
        replication_factor=max(1, replicas),
        configs=[CreatableTopicConfig(name="cleanup.policy", value="compact")],
    )
    request = CreateTopicsRequest(topics=[wanted], timeout_ms=int(cluster.timeout_s * 1_000))
    answer = cluster.ask_controller(
        request, CreateTopicsResponse, codes=lambda found: [each.error_code for each in found.topics]
    )
    made = answer.topics[0]
    if made.error_code != ErrorCode.TOPIC_ALREADY_EXISTS:  # another instance was faster
        check(made.error_code, made.error_message)


def _cleanup_policy(cluster: Cluster, topic: str) -> str | None:
    """None if we may not know."""
    wanted = DescribeConfigsResource(TOPIC_RESOURCE, topic, ["cleanup.policy"])
    found = cluster.ask(DescribeConfigsRequest(resources=[wanted]), DescribeConfigsResponse).results[0]
    if found.error_code != ErrorCode.NONE:
        return None
    return next((each.value for each in found.configs), None)
