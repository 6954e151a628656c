"""The part that all table sinks share: tasks stage, the driver commits once, a failed batch leaves nothing."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from moldau.spark.streaming_batch import streaming_batch
from moldau.spark.tables.options import Delivery, WriteOptions
from moldau.spark.tables.staging import Staged, StagingArea, unnumbered_area
from moldau.spark.workers import ArrivesInWorkers, spare_what_is_loaded

# Attempts at one batch are few; names of staged tables have room for no more.
ATTEMPT_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Step:
    """One visible change of the table, made once if its area has a number."""

    area: StagingArea
    overwrite: bool

    @property
    def query_id(self) -> str:
        return self.area.query_id

    @property
    def batch(self) -> int | None:
        return self.area.batch


class Target(Protocol):
    """A table that rows are staged for. It travels to the executors: no connection is open in it."""

    @property
    def options(self) -> WriteOptions: ...

    def stage(self, batches: Iterable[pa.RecordBatch], area: StagingArea) -> Staged:
        """In a task: the rows are kept where only a commit finds them."""
        ...

    def apply(self, staged: Sequence[Staged], step: Step) -> None:
        """On the driver: the rows become part of the table in one step, unless that step was made before."""
        ...

    def discard(self, staged: Sequence[Staged], area: StagingArea) -> None:
        """On the driver: what is staged in this area, and is not part of the table, goes."""
        ...


class StreamWriter(ArrivesInWorkers, DataSourceStreamArrowWriter):
    """A streaming query into a table."""

    def __init__(self, target: Target, *, overwrite: bool) -> None:
        self._target = target
        self._overwrite = overwrite
        self._attempt = uuid.uuid4().hex[:ATTEMPT_DIGITS]

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        running = streaming_batch()
        assert running is not None, "Spark names query and batch in every task of a streaming query"
        options = self._target.options
        if options.delivery is Delivery.AT_LEAST_ONCE:
            return self._target.stage(iterator, unnumbered_area())
        area = StagingArea(options.query_id or running.query_id, running.batch, attempt=self._attempt)
        return self._target.stage(iterator, area)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        staged = staged_of(messages)
        if not staged:
            return
        area = staged[0].area
        assert area.batch in (None, batchId), "tasks and driver know the batch by the same number"
        self._target.apply(staged, Step(area, overwrite=self._overwrite))
        spare_what_is_loaded()

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        del batchId
        staged = staged_of(messages)
        if staged:
            self._target.discard(staged, staged[0].area)


class BatchWriter(ArrivesInWorkers, DataSourceArrowWriter):
    """A batch job into a table; inside foreachBatch, with queryId and batchId, it is as exact as a streaming query."""

    def __init__(self, target: Target, *, overwrite: bool) -> None:
        self._target = target
        self._area = unnumbered_area()
        options = target.options
        if options.query_id and options.batch is not None and options.delivery is Delivery.EXACTLY_ONCE:
            self._area = StagingArea(options.query_id, options.batch, attempt=uuid.uuid4().hex[:ATTEMPT_DIGITS])
        self._overwrite = overwrite

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self._target.stage(iterator, self._area)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self._target.apply(staged_of(messages), Step(self._area, overwrite=self._overwrite))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self._target.discard(staged_of(messages), self._area)


def staged_of(messages: Sequence[WriterCommitMessage | None]) -> list[Staged]:
    """Tasks that failed have no message."""
    return [cast(Staged, message) for message in messages if message is not None]
