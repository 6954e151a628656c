"""What a scenario asks of a cluster over the wire: topics, who controls it, who is to lead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from moldau.cli.verify.checking import Stored
from moldau.client.cluster import Cluster, NoAnswer, Refused, check
from moldau.client.connection import Unsupported
from moldau.client.fetched import read_partition
from moldau.client.listing import EARLIEST, LATEST, READ_COMMITTED, list_offsets
from moldau.client.reading import Failed, Read, Reader
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.wire.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
)
from moldau.wire.messages.alter_partition_reassignments import ReassignablePartition, ReassignableTopic
from moldau.wire.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig
from moldau.wire.messages.delete_topics import DeleteTopicState
from moldau.wire.messages.describe_quorum import QuorumPartitionQuery, QuorumTopicQuery
from moldau.wire.messages.elect_leaders import TopicPartitions

REQUEST_MS = 15_000
PREFERRED, UNCLEAN = 0, 1
READ_S = 1.0
PATIENCE = 30  # empty answers until a partition that ends nowhere is begun with anew


def create_topic(
    client: Cluster,
    name: str,
    *,
    partitions: int,
    replication_factor: int,
    config: Mapping[str, str],
    assignment: Sequence[int] | None = None,
) -> None:
    """`assignment` holds the replicas of the one partition. Raises Refused; an existing topic is as good."""
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions if assignment is None else -1,
        replication_factor=replication_factor if assignment is None else -1,
        assignments=[] if assignment is None else [CreatableReplicaAssignment(0, [*assignment])],
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in config.items()],
    )
    request = CreateTopicsRequest(topics=[topic], timeout_ms=REQUEST_MS)
    (result,) = client.ask_controller(request, CreateTopicsResponse, codes=_created).topics
    if result.error_code != ErrorCode.TOPIC_ALREADY_EXISTS:
        check(result.error_code, result.error_message)


def _created(answer: CreateTopicsResponse) -> list[int]:
    return [each.error_code for each in answer.topics]


def delete_topics(client: Cluster, names: Iterable[str]) -> None:
    """Those that are not there are gone already."""
    wanted = [*names]
    request = DeleteTopicsRequest(
        topics=[DeleteTopicState(name=each) for each in wanted], topic_names=wanted, timeout_ms=REQUEST_MS
    )
    answer = client.ask_controller(
        request, DeleteTopicsResponse, codes=lambda found: [each.error_code for each in found.responses]
    )
    for each in answer.responses:
        if each.error_code not in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
            raise Refused(each.error_code, each.error_message)


def controller_of(client: Cluster) -> int:
    """Brokers of Apache Kafka name anybody as their controller; who it is they tell when asked for the quorum."""
    query = QuorumTopicQuery(topic_name="__cluster_metadata", partitions=[QuorumPartitionQuery()])
    try:
        found = client.ask(DescribeQuorumRequest(topics=[query]), DescribeQuorumResponse)
    except Unsupported:
        return client.metadata([]).controller_id
    if found.error_code or not found.topics or found.topics[0].partitions[0].error_code:
        return client.metadata([]).controller_id
    return found.topics[0].partitions[0].leader_id


def reorder_replicas(client: Cluster, topic: str, replicas: Sequence[int]) -> None:
    """Of the first partition: the first of them is preferred, and no data moves."""
    wanted = ReassignableTopic(topic, [ReassignablePartition(0, [*replicas])])
    request = AlterPartitionReassignmentsRequest(topics=[wanted], timeout_ms=REQUEST_MS)
    answer = client.ask_controller(request, AlterPartitionReassignmentsResponse, codes=lambda found: [found.error_code])
    check(answer.error_code, answer.error_message)
    for each in answer.responses[0].partitions:
        check(each.error_code, each.error_message)


def elect_preferred(client: Cluster, topic: str) -> None:
    _elect(client, topic, PREFERRED)


def elect_unclean(client: Cluster, topic: str) -> None:
    _elect(client, topic, UNCLEAN)


def _elect(client: Cluster, topic: str, election_type: int) -> None:
    """Of the first partition. Raises Refused."""
    request = ElectLeadersRequest(
        election_type=election_type, topic_partitions=[TopicPartitions(topic, [0])], timeout_ms=REQUEST_MS
    )
    answer = client.ask_controller(request, ElectLeadersResponse, codes=lambda found: [found.error_code])
    check(answer.error_code)
    for result in answer.replica_election_results:
        for each in result.partition_result:
            if each.error_code != ErrorCode.ELECTION_NOT_NEEDED:
                check(each.error_code, each.error_message)


def stored_records(client: Cluster, topic: str) -> list[Stored]:
    """All that a reader of committed records sees, from the first to the last: all or nothing, for the rest would be
    called lost. Raises Refused and NoAnswer.
    """
    found = client.metadata([topic]).topics[0]
    check(found.error_code)
    places = [TopicPartition(topic, each.partition_index) for each in found.partitions]
    starts = list_offsets(client, dict.fromkeys(places, EARLIEST))  # what somebody deleted is lost
    ends = list_offsets(client, dict.fromkeys(places, LATEST), isolation=READ_COMMITTED)
    reader = Reader(client, decode=read_partition, isolation=READ_COMMITTED)
    stored: list[Stored] = []
    try:
        reader.add({place: starts[place] for place in places if starts[place] < ends[place]})
        idle = 0
        while any(offset < ends[place] for place, offset in reader.positions.items()):
            event = reader.next(timeout_s=READ_S)
            idle = 0 if event is not None else idle + 1
            if idle == PATIENCE:
                raise NoAnswer(f"topic {topic} was not read to its end")
            if isinstance(event, Failed):
                raise Refused(event.code, event.told)
            if isinstance(event, Read):
                stored += [Stored((each.value or b"").decode(), each.partition, each.offset) for each in event.records]
    finally:
        reader.close()
    return stored
