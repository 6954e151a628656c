"""Changes of the ISR on their way from a leader to the controller (AlterPartition, KIP-497).

All changes that wait go in one request, and one request is under way at a time. A change is asked for until the
controller has answered, or the image of the cluster has made it void.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from moldau.core.clock import Clock
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicId
from moldau.core.repeated_line import RepeatedLine
from moldau.replication.assignment import Assignment, IsrChange
from moldau.replication.channel import ChannelError
from moldau.replication.partition import Partition
from moldau.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    IsrOfPartition,
    IsrOfTopic,
    PartitionData,
)

LOGGER = logging.getLogger(__name__)

ALTER_PARTITION_VERSION = 3
NAMED_MAX = 10  # partitions in one line of the log
RETRY_MS = 50  # Kafka's, after an answer that is none; the channel has pauses of its own

Ask: TypeAlias = Callable[[AlterPartitionRequest], Awaitable[AlterPartitionResponse]]
"""The controller's answer; ChannelError when there is none."""


class IsrChanges:
    """Owned by one event loop. It has a task only while there is something to ask for."""

    def __init__(self, ask: Ask, *, broker_id: int, broker_epoch: Callable[[], int], clock: Clock) -> None:
        self._ask = ask
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._clock = clock
        self._waiting: dict[Partition, IsrChange] = {}
        self._unsaid: dict[Partition, IsrChange] = {}
        self._task: asyncio.Task[None] | None = None
        self._unanswered = RepeatedLine(LOGGER, logging.WARNING)

    def submit(self, partition: Partition, change: IsrChange) -> None:
        self._waiting[partition] = self._unsaid[partition] = change
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="isr-changes")

    def shrink(self, partitions: Iterable[Partition]) -> None:
        """Take out of the ISR who lags for too long; to be called twice within `replica.lag.time.max.ms`."""
        now_ms = self._clock.elapsed_ms()
        for partition in partitions:
            if partition.replicas is not None and (change := partition.shrink_isr(now_ms)) is not None:
                self.submit(partition, change)

    async def stop(self) -> None:
        self._waiting.clear()
        self._unsaid.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        try:
            while self._waiting:
                if not await self._try():
                    await asyncio.sleep(RETRY_MS / 1000)
        finally:
            self._task = None

    async def _try(self) -> bool:
        try:
            return await self._turn()
        except Exception as wrong:  # a fault of ours must not leave a change under way for ever
            self._unanswered.say("the controller can't be asked to change an ISR", exc_info=wrong)
            return False

    async def _turn(self) -> bool:
        """One request with all that waits; False when it is to be sent again."""
        asked = {partition: change for partition, change in self._waiting.items() if is_wanted(partition, change)}
        self._waiting = dict(asked)
        self._say_new(asked)
        if not asked:
            return True
        try:
            response = await self._ask(alter_partition(asked, self._broker_id, self._broker_epoch()))
        except ChannelError as wrong:
            self._unanswered.say(f"the controller can't be asked to change an ISR: {wrong}")
            return False
        if response.error_code != ErrorCode.NONE:
            reason = ErrorCode(response.error_code).name
            self._unanswered.say(f"the controller does not change an ISR for this broker: {reason}")
            return False
        return self._answered(asked, response)

    def _say_new(self, asked: Mapping[Partition, IsrChange]) -> None:
        """A broker that comes or goes changes thousands of ISRs, and one line tells of all."""
        new = [
            f"{partition.log.partition} {members(change)}"
            for partition, change in self._unsaid.items()
            if asked.get(partition) is change
        ]
        self._unsaid.clear()
        if new:
            LOGGER.info("asking for the ISRs of %d partitions: %s", len(new), some_of(new))

    def _answered(self, asked: Mapping[Partition, IsrChange], response: AlterPartitionResponse) -> bool:
        results = {(topic.topic_id, row.partition_index): row for topic in response.topics for row in topic.partitions}
        is_done = True
        refused: list[str] = []
        for partition, change in asked.items():
            result = results.get((partition.topic_id, partition.index))
            is_again = result is None or self._settle(partition, change, result)
            if result is not None and result.error_code != ErrorCode.NONE and not is_again:
                refused.append(f"{partition.log.partition} {ErrorCode(result.error_code).name}")
            if not is_again and self._waiting.get(partition) is change:
                del self._waiting[partition]
            is_done = is_done and not is_again
        if refused:
            LOGGER.info("the ISRs of %d partitions stay as they are: %s", len(refused), some_of(refused))
        if not is_done:
            self._unanswered.say("the controller did not change an ISR yet; it is asked again")
        return is_done

    def _settle(self, partition: Partition, change: IsrChange, result: PartitionData) -> bool:
        """True to ask again."""
        if result.error_code != ErrorCode.NONE:
            return partition.isr_refused(change, ErrorCode(result.error_code))
        replicas = partition.replicas
        if replicas is not None and result.leader_epoch == partition.leader_epoch:
            agreed = Assignment(replicas.assigned, frozenset(result.isr), result.partition_epoch)
            partition.isr_changed(change, agreed, now_ms=self._clock.elapsed_ms())
        return False


def members(change: IsrChange) -> str:
    return f"({', '.join(str(each.broker_id) for each in change.isr)})"


def some_of(lines: Sequence[str]) -> str:
    """As many as a line of the log has room for."""
    more = f" and {len(lines) - NAMED_MAX} more" if len(lines) > NAMED_MAX else ""
    return ", ".join(lines[:NAMED_MAX]) + more


def is_wanted(partition: Partition, change: IsrChange) -> bool:
    """Whether a change was not overtaken by an image, or by a role that ended."""
    return partition.replicas is not None and partition.replicas.pending is change


def alter_partition(asked: Mapping[Partition, IsrChange], broker_id: int, broker_epoch: int) -> AlterPartitionRequest:
    topics: dict[bytes, IsrOfTopic] = {}
    for partition, change in asked.items():
        topic = topics.setdefault(partition.topic_id, IsrOfTopic(topic_id=TopicId(partition.topic_id), partitions=[]))
        members = [
            BrokerState(broker_id=each, broker_epoch=broker_epoch if each == broker_id else epoch)
            for each, epoch in change.isr
        ]
        topic.partitions.append(
            IsrOfPartition(
                partition_index=partition.index,
                leader_epoch=change.leader_epoch,
                new_isr_with_epochs=members,
                partition_epoch=change.partition_epoch,
            )
        )
    return AlterPartitionRequest(broker_id=broker_id, broker_epoch=broker_epoch, topics=list(topics.values()))
