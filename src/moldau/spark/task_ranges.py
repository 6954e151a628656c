"""The part of a read that one task gets, and what the task does with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from moldau.spark.offsets import OffsetRange
from moldau.spark.options import SourceOptions
from moldau.spark.reading import RangeReading, read_range


class TaskRange(InputPartition):
    """A range of one partition; `announce_to` is set where the task shall tell which query it works for."""

    def __init__(self, range_: OffsetRange, *, announce_to: str | None = None) -> None:
        super().__init__(range_)
        self.announce_to = announce_to


def task_ranges(ranges: Sequence[OffsetRange], *, announce_to: str | None = None) -> list[TaskRange]:
    """One task says it for all."""
    return [TaskRange(range_, announce_to=announce_to if index == 0 else None) for index, range_ in enumerate(ranges)]


def read_task(task: InputPartition, options: SourceOptions, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    # Spark makes a partition of its own when there is nothing to read.
    if not isinstance(task, TaskRange):
        return
    if task.announce_to is not None:
        from moldau.spark.progress import announce

        announce(options.client, task.announce_to, task.value.place)
    reading = RangeReading(
        client=options.client,
        columns=columns,
        poll_timeout_ms=options.poll_timeout_ms,
        fails_on_data_loss=options.fails_on_data_loss,
    )
    yield from read_range(task.value, reading)
