"""Writing the markers of one shard's transactions, from the moment that they are due until every partition has them."""

from __future__ import annotations

import asyncio
import logging
from asyncio import Future
from collections.abc import Callable, Collection
from typing import Any, TypeAlias

from moldau.coordinator.long_work import Slice
from moldau.coordinator.runtime import Runtime
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.transactions.markers_due import MarkersDue, Outcome, outcome_of
from moldau.transactions.shard import TransactionShard

WRITTEN_AT_ONCE_MAX = 100  # markers, in some milliseconds
RETRY_INTERVAL_S = 0.1  # Kafka's: a leader that isn't ready is usually starting

LOGGER = logging.getLogger(__name__)

# Writes the marker that is due to a partition, under a coordinator's epoch. A partition that is gone needs none.
Answers: TypeAlias = "dict[TopicPartition, ErrorCode | Future[ErrorCode]]"
WriteMarker: TypeAlias = Callable[[TopicPartition, MarkersDue, int], "ErrorCode | Future[ErrorCode]"]


class MarkerSender:
    """It waits for outcomes by asking its shard, which answers when there is one and it is committed."""

    __slots__ = ("_coordinator_epoch", "_retries", "_runtime", "_under_way", "_write_marker")

    def __init__(
        self, runtime: Runtime[TransactionShard], *, coordinator_epoch: int, write_marker: WriteMarker
    ) -> None:
        self._runtime = runtime
        self._coordinator_epoch = coordinator_epoch
        self._write_marker = write_marker
        self._retries: dict[str, asyncio.Task[None]] = {}  # by transactional id
        self._under_way: set[str] = set()  # these, and those that were given up

    async def run(self) -> None:
        try:
            # What a stopped runtime holds may never have reached the log, so nobody may hear of it.
            while not self._runtime.is_stopped and (dues := await self._next()) is not None:
                await self._mark_all(dues)
        finally:
            for retry in self._retries.values():
                retry.cancel()

    async def _next(self) -> tuple[MarkersDue, ...] | None:
        """None when another coordinator takes over."""
        answer: Any = self._runtime.write(lambda shard, _: shard.decide_next_markers(self._under_way), lambda _: None)
        dues: tuple[MarkersDue, ...] | None = await answer if isinstance(answer, Future) else answer
        return dues

    async def _mark_all(self, dues: tuple[MarkersDue, ...]) -> None:
        """After a start there may be thousands, and writing waits for nothing."""
        turn = Slice(asyncio.get_running_loop())
        for due in dues:
            await self._mark(due)
            if turn.is_over:
                await asyncio.sleep(0)
                if self._runtime.is_stopped:
                    return
                turn = Slice(asyncio.get_running_loop())

    async def _mark(self, due: MarkersDue) -> None:
        answers = await self._write_all(due, due.partitions)
        if not any(isinstance(answer, Future) for answer in answers.values()):
            left = await self._left(due, answers)
            if left is None or (not left and self._is_noted(due)):
                return
        # The others must not wait for a partition that may be away for long, nor for its replicas.
        rest = self._finish(due, answers)
        self._under_way.add(due.transactional_id)
        self._retries[due.transactional_id] = asyncio.get_running_loop().create_task(rest, name="markers again")

    async def _finish(self, due: MarkersDue, answers: Answers) -> None:
        left: list[TopicPartition] | None = []
        try:
            while (left := await self._left(due, answers)) is not None and (left or not self._is_noted(due)):
                await asyncio.sleep(RETRY_INTERVAL_S)
                if self._runtime.is_stopped:
                    break
                if left:
                    answers = await self._write_all(due, left)
        finally:
            del self._retries[due.transactional_id]
            if left is not None:
                self._under_way.remove(due.transactional_id)

    def _give_up(self, transactional_id: str) -> None:
        """It is not asked for again while it is due; those that are due no longer are forgotten."""
        is_prepared = self._runtime.machine.is_prepared
        self._under_way = {each for each in self._under_way if each in self._retries or is_prepared(each)}
        self._under_way.add(transactional_id)

    def _is_noted(self, due: MarkersDue) -> bool:
        """Complete the transaction, unless nobody may or need. False while the coordinator's log takes no facts."""
        if self._runtime.is_stopped:
            return True
        try:
            noted = self._runtime.write(lambda shard, now_ms: shard.decide_markers_written(due, now_ms), _refused)
        except Exception:
            LOGGER.exception("the transaction of %s could not be completed", due.transactional_id)
            return False
        return noted is not None

    def _write(self, partition: TopicPartition, due: MarkersDue) -> ErrorCode | Future[ErrorCode]:
        try:
            return self._write_marker(partition, due, self._coordinator_epoch)
        except Exception as wrong:
            return _unexpected(partition, due, wrong)

    async def _write_all(self, due: MarkersDue, partitions: Collection[TopicPartition]) -> Answers:
        """Write what can be written. All are before any is waited for: replicas and the disk have them together."""
        answers: Answers = {}
        for number, partition in enumerate(sorted(partitions), start=1):
            if number % WRITTEN_AT_ONCE_MAX == 0:
                await asyncio.sleep(0)  # most are written without waiting for anything, which leaves others no turn
            answer = answers[partition] = self._write(partition, due)
            if isinstance(answer, ErrorCode) and outcome_of(answer) is Outcome.GIVE_UP:
                break
        return answers

    async def _left(self, due: MarkersDue, answers: Answers) -> list[TopicPartition] | None:
        """The partitions to try again; None when the transaction is another coordinator's affair."""
        left: list[TopicPartition] = []
        for partition, answer in answers.items():
            error = await _answered(answer, partition, due)
            outcome = outcome_of(error)
            if outcome is Outcome.GIVE_UP:
                # Whoever fenced us writes the markers; the outcome stays in the log for whoever leads it next.
                LOGGER.warning("the marker of %s for %s was refused: %s", due.transactional_id, partition, error.name)
                self._give_up(due.transactional_id)
                return None
            if outcome is Outcome.RETRY:
                left.append(partition)
        return left


def _refused(_: ErrorCode) -> ErrorCode | None:
    return None


async def _answered(answer: ErrorCode | Future[ErrorCode], partition: TopicPartition, due: MarkersDue) -> ErrorCode:
    try:
        return await answer if isinstance(answer, Future) else answer
    except Exception as wrong:
        return _unexpected(partition, due, wrong)


def _unexpected(partition: TopicPartition, due: MarkersDue, wrong: Exception) -> ErrorCode:
    """A mistake of ours about one partition must not leave the transactions of all others undecided."""
    LOGGER.error("the marker of %s for %s could not be written", due.transactional_id, partition, exc_info=wrong)
    return ErrorCode.UNKNOWN_SERVER_ERROR
