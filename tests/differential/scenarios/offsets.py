"""ListOffsets, OffsetForLeaderEpoch and DeleteRecords: where a log begins, ends and holds a moment."""

from __future__ import annotations

from typing import Any

from tests.differential.batches import GZIP, batch, record
from tests.differential.scenarios.fetch import fetch, filled, wanted
from tests.differential.scenarios.produce import NOWHERE
from tests.differential.schema import versions
from tests.differential.world import NOW_MS, Topic, World

LATEST, EARLIEST, LARGEST, EARLIEST_LOCAL, LATEST_TIERED, PENDING = -1, -2, -3, -4, -5, -6
SPECIAL = (LATEST, EARLIEST, LARGEST, EARLIEST_LOCAL, LATEST_TIERED, PENDING, -7)


def list_offsets(world: World, version: int, note: str, topic: Topic, *partitions: dict[str, Any], **more: Any) -> Any:
    return world.ask(
        "ListOffsets", version, note, topics=[{"name": topic.name, "partitions": list(partitions)}], **more
    )


def at(timestamp: int, partition: int = 0, **more: Any) -> dict[str, Any]:
    return {"partition_index": partition, "timestamp": timestamp} | more


def special_timestamps(world: World) -> None:
    topic, empty = filled(world), world.topic("empty")
    for version in versions("ListOffsets"):
        for timestamp in SPECIAL:
            list_offsets(world, version, f"timestamp {timestamp}", topic, at(timestamp))
            list_offsets(world, version, f"timestamp {timestamp}, empty", empty, at(timestamp))


def moments(world: World) -> None:
    """Batches at 0, 10 and 20 ms, three records a millisecond apart in each."""
    topic = filled(world)
    for delta in (-1_000, -1, 0, 1, 2, 3, 9, 10, 11, 12, 20, 22, 23, 10_000):
        list_offsets(world, 7, f"delta {delta}", topic, at(NOW_MS + delta))
    for version in versions("ListOffsets"):
        list_offsets(world, version, "middle", topic, at(NOW_MS + 11))
        list_offsets(world, version, "beyond", topic, at(NOW_MS + 500))
    list_offsets(world, 7, "zero", topic, at(0))
    list_offsets(world, 7, "end of time", topic, at((1 << 63) - 1))


def out_of_order_moments(world: World) -> None:
    topic = world.topic("t")
    for delta in (50, 10, 30, 90, 70):
        world.fill(topic, batch([b"x", b"y"], timestamp=NOW_MS + delta))
    backwards = record(b"x", timestamp_delta=5) + record(b"y", offset_delta=1, timestamp_delta=0)
    world.fill(topic, batch([b"", b""], timestamp=NOW_MS + 200, raw=backwards, max_timestamp=NOW_MS + 205, codec=GZIP))
    for delta in (0, 10, 30, 51, 52, 60, 90, 91, 92, 200, 203, 205):
        list_offsets(world, 7, f"delta {delta}", topic, at(NOW_MS + delta))
    list_offsets(world, 7, "largest", topic, at(LARGEST))


def moments_of_append_time(world: World) -> None:
    topic = world.topic("t", configs={"message.timestamp.type": "LogAppendTime"})
    world.fill(topic, batch([b"x", b"y", b"z"], timestamp=NOW_MS))
    for timestamp in (LARGEST, NOW_MS, 0):
        list_offsets(world, 7, f"timestamp {timestamp}", topic, at(timestamp))


def without_timestamps(world: World) -> None:
    topic = world.topic("t")
    world.fill(topic, batch([b"x"], timestamp=-1, max_timestamp=-1))
    for timestamp in (LARGEST, 0, NOW_MS):
        list_offsets(world, 7, f"timestamp {timestamp}", topic, at(timestamp))


def listing_nowhere(world: World) -> None:
    topic = filled(world)
    for version in versions("ListOffsets"):
        list_offsets(world, version, "unknown topic", NOWHERE, at(LATEST))
        list_offsets(world, version, "unknown partition", topic, at(LATEST, 4), at(LATEST), at(EARLIEST, -1))
        list_offsets(world, version, "partition twice", topic, at(LATEST), at(EARLIEST))
        list_offsets(world, version, "no partitions", topic)
        world.ask("ListOffsets", version, "no topics", topics=[])


def listing_epochs(world: World) -> None:
    topic = filled(world)
    for version in (4, 5, 7):
        for epoch in (-1, 0, 1, 9, -3):
            list_offsets(world, version, f"epoch {epoch}", topic, at(LATEST, current_leader_epoch=epoch))


def listing_as(world: World) -> None:
    topic = filled(world)
    for level in (0, 1, 2):
        list_offsets(world, 7, f"isolation {level}", topic, at(LATEST), isolation_level=level)
    for replica in (-1, -2, 0, 1, 5):
        list_offsets(world, 7, f"replica {replica}", topic, at(LATEST), replica_id=replica)


def delete_records(world: World, version: int, note: str, topic: Topic, offset: int, partition: int = 0) -> None:
    cut = {"name": topic.name, "partitions": [{"partition_index": partition, "offset": offset}]}
    world.ask("DeleteRecords", version, note, topics=[cut], timeout_ms=5_000)


def deleting(world: World) -> None:
    for version in versions("DeleteRecords"):
        topic = filled(world, f"v{version}")
        for offset in (0, 2, 2, 1, 10, 100, -2, -5, 4, -1, -1):
            delete_records(world, version, f"to {offset}", topic, offset)
        delete_records(world, version, "unknown partition", topic, 0, 5)
        delete_records(world, version, "unknown topic", NOWHERE, 0)
        list_offsets(world, 7, "first left", topic, at(EARLIEST))


def reading_what_was_deleted(world: World) -> None:
    topic = filled(world)
    delete_records(world, 2, "to the middle of a batch", topic, 4)
    for offset in (0, 3, 4, 5, 6):
        fetch(world, 12, f"offset {offset}", wanted(topic, {"fetch_offset": offset}))
    for timestamp in (EARLIEST, EARLIEST_LOCAL, LARGEST, NOW_MS, NOW_MS + 10, NOW_MS + 11, 0):
        list_offsets(world, 7, f"timestamp {timestamp - NOW_MS if timestamp > 0 else timestamp}", topic, at(timestamp))


def deleting_nothing(world: World) -> None:
    topic = filled(world)
    for version in versions("DeleteRecords"):
        world.ask("DeleteRecords", version, "no topics", topics=[], timeout_ms=1_000)
        world.ask(
            "DeleteRecords", version, "no partitions", topics=[{"name": topic.name, "partitions": []}], timeout_ms=1_000
        )
    compacted = world.topic("compacted", configs={"cleanup.policy": "compact"})
    delete_records(world, 2, "compacted", compacted, 0)
    delete_records(world, 2, "invalid name", Topic("a/b", b""), 0)


def ends_of_epochs(world: World) -> None:
    topic, empty = filled(world), world.topic("empty")
    for version in versions("OffsetForLeaderEpoch"):
        for current in (-1, 0, 1):
            for epoch in (-1, 0, 1, 100, -5):
                asked = {"partition": 0, "current_leader_epoch": current, "leader_epoch": epoch}
                for one in (topic, empty):
                    world.ask(
                        "OffsetForLeaderEpoch",
                        version,
                        f"current {current} epoch {epoch}",
                        topics=[{"topic": one.name, "partitions": [asked]}],
                    )
        lost = [{"partition": 7, "leader_epoch": 0}, {"partition": -1, "leader_epoch": 0}]
        world.ask(
            "OffsetForLeaderEpoch", version, "unknown partitions", topics=[{"topic": topic.name, "partitions": lost}]
        )
        world.ask(
            "OffsetForLeaderEpoch", version, "unknown topic", topics=[{"topic": NOWHERE.name, "partitions": lost}]
        )
        world.ask("OffsetForLeaderEpoch", version, "no partitions", topics=[{"topic": topic.name, "partitions": []}])
        world.ask("OffsetForLeaderEpoch", version, "nothing", topics=[])
        world.ask("OffsetForLeaderEpoch", version, "as a replica", topics=[], replica_id=1)


SCENARIOS = (
    special_timestamps,
    moments,
    out_of_order_moments,
    moments_of_append_time,
    without_timestamps,
    listing_nowhere,
    listing_epochs,
    listing_as,
    deleting,
    reading_what_was_deleted,
    deleting_nothing,
    ends_of_epochs,
)
