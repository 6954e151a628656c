"""Subscriptions and assignments as classic consumers write them for each other, of one topic each."""

from __future__ import annotations

from collections.abc import Sequence

from moldau.groups.classic import consumer_protocol
from moldau.groups.schemas import SHORT
from moldau.wire.codec import encode

VERSION = 1


def subscription(topic: str) -> bytes:
    """Of a client that has given up everything before it joins."""
    return SHORT.pack(VERSION) + encode(consumer_protocol.Subscription([topic]), VERSION)


def read_assignment(assignment: bytes) -> list[int]:
    if not assignment:
        return []
    return [index for each in consumer_protocol.read_assignment(assignment).partitions for index in each.partitions]


def shared_out(members: Sequence[str], topic: str, partition_count: int) -> dict[str, bytes]:
    """As a leader assigns: everybody in turn."""
    return {
        member: consumer_protocol.write_assignment(
            {topic: list(range(at, partition_count, len(members)))}, subscription(topic)
        )
        for at, member in enumerate(sorted(members))
    }
