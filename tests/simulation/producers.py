"""A transactional producer of either protocol, which tries again, gives up and goes on as real ones do."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from moldau.broker.handlers.add_offsets_to_txn import add_offsets_to_txn
from moldau.broker.handlers.add_partitions_to_txn import add_partitions_to_txn
from moldau.broker.handlers.end_txn import end_txn
from moldau.broker.handlers.init_producer_id import init_producer_id
from moldau.broker.handlers.produce import produce
from moldau.broker.handlers.txn_offset_commit import txn_offset_commit
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.wire.batch import TRANSACTIONAL, Record, build_batch
from moldau.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from moldau.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from moldau.wire.messages.end_txn import EndTxnRequest
from moldau.wire.messages.init_producer_id import InitProducerIdRequest
from moldau.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.simulation.network import Lost
from tests.simulation.node import handled

if TYPE_CHECKING:
    from collections.abc import Callable

    from moldau.broker.context import Services
    from tests.simulation.world import AnyMember, World

BACKOFF_S = 0.05

_AGAIN = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
_FENCED = frozenset(
    {ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_ID_MAPPING}
)
_ABORT = frozenset(
    {
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.REBALANCE_IN_PROGRESS,
    }
)


class Fenced(Exception):
    """Somebody else has the transactional id, or its time was up: only a new epoch helps."""


class MustAbort(Exception):
    """The transaction can't be committed any more."""

    def __init__(self, error: ErrorCode | None = None) -> None:
        super().__init__(error)
        self.error = error


class Producer:
    def __init__(self, world: World, transactional_id: str, *, is_second: bool, timeout_ms: int) -> None:
        self.transactional_id = transactional_id
        self.is_second = is_second
        self.producer_id = -1
        self.epoch = -1
        self._world = world
        self._timeout_ms = timeout_ms
        self._sequences: dict[TopicPartition, int] = {}
        self._added: set[TopicPartition | str] = set()
        self._is_in_doubt = False

    async def init(self) -> None:
        """A new epoch, which fences everybody before."""
        self.producer_id, self.epoch = -1, -1
        await self._init()

    async def _init(self) -> None:
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=self._timeout_ms,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
        )
        reply = await self._ask(handled(init_producer_id, request, 5), lambda reply: reply.error_code)
        self._become(reply.producer_id, reply.producer_epoch)

    def _become(self, producer_id: int, epoch: int) -> None:
        self._added.clear()
        self._is_in_doubt = False
        if (producer_id, epoch) != (self.producer_id, self.epoch):
            self.producer_id, self.epoch = producer_id, epoch
            self._sequences.clear()
            other = self._world.producers.setdefault((producer_id, epoch), self)
            if other is not self:
                self._world.violate(f"epoch {epoch} of {producer_id} is given to two who use {self.transactional_id}")

    async def produce(self, partition: TopicPartition, values: Sequence[str]) -> None:
        if not self.is_second and partition not in self._added:
            await self._add(partition)
        self._added.add(partition)
        first = self._sequences.get(partition, 0)
        now_ms = self._world.now_ms()
        batch = build_batch(
            [Record(index, now_ms, None, value.encode()) for index, value in enumerate(values)],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=first,
            attributes=TRANSACTIONAL,
        )

        def serve(services: Services) -> Any:
            data = PartitionProduceData(partition.partition, memoryview(bytearray(batch)))
            request = ProduceRequest(
                transactional_id=self.transactional_id,
                acks=-1,
                topic_data=[TopicProduceData(name=partition.topic, partition_data=[data])],
            )
            return handled(produce, request, 12 if self.is_second else 11)(services)

        await self._ask(
            serve, lambda reply: reply.responses[0].partition_responses[0].error_code, lingers=True, gives_up=True
        )
        self._sequences[partition] = first + len(values)

    async def _add(self, partition: TopicPartition) -> None:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(partition.topic, [partition.partition])],
        )
        await self._ask(
            handled(add_partitions_to_txn, request, 3),
            lambda reply: reply.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code,
        )

    async def send_offsets(
        self, group_id: str, topic: str, offsets: Mapping[int, int], *, member: AnyMember | None
    ) -> None:
        """Without a member the transactional id alone fences."""
        if not self.is_second and group_id not in self._added:
            request = AddOffsetsToTxnRequest(self.transactional_id, self.producer_id, self.epoch, group_id)
            await self._ask(handled(add_offsets_to_txn, request, 3), lambda reply: reply.error_code)
        self._added.add(group_id)
        partitions = [TxnOffsetCommitRequestPartition(index, offset) for index, offset in offsets.items()]
        committing = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            generation_id=-1 if member is None else member.generation,
            member_id="" if member is None else member.member_id,
            group_instance_id=None if member is None else member.instance_id,
            topics=[TxnOffsetCommitRequestTopic(topic, partitions)],
        )
        await self._ask(
            handled(txn_offset_commit, committing, 5 if self.is_second else 3),
            lambda reply: reply.topics[0].partitions[0].error_code,
            lingers=self.is_second,
        )

    async def end(self, *, is_commit: bool) -> None:
        if not self._added:
            return
        request = EndTxnRequest(self.transactional_id, self.producer_id, self.epoch, is_commit)
        is_in_doubt = self._is_in_doubt
        # A late EndTxn of the first protocol could end the next transaction: that is what the second is for.
        reply = await self._ask(
            handled(end_txn, request, 5 if self.is_second else 4),
            lambda reply: reply.error_code,
            lingers=self.is_second,
        )
        if self.is_second:
            self._become(reply.producer_id, reply.producer_epoch)
        else:
            self._added.clear()
            if is_in_doubt:
                await self._init()

    async def _ask(
        self,
        serve: Callable[[Services], Any],
        error_of: Callable[[Any], int],
        *,
        lingers: bool = False,
        gives_up: bool = False,
    ) -> Any:
        """Ask until there is an answer that means something."""
        while True:
            try:
                reply = await self._world.network.call(serve, lingers=lingers)
            except Lost:
                if gives_up and self._world.random.random() < 0.2:
                    self._is_in_doubt = True
                    raise MustAbort from None
                await asyncio.sleep(BACKOFF_S)
                continue
            error = ErrorCode(error_of(reply))
            if error is ErrorCode.NONE:
                return reply
            if error in _FENCED:
                raise Fenced(error)
            if error in _ABORT:
                self._is_in_doubt = True
                raise MustAbort(error)
            if error not in _AGAIN:
                self._world.violate(f"{self.transactional_id} was told {error.name}")
            await asyncio.sleep(BACKOFF_S)
