"""Questions to one broker, each over a connection of its own: what it believes of the cluster at this moment."""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass
from typing import TypeVar

from moldau.core.errors import ErrorCode
from moldau.wire import messages
from moldau.wire.codec import decode, encode_parts, is_flexible
from moldau.wire.frame import RequestHeader, read_response_header, request_parts
from moldau.wire.messages.alter_partition_reassignments import ReassignablePartition, ReassignableTopic
from moldau.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig
from moldau.wire.messages.describe_quorum import QuorumPartitionQuery, QuorumTopicQuery
from moldau.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsTopic
from moldau.wire.schema import Message

ANSWER_S_MAX = 3.0
GROUP, TRANSACTION = 0, 1
LATEST, EARLIEST = -1, -2

Response = TypeVar("Response", bound=Message)


class Refused(Exception):
    """An error code instead of what was asked for."""

    def __init__(self, error: int, message: str | None = None) -> None:
        self.error = ErrorCode(error)
        super().__init__(f"{self.error.name}: {message}" if message else self.error.name)


def ask(
    address: str, request: Message, version: int, answer: type[Response], *, timeout_s: float = ANSWER_S_MAX
) -> Response:
    """Raises OSError where no answer comes in time."""
    host, _, port = address.rpartition(":")
    deadline_s = time.monotonic() + timeout_s
    header = RequestHeader(request.API_KEY, version, 1, "faults")
    parts = request_parts(header, encode_parts(request, version), is_flexible=is_flexible(type(request), version))
    with socket.create_connection((host, int(port)), timeout_s) as connection:
        connection.sendall(b"".join(parts))
        size = int.from_bytes(_exactly(connection, 4, deadline_s), "big")
        frame = memoryview(_exactly(connection, size, deadline_s))
    at = read_response_header(frame, answer, version)[1]
    return decode(answer, version, frame, at)[0]


def _exactly(connection: socket.socket, size: int, deadline_s: float) -> bytes:
    received = bytearray()
    while len(received) < size:
        connection.settimeout(max(0.001, deadline_s - time.monotonic()))
        more = connection.recv(size - len(received))
        if not more:
            raise ConnectionError("the broker closed the connection")
        received += more
    return bytes(received)


@dataclass(frozen=True, slots=True)
class PartitionState:
    leader: int
    replicas: tuple[int, ...]
    isr: frozenset[int]
    leader_epoch: int = -1


@dataclass(frozen=True, slots=True)
class ClusterState:
    """A broker's view of the cluster. `controller` is whom it names, which Apache Kafka's brokers do at random."""

    brokers: frozenset[int]
    controller: int
    partitions: dict[tuple[str, int], PartitionState]


def cluster_state(address: str) -> ClusterState:
    found = ask(address, messages.MetadataRequest(topics=None), 9, messages.MetadataResponse)
    return ClusterState(
        frozenset(broker.node_id for broker in found.brokers),
        found.controller_id,
        {
            (topic.name or "", each.partition_index): PartitionState(
                each.leader_id, tuple(each.replica_nodes), frozenset(each.isr_nodes), each.leader_epoch
            )
            for topic in found.topics
            for each in topic.partitions
        },
    )


def quorum_leader(address: str) -> int:
    """The active controller of Apache Kafka."""
    query = QuorumTopicQuery(topic_name="__cluster_metadata", partitions=[QuorumPartitionQuery()])
    found = ask(address, messages.DescribeQuorumRequest(topics=[query]), 0, messages.DescribeQuorumResponse)
    if found.error_code:
        raise Refused(found.error_code)
    return found.topics[0].partitions[0].leader_id


def coordinator(address: str, key: str, kind: int = GROUP) -> int:
    request = messages.FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
    (found,) = ask(address, request, 4, messages.FindCoordinatorResponse).coordinators
    if found.error_code:
        raise Refused(found.error_code, found.error_message)
    return found.node_id


def create_topic(address: str, name: str, *, partitions: int, replication_factor: int, config: dict[str, str]) -> None:
    configs = [CreatableTopicConfig(name=key, value=value) for key, value in config.items()]
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=replication_factor, configs=configs)
    request = messages.CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
    (made,) = ask(address, request, 5, messages.CreateTopicsResponse, timeout_s=35).topics
    if made.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
        raise Refused(made.error_code, made.error_message)


def high_watermark(address: str, topic: str, partition: int) -> int:
    """Asked of the leader."""
    return _offset(address, topic, partition, LATEST)


def log_start(address: str, topic: str, partition: int) -> int:
    """Asked of the leader."""
    return _offset(address, topic, partition, EARLIEST)


def _offset(address: str, topic: str, partition: int, at: int) -> int:
    wanted = ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(partition_index=partition, timestamp=at)])
    request = messages.ListOffsetsRequest(replica_id=-1, topics=[wanted])
    (found,) = ask(address, request, 5, messages.ListOffsetsResponse).topics[0].partitions
    if found.error_code:
        raise Refused(found.error_code)
    return found.offset


def high_watermarks(address: str, epochs: dict[tuple[str, int], int]) -> dict[tuple[str, int], int]:
    """Asked of the leader of some partitions, with its epochs; those that it refuses to tell are left out."""
    wanted: dict[str, list[ListOffsetsPartition]] = {}
    for (topic, index), epoch in epochs.items():
        row = ListOffsetsPartition(partition_index=index, current_leader_epoch=epoch, timestamp=LATEST)
        wanted.setdefault(topic, []).append(row)
    topics = [ListOffsetsTopic(name=name, partitions=rows) for name, rows in wanted.items()]
    found = ask(address, messages.ListOffsetsRequest(replica_id=-1, topics=topics), 5, messages.ListOffsetsResponse)
    return {
        (topic.name, row.partition_index): row.offset
        for topic in found.topics
        for row in topic.partitions
        if not row.error_code
    }


def reassign(address: str, topic: str, partition: int, replicas: list[int]) -> None:
    change = ReassignableTopic(
        name=topic, partitions=[ReassignablePartition(partition_index=partition, replicas=replicas)]
    )
    request = messages.AlterPartitionReassignmentsRequest(topics=[change], timeout_ms=10_000)
    answer = ask(address, request, 0, messages.AlterPartitionReassignmentsResponse, timeout_s=12)
    error = answer.error_code or answer.responses[0].partitions[0].error_code
    if error:
        raise Refused(error, answer.error_message or answer.responses[0].partitions[0].error_message)


def elect_preferred(address: str) -> None:
    """Of all partitions; those whose preferred replica leads already are left as they are."""
    request = messages.ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=10_000)
    answer = ask(address, request, 2, messages.ElectLeadersResponse, timeout_s=12)
    if answer.error_code:
        raise Refused(answer.error_code)


def delete_topic(address: str, name: str) -> None:
    request = messages.DeleteTopicsRequest(topic_names=[name], timeout_ms=30_000)
    (gone,) = ask(address, request, 5, messages.DeleteTopicsResponse, timeout_s=35).responses
    if gone.error_code not in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
        raise Refused(gone.error_code, gone.error_message)
