"""Produce: batches that are wrong, odd, or at odds with their topic."""

from __future__ import annotations

import struct

from tests.differential import batches
from tests.differential.batches import batch, old_message, record, varint
from tests.differential.scenarios.produce import end_offset, send, stored
from tests.differential.world import NOW_MS, World

HOUR_MS = 3_600_000


def damaged(world: World) -> None:
    topic = world.topic("t")
    two = [b"one", b"two"]
    honest = batch(two, timestamp=NOW_MS)
    damages = {
        "wrong crc": batch(two, timestamp=NOW_MS, flip_crc=0xFF),
        "size 1 short": batch(two, timestamp=NOW_MS, size_delta=-1),
        "size 1 over": batch(two, timestamp=NOW_MS, size_delta=1),
        "size 10 over": batch(two, timestamp=NOW_MS, size_delta=10),
        "size huge": honest[:8] + struct.pack(">i", 0x7FFFFFFF) + honest[12:],
        "size negative": honest[:8] + struct.pack(">i", -1) + honest[12:],
        "size zero": honest[:8] + struct.pack(">i", 0) + honest[12:],
        "size of a header less one": honest[:8] + struct.pack(">i", 48) + honest[12:],
        "torn second batch": honest + honest[:30],
        "garbage after": honest + b"garbage",
        "garbage": b"\x99" * 80,
        "crc of the second batch": honest + batch(two, timestamp=NOW_MS, flip_crc=1),
    }
    for what, records in damages.items():
        send(world, 9, what, topic, records)
    send(world, 3, "wrong crc", topic, damages["wrong crc"])
    end_offset(world, topic)


def each_alone(world: World, cases: dict[str, bytes]) -> None:
    """A partition for each, so that a batch which only one broker takes does not move the offsets of the others."""
    topic = world.topic("t", partitions=len(cases))
    for partition, (what, records) in enumerate(cases.items()):
        send(world, 9, what, topic, records, partition=partition)


def lying_counts(world: World) -> None:
    two = [b"one", b"two"]
    cases: dict[str, bytes] = {}
    for codec in (batches.NONE, batches.GZIP):
        for count in (0, 1, 3, -1, 0x7FFFFFFF):
            cases[f"count {count}, codec {codec}"] = batch(two, timestamp=NOW_MS, count=count, codec=codec)
        for last in (0, 2, -1, 0x7FFFFFFF):
            lying = batch(two, timestamp=NOW_MS, last_offset_delta=last, codec=codec)
            cases[f"last offset delta {last}, codec {codec}"] = lying
        both = batch(two, timestamp=NOW_MS, last_offset_delta=5, count=6, codec=codec)
        cases[f"count and delta agree on six, codec {codec}"] = both
    cases["no records"] = batch([], timestamp=NOW_MS)
    cases["no records, one counted"] = batch([], timestamp=NOW_MS, count=1, last_offset_delta=0)
    each_alone(world, cases)


def lying_records(world: World) -> None:
    """Uncompressed, so that a broker which trusts the client may never look; and compressed."""
    one = record(b"one")
    lies = {
        "record longer than the batch": varint(500) + one[1:],
        "record size negative": varint(-5) + one[1:],
        "record size too small": varint(2) + one[1:],
        "header count negative": record(b"one", header_count=-1),
        "header count beyond": record(b"one", header_count=3),
        "header key null": record(b"one", headers=[])[:-1] + varint(1) + varint(-1) + varint(0),
        "offset delta 5": record(b"one", offset_delta=5),
        "offset delta negative": record(b"one", offset_delta=-1),
        "record attributes": record(b"one", attributes=7),
        "bytes behind the record": one + b"more",
    }
    each_alone(
        world,
        {
            f"{what}, codec {codec}": batch([b"one"], timestamp=NOW_MS, raw=raw, codec=codec)
            for what, raw in lies.items()
            for codec in (batches.NONE, batches.LZ4)
        },
    )


def foreign_formats(world: World) -> None:
    topic = world.topic("t")
    for version in (3, 9, 13):
        for magic in (0, 1):
            send(world, version, f"magic {magic}", topic, old_message(b"old", magic=magic, timestamp=NOW_MS))
        for magic in (3, -1):
            send(world, version, f"magic {magic}", topic, batch([b"x"], timestamp=NOW_MS, magic=magic))
    end_offset(world, topic)


def foreign_codecs(world: World) -> None:
    cases = {f"codec {codec}": batch([b"x"], timestamp=NOW_MS, codec=codec) for codec in (5, 6, 7)}
    for codec in (batches.GZIP, batches.SNAPPY, batches.LZ4, batches.ZSTD):
        cases[f"not what codec {codec} writes"] = batch([b"x"], timestamp=NOW_MS, raw=b"x", attributes=codec)
    each_alone(world, cases)


def reserved_bits(world: World) -> None:
    topic = world.topic("t")
    marker = record(struct.pack(">hi", 0, 0), key=struct.pack(">hh", 0, 1))
    for version in (3, 9, 11, 12, 13):
        send(world, version, "control batch", topic, batch([b"x"], timestamp=NOW_MS, attributes=batches.CONTROL))
        abort = batch(
            [b"x"],
            timestamp=NOW_MS,
            attributes=batches.CONTROL | batches.TRANSACTIONAL,
            raw=marker,
            producer=(5, 0, -1),
        )
        send(world, version, "marker", topic, abort)
    send(world, 9, "append time bit", topic, batch([b"x"], timestamp=NOW_MS, attributes=batches.LOG_APPEND_TIME))
    send(world, 9, "delete horizon bit", topic, batch([b"x"], timestamp=NOW_MS, attributes=0x40))
    send(world, 9, "unused bit", topic, batch([b"x"], timestamp=NOW_MS, attributes=0x80))
    send(
        world, 9, "base offset and leader epoch", topic, batch([b"x"], timestamp=NOW_MS, base_offset=77, leader_epoch=9)
    )
    send(world, 9, "sequence without a producer", topic, batch([b"x"], timestamp=NOW_MS, producer=(-1, -1, 5)))
    send(world, 9, "epoch without a producer", topic, batch([b"x"], timestamp=NOW_MS, producer=(-1, 3, -1)))
    stored(world, topic)


def several_batches(world: World) -> None:
    topic = world.topic("t")
    pair = batch([b"a"], timestamp=NOW_MS) + batch([b"b"], timestamp=NOW_MS)
    for version in (3, 9, 13):
        send(world, version, "two batches", topic, pair)
    stored(world, topic)


def timestamps(world: World) -> None:
    usual = world.topic("usual")
    bounds = {"message.timestamp.before.max.ms": "10000", "message.timestamp.after.max.ms": "10000"}
    strict = world.topic("strict", configs=bounds)
    moments = {
        "past": NOW_MS - HOUR_MS,
        "present": NOW_MS + 60_000,
        "future": NOW_MS + 3 * HOUR_MS,
        "none": -1,
        "odd": -5,
    }
    for what, moment in moments.items():
        for version in (3, 9):
            send(world, version, f"{what}, usual", usual, batch([b"x"], timestamp=moment))
            send(world, version, f"{what}, strict", strict, batch([b"x"], timestamp=moment))
    lying = batch([b"x", b"y"], timestamp=NOW_MS, max_timestamp=NOW_MS + 500)
    send(world, 9, "max timestamp beyond the records", usual, lying)
    lying = batch([b"x", b"y"], timestamp=NOW_MS, max_timestamp=NOW_MS - 500)
    send(world, 9, "max timestamp before the records", usual, lying)
    end_offset(world, usual)
    end_offset(world, strict)


def timestamps_at_odds(world: World) -> None:
    """The header says that all is well, a record in it lies in the future."""
    mixed = record(b"x") + record(b"y", offset_delta=1, timestamp_delta=3 * HOUR_MS)
    each_alone(world, {"second record from the future": batch([b"x", b"y"], timestamp=NOW_MS, raw=mixed)})


def append_time(world: World) -> None:
    topic = world.topic("t", configs={"message.timestamp.type": "LogAppendTime"})
    for version in (3, 9, 13):
        for codec in (batches.NONE, batches.ZSTD):
            if codec and version < 7:
                continue
            send(world, version, f"codec {codec}", topic, batch([b"x", b"y"], timestamp=NOW_MS - HOUR_MS, codec=codec))
    stored(world, topic)


def compacted(world: World) -> None:
    for policy in ("compact", "compact,delete"):
        topic = world.topic(policy.replace(",", "-"), configs={"cleanup.policy": policy})
        keyed = record(b"value", key=b"key") + record(None, key=b"key", offset_delta=1)
        mixed = record(b"value", key=b"key") + record(b"value", offset_delta=1)
        for version in (3, 7, 8, 9, 13):
            send(world, version, "keyed", topic, batch([b"", b""], timestamp=NOW_MS, raw=keyed))
            send(world, version, "keyless", topic, batch([b"x"], timestamp=NOW_MS))
            send(world, version, "one keyless of two", topic, batch([b"", b""], timestamp=NOW_MS, raw=mixed))
        send(world, 9, "keyless compressed", topic, batch([b"x"], timestamp=NOW_MS, codec=batches.SNAPPY))
        stored(world, topic)


def compression_of_the_topic(world: World) -> None:
    for kind in ("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"):
        topic = world.topic(kind, configs={"compression.type": kind})
        for codec in (batches.NONE, batches.GZIP, batches.SNAPPY, batches.LZ4, batches.ZSTD):
            send(world, 9, f"{codec} into {kind}", topic, batch([b"a" * 50, b"b"], timestamp=NOW_MS, codec=codec))
        two = batch([b"a"], timestamp=NOW_MS) + batch([b"b"], timestamp=NOW_MS)
        send(world, 9, f"two batches into {kind}", topic, two)
        stored(world, topic)


SCENARIOS = (
    damaged,
    lying_counts,
    lying_records,
    foreign_formats,
    foreign_codecs,
    reserved_bits,
    several_batches,
    timestamps,
    timestamps_at_odds,
    append_time,
    compacted,
    compression_of_the_topic,
)
