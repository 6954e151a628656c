"""Produce: addressing, acknowledgements and what a request may leave empty."""

from __future__ import annotations

from typing import Any

from tests.differential import batches
from tests.differential.batches import batch
from tests.differential.schema import ZERO_UUID, versions
from tests.differential.world import NOW_MS, Topic, World

NOWHERE = Topic("no-such-topic", b"no such topic id")


def send(world: World, version: int, note: str, topic: Topic, records: bytes | None, **more: Any) -> Any:
    """One record set to one partition."""
    partition = {"index": more.pop("partition", 0), "records": records}
    data = [{"name": topic.name, "topic_id": topic.id, "partition_data": [partition]}]
    request = {"acks": -1, "timeout_ms": 5_000, "topic_data": data} | more
    return world.ask("Produce", version, note, **request)


def end_offset(world: World, topic: Topic, partition: int = 0) -> None:
    partitions = [{"partition_index": partition, "timestamp": -1}]
    world.ask("ListOffsets", 7, "end", topics=[{"name": topic.name, "partitions": partitions}])


def stored(world: World, topic: Topic, partition: int = 0) -> None:
    """What a consumer would read back, from the first offset."""
    wanted = [{"partition": partition, "fetch_offset": 0, "partition_max_bytes": 1 << 20}]
    world.ask("Fetch", 12, "stored", max_wait_ms=0, topics=[{"topic": topic.name, "partitions": wanted}])


def every_version_appends(world: World) -> None:
    topic = world.topic("t")
    for version in versions("Produce"):
        send(world, version, "", topic, batch([b"one", b"two"], timestamp=NOW_MS))
    stored(world, topic)


def every_codec(world: World) -> None:
    topic = world.topic("t")
    for codec in (batches.NONE, batches.GZIP, batches.SNAPPY, batches.LZ4, batches.ZSTD):
        for version in (3, 6, 7, 13):
            send(world, version, f"codec {codec}", topic, batch([b"a" * 100, b"b"], timestamp=NOW_MS, codec=codec))
    stored(world, topic)


def acknowledgements(world: World) -> None:
    topic = world.topic("t")
    for version in (3, 9, 13):
        for acks in (1, -1, 2, -2, 100):
            send(world, version, f"acks {acks}", topic, batch([b"x"], timestamp=NOW_MS), acks=acks)
    end_offset(world, topic)


def no_acknowledgement(world: World) -> None:
    """`acks=0` is silent; an error under it closes the connection."""
    topic = world.topic("t")
    for version in (3, 9, 13):
        peer = world.extra_peer()
        peer.tell("Produce", version, acks=0, timeout_ms=1_000, topic_data=[data_of(topic)])
        world.note("still open", peer.ask("ListOffsets", 7, topics=[latest(topic)]))
        peer.tell("Produce", version, acks=0, timeout_ms=1_000, topic_data=[data_of(NOWHERE)])
        world.note("after an error", peer.receive())


def data_of(topic: Topic) -> dict[str, Any]:
    records = batch([b"quiet"], timestamp=NOW_MS)
    return {"name": topic.name, "topic_id": topic.id, "partition_data": [{"index": 0, "records": records}]}


def latest(topic: Topic) -> dict[str, Any]:
    return {"name": topic.name, "partitions": [{"partition_index": 0, "timestamp": -1}]}


def nowhere(world: World) -> None:
    topic = world.topic("t")
    records = batch([b"x"], timestamp=NOW_MS)
    for version in versions("Produce"):
        send(world, version, "unknown topic", NOWHERE, records)
        send(world, version, "unknown partition", topic, records, partition=7)
        send(world, version, "negative partition", topic, records, partition=-1)
    send(world, 13, "zero id", Topic("", ZERO_UUID), records)
    send(world, 9, "empty name", Topic("", ZERO_UUID), records)
    send(world, 9, "invalid name", Topic("a/b", ZERO_UUID), records)
    end_offset(world, topic)


def a_bad_partition_beside_a_good_one(world: World) -> None:
    topic = world.topic("t", partitions=2)
    good, torn = batch([b"x"], timestamp=NOW_MS), batch([b"x"], timestamp=NOW_MS, flip_crc=1)
    for version in versions("Produce"):
        data = [
            {"name": NOWHERE.name, "topic_id": NOWHERE.id, "partition_data": [{"index": 0, "records": good}]},
            {
                "name": topic.name,
                "topic_id": topic.id,
                "partition_data": [
                    {"index": 0, "records": good},
                    {"index": 1, "records": torn},
                    {"index": 9, "records": good},
                ],
            },
        ]
        answer = world.quietly("Produce", version, acks=-1, timeout_ms=5_000, topic_data=data)
        answer["responses"].sort(key=lambda one: len(one["partition_responses"]))
        for one in answer["responses"]:
            one["partition_responses"].sort(key=lambda partition: partition["index"])
        world.note(f"Produce v{version}", answer)
    end_offset(world, topic)
    end_offset(world, topic, 1)


def nothing_in_it(world: World) -> None:
    topic = world.topic("t")
    for version in (3, 8, 9, 13):
        world.ask("Produce", version, "no topics", acks=-1, timeout_ms=1_000, topic_data=[])
        no_partitions = [{"name": topic.name, "topic_id": topic.id, "partition_data": []}]
        world.ask("Produce", version, "no partitions", acks=-1, timeout_ms=1_000, topic_data=no_partitions)
        send(world, version, "no bytes", topic, b"")
        send(world, version, "short", topic, batch([b"x"], timestamp=NOW_MS)[:40])
    end_offset(world, topic)


def null_records(world: World) -> None:
    send(world, 9, "", world.topic("t"), None)


def twice_in_one_request(world: World) -> None:
    topic = world.topic("t")
    one = {"index": 0, "records": batch([b"x"], timestamp=NOW_MS)}
    data = [{"name": topic.name, "topic_id": topic.id, "partition_data": [one, one]}]
    for version in (3, 9, 13):
        world.ask("Produce", version, "partition twice", acks=-1, timeout_ms=1_000, topic_data=data)
    end_offset(world, topic)


def a_transactional_id(world: World) -> None:
    topic = world.topic("t")
    plain = batch([b"x"], timestamp=NOW_MS)
    for version in (3, 9, 11):
        send(world, version, "plain records", topic, plain, transactional_id="nobody")
    end_offset(world, topic)


def timeouts(world: World) -> None:
    topic = world.topic("t")
    for timeout_ms in (0, -1, 1 << 30):
        send(world, 9, f"timeout {timeout_ms}", topic, batch([b"x"], timestamp=NOW_MS), timeout_ms=timeout_ms)


def too_large(world: World) -> None:
    small = world.topic("small", configs={"max.message.bytes": "200"})
    usual = world.topic("usual")
    for version in (3, 9, 13):
        send(world, version, "within", small, batch([b"x" * 100], timestamp=NOW_MS))
        send(world, version, "beyond", small, batch([b"x" * 200], timestamp=NOW_MS))
        squeezed = batch([b"x" * 400], timestamp=NOW_MS, codec=batches.GZIP)
        send(world, version, "compressed within", small, squeezed)
        two = batch([b"x" * 100], timestamp=NOW_MS) * 2
        send(world, version, "two that fit", small, two)
    send(world, 9, "beyond the default", usual, batch([b"x" * 1_048_588], timestamp=NOW_MS))
    end_offset(world, small)


SCENARIOS = (
    every_version_appends,
    every_codec,
    acknowledgements,
    no_acknowledgement,
    nowhere,
    a_bad_partition_beside_a_good_one,
    nothing_in_it,
    null_records,
    twice_in_one_request,
    a_transactional_id,
    timeouts,
    too_large,
)
