"""A streaming read: how far the next batch goes, what its tasks are, and what was done with it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from moldau.core.ids import TopicPartition
from moldau.spark.clients.cluster import Cluster
from moldau.spark.clients.librdkafka import check_settings
from moldau.spark.dead_letters.rejections import RejectionCounts, rejection_rules
from moldau.spark.offsets.bounds import Offsets, offsets_from_json, offsets_to_json
from moldau.spark.offsets.positions import start_offsets
from moldau.spark.offsets.progress import Progress
from moldau.spark.option_values import OptionError
from moldau.spark.options import SourceOptions
from moldau.spark.reading.admission import Admission, cap
from moldau.spark.reading.data_loss import losses_between, raise_or_warn
from moldau.spark.reading.splitting import ranges_between, split
from moldau.spark.reading.task_ranges import TaskReading, task_ranges
from moldau.spark.reading.typed_columns import check_schema
from moldau.spark.workers import ArrivesInWorkers

# After a change of leaders a broker may for a moment know an earlier end than one that was told before.
LOOKS_MAX = 3
LOOK_PAUSE_S = 1.0


class MoldauStreamReader(ArrivesInWorkers, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One instance lives beside the driver for the length of a query; copies of it read, on the workers."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        check_schema(schema, options)
        self.options = options
        self.reading = TaskReading(options, schema, job="stream")
        self.rejections = RejectionCounts(rejection_rules(options.formats), options.client)
        self.splits = 1
        self.initial: Offsets | None = None
        self.target: Offsets | None = None
        self.latest: Offsets = {}
        self.last_batch_s: float | None = None
        self.progress = Progress(
            options.client,
            prefix=options.group_prefix,
            group_id=options.group_id,
            query_name=options.query_name,
        )

    def initialOffset(self) -> dict[str, dict[str, int]]:
        # Spark asks twice before the first batch, for its end and for its tasks: `latest` must be the same both times.
        if self.initial is None:
            self.initial = self._initial()
        return offsets_to_json(self.initial)

    def _initial(self) -> Offsets:
        options = self.options
        check_settings(options.client, side="consumer")
        cluster = Cluster(options.client)
        places = cluster.places(options.subscription)
        missing = cluster.missing(options.subscription, places)
        if missing:
            raise OptionError(f"there is no {', '.join(missing)} at {cluster.servers}")
        return start_offsets(options.starting, places, cluster, latest_if_no_timestamp=options.latest_if_no_timestamp)

    def getDefaultReadLimit(self) -> ReadLimit:
        """Spark has one limit for a query; that there are limits is all it says to `latestOffset` here."""
        admission = self.options.admission
        if admission.records_max is not None:
            return ReadMaxRows(admission.records_max)
        return ReadAllAvailable() if admission.records_min is None else ReadMinRows(admission.records_min)

    def prepareForTriggerAvailableNow(self) -> None:
        cluster = Cluster(self.options.client)
        self.target = cluster.latest(cluster.places(self.options.subscription))

    def latestOffset(self, start: Mapping[str, Any], limit: ReadLimit) -> dict[str, dict[str, int]]:
        cluster = Cluster(self.options.client)
        began = offsets_from_json(start)
        # Spark calls `commit` only when there is a next batch, but asks here from where every batch is done.
        self._note_done(began)
        self.latest = self._latest(cluster, began)
        available = self.latest if self.target is None else cap(self.latest, self.target, start=began)
        appeared = [place for place in available if place not in began]
        began |= cluster.earliest(appeared)
        admission = Admission() if isinstance(limit, ReadAllAvailable) else self.options.admission
        # A query of AvailableNow has to come to its end: it never waits for more.
        end = admission.end_of_batch(began, available, waited_ms=self._waited_ms(), may_wait=self.target is None)
        if any(end[place] != began[place] for place in end):
            self.last_batch_s = time.monotonic()
        return offsets_to_json(end)

    def reportLatestOffset(self) -> dict[str, dict[str, int]] | None:
        return offsets_to_json(self.latest) if self.latest else None

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> Sequence[InputPartition]:
        options = self.options
        began, ended = offsets_from_json(start), offsets_from_json(end)
        appeared = [place for place in ended if place not in began]
        earliest = Cluster(options.client).earliest(ended)
        raise_or_warn(
            losses_between(began, ended, earliest=earliest, appeared=appeared), fail=options.fails_on_data_loss
        )
        readable = {place: max(began.get(place, 0), earliest[place]) for place in ended}
        ranges = split(
            ranges_between(readable, ended), tasks_min=options.tasks_min, records_max=options.records_per_task_max
        )
        self.splits = max([self.splits, *(sum(each.place == place for each in ranges) for place in ended)])
        return task_ranges(ranges, announce_to=self.progress.announcement if options.commits_offsets else None)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self.reading.read(partition)

    def commit(self, end: Mapping[str, Any]) -> None:
        self._note_done(offsets_from_json(end))

    def _note_done(self, done: Offsets) -> None:
        if self.options.commits_offsets and self.progress.commit(done, now_s=time.monotonic()):
            self.rejections.report(self.progress.group_id, done, splits=self.splits)

    def _latest(self, cluster: Cluster, began: Mapping[TopicPartition, int]) -> Offsets:
        for look in range(LOOKS_MAX):
            latest = cluster.latest(cluster.places(self.options.subscription))
            if look + 1 == LOOKS_MAX or all(latest[place] >= began.get(place, 0) for place in latest):
                break
            time.sleep(LOOK_PAUSE_S)
        return latest

    def _waited_ms(self) -> int:
        """The first batch waits for nothing."""
        if self.last_batch_s is None:
            return self.options.admission.delay_ms_max
        return int((time.monotonic() - self.last_batch_s) * 1000)
