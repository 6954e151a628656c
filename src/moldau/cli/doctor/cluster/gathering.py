"""The facts of a cluster, asked for over the wire. What is refused is noted once, and the rest is asked."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.metadata import version

from moldau.cli.doctor.cluster.facts import (
    TOPIC_KEYS,
    Broker,
    ClusterFacts,
    LogDirectory,
    Partition,
    Topic,
)
from moldau.cli.doctor.cluster.group_facts import gather_groups
from moldau.cli.doctor.cluster.traffic import gather_traffic
from moldau.cli.topics.configs import Kind
from moldau.client.cluster import Cluster, NoAnswer, Refused, check, words_of
from moldau.client.connection import Connection, Unsupported
from moldau.core.errors import ErrorCode, ProtocolViolation
from moldau.core.ids import TopicPartition
from moldau.wire.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    MetadataRequest,
    MetadataResponse,
)
from moldau.wire.messages.describe_configs import DescribeConfigsResource
from moldau.wire.messages.describe_log_dirs import DescribeLogDirsResult
from moldau.wire.messages.describe_quorum import QuorumPartitionQuery, QuorumTopicQuery

ROUND_TRIPS = 3  # the fastest counts: the first of a connection pays for more than the way
FEATURES_SINCE = 3  # of ApiVersions
TOPICS_AT_ONCE = 200  # keeps an answer about configurations small
METADATA_LOG = "__cluster_metadata"
WRONG = (NoAnswer, Refused, Unsupported, ProtocolViolation, OSError)

Tell = Callable[[str], None]


@dataclass(slots=True)
class Asking:
    """Notes what could not be asked; the first reason counts."""

    unasked: dict[str, str] = field(default_factory=dict)

    @contextmanager
    def about(self, subject: str) -> Iterator[None]:
        try:
            yield
        except WRONG as wrong:
            self.note(subject, str(wrong))

    def note(self, subject: str, why: str) -> None:
        self.unasked.setdefault(subject, why)


def gather_cluster(cluster: Cluster, *, now_ms: Callable[[], int], tell: Tell) -> ClusterFacts:
    """Raises what `Cluster` does when nobody can be asked at all."""
    tell("asking for the cluster's metadata")
    told = cluster.metadata()
    check(told.error_code)
    asking = Asking()
    brokers = {each.node_id: Broker(each.node_id, each.host, each.port, each.rack) for each in told.brokers}
    for broker in [*brokers.values()]:
        tell(f"connecting to broker {broker.id} at {broker.address}")
        brokers[broker.id] = _met(cluster, broker)
    reached = [each.id for each in brokers.values() if each.failure is None]
    facts = ClusterFacts(now_ms(), cluster.servers, brokers, _topics(told))
    if reached:
        tell("asking for configurations, reassignments and log directories")
        configs = _configs(cluster, facts.topics, asking)
        directories = [each for broker in reached for each in _directories(cluster, broker, asking)]
        facts = replace(
            facts,
            topics={name: replace(each, configs=configs.get(name, {})) for name, each in facts.topics.items()},
            directories=tuple(directories),
            moving=_moving(cluster, asking),
            quorum_leader=_quorum_leader(cluster, asking),
        )
        tell("asking for offsets")
        with asking.about("offsets of partitions"):
            facts = replace(facts, topics=gather_traffic(cluster, facts))
        with asking.about("consumer groups"):
            facts = gather_groups(cluster, facts, now_ms=now_ms, note=asking.note, tell=tell)
    return replace(facts, unasked=asking.unasked)


def _topics(told: MetadataResponse) -> dict[str, Topic]:
    return {
        topic.name: Topic(
            topic.name,
            topic.is_internal,
            tuple(
                Partition(
                    TopicPartition(topic.name, each.partition_index),
                    each.leader_id,
                    tuple(each.replica_nodes),
                    tuple(each.isr_nodes),
                    tuple(each.offline_replicas),
                )
                for each in sorted(topic.partitions, key=lambda each: each.partition_index)
            ),
        )
        for topic in sorted(told.topics, key=lambda each: each.name or "")
        if topic.name and topic.error_code == ErrorCode.NONE
    }


def _met(cluster: Cluster, broker: Broker) -> Broker:
    """What a broker says of itself, on a connection to the address that it advertises."""
    try:
        connection = cluster.new_connection(broker.id)
    except (NoAnswer, OSError) as wrong:
        return replace(broker, failure=str(wrong))
    try:
        return _introduced(connection, broker)
    except (OSError, ProtocolViolation, Unsupported) as wrong:
        return replace(broker, failure=f"broker {broker.id} at {broker.address}: {wrong}")
    finally:
        connection.close()


def _introduced(connection: Connection, broker: Broker) -> Broker:
    versions = connection.versions
    apis = frozenset((key, oldest, newest) for key, (oldest, newest) in versions.items())
    newest = versions.get(ApiVersionsRequest.API_KEY, (0, 0))[1]
    request = ApiVersionsRequest("moldau", version("moldau"))
    times_s = []
    for _ in range(ROUND_TRIPS):
        began_s = time.perf_counter()
        told = connection.ask_as(request, ApiVersionsResponse, min(newest, ApiVersionsRequest.VERSIONS[1]))
        times_s.append(time.perf_counter() - began_s)
    metadata = connection.ask(MetadataRequest(topics=[], allow_auto_topic_creation=False), MetadataResponse)
    return replace(
        broker,
        round_trip_ms=min(times_s) * 1_000,
        controller_id=metadata.controller_id,
        supported={each.name: (each.min_version, each.max_version) for each in told.supported_features},
        finalized={each.name: each.max_version_level for each in told.finalized_features},
        apis=apis,
    )


def _configs(cluster: Cluster, topics: Mapping[str, Topic], asking: Asking) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    names = [*topics]
    for at in range(0, len(names), TOPICS_AT_ONCE):
        with asking.about("configurations of topics"):
            resources = [
                DescribeConfigsResource(Kind.TOPIC, each, [*TOPIC_KEYS]) for each in names[at : at + TOPICS_AT_ONCE]
            ]
            answer = cluster.ask(DescribeConfigsRequest(resources=resources), DescribeConfigsResponse)
            for each in answer.results:
                if each.error_code == ErrorCode.NONE:
                    found[each.resource_name] = {one.name: one.value for one in each.configs if one.value is not None}
                elif each.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:  # it went away meanwhile
                    asking.note("configurations of topics", each.error_message or words_of(each.error_code))
    return found


def _directories(cluster: Cluster, broker: int, asking: Asking) -> Iterator[LogDirectory]:
    with asking.about("log directories"):
        answer = cluster.ask_broker(broker, DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse)
        check(answer.error_code)
        if not answer.results:  # before version 3 there was no word for it
            raise Refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        yield from [_directory(broker, each) for each in answer.results]


def _directory(broker: int, told: DescribeLogDirsResult) -> LogDirectory:
    if told.error_code != ErrorCode.NONE:
        return LogDirectory(broker, told.log_dir, words_of(told.error_code))
    sizes: dict[TopicPartition, int] = {}
    for topic in told.topics:
        for each in topic.partitions:
            place = TopicPartition(topic.name, each.partition_index)
            sizes[place] = sizes.get(place, 0) + each.partition_size
    total, usable = (each if each >= 0 else None for each in (told.total_bytes, told.usable_bytes))
    return LogDirectory(broker, told.log_dir, None, total, usable, sizes)


def _moving(cluster: Cluster, asking: Asking) -> frozenset[TopicPartition]:
    with asking.about("reassignments of partitions"):
        answer = cluster.ask_controller(
            ListPartitionReassignmentsRequest(timeout_ms=round(cluster.timeout_s * 1_000), topics=None),
            ListPartitionReassignmentsResponse,
            codes=lambda found: [found.error_code],
        )
        check(answer.error_code, answer.error_message)
        return frozenset(
            TopicPartition(topic.name, each.partition_index) for topic in answer.topics for each in topic.partitions
        )
    return frozenset()


def _quorum_leader(cluster: Cluster, asking: Asking) -> int | None:
    """None where the cluster has no quorum to tell of, as those on ZooKeeper of old."""
    with asking.about("the active controller"):
        request = DescribeQuorumRequest([QuorumTopicQuery(METADATA_LOG, [QuorumPartitionQuery(0)])])
        try:
            answer = cluster.ask(request, DescribeQuorumResponse)
        except Unsupported:
            return None
        check(answer.error_code, answer.error_message)
        for topic in answer.topics:
            for each in topic.partitions:
                check(each.error_code, each.error_message)
                return each.leader_id
    return None
