"""Readers: of committed records, as a read_committed consumer; and of a group that commits outside of transactions."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from moldau.broker.handlers.fetch import fetch
from moldau.broker.handlers.offset_commit import offset_commit
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.log.producers.end_transaction_marker import read_marker
from moldau.wire.batch import batches, records
from moldau.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from moldau.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.simulation.copiers import fetch_offsets
from tests.simulation.members import Replaced
from tests.simulation.network import Lost
from tests.simulation.node import handled

if TYPE_CHECKING:
    from tests.simulation.world import World

READ_COMMITTED = 1
CALM_S = 2.0
POLL_S = 0.4
BYTES_MAX = 400  # a few batches, so that one fetch often ends in the middle of a transaction


class CommittedReader:
    """Reads partitions from their beginning, and checks each record against what the log's history says of it."""

    def __init__(self, world: World, partitions: list[TopicPartition]) -> None:
        self.seen: dict[TopicPartition, list[str]] = {each: [] for each in partitions}
        self._world = world
        self._positions = dict.fromkeys(partitions, 0)

    async def run(self) -> None:
        while not self._world.is_over:
            await asyncio.sleep(POLL_S)
            await self.poll()

    async def poll(self) -> bool:
        """Read a little further; whether that was possible anywhere."""
        before = dict(self._positions)
        topics = [
            FetchTopic(
                topic=where.topic,
                partitions=[FetchPartition(where.partition, fetch_offset=offset, partition_max_bytes=BYTES_MAX)],
            )
            for where, offset in before.items()
        ]
        request = FetchRequest(isolation_level=READ_COMMITTED, topics=topics)
        try:
            reply = await self._world.network.call(handled(fetch, request, 12))
        except Lost:
            return False
        for row in reply.responses:
            for data in row.partitions:
                self._read(TopicPartition(row.topic, data.partition_index), data)
        return self._positions != before

    def _read(self, partition: TopicPartition, data: PartitionData) -> None:
        if data.error_code != ErrorCode.NONE:
            self._world.violate(f"a reader of {partition} was told {ErrorCode(data.error_code).name}")
        if data.records is not None and len(data.records):
            self._take(partition, data)

    def _take(self, partition: TopicPartition, data: PartitionData) -> None:
        position = self._positions[partition]
        found = visible(memoryview(data.records.read()), data)  # type: ignore[union-attr]
        history = self._world.history.partitions[partition].written
        for offset, value in found.values.items():
            if offset < position:
                continue
            written = history.get(offset)
            if written is None or written.value != value:
                self._world.violate(f"{partition} {offset} was read as {value}, but written was {written}")
            elif written.is_committed is not True:
                self._world.violate(f"{partition} {offset} was read before it was committed: {written}")
            self.seen[partition].append(value)
        for offset in range(position, found.next_offset):
            written = history.get(offset)
            if written is not None and written.is_committed and offset not in found.values:
                self._world.violate(f"{partition} {offset} was passed over: {written}")
        self._positions[partition] = max(position, found.next_offset)


class Visible:
    __slots__ = ("next_offset", "values")

    def __init__(self) -> None:
        self.values: dict[int, str] = {}
        self.next_offset = 0


def visible(view: memoryview, data: PartitionData) -> Visible:
    """What a consumer gives to its application: it leaves out aborted transactions by the list that it gets."""
    found = Visible()
    to_come = list(data.aborted_transactions or ())
    aborted: set[int] = set()
    for at, header in batches(view, partial_tail=True):
        found.next_offset = header.next_offset
        while to_come and to_come[0].first_offset <= header.last_offset:
            aborted.add(to_come.pop(0).producer_id)
        batch = view[at : at + header.length_bytes]
        if header.is_control:
            marker = read_marker(batch)
            if marker is not None and not marker.is_commit:
                aborted.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in aborted):
            for record in records(batch, decompressed_bytes_max=1 << 20):
                found.values[record.offset] = bytes(record.value or b"").decode()
    return found


class Committer:
    """A member that commits a number of its own for each of its partitions, again and again."""

    def __init__(self, world: World, group_id: str, topic: str) -> None:
        self._world = world
        self._group_id = group_id
        self._topic = topic
        self._member = world.new_member(group_id, topic, None)

    async def run(self) -> None:
        world, member = self._world, self._member
        try:
            while not world.is_over:
                if member.must_join:
                    await member.join()
                    await self._look()
                await self._commit()
                await member.beat()
                await asyncio.sleep(CALM_S if world.is_calm else world.random.choice([0.05, 0.5, 1.5]))
                if not world.is_calm and world.random.random() < 0.06:
                    await asyncio.sleep(10)  # longer than a session lasts
                if not world.is_calm and world.random.random() < 0.02:
                    await member.leave()
            await member.leave()
        except Replaced:
            world.violate("a member without an instance id was replaced")

    async def _look(self) -> None:
        asked = self._world.commits.now()
        try:
            found = await fetch_offsets(self._world, self._group_id, self._topic, self._member.partitions)
        except Lost:
            return
        for partition, offset in (found or {}).items():
            self._world.commits.check((self._group_id, self._topic, partition), offset, asked)

    async def _commit(self) -> None:
        world, member = self._world, self._member
        if not member.partitions:
            return
        is_outdated = member.generation < world.owners.latest.get(self._group_id, -1) or any(
            world.claims.holders.get((self._group_id, index), member.member_id) != member.member_id
            for index in member.partitions
        )
        places = [(self._group_id, self._topic, index) for index in member.partitions]
        attempts = {place: world.commits.begin(place) for place in places}
        request = OffsetCommitRequest(
            group_id=self._group_id,
            generation_id_or_member_epoch=member.generation,
            member_id=member.member_id,
            topics=[
                OffsetCommitRequestTopic(
                    name=self._topic,
                    partitions=[
                        OffsetCommitRequestPartition(place[2], attempt.offset) for place, attempt in attempts.items()
                    ],
                )
            ],
        )
        try:
            reply = await world.network.call(handled(offset_commit, request, 9), lingers=True)
        except Lost:
            return
        errors = [ErrorCode(each.error_code) for each in reply.topics[0].partitions]
        for (place, attempt), error in zip(attempts.items(), errors, strict=True):
            world.commits.end(place, attempt, error, is_outdated=is_outdated)
        if errors[0] is not ErrorCode.NONE:
            await member.refused(errors[0])
