"""Partitions that this broker has no longer, and the way of their folders out of its log directories."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import msgspec

from moldau.core.ids import TopicId
from moldau.log.maintenance.removal import set_aside
from moldau.log.partition_log import PartitionLog


class Leaving(msgspec.Struct, eq=False):
    """Partitions of a topic that are gone, whose folders have to go, too."""

    name: str
    topic_id: TopicId
    logs: list[PartitionLog]
    tried: asyncio.Event = msgspec.field(default_factory=asyncio.Event)
    is_reported: bool = False


def let_go(logs: list[PartitionLog]) -> Iterator[None]:
    """One after the other: the memory of twenty thousand takes tens of milliseconds to be freed."""
    while logs:
        logs.pop()
        yield


def set_aside_all(logs: list[PartitionLog]) -> tuple[list[str | None], list[tuple[PartitionLog, OSError]]]:
    """The new names of their folders, and those that could not be moved; may run in any thread."""
    moved: list[str | None] = []
    failed: list[tuple[PartitionLog, OSError]] = []
    for stored in logs:
        try:
            moved.append(set_aside(stored.path, stored.partition, stored.topic_id))
        except OSError as wrong:
            failed.append((stored, wrong))
    return moved, failed
