"""Waiting until followers have deleted records, too: what Apache Kafka does with a delayed delete in its purgatory."""

from __future__ import annotations

from asyncio import AbstractEventLoop, Future
from typing import TypeAlias

from moldau.core.errors import ErrorCode
from moldau.core.ids import NO_OFFSET, Offset
from moldau.replication.partition import Partition

Deleted: TypeAlias = tuple[ErrorCode, Offset]
"""What a client is told: an error, and the low watermark."""


class DelayedDeletion:
    """Waits until the low watermark of a partition with followers has reached an offset, can't any more, or too late.

    Leaderships that end are told to those who wait for commits, fetches of followers to those who wait for the low
    watermark. Whoever cancels the `answer` waits no longer.
    """

    __slots__ = ("_deadline", "_low_watermark", "_offset", "_partition", "_watched", "answer")

    def __init__(self, partition: Partition, offset: Offset, *, timeout_ms: int, loop: AbstractEventLoop) -> None:
        self._partition = partition
        self._offset = offset
        self._low_watermark = partition.low_watermark  # told if the time is up
        self.answer: Future[Deleted] = loop.create_future()
        self.answer.add_done_callback(self._leave)
        self._watched = [partition.commit_watchers]
        if partition.replicas is not None:
            self._watched.append(partition.replicas.low_watermark_watchers)
        for watchers in self._watched:
            watchers[self] = None
        self._deadline = loop.call_later(max(0, timeout_ms) / 1000, self._expire)
        self.disturbed()

    def grown(self, _partition: Partition, _size_bytes: int) -> None:
        self.disturbed()

    def disturbed(self) -> None:
        partition = self._partition
        if not partition.is_leader:
            self._complete(partition.refusal, Offset(NO_OFFSET))
        elif (low_watermark := partition.low_watermark) >= self._offset:
            self._complete(ErrorCode.NONE, low_watermark)

    def _expire(self) -> None:
        """A follower that was waited for may have been fenced meanwhile, of which nobody told."""
        self.disturbed()
        self._complete(ErrorCode.REQUEST_TIMED_OUT, self._low_watermark)

    def _complete(self, error: ErrorCode, low_watermark: Offset) -> None:
        if not self.answer.done():
            self.answer.set_result((error, low_watermark))

    def _leave(self, _: Future[Deleted]) -> None:
        self._deadline.cancel()
        for watchers in self._watched:
            watchers.pop(self, None)
