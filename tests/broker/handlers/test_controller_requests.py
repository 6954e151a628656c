"""What other brokers ask the controller, and UnregisterBroker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from moldau.core.errors import ErrorCode
from moldau.core.ids import NO_LEADER, TopicId
from moldau.embedded.cluster import run_cluster
from moldau.wire.messages import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterPartitionRequest,
    AlterPartitionResponse,
    ApiVersionsRequest,
    ApiVersionsResponse,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    MetadataRequest,
    MetadataResponse,
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from moldau.wire.messages.alter_partition import BrokerState, IsrOfPartition, IsrOfTopic, PartitionData
from moldau.wire.messages.assign_replicas_to_dirs import AssignedDirectory, AssignedPartition, AssignedTopic
from moldau.wire.messages.metadata import MetadataRequestTopic, MetadataResponsePartition
from tests.broker.handlers.wire import Wire

EPOCH = 1  # of a broker that nobody joined
LOST, UNASSIGNED = (1).to_bytes(16, "big"), bytes(16)


@pytest.fixture(scope="module")
def member() -> Iterator[str]:
    """The address of a broker of a cluster; one that is alone for good does not answer what brokers ask each other."""
    with run_cluster(1) as cluster:
        yield cluster.bootstrap_servers


@pytest.fixture
def wire(member: str, broker_kind: str, bootstrap: str) -> Iterator[Wire]:
    connection = Wire(member if broker_kind == "moldau" else bootstrap)
    yield connection
    connection.close()


def topic_id(wire: Wire, name: str) -> TopicId:
    return TopicId(described(wire, name)[0])


def described(wire: Wire, name: str) -> tuple[bytes, MetadataResponsePartition]:
    found = wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name=name)]), 12, MetadataResponse)
    (topic,) = found.topics
    return topic.topic_id, topic.partitions[0]


def alter(wire: Wire, broker_id: int, version: int, *wanted: IsrOfTopic, epoch: int = EPOCH) -> AlterPartitionResponse:
    request = AlterPartitionRequest(broker_id=broker_id, broker_epoch=epoch, topics=list(wanted))
    return wire.ask(request, version, AlterPartitionResponse)


@pytest.mark.usefixtures("moldau_only")
@pytest.mark.parametrize("version", [2, 3])
def test_a_leader_tells_of_its_isr(wire: Wire, name: str, broker_id: int, version: int) -> None:
    wire.create_topic(name)
    known = topic_id(wire, name)
    isr = [BrokerState(broker_id, EPOCH)] if version >= 3 else []
    partitions = [
        IsrOfPartition(partition_index=0, new_isr=[] if isr else [broker_id], new_isr_with_epochs=isr),
        IsrOfPartition(partition_index=7, new_isr=[] if isr else [broker_id], new_isr_with_epochs=isr),
    ]
    done = alter(wire, broker_id, version, IsrOfTopic(known, partitions), IsrOfTopic(bytes(15) + b"\7", partitions[:1]))
    assert done.error_code == ErrorCode.NONE
    assert [topic.topic_id for topic in done.topics] == [known, bytes(15) + b"\7"]
    assert done.topics[0].partitions == [
        PartitionData(partition_index=0, leader_id=broker_id, isr=[broker_id]),
        PartitionData(partition_index=7, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert done.topics[1].partitions == [PartitionData(partition_index=0, error_code=ErrorCode.UNKNOWN_TOPIC_ID)]
    assert alter(wire, broker_id, version, epoch=99).error_code == ErrorCode.STALE_BROKER_EPOCH


@pytest.mark.usefixtures("moldau_only")
def test_a_replica_in_a_lost_directory_leads_nothing_until_it_is_found(wire: Wire, name: str, broker_id: int) -> None:
    wire.create_topic(name)
    known = topic_id(wire, name)

    def assign(directory: bytes, epoch: int = EPOCH) -> AssignReplicasToDirsResponse:
        topics = [AssignedTopic(known, [AssignedPartition(0), AssignedPartition(3)])]
        request = AssignReplicasToDirsRequest(broker_id, epoch, [AssignedDirectory(directory, topics)])
        return wire.ask(request, 0, AssignReplicasToDirsResponse)

    done = assign(LOST)
    (directory,) = done.directories
    (topic,) = directory.topics
    assert (done.error_code, directory.id, topic.topic_id) == (ErrorCode.NONE, LOST, known)
    assert [each.error_code for each in topic.partitions] == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    state = described(wire, name)[1]
    assert (state.leader_id, state.isr_nodes, state.offline_replicas) == (NO_LEADER, [], [broker_id])
    assert state.error_code == ErrorCode.LEADER_NOT_AVAILABLE
    assign(UNASSIGNED)
    state = described(wire, name)[1]
    assert (state.leader_id, state.isr_nodes, state.offline_replicas) == (broker_id, [broker_id], [])
    assert assign(LOST, epoch=99).error_code == ErrorCode.STALE_BROKER_EPOCH


@pytest.mark.usefixtures("moldau_only")
def test_blocks_of_producer_ids_follow_each_other(wire: Wire, broker_id: int) -> None:
    request = AllocateProducerIdsRequest(broker_id, EPOCH)
    first, second = (wire.ask(request, 0, AllocateProducerIdsResponse) for _ in range(2))
    assert (first.error_code, first.producer_id_len, second.producer_id_len) == (ErrorCode.NONE, 1_000, 1_000)
    assert second.producer_id_start >= first.producer_id_start + 1_000
    stale = wire.ask(AllocateProducerIdsRequest(broker_id, 99), 0, AllocateProducerIdsResponse)
    assert stale.error_code == ErrorCode.STALE_BROKER_EPOCH


def test_a_broker_that_is_not_registered_can_not_be_unregistered(wire: Wire) -> None:
    done = wire.ask(UnregisterBrokerRequest(broker_id=4711), 0, UnregisterBrokerResponse)
    message = "Broker ID 4711 is not currently registered"
    assert (done.error_code, done.error_message) == (ErrorCode.BROKER_ID_NOT_REGISTERED, message)


@pytest.mark.usefixtures("moldau_only")
def test_a_broker_that_runs_can_not_be_unregistered(wire: Wire, broker_id: int) -> None:
    done = wire.ask(UnregisterBrokerRequest(broker_id=broker_id), 0, UnregisterBrokerResponse)
    assert done.error_code == ErrorCode.INVALID_REQUEST
    assert done.error_message == f"Broker ID {broker_id} is running; stop the broker before it is unregistered"


def test_clients_are_not_told_of_what_brokers_ask_each_other(wire: Wire) -> None:
    request = ApiVersionsRequest(client_software_name="tests", client_software_version="1")
    announced = {each.api_key for each in wire.ask(request, 3, ApiVersionsResponse).api_keys}
    asked = (AlterPartitionRequest, AssignReplicasToDirsRequest, AllocateProducerIdsRequest)
    assert not announced & {int(each.API_KEY) for each in asked}
    assert UnregisterBrokerRequest.API_KEY in announced


@pytest.mark.usefixtures("moldau_only")
def test_a_broker_that_is_alone_does_not_answer_what_brokers_ask_each_other(bootstrap: str) -> None:
    alone = Wire(bootstrap)
    try:
        with pytest.raises(ConnectionError):
            alone.ask(AllocateProducerIdsRequest(0, EPOCH), 0, AllocateProducerIdsResponse)
    finally:
        alone.close()
