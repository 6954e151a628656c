"""A batch read: the range is fixed when Spark plans it, one task or more for each partition."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from moldau.spark.clients import check_settings
from moldau.spark.cluster import Cluster
from moldau.spark.data_loss import Loss, losses_between, raise_or_warn
from moldau.spark.offsets import Offsets
from moldau.spark.option_values import OptionError
from moldau.spark.options import SourceOptions
from moldau.spark.positions import end_offsets, start_offsets
from moldau.spark.splitting import ranges_between, split
from moldau.spark.task_ranges import TaskReading, task_ranges
from moldau.spark.typed_columns import check_schema


class MoldauReader(DataSourceReader):
    """Reads what lies between the starting and the ending offsets."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        check_schema(schema, options)
        self.options = options
        self.reading = TaskReading(options, schema, job=f"batch-{uuid.uuid4().hex}")

    def partitions(self) -> Sequence[InputPartition]:
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
        return self.reading.read(partition)

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
