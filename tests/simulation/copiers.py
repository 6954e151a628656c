"""Applications that read, transform and write in transactions, and whoever kills and replaces them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from moldau.broker.handlers.offset_fetch import offset_fetch
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from tests.simulation.members import Replaced
from tests.simulation.network import Lost
from tests.simulation.node import handled
from tests.simulation.pipelines import Pipeline
from tests.simulation.producers import Fenced, MustAbort, Producer

if TYPE_CHECKING:
    from tests.simulation.world import AnyMember, World

BACKOFF_S = 0.1
IDLE_S = 0.5


@dataclass
class Attempted:
    """A transaction as its application sees it."""

    name: str
    values: list[str] = field(default_factory=list)
    asks_for_commit: bool = False


class Copier:
    def __init__(self, world: World, pipeline: Pipeline, producer: Producer, *, place: int, is_static: bool) -> None:
        self.is_replaced = False
        self._world = world
        self._pipeline = pipeline
        self._producer = producer
        self._positions: dict[int, int] | None = None
        self._fixed = [place]
        self._member: AnyMember | None = None
        if pipeline.has_members:
            instance_id = f"copier-{place}" if is_static else None
            self._member = world.new_member(pipeline.group_id, pipeline.source, instance_id)

    async def run(self) -> None:
        try:
            await self._init()
            while not self._world.is_copied(self._pipeline):
                try:
                    await self._turn()
                except Fenced:
                    self._positions = None
                    await self._init()
                except Lost:
                    await asyncio.sleep(BACKOFF_S)
            if self._member is not None:
                await self._member.leave()
        except Replaced:
            # A coordinator that died before the next generation was in its log knows of the last one, in which the
            # place belonged to the id before. Apache Kafka's forgets it the same way; whoever is fenced starts again.
            if not self.is_replaced and not self._world.crashes:
                self._world.violate(f"{self._producer.transactional_id} was fenced, but nobody took its place")
        except Fenced:
            pass  # somebody else has the transactional id

    async def _init(self) -> None:
        """Whoever was replaced may not take the id back, as an operator would not start it again."""
        if self.is_replaced:
            raise Fenced
        await self._producer.init()

    async def _turn(self) -> None:
        if self._member is not None:
            if not self._member.must_join:
                await self._member.beat()
            if self._member.must_join:
                self._positions = None
                await self._member.join()
        if self._positions is None:
            self._positions = await self._committed()
        todo = [
            (partition, offset + ahead)
            for partition, offset in self._positions.items()
            for ahead in range(self._world.random.randint(1, 3))
            if offset + ahead < self._pipeline.records
        ]
        if not todo:
            await asyncio.sleep(IDLE_S)
            return
        try:
            await self._transact(todo)
        except MustAbort as wrong:
            self._positions = None
            await self._give_up(wrong)

    async def _give_up(self, wrong: MustAbort) -> None:
        try:
            await self._producer.end(is_commit=False)
        except MustAbort:
            await self._init()
        of_group = (ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID)
        if self._member is not None and wrong.error in of_group:
            await self._member.refused(wrong.error)

    async def _transact(self, todo: list[tuple[int, int]]) -> None:
        world, pipeline, producer = self._world, self._pipeline, self._producer
        attempted = Attempted(f"{producer.transactional_id}.{world.next_number()}")
        world.attempted.append(attempted)
        for partition, offset in todo:
            value = f"{pipeline.value(partition, offset)} {attempted.name}"
            attempted.values.append(value)
            target = TopicPartition(pipeline.target, world.random.randrange(pipeline.target_count))
            await producer.produce(target, [value])
        await self._dawdle()
        offsets: dict[int, int] = {}
        for partition, offset in todo:
            offsets[partition] = offset + 1
        await producer.send_offsets(pipeline.group_id, pipeline.source, offsets, member=self._member)
        await self._dawdle()
        attempted.asks_for_commit = world.random.random() < 0.8
        await producer.end(is_commit=attempted.asks_for_commit)
        if attempted.asks_for_commit and self._positions is not None:
            self._positions.update(offsets)
        else:
            self._positions = None

    async def _dawdle(self) -> None:
        """Now and then an application stands still for longer than anybody waits for it."""
        if not self._world.is_calm and self._world.random.random() < 0.03:
            await asyncio.sleep(self._world.random.choice([1, 4, 12, 25]))

    async def _committed(self) -> dict[int, int]:
        pipeline = self._pipeline
        partitions = self._fixed if self._member is None else self._member.partitions
        while True:
            found = await fetch_offsets(self._world, pipeline.group_id, pipeline.source, partitions)
            if found is not None:
                return {partition: max(offset, 0) for partition, offset in found.items()}
            await asyncio.sleep(BACKOFF_S)


async def vanish(world: World, transactional_id: str, pipeline: Pipeline, *, is_second: bool) -> None:
    """Begin a transaction that nobody will ever end, or hear of again."""
    await asyncio.sleep(world.random.uniform(0, 30))
    producer = Producer(world, transactional_id, is_second=is_second, timeout_ms=world.random.choice([500, 15_000]))
    attempted = Attempted(transactional_id)
    world.attempted.append(attempted)
    try:
        await producer.init()
        for index in range(pipeline.target_count):
            attempted.values.append(f"{transactional_id}-{index}")
            await producer.produce(TopicPartition(pipeline.target, index), attempted.values[-1:])
        await producer.send_offsets("strangers", pipeline.source, {0: 1}, member=None)
    except (Fenced, MustAbort):
        return


async def fetch_offsets(
    world: World, group_id: str, topic: str, partitions: list[int], *, is_stable: bool = True
) -> dict[int, int] | None:
    """None if they can't be told now."""
    group = OffsetFetchRequestGroup(group_id=group_id, topics=[OffsetFetchRequestTopics(topic, b"", partitions)])
    request = OffsetFetchRequest(groups=[group], require_stable=is_stable)
    reply = await world.network.call(handled(offset_fetch, request, 8))
    answer = reply.groups[0]
    if answer.error_code != ErrorCode.NONE:
        return None
    found = list(answer.topics[0].partitions) if answer.topics else []
    if any(each.error_code != ErrorCode.NONE for each in found):
        return None
    return {each.partition_index: each.committed_offset for each in found}
