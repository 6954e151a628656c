"""Transaction markers on their way into partitions that this broker leads."""

from __future__ import annotations

import asyncio
from asyncio import Future

from moldau.broker.topics.partitions import Partitions
from moldau.coordinator.journal import Flush, TransactionalProducer
from moldau.core.clock import Clock
from moldau.core.errors import ApiError, ErrorCode
from moldau.core.ids import Offset, TopicPartition
from moldau.core.topic_names import GROUP_METADATA_TOPIC
from moldau.groups.coordinator import GroupCoordinator
from moldau.replication.delayed_commit import DelayedCommit
from moldau.replication.partition import Partition
from moldau.transactions.markers_due import MarkersDue, build_marker

COMMIT_MS_MAX = 30_000  # as long as Apache Kafka waits for the replicas; the coordinator tries again then


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
                appended = partition.append_own(
                    memoryview(marker), now_ms=now_ms, transaction_version=due.transaction_version
                )
            except ApiError as wrong:
                return wrong.code
            end_offset = Offset(appended.last_offset + 1)
            if partition.log.must_flush or partition.high_watermark < end_offset:
                answer = asyncio.ensure_future(self._when_committed(partition, end_offset))
        return answer

    async def _when_committed(self, partition: Partition, end_offset: Offset) -> ErrorCode:
        """A marker that only this broker has may be lost with it, and then nobody would write it again.

        `flush.messages` holds for markers too. The fsync is shared, so nobody who goes away may cancel it.
        """
        waiting = DelayedCommit([(partition, end_offset)], timeout_ms=COMMIT_MS_MAX, loop=asyncio.get_running_loop())
        try:
            if partition.log.must_flush:
                await asyncio.shield(self._flush(partition.log))
            (error,) = await waiting.answer
        except (OSError, ApiError):
            return ErrorCode.KAFKA_STORAGE_ERROR
        finally:
            waiting.answer.cancel()
        return error
