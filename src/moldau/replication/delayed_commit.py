"""Waiting until records are committed: what Apache Kafka does with a delayed produce in its purgatory."""

from __future__ import annotations

from asyncio import AbstractEventLoop, Future
from collections.abc import Sequence

from moldau.core.errors import ErrorCode
from moldau.core.ids import Offset
from moldau.replication.partition import Partition


class DelayedCommit:
    """Waits until every partition has committed what is before an offset, can't any more, or the time is up.

    `errors` has an entry for each wait: REQUEST_TIMED_OUT as long as nothing else is known. `answer` gets them when all
    are known, on the next turn of the loop; whoever cancels it waits no longer.
    """

    __slots__ = ("_deadline", "_left", "answer", "errors")

    def __init__(self, waits: Sequence[tuple[Partition, Offset]], *, timeout_ms: int, loop: AbstractEventLoop) -> None:
        self.errors = [ErrorCode.REQUEST_TIMED_OUT] * len(waits)
        self.answer: Future[list[ErrorCode]] = loop.create_future()
        self.answer.add_done_callback(self._leave)
        self._left: dict[Partition, list[tuple[int, Offset]]] = {}
        for slot, (partition, offset) in enumerate(waits):
            self._left.setdefault(partition, []).append((slot, offset))
            partition.commit_watchers[self] = None
        self._deadline = loop.call_later(max(0, timeout_ms) / 1000, self._complete)
        self.disturbed()

    def grown(self, partition: Partition, _size_bytes: int) -> None:
        self._look(partition)
        self._complete_if_known()

    def disturbed(self) -> None:
        for partition in tuple(self._left):
            self._look(partition)
        self._complete_if_known()

    def _look(self, partition: Partition) -> None:
        left = []
        for slot, offset in self._left.get(partition, ()):
            error = partition.acknowledgement(offset)
            if error is None:
                left.append((slot, offset))
            else:
                self.errors[slot] = error
        if left:
            self._left[partition] = left
        elif self._left.pop(partition, None) is not None:
            partition.commit_watchers.pop(self, None)

    def _complete_if_known(self) -> None:
        if not self._left:
            self._complete()

    def _complete(self) -> None:
        if not self.answer.done():
            self.answer.set_result(self.errors)

    def _leave(self, _: Future[list[ErrorCode]]) -> None:
        self._deadline.cancel()
        for partition in self._left:
            partition.commit_watchers.pop(self, None)
        self._left.clear()
