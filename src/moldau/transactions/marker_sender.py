"""Writing the markers of one shard's transactions, from the moment that they are due until every partition has them."""

from __future__ import annotations

import asyncio
import logging
from asyncio import Future
from collections.abc import Callable, Collection
from typing import Any, TypeAlias

from moldau.coordinator.runtime import Runtime
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.transactions.markers_due import MarkersDue, Outcome, outcome_of
from moldau.transactions.shard import TransactionShard

WRITTEN_AT_ONCE_MAX = 100  # markers, in some milliseconds
RETRY_INTERVAL_S = 0.1  # Kafka's: a leader that isn't ready is usually starting

LOGGER = logging.getLogger(__name__)

# Writes the marker that is due to a partition, under a coordinator's epoch. A partition that is gone needs none.
WriteMarker: TypeAlias = Callable[[TopicPartition, MarkersDue, int], "ErrorCode | Future[ErrorCode]"]


class MarkerSender:
    """It waits for outcomes by asking its shard, which answers when there is one and it is committed."""

    __slots__ = ("_abandoned", "_coordinator_epoch", "_retries", "_runtime", "_write_marker")

    def __init__(
        self, runtime: Runtime[TransactionShard], *, coordinator_epoch: int, write_marker: WriteMarker
    ) -> None:
        self._runtime = runtime
        self._coordinator_epoch = coordinator_epoch
        self._write_marker = write_marker
        self._retries: dict[str, asyncio.Task[None]] = {}  # by transactional id
        self._abandoned: set[str] = set()

    async def run(self) -> None:
        try:
            # What a stopped runtime holds may never have reached the log, so nobody may hear of it.
            while not self._runtime.is_stopped and (dues := await self._next()) is not None:
                for due in dues:
                    await self._mark(due)
        finally:
            for retry in self._retries.values():
                retry.cancel()

    async def _next(self) -> tuple[MarkersDue, ...] | None:
        """None when another coordinator takes over."""
        answer: Any = self._runtime.write(
            lambda shard, _: shard.decide_next_markers(self._retries.keys() | self._abandoned), lambda _: None
        )
        dues: tuple[MarkersDue, ...] | None = await answer if isinstance(answer, Future) else answer
        return dues

    async def _mark(self, due: MarkersDue) -> None:
        left = await self._attempt(due, due.partitions)
        if left:
            # The others must not wait for a partition that may be away for long.
            retry = self._retry(due, left)
            self._retries[due.transactional_id] = asyncio.get_running_loop().create_task(retry, name="markers again")

    async def _retry(self, due: MarkersDue, left: Collection[TopicPartition]) -> None:
        while left and not self._runtime.is_stopped:
            await asyncio.sleep(RETRY_INTERVAL_S)
            left = await self._attempt(due, left)
        del self._retries[due.transactional_id]

    def _write(self, partition: TopicPartition, due: MarkersDue) -> ErrorCode | Future[ErrorCode]:
        try:
            return self._write_marker(partition, due, self._coordinator_epoch)
        except Exception as wrong:
            return _unexpected(partition, due, wrong)

    async def _attempt(self, due: MarkersDue, partitions: Collection[TopicPartition]) -> list[TopicPartition]:
        """Write what can be written; gives the partitions to try again, and completes the transaction if none is.

        All are written before any is waited for: where `flush.messages` asks for it they are synced together.
        """
        answers: dict[TopicPartition, ErrorCode | Future[ErrorCode]] = {}
        for number, partition in enumerate(sorted(partitions), start=1):
            if number % WRITTEN_AT_ONCE_MAX == 0:
                await asyncio.sleep(0)  # most are written without waiting for anything, which leaves others no turn
            answer = answers[partition] = self._write(partition, due)
            if isinstance(answer, ErrorCode) and outcome_of(answer) is Outcome.GIVE_UP:
                break
        left: list[TopicPartition] = []
        for partition, answer in answers.items():
            error = await _answered(answer, partition, due)
            outcome = outcome_of(error)
            if outcome is Outcome.GIVE_UP:
                # Whoever fenced us writes the markers; the outcome stays in the log for whoever leads it next.
                LOGGER.warning("the marker of %s for %s was refused: %s", due.transactional_id, partition, error.name)
                self._abandoned.add(due.transactional_id)
                return []
            if outcome is Outcome.RETRY:
                left.append(partition)
        if not left and not self._runtime.is_stopped:
            self._runtime.write(lambda shard, now_ms: shard.decide_markers_written(due, now_ms), lambda error: error)
        return left


async def _answered(answer: ErrorCode | Future[ErrorCode], partition: TopicPartition, due: MarkersDue) -> ErrorCode:
    try:
        return await answer if isinstance(answer, Future) else answer
    except Exception as wrong:
        return _unexpected(partition, due, wrong)


def _unexpected(partition: TopicPartition, due: MarkersDue, wrong: Exception) -> ErrorCode:
    """A mistake of ours about one partition must not leave the transactions of all others undecided."""
    LOGGER.error("the marker of %s for %s could not be written", due.transactional_id, partition, exc_info=wrong)
    return ErrorCode.UNKNOWN_SERVER_ERROR
