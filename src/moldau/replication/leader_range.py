"""Where a leader's log begins and ends, asked by followers that it refused an offset of (ListOffsets)."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from typing import Any, NamedTuple, Protocol

from moldau.core.errors import ErrorCode
from moldau.replication.follower import Follower
from moldau.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from moldau.wire.schema import Message

LIST_OFFSETS_VERSION = 9
LATEST, EARLIEST = -1, -2


class LeaderRange(NamedTuple):
    start_offset: int
    end_offset: int


class Channel(Protocol):
    def ask(self, request: Message, version: int, *, timeout_ms: int) -> Awaitable[Any]: ...


async def ask_ranges(
    channel: Channel, followers: Iterable[Follower], *, replica_id: int, timeout_ms: int
) -> dict[Follower, LeaderRange]:
    """Of those that the leader told both of. A replica hears the log's end, a consumer what is committed."""
    asked = {(each.partition.topic, each.partition.index): each for each in followers}
    ends = await _ask(channel, asked, LATEST, replica_id=replica_id, timeout_ms=timeout_ms)
    starts = await _ask(channel, asked, EARLIEST, replica_id=replica_id, timeout_ms=timeout_ms)
    return {each: LeaderRange(starts[each], ends[each]) for each in ends if each in starts}


async def _ask(
    channel: Channel, asked: dict[tuple[str, int], Follower], timestamp: int, *, replica_id: int, timeout_ms: int
) -> dict[Follower, int]:
    topics: dict[str, ListOffsetsTopic] = {}
    for (name, index), follower in asked.items():
        topic = topics.setdefault(name, ListOffsetsTopic(name=name, partitions=[]))
        topic.partitions.append(
            ListOffsetsPartition(partition_index=index, current_leader_epoch=follower.leader_epoch, timestamp=timestamp)
        )
    request = ListOffsetsRequest(replica_id=replica_id, topics=list(topics.values()))
    response = await channel.ask(request, LIST_OFFSETS_VERSION, timeout_ms=timeout_ms)
    return {
        asked[topic.name, row.partition_index]: row.offset
        for topic in response.topics
        for row in topic.partitions
        if row.error_code == ErrorCode.NONE and row.offset >= 0 and (topic.name, row.partition_index) in asked
    }
