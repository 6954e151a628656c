"""Transactions whose coordinator, partitions and groups are led by different brokers."""

from __future__ import annotations

from uuid import uuid4

import pytest
from confluent_kafka import TopicPartition

import moldau
from moldau.coordinator.placement import partition_for
from moldau.core.errors import ErrorCode
from moldau.wire.batch import TRANSACTIONAL
from moldau.wire.messages import DescribeProducersRequest, EndTxnRequest, InitProducerIdRequest, ProduceRequest
from moldau.wire.messages.describe_producers import TopicRequest
from moldau.wire.messages.produce import PartitionProduceData, TopicProduceData
from tests.cluster.asking import TIMEOUT_MS, ask, until
from tests.cluster.clients import committed, consumer, producer, read
from tests.log.samples import batch

PARTITIONS = 6
SECOND_PROTOCOL, INIT, END = 12, 5, 5


def transactional_id_led_by(cluster: moldau.EmbeddedCluster, broker_id: int) -> str:
    """An id whose coordinator is that broker, once any is known."""
    leaders = cluster.seen("__transaction_state").leaders
    names = (f"id-{uuid4().hex[:8]}" for _ in range(10_000))
    return next(name for name in names if leaders[partition_for(name, len(leaders))] == broker_id)


@pytest.fixture(scope="module")
def topic(cluster: moldau.EmbeddedCluster) -> str:
    """With two partitions led by each broker."""
    name = f"orders-{uuid4().hex[:8]}"
    cluster.create_topic(name, partitions=PARTITIONS, replication_factor=3)
    first = producer(cluster.bootstrap_servers, **{"transactional.id": f"first-{name}"})
    first.init_transactions(60)  # which makes the coordinators' topic
    assert set(cluster.seen(name).leaders.values()) == {0, 1, 2}
    return name


@pytest.mark.parametrize("coordinator", [0, 1, 2])
def test_committed_records_of_all_leaders_are_read_and_aborted_ones_are_not(
    cluster: moldau.EmbeddedCluster, topic: str, coordinator: int
) -> None:
    name = transactional_id_led_by(cluster, coordinator)
    writer = producer(cluster.bootstrap_servers, **{"transactional.id": name})
    writer.init_transactions(60)
    for outcome in ("aborted", "committed", "aborted", "committed"):
        writer.begin_transaction()
        for partition in range(PARTITIONS):
            writer.produce(topic, f"{name} {outcome}", partition=partition)
        if outcome == "committed":
            writer.commit_transaction(60)
        else:
            writer.flush(60)
            writer.abort_transaction(60)
    reader = consumer(cluster.bootstrap_servers, name, **{"isolation.level": "read_committed"})
    reader.subscribe([topic])
    expected = [f"{name} committed"] * 2 * PARTITIONS
    values: list[str] = []
    while len(values) < len(expected):
        (message,) = read(reader, 1)
        value = message.value().decode()
        assert not value.endswith("aborted")
        values += [value] * value.startswith(name)
    assert values == expected
    reader.close()


def test_offsets_count_with_their_transaction(cluster: moldau.EmbeddedCluster, topic: str) -> None:
    """The groups' coordinators and the transaction's are on any broker."""
    writer = producer(cluster.bootstrap_servers, **{"transactional.id": f"offsets-{topic}"})
    writer.init_transactions(60)
    for number in range(6):
        reader = consumer(cluster.bootstrap_servers, f"{topic}-{number}")
        for offset, ends in ((3, writer.abort_transaction), (5, writer.commit_transaction)):
            writer.begin_transaction()
            writer.produce(topic, "in", partition=number % PARTITIONS)
            offsets = [TopicPartition(topic, 0, offset)]
            writer.send_offsets_to_transaction(offsets, reader.consumer_group_metadata(), 60)
            ends(60)
        reader.close()
        assert committed(cluster.bootstrap_servers, f"{topic}-{number}", topic) == 5


def test_writing_adds_a_partition_to_a_transaction_that_is_coordinated_elsewhere(
    cluster: moldau.EmbeddedCluster, topic: str
) -> None:
    """The second protocol: the producer tells the coordinator nothing, the partition's leader does."""
    leader = cluster.leader_of(topic, 0)
    coordinator = next(each for each in cluster.brokers if each != leader)
    name = transactional_id_led_by(cluster, coordinator)
    asked = InitProducerIdRequest(name, 60_000, producer_id=-1, producer_epoch=-1)
    given = ask(cluster.brokers[coordinator], asked, INIT)
    assert given.error_code == ErrorCode.NONE
    producer = (given.producer_id, given.producer_epoch, 0)
    records = batch([name.encode()], attributes=TRANSACTIONAL, producer=producer)
    sent = ProduceRequest(
        transactional_id=name,
        acks=-1,
        timeout_ms=TIMEOUT_MS,
        topic_data=[TopicProduceData(name=topic, partition_data=[PartitionProduceData(0, records)])],
    )
    rows = ask(cluster.brokers[leader], sent, SECOND_PROTOCOL).responses[0].partition_responses
    assert [row.error_code for row in rows] == [ErrorCode.NONE]
    ended = EndTxnRequest(name, given.producer_id, given.producer_epoch, committed=True)
    assert ask(cluster.brokers[coordinator], ended, END).error_code == ErrorCode.NONE
    reader = consumer(cluster.bootstrap_servers, name, **{"isolation.level": "read_committed"})
    reader.subscribe([topic])
    while True:
        (message,) = read(reader, 1)
        if message.value() == name.encode():
            break
    reader.close()


def test_a_batch_of_a_transaction_that_its_coordinator_does_not_know_is_refused(
    cluster: moldau.EmbeddedCluster, topic: str
) -> None:
    leader = cluster.leader_of(topic, 0)
    coordinator = next(each for each in cluster.brokers if each != leader)
    name = transactional_id_led_by(cluster, coordinator)
    given = ask(cluster.brokers[coordinator], InitProducerIdRequest(name, 60_000, -1, -1), INIT)
    records = batch([b"x"], attributes=TRANSACTIONAL, producer=(given.producer_id, given.producer_epoch, 0))
    sent = ProduceRequest(
        transactional_id=name,
        acks=-1,
        timeout_ms=TIMEOUT_MS,
        topic_data=[TopicProduceData(name=topic, partition_data=[PartitionProduceData(0, records)])],
    )
    rows = ask(cluster.brokers[leader], sent, SECOND_PROTOCOL - 1).responses[0].partition_responses
    assert [row.error_code for row in rows] == [ErrorCode.TRANSACTION_ABORTABLE]


def test_every_replica_tells_of_an_open_transaction(cluster: moldau.EmbeddedCluster) -> None:
    """As kafka-transactions find-hanging asks one broker about all its replicas."""
    name = f"open-{uuid4().hex[:8]}"
    cluster.create_topic(name, partitions=1, replication_factor=2)
    replicas = cluster.seen(name).in_sync[0]
    writer = producer(cluster.bootstrap_servers, **{"transactional.id": name})
    writer.init_transactions(60)
    writer.begin_transaction()
    writer.produce(name, "undecided", partition=0)
    assert writer.flush(60) == 0

    def told_by(broker_id: int) -> tuple[ErrorCode, list[int]]:
        request = DescribeProducersRequest(topics=[TopicRequest(name=name, partition_indexes=[0])])
        (found,) = ask(cluster.brokers[broker_id], request, 0).topics[0].partitions
        return ErrorCode(found.error_code), [each.current_txn_start_offset for each in found.active_producers]

    for broker_id in replicas:
        until(lambda each=broker_id: told_by(each) == (ErrorCode.NONE, [0]))  # type: ignore[misc]
    (other,) = cluster.brokers.keys() - replicas
    assert told_by(other) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, [])
    writer.abort_transaction(60)
