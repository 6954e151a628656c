"""The facts of the metadata log and their bytes.

A record is an array whose first item is its tag, so a later version may add fields at the end, each with a default.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from moldau.controller.image import BrokerImage, PartitionImage, TopicImage
from moldau.core.ids import TopicId


class ClusterCreated(msgspec.Struct, frozen=True, array_like=True, tag="cluster"):
    cluster_id: str


class BrokerRegistered(msgspec.Struct, frozen=True, array_like=True, tag="broker"):
    broker: BrokerImage


class TopicCreated(msgspec.Struct, frozen=True, array_like=True, tag="topic"):
    topic: TopicImage


class TopicDeleted(msgspec.Struct, frozen=True, array_like=True, tag="topic-"):
    topic_id: TopicId


class PartitionsAdded(msgspec.Struct, frozen=True, array_like=True, tag="partition+"):
    topic_id: TopicId
    partitions: tuple[PartitionImage, ...]


class PartitionsRemoved(msgspec.Struct, frozen=True, array_like=True, tag="partition-"):
    """The topic has `count` partitions again: those that were added could not be made, and never served."""

    topic_id: TopicId
    count: int


class PartitionChanged(msgspec.Struct, frozen=True, array_like=True, tag="partition"):
    topic_id: TopicId
    index: int
    partition: PartitionImage


class LeadersChanged(msgspec.Struct, frozen=True, array_like=True, tag="leaders"):
    """Partitions of one topic get another leader, or none; the epochs of each grow by one."""

    topic_id: TopicId
    leader: int
    indexes: tuple[int, ...]


class TopicConfigsChanged(msgspec.Struct, frozen=True, array_like=True, tag="topic-config"):
    """A value of None takes the key away."""

    topic_id: TopicId
    changes: dict[str, str | None]


class BrokerConfigsChanged(msgspec.Struct, frozen=True, array_like=True, tag="broker-config"):
    """`broker` is empty for all brokers; a value of None takes the key away."""

    broker: str
    changes: dict[str, str | None]


class GroupConfigsChanged(msgspec.Struct, frozen=True, array_like=True, tag="group-config"):
    """A value of None takes the key away. A group need not exist to be configured."""

    group_id: str
    changes: dict[str, str | None]


class ProducerIdsAllocated(msgspec.Struct, frozen=True, array_like=True, tag="producer-ids"):
    next_producer_id: int


class FeaturesFinalized(msgspec.Struct, frozen=True, array_like=True, tag="features"):
    """All levels that were ever chosen; the epoch grows with every choice."""

    epoch: int
    levels: dict[str, int]


Record = (
    ClusterCreated
    | BrokerRegistered
    | TopicCreated
    | TopicDeleted
    | PartitionsAdded
    | PartitionsRemoved
    | PartitionChanged
    | LeadersChanged
    | TopicConfigsChanged
    | BrokerConfigsChanged
    | GroupConfigsChanged
    | ProducerIdsAllocated
    | FeaturesFinalized
)

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(list[Record])


class UnknownRecord(Exception):
    """Bytes that this version can't read: a newer one wrote them, or they are damaged."""


def encode_records(records: Sequence[Record]) -> bytes:
    return _ENCODER.encode(records)


def decode_records(payload: bytes) -> list[Record]:
    try:
        return _DECODER.decode(payload)
    except msgspec.MsgspecError as wrong:
        raise UnknownRecord(f"a metadata record that this version can't read: {wrong}") from wrong
