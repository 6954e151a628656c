"""A streaming read: how far the next batch goes, what its tasks are, and what was done with it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

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

from moldau.spark.clients.cluster import Cluster, NotThere
from moldau.spark.clients.librdkafka import check_settings
from moldau.spark.dead_letters.rejections import RejectionCounts, rejection_rules
from moldau.spark.offsets.bounds import Offsets, offsets_to_json
from moldau.spark.offsets.positions import start_offsets
from moldau.spark.offsets.progress import Progress
from moldau.spark.offsets.stream_offsets import StreamOffsets, stream_offsets
from moldau.spark.option_values import MissingTopic
from moldau.spark.options import SourceOptions
from moldau.spark.reading.admission import Admission, cap
from moldau.spark.reading.data_loss import raise_or_warn
from moldau.spark.reading.readable import readable
from moldau.spark.reading.splitting import ranges_between, split
from moldau.spark.reading.task_ranges import TaskReading, task_ranges
from moldau.spark.reading.typed_columns import check_schema, pinned_options
from moldau.spark.workers import ArrivesInWorkers

# After a change of leaders a broker may for a moment know an earlier end than one that was told before.
LOOKS_MAX = 3
LOOK_PAUSE_S = 1.0

Looked = TypeVar("Looked")


def while_topics_change(look: Callable[[], Looked]) -> Looked:
    """A look at topics and then at their offsets, again if a topic is deleted in between."""
    for _ in range(LOOKS_MAX - 1):
        with suppress(NotThere):
            return look()
        time.sleep(LOOK_PAUSE_S)
    return look()


class MoldauStreamReader(ArrivesInWorkers, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One instance lives beside the driver for the length of a query; copies of it read, on the workers."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        check_schema(schema, options)
        options = pinned_options(schema, options)
        self.options = options
        self.reading = TaskReading(options, schema, job="stream")
        self.rejections = RejectionCounts(rejection_rules(options.formats), options.client)
        self.splits = 1
        self.initial: StreamOffsets | None = None
        self.target: Offsets | None = None
        self.latest: Offsets = {}
        self.last_batch_s: float | None = None
        self.progress = Progress(
            options.client,
            prefix=options.group_prefix,
            group_id=options.group_id,
            query_name=options.query_name,
        )

    def initialOffset(self) -> dict[str, dict[str, Any]]:
        # Spark asks twice before the first batch, for its end and for its tasks: `latest` must be the same both times.
        if self.initial is None:
            self.initial = self._initial()
        return self.initial.to_json()

    def _initial(self) -> StreamOffsets:
        options = self.options
        check_settings(options.client, group=options.reading_group)
        cluster = Cluster(options.client, options.patience)
        found = cluster.subscribed(options.subscription)
        missing = cluster.missing(options.subscription, found.places)
        if missing:
            raise MissingTopic(f"there is no {', '.join(missing)} at {cluster.servers}")
        start = start_offsets(
            options.starting, found.places, cluster, latest_if_no_timestamp=options.latest_if_no_timestamp
        )
        return StreamOffsets(start, found.topic_ids)

    def getDefaultReadLimit(self) -> ReadLimit:
        """Spark has one limit for a query; that there are limits is all it says to `latestOffset` here."""
        admission = self.options.admission
        if admission.records_max is not None:
            return ReadMaxRows(admission.records_max)
        return ReadAllAvailable() if admission.records_min is None else ReadMinRows(admission.records_min)

    def prepareForTriggerAvailableNow(self) -> None:
        cluster = Cluster(self.options.client, self.options.patience)
        self.target = cluster.latest(cluster.places(self.options.subscription))

    def latestOffset(self, start: Mapping[str, Any], limit: ReadLimit) -> dict[str, dict[str, Any]]:
        done = stream_offsets(start)
        # Spark calls `commit` only when there is a next batch, but asks here from where every batch is done.
        self._note_done(done.offsets)
        topic_ids, self.latest = while_topics_change(partial(self._latest, done))
        began = done.of_same_topics(topic_ids)
        available = self.latest if self.target is None else cap(self.latest, self.target, start=began)
        appeared = [place for place in available if place not in began]
        began |= Cluster(self.options.client, self.options.patience).earliest(appeared)
        admission = Admission() if isinstance(limit, ReadAllAvailable) else self.options.admission
        # A query of AvailableNow has to come to its end: it never waits for more.
        end = admission.end_of_batch(began, available, waited_ms=self._waited_ms(), may_wait=self.target is None)
        if any(end[place] != began[place] for place in end):
            self.last_batch_s = time.monotonic()
        return StreamOffsets(end, topic_ids).to_json()

    def reportLatestOffset(self) -> dict[str, dict[str, int]] | None:
        return offsets_to_json(self.latest) if self.latest else None

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> Sequence[InputPartition]:
        options = self.options
        began, ended = stream_offsets(start), stream_offsets(end)
        topic_ids, earliest = while_topics_change(partial(self._earliest, ended))
        plan = readable(began, ended, topic_ids=topic_ids, earliest=earliest)
        raise_or_warn(plan.losses, fail=options.fails_on_data_loss)
        # A batch in the checkpoint may be from a time with a higher limit, or none. It has to stay as large as it is;
        # but its tasks get smaller, so that their transactions fit into the time that they have.
        limits = [limit for limit in (options.records_per_task_max, options.admission.records_max) if limit]
        ranges = split(
            ranges_between(plan.start, plan.end), tasks_min=options.tasks_min, records_max=min(limits, default=None)
        )
        self.splits = max([self.splits, *(sum(each.place == place for each in ranges) for place in plan.end)])
        announce_to = self.progress.announcement if options.commits_offsets else None
        return task_ranges(ranges, announce_to=announce_to, topic_ids=topic_ids)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self.reading.read(partition)

    def commit(self, end: Mapping[str, Any]) -> None:
        self._note_done(stream_offsets(end).offsets)

    def _note_done(self, done: Offsets) -> None:
        if self.options.commits_offsets and self.progress.commit(done, now_s=time.monotonic()):
            self.rejections.report(self.progress.group_id, done, splits=self.splits)

    def _earliest(self, ended: StreamOffsets) -> tuple[Mapping[str, str], Offsets]:
        """A batch may have been planned before a restart, and topics deleted and made anew since."""
        cluster = Cluster(self.options.client, self.options.patience)
        found = cluster.described({place.topic for place in ended.offsets})
        return found.topic_ids, cluster.earliest(found.places & ended.offsets.keys())

    def _latest(self, done: StreamOffsets) -> tuple[Mapping[str, str], Offsets]:
        """The ids of topics, and after them the ends: the ends can't be those of earlier topics than the ids say."""
        cluster = Cluster(self.options.client, self.options.patience)
        for look in range(LOOKS_MAX):
            found = cluster.subscribed(self.options.subscription)
            latest = cluster.latest(found.places)
            known = done.of_same_topics(found.topic_ids)
            if look + 1 == LOOKS_MAX or all(latest[place] >= known.get(place, 0) for place in latest):
                break
            time.sleep(LOOK_PAUSE_S)
        return found.topic_ids, latest

    def _waited_ms(self) -> int:
        """The first batch waits for nothing."""
        if self.last_batch_s is None:
            return self.options.admission.delay_ms_max
        return int((time.monotonic() - self.last_batch_s) * 1000)
