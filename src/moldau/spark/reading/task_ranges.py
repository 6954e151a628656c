"""The part of a read that one task gets, and what the task does with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from moldau.core.ids import TopicPartition
from moldau.spark.dead_letters.rejections import OnError, Rejections, rejection_rules, typed_batches
from moldau.spark.offsets.bounds import OffsetRange
from moldau.spark.offsets.progress import announce, group_of, running_identity
from moldau.spark.options import SourceOptions
from moldau.spark.reading.range_settings import RangeReading
from moldau.spark.reading.splitting import Share
from moldau.spark.record_formats import RecordFormats, record_formats
from moldau.spark.workers import spare_what_is_loaded


class TaskRange(InputPartition):
    """A range of one partition of the topic with that id, if it is known.

    `announce_to` is set where the task shall tell which query it works for.
    """

    def __init__(
        self, range_: OffsetRange, *, split: int, announce_to: str | None = None, topic_id: str | None = None
    ) -> None:
        super().__init__(range_)
        self.split = split
        self.announce_to = announce_to
        self.topic_id = topic_id


def task_ranges(
    ranges: Sequence[OffsetRange],
    *,
    announce_to: str | None = None,
    topic_ids: Mapping[str, str] = MappingProxyType({}),
) -> list[InputPartition]:
    """One task says it for all; tasks of the same partition are numbered."""
    seen: dict[TopicPartition, int] = {}
    tasks: list[InputPartition] = []
    for range_ in ranges:
        split = seen[range_.place] = seen.get(range_.place, -1) + 1
        told, topic_id = None if tasks else announce_to, topic_ids.get(range_.place.topic)
        tasks.append(TaskRange(range_, split=split, announce_to=told, topic_id=topic_id))
    return tasks


def late_tasks(shares: Sequence[Share]) -> list[InputPartition]:
    return [TaskRange(share.range_, split=share.split) for share in shares]


@dataclass(frozen=True)
class TaskReading:
    """What a task needs to know beside its range. `job` stands for the query where there is none: in a batch read."""

    options: SourceOptions
    schema: StructType
    job: str

    def read(self, task: InputPartition) -> Iterator[pa.RecordBatch]:
        # The driver has this module too, and reads nothing.
        from moldau.spark.reading.ranges import read_range

        # Spark makes a partition of its own when there is nothing to read.
        if not isinstance(task, TaskRange):
            return
        options, range_ = self.options, task.value
        if task.announce_to is not None:
            announce(options.client, task.announce_to, range_.place)
        formats = record_formats(self.schema, options.formats)
        rules = rejection_rules(options.formats)
        reading = RangeReading(
            client=options.client,
            columns=formats.raw_columns(keeps_letters=rules.on_error is OnError.DEADLETTER),
            poll_timeout_ms=options.poll_timeout_ms,
            fails_on_data_loss=options.fails_on_data_loss,
            group=options.reading_group,
            may_fetch=options.reader == "auto",
        )
        raw = read_range(range_, reading, topic_id=task.topic_id)
        if formats.decoders:
            yield from self._typed(raw, formats, task)
        else:
            yield from raw
        spare_what_is_loaded()

    def _typed(
        self, raw: Iterator[pa.RecordBatch], formats: RecordFormats, task: TaskRange
    ) -> Iterator[pa.RecordBatch]:
        options, identity = self.options, running_identity()
        label = options.query_name or (identity.label if identity else self.job)
        rejections = Rejections(
            rejection_rules(options.formats),
            options.client,
            range_=task.value,
            split=task.split,
            group=options.group_id or group_of(options.group_prefix, label),
            transactional_prefix=options.transactional_prefix,
            query=label,
        )
        return typed_batches(raw, formats, rejections)
