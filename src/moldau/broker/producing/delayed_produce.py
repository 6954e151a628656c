"""What a Produce request leaves to be waited for: coordinators that answer later, fsync, and other replicas."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from moldau.broker.context import Services
from moldau.core.errors import ErrorCode
from moldau.core.ids import Offset
from moldau.core.limits import RECEIVE_BYTES
from moldau.log.errors import LogError
from moldau.log.partition_log import PartitionLog
from moldau.log.producers.producer_state import ProducerStates
from moldau.replication.delayed_commit import DelayedCommit
from moldau.replication.partition import Partition
from moldau.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)


class Admission(NamedTuple):
    """A transaction's coordinator was asked; the guard tells whether its answer still holds here."""

    error: ErrorCode
    guard: object


class Unverified(NamedTuple):
    """The first batch of a transaction to a partition, which may be appended when its coordinator says so."""

    topic: TopicProduceData
    data: PartitionProduceData
    answer: asyncio.Future[ErrorCode]
    producers: ProducerStates
    guard: object
    row: PartitionProduceResponse
    """Stands in the response for the one that comes of it."""


class Uncommitted(NamedTuple):
    """Records of a request with acks=all that other replicas have to have, too."""

    partition: Partition
    end_offset: Offset
    row: PartitionProduceResponse
    leader_epoch: int
    """In which they were appended."""

    @property
    def is_there(self) -> bool:
        """Not if they went with a leadership that was lost, whoever leads by now: others may stand at their offsets."""
        partition, epoch = self.partition, self.leader_epoch
        return partition.leader_epoch == epoch or partition.log.epoch_of(Offset(self.end_offset - 1)) == epoch


class DelayedProduce:
    """Made only for a request that has to wait."""

    __slots__ = ("to_flush", "uncommitted", "unverified")

    def __init__(self) -> None:
        self.to_flush: list[PartitionLog] = []
        self.uncommitted: list[Uncommitted] = []
        self.unverified: list[Unverified] = []

    def own_records(self) -> None:
        """Copy what is appended later: when this turn of the loop is over, the frame's memory is used again."""
        own([unverified.data for unverified in self.unverified])

    def release(self, _: object = None) -> None:
        for unverified in self.unverified:
            unverified.producers.release(unverified.guard)

    async def acknowledged(self, services: Services, timeout_ms: int) -> list[Uncommitted]:
        """Until the disk has what `flush.messages` asks for, and the replicas in sync have everything, or too late.

        Each row has its error then. Gives what could not be acknowledged. Whoever waits hears of a leadership that is
        lost, but a coordinator may have been asked for long before that.
        """
        uncommitted: list[Uncommitted] = []
        failed: list[Uncommitted] = []
        for each in self.uncommitted:
            if each.is_there:
                uncommitted.append(each)
            else:
                each.row.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
                failed.append(each)
        waits = [(each.partition, each.end_offset) for each in uncommitted]
        waiting = DelayedCommit(waits, timeout_ms=timeout_ms, loop=asyncio.get_running_loop())
        try:
            await asyncio.gather(*(services.flusher.flush(log) for log in self.to_flush))
            errors = await waiting.answer
        finally:
            waiting.answer.cancel()
        for each, error in zip(uncommitted, errors, strict=True):
            if error is not ErrorCode.NONE:
                each.row.error_code = error
                failed.append(each)
        return failed


def own(every: list[PartitionProduceData]) -> None:
    """Copy the records of a request that is not answered in this turn of the loop, after which its frame is reused.

    A frame that does not fit into the buffer that all connections share has memory of its own.
    """
    if sum(len(data.records or b"") for data in every) <= RECEIVE_BYTES:
        for data in every:
            if data.records is not None:
                data.records = memoryview(bytearray(data.records))


def not_flushed(topics: list[TopicProduceResponse], wrong: LogError) -> None:
    """Which of them failed is all the same: none of this request may count as stored."""
    message = f"could not be written to disk: {wrong.message}"
    for row in (each for topic in topics for each in topic.partition_responses):
        if row.error_code == ErrorCode.NONE:
            row.error_code, row.error_message = ErrorCode.KAFKA_STORAGE_ERROR, message
            row.base_offset = -1
