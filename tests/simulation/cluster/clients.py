"""Producers and consumers of the simulated cluster, which try again and find the leader as real ones do."""

from __future__ import annotations

import asyncio
from collections import deque
from random import Random
from typing import Any, Protocol

from moldau.broker.context import Services
from moldau.core.errors import ErrorCode
from moldau.replication.channel import ChannelError
from moldau.wire.batch import Record, batches, build_batch
from moldau.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from moldau.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from moldau.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.simulation.cluster.history import History
from tests.simulation.cluster.network import CLIENTS, Network
from tests.simulation.cluster.node import handled

ALL, LEADER = -1, 1
PRODUCE_VERSION, FETCH_VERSION, LIST_OFFSETS_VERSION = 12, 12, 9
BACKOFF_S = (0.02, 0.1, 0.3)
ANSWER_S_MAX = 2.0
LATEST = -1

_AGAIN = {
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.OFFSET_NOT_AVAILABLE,
}


class World(Protocol):
    random: Random
    network: Network
    history: History
    topic: str
    brokers: list[int]
    is_calm: bool

    def violate(self, what: str) -> None: ...


class Leaders:
    """What a client knows of who leads: never less than it knew before."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._known: dict[int, tuple[int, int]] = {}  # the epoch and the leader

    def of(self, index: int) -> tuple[int, int]:
        """The leader, -1 if unknown, and its epoch."""
        epoch, leader = self._known.get(index, (-1, -1))
        return leader, epoch

    async def refresh(self) -> None:
        world = self._world
        topic = world.topic

        def look(services: Services) -> Any:
            found = services.controller.image.topics.get(topic)
            return () if found is None else [(each.leader_epoch, each.leader) for each in found.partitions]

        try:
            broker_id = world.random.choice(world.brokers)
            states = await world.network.ask(CLIENTS, broker_id, look, timeout_s=ANSWER_S_MAX)
        except ChannelError:
            return
        for index, state in enumerate(states):
            self._known[index] = max(state, self._known.get(index, (-1, -1)))

    async def back_off(self) -> None:
        await asyncio.sleep(self._world.random.choice(BACKOFF_S))
        await self.refresh()


class Producer:
    """Of one partition. An idempotent one has several requests under way, and what it sends is there once."""

    def __init__(self, world: World, number: int, index: int, *, is_idempotent: bool, acks: int, batches: int) -> None:
        self.index = index
        self.acks = acks
        self.is_idempotent = is_idempotent
        self.is_done = False
        self.acknowledged: list[bytes] = []
        self._world = world
        self.number = number
        self._count = batches
        self._leaders = Leaders(world)
        self._in_flight = world.random.choice([1, 2, 4]) if is_idempotent else 1
        self._sequence = 0

    async def run(self) -> None:
        world, under_way = self._world, deque[asyncio.Task[None]]()
        await self._leaders.refresh()
        for number in range(self._count):
            values = [self._value(number, part) for part in range(world.random.choice([1, 1, 3]))]
            batch, self._sequence = self._batch(values), self._sequence + len(values)
            under_way.append(asyncio.ensure_future(self._deliver(batch, values)))
            if number == 0 or len(under_way) >= self._in_flight:  # the first one alone: only then a sequence is known
                await under_way.popleft()
            if not world.is_calm:
                await asyncio.sleep(world.random.choice([0.0, 0.01, 0.1, 0.5]))
        while under_way:
            await under_way.popleft()
        self.is_done = True

    def _value(self, number: int, part: int) -> bytes:
        kind = "once" if self.is_idempotent else "any"
        return f"{kind} {self.number} {number * 10 + part} {'x' * self._world.random.randrange(40)}".encode()

    def _batch(self, values: list[bytes]) -> bytearray:
        kept = [Record(at, 1_700_000_000_000, None, value) for at, value in enumerate(values)]
        if not self.is_idempotent:
            return build_batch(kept)
        return build_batch(kept, producer_id=1_000 + self.number, producer_epoch=0, base_sequence=self._sequence)

    async def _deliver(self, batch: bytearray, values: list[bytes]) -> None:
        while not await self._try(batch, values):
            await self._leaders.back_off()

    async def _try(self, batch: bytearray, values: list[bytes]) -> bool:
        world = self._world
        leader, _ = self._leaders.of(self.index)
        data = PartitionProduceData(self.index, memoryview(bytearray(batch)))
        request = ProduceRequest(
            acks=self.acks, timeout_ms=1_500, topic_data=[TopicProduceData(name=world.topic, partition_data=[data])]
        )
        try:
            answer = await world.network.ask(CLIENTS, leader, handled(request, PRODUCE_VERSION), timeout_s=ANSWER_S_MAX)
        except ChannelError:
            return False
        row = answer.responses[0].partition_responses[0]
        error = ErrorCode(row.error_code)
        if error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and world.history.has(self.index, values):
            # As in Apache Kafka, a snapshot of producers knows their last batch alone: one that was acknowledged to
            # nobody, and has others after it, is refused when the leader was started again.
            self.acknowledged.extend(values)
            return True
        if error in _AGAIN:
            return False
        if error is not ErrorCode.NONE:
            world.violate(f"producer {self.number} was refused: {error.name} {row.error_message}")
            return True
        if self.acks == ALL:
            self.acknowledged.extend(values)
            world.history.on_acknowledged(self.index, row.base_offset, values)
        return True


class Consumer:
    """Reads one partition from its leader, and now and then from another replica, as it is committed."""

    def __init__(self, world: World, index: int) -> None:
        self.index = index
        self.position = 0
        self._world = world
        self._leaders = Leaders(world)

    async def run(self) -> None:
        world = self._world
        await self._leaders.refresh()
        while True:
            if world.random.random() < 0.1:
                await self._look_at_end()
            if not await self._poll():
                await self._leaders.back_off()

    async def _ask(self, broker_id: int, request: Any, version: int) -> Any:
        try:
            return await self._world.network.ask(CLIENTS, broker_id, handled(request, version), timeout_s=ANSWER_S_MAX)
        except ChannelError:
            return None

    async def _poll(self) -> bool:
        world = self._world
        leader, epoch = self._leaders.of(self.index)
        target = world.random.choice(world.brokers) if world.random.random() < 0.1 else leader
        partition = FetchPartition(
            self.index, epoch, self.position, partition_max_bytes=world.random.choice([200, 9_000])
        )
        request = FetchRequest(
            max_wait_ms=500, min_bytes=1, topics=[FetchTopic(topic=world.topic, partitions=[partition])]
        )
        answer = await self._ask(target, request, FETCH_VERSION)
        if answer is None or not answer.responses:
            return answer is not None
        data = answer.responses[0].partitions[0]
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and target == leader:
            world.violate(f"{self.index}@{self.position} is out of range on its leader, {leader} of epoch {epoch}")
        if data.error_code != ErrorCode.NONE:
            return False
        self._read(memoryview(data.records or b""))
        return True

    def _read(self, view: memoryview) -> None:
        for at, header in batches(view, partial_tail=True):
            if header.next_offset <= self.position:
                continue
            if header.base_offset > self.position:
                self._world.violate(f"{self.index} was read from {header.base_offset} on instead of {self.position}")
            batch = view[at : at + header.length_bytes]
            self._world.history.on_read(self.index, batch, header.base_offset, header.next_offset)
            self.position = header.next_offset

    async def _look_at_end(self) -> None:
        """What a leader calls the end is never before what was read already."""
        leader, epoch = self._leaders.of(self.index)
        partition = ListOffsetsPartition(partition_index=self.index, current_leader_epoch=epoch, timestamp=LATEST)
        request = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(name=self._world.topic, partitions=[partition])]
        )
        position = self.position
        answer = await self._ask(leader, request, LIST_OFFSETS_VERSION)
        if answer is None:
            return
        row = answer.topics[0].partitions[0]
        if row.error_code == ErrorCode.NONE and row.offset < position:
            self._world.violate(f"{self.index} ends at {row.offset} on {leader}, but was read to {position}")
