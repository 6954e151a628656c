"""Kafka's hash of the topics that a group reads: it differs when one came, went or changed its partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from struct import pack

from moldau.controller.image import BrokerImage, TopicImage
from moldau.core.xxh3 import xxh3_64

_FORMAT = b"\0"
_CACHED_MAX = 4_096  # a topic of many partitions takes a millisecond, and every group that reads it asks


def topic_hash(topic: TopicImage, brokers: Mapping[int, BrokerImage]) -> int:
    high, low = int.from_bytes(topic.id[:8], "big"), int.from_bytes(topic.id[8:], "big")
    parts = [_FORMAT, pack("<QQ", high, low), _text(topic.name), pack("<i", len(topic.partitions))]
    for index, partition in enumerate(topic.partitions):
        racks = [brokers[each].rack for each in partition.replicas if each in brokers]
        parts.append(pack("<i", index))
        parts += [pack("<i", len(rack)) + _text(rack) for rack in sorted(rack for rack in racks if rack is not None)]
    return _hash(b"".join(parts))


def combined_hash(hashes: Sequence[int]) -> int:
    """Of topics in the order of their names; 0 for none."""
    return _hash(pack(f"<{len(hashes)}q", *hashes)) if hashes else 0


def _text(text: str) -> bytes:
    return text.encode("utf-16-le") + pack("<i", len(text))


@lru_cache(maxsize=_CACHED_MAX)
def _hash(data: bytes) -> int:
    return xxh3_64(data)
