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
from moldau.spark.offsets.bounds import OffsetRange, Offsets
from moldau.spark.offsets.positions import end_offsets, start_offsets
from moldau.spark.option_values import MissingTopic
from moldau.spark.options import SourceOptions
from moldau.spark.reading.data_loss import Loss, losses_between, raise_or_warn
from moldau.spark.reading.splitting import late_shares, ranges_between, split
from moldau.spark.reading.task_ranges import TaskReading, late_tasks, task_ranges
from moldau.spark.reading.typed_columns import check_schema, pinned_options
from moldau.spark.workers import ArrivesInWorkers


@dataclass(frozen=True)
class LateTask(InputPartition):
    """One of the tasks of `planned`, which reads its part of what there is when it runs."""

    planned: tuple[OffsetRange, ...]
    number: int


class MoldauReader(ArrivesInWorkers, DataSourceReader):
    """Reads what lies between the starting and the ending offsets."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        check_schema(schema, options)
        options = pinned_options(schema, options)
        self.options = options
        self.reading = TaskReading(options, schema, job=f"batch-{uuid.uuid4().hex}")

    def partitions(self) -> Sequence[InputPartition]:
        planned = self._planned()
        if not self.options.reads_anew:
            return task_ranges(planned)
        # Spark keeps what is planned here as long as the frame lives: tasks that look for themselves see what is new.
        return [LateTask(tuple(planned), number) for number in range(max(1, len(planned)))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, LateTask):
            return self.reading.read(partition)
        own = late_shares(partition.planned, self._ranges(), number=partition.number)
        return (batch for task in late_tasks(own) for batch in self.reading.read(task))

    def _planned(self) -> list[OffsetRange]:
        options = self.options
        return split(self._ranges(), tasks_min=options.tasks_min, records_max=options.records_per_task_max)

    def _ranges(self) -> list[OffsetRange]:
        options = self.options
        check_settings(options.client, group=options.reading_group)
        cluster = Cluster(options.client, options.patience)
        places = cluster.places(options.subscription)
        missing = cluster.missing(options.subscription, places)
        if missing:
            raise MissingTopic(f"there is no {', '.join(missing)} at {cluster.servers}")
        start = start_offsets(options.starting, places, cluster, latest_if_no_timestamp=options.latest_if_no_timestamp)
        end = end_offsets(options.ending, places, cluster)
        start, end = self._within(start, end, cluster)
        if options.narrowing is not None:
            start, end = options.narrowing.narrowed(start, end, cluster)
        return ranges_between(start, end)

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
