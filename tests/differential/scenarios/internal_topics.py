"""The coordinators' own topics: what a client may do to them."""

from __future__ import annotations

from typing import Any

from tests.differential import batches
from tests.differential.batches import batch
from tests.differential.peer import Peer
from tests.differential.scenarios.produce import send
from tests.differential.schema import versions
from tests.differential.world import NOW_MS, Topic, World

GROUPS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"


def internal(world: World) -> list[Topic]:
    """Both topics with their ids, once they are led."""
    for key_type, name in enumerate((GROUPS, TRANSACTIONS)):

        def found(key_type: int = key_type) -> bool:
            answer = world.quietly("FindCoordinator", 2, key=world.name, key_type=key_type)
            return bool(answer["error_code"] == 0)

        world.until(found, f"a coordinator on {name}")
        world.until_ready(name, 50)
    described = world.quietly("Metadata", 12, topics=[{"name": GROUPS}, {"name": TRANSACTIONS}])
    topics = [Topic(one["name"], one["topic_id"]) for one in described["topics"]]
    for topic in topics:
        world.id_alias(topic.id)
    return sorted(topics, key=lambda topic: topic.name)


def producing(world: World) -> None:
    records = batch([b"x"], timestamp=NOW_MS)
    for topic in internal(world):
        for version in versions("Produce"):
            for acks in (-1, 1):
                send(world, version, f"{topic.name} acks {acks}", topic, records, acks=acks)
        for version in (3, 9, 13):
            send(world, version, f"{topic.name} acks 2", topic, records, acks=2)
            send(world, version, f"{topic.name} partition 99", topic, records, partition=99)
            send(world, version, f"{topic.name} wrong checksum", topic, batch([b"x"], timestamp=NOW_MS, flip_crc=1))
            send(world, version, f"{topic.name} control batch", topic, batch([b"x"], timestamp=NOW_MS, attributes=0x20))


def producing_without_acknowledgement(world: World) -> None:
    for topic in internal(world):
        for version in (3, 9, 13):
            send(world, version, f"{topic.name} acks 0", topic, batch([b"x"], timestamp=NOW_MS), acks=0)


def producing_beside_a_topic_of_ones_own(world: World) -> None:
    own = world.topic("t")
    for topic in internal(world):
        partition = {"index": 0, "records": batch([b"x"], timestamp=NOW_MS)}
        data = [{"name": one.name, "partition_data": [partition]} for one in (own, topic)]
        answer = world.quietly("Produce", 9, acks=-1, timeout_ms=5_000, topic_data=data)
        # Apache Kafka answers in the order of a hash table.
        world.note(f"Produce v9 {topic.name}", sorted(answer["responses"], key=lambda one: str(one["name"])))


def producing_in_a_transaction(world: World) -> None:
    topics = internal(world)
    transaction = f"{world.name}-tx"

    def begun() -> bool:
        answer = world.quietly("InitProducerId", 4, transactional_id=transaction, transaction_timeout_ms=60_000)
        producer.update(answer)
        return bool(answer["error_code"] == 0)

    producer: dict[str, Any] = {}
    world.until(begun, "a producer id")
    ids = producer["producer_id"], producer["producer_epoch"], 0
    records = batch([b"x"], timestamp=NOW_MS, attributes=batches.TRANSACTIONAL, producer=ids)
    for topic in topics:
        for version in (0, 2, 3):
            world.ask(
                "AddPartitionsToTxn",
                version,
                topic.name,
                v3_and_below_transactional_id=transaction,
                v3_and_below_producer_id=ids[0],
                v3_and_below_producer_epoch=ids[1],
                v3_and_below_topics=[{"name": topic.name, "partitions": [0]}],
            )
        for version in (3, 9, 11, 12, 13):
            send(world, version, f"{topic.name} in a transaction", topic, records, transactional_id=transaction)
    world.quietly("EndTxn", 3, transactional_id=transaction, producer_id=ids[0], producer_epoch=ids[1], committed=False)


def producing_as_the_admin_client(world: World) -> None:
    """A client that calls itself what Apache Kafka's own tools once did."""
    peer = Peer(world.address, client_id="__admin_client")
    for topic in internal(world):
        data = [{"name": topic.name, "partition_data": [{"index": 49, "records": batch([b"x"], timestamp=NOW_MS)}]}]
        answer = peer.ask("Produce", 9, acks=-1, timeout_ms=5_000, topic_data=data)
        world.note(f"Produce v9 {topic.name}", answer)
    peer.close()


def deleting_records(world: World) -> None:
    for topic in internal(world):
        for version in versions("DeleteRecords"):
            for offset in (0, -1, 5, 2**40):
                partitions = [{"partition_index": index, "offset": offset} for index in (0, 99)]
                named = [{"name": topic.name, "partitions": partitions}]
                world.ask("DeleteRecords", version, f"{topic.name} {offset}", topics=named, timeout_ms=5_000)


def more_partitions(world: World) -> None:
    for topic in internal(world):
        for count in (50, 51, 10):
            wanted = [{"name": topic.name, "count": count, "assignments": None}]
            for version in versions("CreatePartitions"):
                note = f"{topic.name} to {count}"
                world.ask("CreatePartitions", version, note, topics=wanted, timeout_ms=5_000, validate_only=True)


def creating(world: World) -> None:
    internal(world)
    for name in (GROUPS, TRANSACTIONS, "__share_group_state", "__cluster_metadata"):
        wanted = [{"name": name, "num_partitions": 1, "replication_factor": 1}]
        world.ask("CreateTopics", 7, name, topics=wanted, timeout_ms=5_000, validate_only=True)


SCENARIOS = (
    producing,
    producing_without_acknowledgement,
    producing_beside_a_topic_of_ones_own,
    producing_in_a_transaction,
    producing_as_the_admin_client,
    deleting_records,
    more_partitions,
    creating,
)
