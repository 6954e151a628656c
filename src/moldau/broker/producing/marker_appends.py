"""Transaction markers on their way into partitions that this broker leads."""

from __future__ import annotations

import asyncio
from asyncio import Future

from moldau.broker.topics.partitions import Partitions
from moldau.coordinator.journal import Flush, TransactionalProducer
from moldau.core.clock import Clock
from moldau.core.errors import ApiError, ErrorCode
from moldau.core.ids import TopicPartition
from moldau.core.topic_names import GROUP_METADATA_TOPIC
from moldau.groups.coordinator import GroupCoordinator
from moldau.log.partition_log import PartitionLog
from moldau.transactions.markers_due import MarkersDue, build_marker


class MarkerAppends:
    def __init__(self, partitions: Partitions, groups: GroupCoordinator, clock: Clock, flush: Flush) -> None:
        self._partitions = partitions
        self._groups = groups
        self._clock = clock
        self._flush = flush

    def write(self, where: TopicPartition, due: MarkersDue, coordinator_epoch: int) -> ErrorCode | Future[ErrorCode]:
        partition = self._partitions.get(where.topic, where.partition)
        if partition is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if not partition.is_leader:
            return partition.refusal
        if where.topic == GROUP_METADATA_TOPIC:
            # The offsets that the transaction committed count, or are forgotten, with the marker.
            answer = self._groups.end_transaction(
                where.partition,
                TransactionalProducer(
                    due.producer.producer_id, due.producer.epoch, transaction_version=due.transaction_version
                ),
                is_commit=due.is_commit,
                coordinator_epoch=coordinator_epoch,
            )
        else:
            answer = ErrorCode.NONE
            now_ms = self._clock.now_ms()
            marker = build_marker(
                due.producer, is_commit=due.is_commit, coordinator_epoch=coordinator_epoch, now_ms=now_ms
            )
            try:
                partition.append_own(memoryview(marker), now_ms=now_ms, transaction_version=due.transaction_version)
            except ApiError as wrong:
                return wrong.code
            if partition.log.must_flush:
                answer = asyncio.ensure_future(self._after_flush(partition.log))
        # Readers of committed records can go on over everything that the transaction held back.
        partition.disturb()
        return answer

    async def _after_flush(self, log: PartitionLog) -> ErrorCode:
        """`flush.messages` holds for markers too. The fsync is shared, so nobody who goes away may cancel it."""
        try:
            await asyncio.shield(self._flush(log))
        except (OSError, ApiError):
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NONE
