"""Whether a log can be used: what the disk refused, and what everybody is told after that."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.log.errors import LogError
from moldau.log.failure import NotUndone, Verdict, judge


class Availability:
    """A log that goes offline when the disk fails it, and stays so until it is opened anew."""

    __slots__ = ("is_deleted", "offline", "on_failure", "partition")

    def __init__(self, partition: TopicPartition) -> None:
        self.partition = partition
        self.is_deleted = False  # its topic is gone, and what is found under its names may be another's
        self.offline: str | None = None  # why nothing is done any more
        self.on_failure: Callable[[OSError], None] | None = None

    def fail(self, failure: OSError) -> LogError:
        """Take note of what the disk refused, which may end the use of this log, and give the error to answer with."""
        if judge(failure) is Verdict.OFFLINE and self.offline is None:
            self.offline = failure.strerror or str(failure)
        if self.on_failure is not None:
            self.on_failure(failure)
        return LogError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.partition}: {failure.strerror or failure}")

    def refuse_offline(self) -> LogError:
        message = f"{self.partition} is offline until the broker starts again: {self.offline}"
        return LogError(ErrorCode.KAFKA_STORAGE_ERROR, message)

    @contextmanager
    def storage(self, *, whole: bool = True) -> Iterator[None]:
        """Around anything that touches files. If it is not `whole`, what failed half way leaves the log unusable."""
        if self.offline is not None:
            raise self.refuse_offline()
        try:
            yield
        except OSError as failure:
            raise self.fail(failure if whole else NotUndone.after(failure)) from failure
