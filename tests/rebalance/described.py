"""What the broker says about a group, asked and decoded by Apache Kafka's own schemas."""

from __future__ import annotations

import struct
import time
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from tests.differential.peer import Peer
from tests.rebalance.ownership import Partition

OFFSETS_TOPIC = "__consumer_offsets"
READ_S_MAX = 10.0
GROUP_METADATA_KEY = 2  # the version that begins the key of a classic group's record


@dataclass(frozen=True, slots=True)
class Described:
    state: str
    assignor: str
    assignments: dict[str, frozenset[Partition]]
    epoch: int | None = None


def describe(bootstrap: str, group: str, *, protocol: str) -> Described:
    """The group with the partitions of each member, members by client id."""
    if protocol == "consumer":
        found = ask(bootstrap, "ConsumerGroupDescribe", 1, group_ids=[group])["groups"][0]
        members = {
            each["client_id"]: frozenset(
                (topic["topic_name"], index)
                for topic in each["assignment"]["topic_partitions"]
                for index in topic["partitions"]
            )
            for each in found["members"]
        }
        return Described(found["group_state"], found["assignor_name"], members, found["group_epoch"])
    found = ask(bootstrap, "DescribeGroups", 5, groups=[group])["groups"][0]
    members = {each["client_id"]: assigned(each["member_assignment"]) for each in found["members"]}
    return Described(found["group_state"], found["protocol_data"], members)


def ask(bootstrap: str, api: str, version: int, **fields: object) -> dict[str, Any]:
    host, port = bootstrap.split(":")
    with closing(Peer((host, int(port)))) as peer:
        answer = peer.ask(api, version, **fields)
    assert not isinstance(answer, str), f"{api}: {answer}"
    return answer


def assigned(data: bytes) -> frozenset[Partition]:
    """The partitions of a consumer's assignment: a version, then topics with the indexes of their partitions."""
    if not data:
        return frozenset()
    found: list[Partition] = []
    (topics,) = struct.unpack_from(">i", data, 2)
    at = 6
    for _ in range(topics):
        (size,) = struct.unpack_from(">h", data, at)
        topic = data[at + 2 : at + 2 + size].decode()
        at += 2 + size
        (count,) = struct.unpack_from(">i", data, at)
        found += [(topic, index) for index in struct.unpack_from(f">{count}i", data, at + 4)]
        at += 4 + 4 * count
    return frozenset(found)


def logged_generation(bootstrap: str, group: str) -> int:
    """The generation in the newest record of a classic group; DescribeGroups does not tell it."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "check.crcs": True})
    try:
        count = len(consumer.list_topics(OFFSETS_TOPIC, timeout=READ_S_MAX).topics[OFFSETS_TOPIC].partitions)
        place = TopicPartition(OFFSETS_TOPIC, place_of(group, count), 0)
        _, end = consumer.get_watermark_offsets(place, timeout=READ_S_MAX)  # members go on committing behind it
        consumer.assign([place])
        generation, at, deadline = -1, -1, time.monotonic() + READ_S_MAX
        while at < end - 1:
            assert time.monotonic() < deadline, f"read {at + 1} of the {end} records of {place}"
            for message in consumer.consume(1_000, timeout=0.1):
                at = message.offset()
                if is_group(message.key(), group) and message.value() is not None:
                    generation = generation_in(message.value())
        return generation
    finally:
        consumer.close()


def place_of(group: str, partitions: int) -> int:
    """The partition by Java's hash of a string without its sign."""
    hashed = 0
    for character in group:
        hashed = (31 * hashed + ord(character)) & 0xFFFFFFFF
    return (hashed & 0x7FFFFFFF) % partitions


def is_group(key: bytes, group: str) -> bool:
    return struct.unpack_from(">h", key)[0] == GROUP_METADATA_KEY and key[4:] == group.encode()


def generation_in(value: bytes) -> int:
    """A version, the protocol type, then the generation."""
    (size,) = struct.unpack_from(">h", value, 2)
    return int(struct.unpack_from(">i", value, 4 + size)[0])
