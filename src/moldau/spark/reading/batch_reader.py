"""A batch read: the range is fixed when Spark plans it, one task or more for each partition."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from moldau.spark.clients.cluster import Cluster
from moldau.spark.clients.librdkafka import check_settings
from moldau.spark.offsets.bounds import Offsets
from moldau.spark.offsets.positions import end_offsets, start_offsets
from moldau.spark.option_values import OptionError
from moldau.spark.options import SourceOptions
from moldau.spark.reading.data_loss import Loss, losses_between, raise_or_warn
from moldau.spark.reading.splitting import ranges_between, split
from moldau.spark.reading.task_ranges import TaskReading, task_ranges
from moldau.spark.reading.typed_columns import check_schema
from moldau.spark.workers import ArrivesInWorkers


@dataclass(frozen=True)
class LateRange(InputPartition):
    """Every `step`-th of the ranges that there are when the task runs."""

    first: int
    step: int


class MoldauReader(ArrivesInWorkers, DataSourceReader):
    """Reads what lies between the starting and the ending offsets."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        check_schema(schema, options)
        self.options = options
        self.reading = TaskReading(options, schema, job=f"batch-{uuid.uuid4().hex}")

    def partitions(self) -> Sequence[InputPartition]:
        tasks = self._planned()
        if not self.options.reads_anew:
            return tasks
        # Spark keeps what is planned here as long as the frame lives: tasks that plan for themselves see what is new.
        count = max(1, len(tasks))
        return [LateRange(first, count) for first in range(count)]

    def _planned(self) -> list[InputPartition]:
        options = self.options
        check_settings(options.client, side="consumer")
        cluster = Cluster(options.client)
        places = cluster.places(options.subscription)
        missing = cluster.missing(options.subscription, places)
        if missing:
            raise OptionError(f"there is no {', '.join(missing)} at {cluster.servers}")
        start = start_offsets(options.starting, places, cluster, latest_if_no_timestamp=options.latest_if_no_timestamp)
        end = end_offsets(options.ending, places, cluster)
        start, end = self._within(start, end, cluster)
        ranges = split(
            ranges_between(start, end), tasks_min=options.tasks_min, records_max=options.records_per_task_max
        )
        return task_ranges(ranges)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, LateRange):
            return self.reading.read(partition)
        own = self._planned()[partition.first :: partition.step]
        return (batch for task in own for batch in self.reading.read(task))

    def _within(self, start: Offsets, end: Offsets, cluster: Cluster) -> tuple[Offsets, Offsets]:
        """What of the range is there; offsets that the user named may be gone, or not written yet."""
        earliest, latest = cluster.earliest(start), cluster.latest(start)
        # A range that ends before it starts is empty because the user said so, which is no loss.
        lost = losses_between(start, {place: max(start[place], end[place]) for place in end}, earliest=earliest)
        beyond = [
            Loss(place, max(latest[place], start[place]), end[place], f"the partition ends at {latest[place]}")
            for place in sorted(end)
            if end[place] > max(latest[place], start[place])
        ]
        raise_or_warn([*lost, *beyond], fail=self.options.fails_on_data_loss)
        return (
            {place: max(offset, earliest[place]) for place, offset in start.items()},
            {place: min(offset, latest[place]) for place, offset in end.items()},
        )
