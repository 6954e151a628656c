"""Producer ids, epochs and sequences: InitProducerId, Produce, DescribeProducers."""

from __future__ import annotations

from typing import Any

from tests.differential import batches
from tests.differential.batches import batch
from tests.differential.scenarios.produce import NOWHERE, end_offset, send, stored
from tests.differential.schema import versions
from tests.differential.world import NOW_MS, Topic, World


def new_producer(world: World) -> int:
    given = world.quietly("InitProducerId", 4, transactional_id=None, transaction_timeout_ms=60_000)
    world.alias("producer", given["producer_id"])
    return int(given["producer_id"])


def numbered(producer_id: int, sequence: int, *, epoch: int = 0, count: int = 1, **more: Any) -> bytes:
    return batch([b"x"] * count, timestamp=NOW_MS, producer=(producer_id, epoch, sequence), **more)


def describe_producers(world: World, topic: Topic) -> None:
    world.ask("DescribeProducers", 0, topics=[{"name": topic.name, "partition_indexes": [0]}])


def ids_given_out(world: World) -> None:
    for version in versions("InitProducerId"):
        world.ask("InitProducerId", version, "", transactional_id=None, transaction_timeout_ms=60_000)
    for timeout_ms in (0, -1, 0x7FFFFFFF):
        world.ask(
            "InitProducerId", 4, f"timeout {timeout_ms}", transactional_id=None, transaction_timeout_ms=timeout_ms
        )


def odd_init_requests(world: World) -> None:
    for version in (3, 4, 5):
        for producer_id, epoch in ((5, -1), (-1, 5), (-5, 0), (-1, -1), (5, 2)):
            world.ask(
                "InitProducerId",
                version,
                f"id {producer_id} epoch {epoch}",
                transactional_id=None,
                transaction_timeout_ms=1_000,
                producer_id=producer_id,
                producer_epoch=epoch,
            )
    for version in versions("InitProducerId"):
        world.ask(
            "InitProducerId", version, "empty transactional id", transactional_id="", transaction_timeout_ms=1_000
        )


def sequences_in_order(world: World) -> None:
    topic, producer = world.topic("t"), new_producer(world)
    for sequence, version in ((0, 3), (3, 9), (6, 13)):
        send(world, version, "next", topic, numbered(producer, sequence, count=3))
    describe_producers(world, topic)
    stored(world, topic)


def duplicates(world: World) -> None:
    topic, producer = world.topic("t"), new_producer(world)
    for sequence in range(7):
        send(world, 9, f"sequence {sequence}", topic, numbered(producer, sequence))
    for sequence in (6, 5, 2, 1, 0):
        send(world, 9, f"again {sequence}", topic, numbered(producer, sequence))
    send(world, 3, "again 6", topic, numbered(producer, 6))
    send(world, 9, "overlapping", topic, numbered(producer, 6, count=2))
    end_offset(world, topic)


def gaps(world: World) -> None:
    topic, producer = world.topic("t"), new_producer(world)
    send(world, 9, "begin at 5", topic, numbered(producer, 5))
    other = new_producer(world)
    send(world, 9, "begin at 0", topic, numbered(other, 0))
    for sequence in (2, 100, -1, -5):
        send(world, 9, f"sequence {sequence}", topic, numbered(other, sequence))
    send(world, 9, "begin at 0 with a gap behind", topic, numbered(new_producer(world), 0) + numbered(other, 9))
    describe_producers(world, topic)
    end_offset(world, topic)


def epochs(world: World) -> None:
    topic, producer = world.topic("t"), new_producer(world)
    steps = ((0, 0), (2, 0), (1, 0), (1, 1), (2, 1), (3, 5), (3, 0), (2, 2))
    for epoch, sequence in steps:
        send(world, 9, f"epoch {epoch} sequence {sequence}", topic, numbered(producer, sequence, epoch=epoch))
    send(world, 9, "epoch -1", topic, numbered(producer, 0, epoch=-1))
    send(world, 9, "epoch 32767", topic, numbered(producer, 0, epoch=32767))
    describe_producers(world, topic)
    end_offset(world, topic)


def strangers(world: World) -> None:
    """Ids that nobody gave out."""
    topic = world.topic("t")
    for producer in (1 << 40, (1 << 40) + 1):
        send(world, 9, "sequence 0", topic, numbered(producer, 0))
        send(world, 9, "sequence 7", topic, numbered(producer + 10, 7))
        send(world, 9, "epoch 3 sequence 7", topic, numbered(producer + 20, 7, epoch=3))
    send(world, 9, "negative id", topic, numbered(-7, 0))
    send(world, 9, "sequence at the end", topic, numbered(1 << 41, 0x7FFFFFFF))
    end_offset(world, topic)


def wrapping_round(world: World) -> None:
    topic, producer = world.topic("t"), new_producer(world)
    last = 0x7FFFFFFF
    send(world, 9, "near the end", topic, numbered(producer, last - 1, count=2))
    send(world, 9, "from zero", topic, numbered(producer, 0))
    send(world, 9, "again", topic, numbered(producer, 0))
    other = new_producer(world)
    send(world, 9, "across the end", topic, numbered(other, last - 1, count=4))
    send(world, 9, "after it", topic, numbered(other, 2))
    describe_producers(world, topic)


def two_batches_of_one_producer(world: World) -> None:
    topic, producer = world.topic("t"), new_producer(world)
    send(world, 9, "two in order", topic, numbered(producer, 0) + numbered(producer, 1))
    send(world, 9, "the same two", topic, numbered(producer, 0) + numbered(producer, 1))
    send(world, 9, "one old, one new", topic, numbered(producer, 1) + numbered(producer, 2))
    end_offset(world, topic)


def transactional_bit(world: World) -> None:
    topic, producer = world.topic("t"), new_producer(world)
    for version in (3, 9, 11, 12, 13):
        bit = numbered(producer, 0, attributes=batches.TRANSACTIONAL)
        send(world, version, "without a transactional id", topic, bit)
    bit = batch([b"x"], timestamp=NOW_MS, attributes=batches.TRANSACTIONAL)
    send(world, 9, "without a producer", topic, bit)
    end_offset(world, topic)


def producers_described(world: World) -> None:
    topic = world.topic("t", partitions=2)
    for producer in sorted(new_producer(world) for _ in range(3)):
        world.fill(topic, numbered(producer, 0, count=2), numbered(producer, 2))
    partitions = [0, 1, 5, -1]
    world.ask("DescribeProducers", 0, "known", topics=[{"name": topic.name, "partition_indexes": partitions}])
    world.ask("DescribeProducers", 0, "unknown", topics=[{"name": NOWHERE.name, "partition_indexes": [0]}])
    world.ask("DescribeProducers", 0, "no partitions", topics=[{"name": topic.name, "partition_indexes": []}])
    world.ask("DescribeProducers", 0, "invalid", topics=[{"name": "a/b", "partition_indexes": [0]}])
    world.ask("DescribeProducers", 0, "nothing", topics=[])


SCENARIOS = (
    ids_given_out,
    odd_init_requests,
    sequences_in_order,
    duplicates,
    gaps,
    epochs,
    strangers,
    wrapping_round,
    two_batches_of_one_producer,
    transactional_bit,
    producers_described,
)
