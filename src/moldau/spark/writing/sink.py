"""Writing into topics: what Spark asks of a sink, batch and streaming."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from moldau.spark.clients.librdkafka import check_settings
from moldau.spark.option_values import OptionError
from moldau.spark.options import EXACTLY_ONCE, SinkOptions, sink_options
from moldau.spark.streaming_batch import RUN_PROPERTY, job_property, streaming_batch
from moldau.spark.workers import ArrivesInWorkers, spare_what_is_loaded, whole
from moldau.spark.writing.delivery import end_open, write_at_least_once, write_exactly_once
from moldau.spark.writing.new_topics import keep_topic, new_topic_settings
from moldau.spark.writing.producing import Written
from moldau.spark.writing.registered_schemas import with_registered
from moldau.spark.writing.rows_to_records import check_columns
from moldau.spark.writing.settling import TaskWritten, delete_groups, deliveries, settle
from moldau.spark.writing.task_progress import SinkTask

RUNS_MAX = 16  # that a worker remembers; one that it forgot is asked about once more


class MoldauWriter(ArrivesInWorkers, DataSourceArrowWriter):
    """A batch write. Exactly once means here: however often a task is tried, its rows are there once.

    Inside of foreachBatch, with queryId and batchId, it means all that it means in a streaming write.
    """

    def __init__(self, options: SinkOptions) -> None:
        self.options = options
        self.job = f"batch-{uuid.uuid4().hex}"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        if self.options.delivery != EXACTLY_ONCE:
            return _told(write_at_least_once(iterator, self.options))
        if self.options.query_id and self.options.batch is not None:
            return _delivered(iterator, self.options, self.options.query_id, self.options.batch)
        return _delivered(iterator, self.options, self.job, 0)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        if self.options.query_id and self.options.batch is not None:
            settle(messages, self.options, query_id=self.options.query_id, batch=self.options.batch)
            return
        self._forget(messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """A job that failed never comes back, unlike a batch that has a number."""
        if self.options.batch is not None or self.options.delivery != EXACTLY_ONCE:
            return
        prefixes = self.options.group_prefix, self.options.transactional_prefix
        tasks = [SinkTask(self.job, 0, number, *prefixes) for number in range(len(messages))]
        end_open(self.options, [task for task, told in zip(tasks, messages, strict=True) if told is None])
        # Of tasks that were ended nobody knows how far they came: there may be a group of each.
        delete_groups(self.options.client, {group for task in tasks for group in (task.query_group, task.task_group)})

    def _forget(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """The job's notes have done their service."""
        slots = [each.slot for each in deliveries(messages)]
        delete_groups(self.options.client, {slot.group for slot in slots if slot is not None})


class MoldauStreamWriter(ArrivesInWorkers, DataSourceStreamArrowWriter):
    """A streaming write: Spark tells each task which batch of which query it is part of."""

    def __init__(self, options: SinkOptions) -> None:
        self.options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        if self.options.delivery != EXACTLY_ONCE:
            return _told(write_at_least_once(iterator, self.options))
        running = streaming_batch()
        assert running is not None, "a streaming task knows its query and its batch"
        return _delivered(iterator, self.options, running.query_id, running.batch)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        query_id = next((each.query_id for each in messages if isinstance(each, TaskWritten)), None)
        if query_id is not None:
            settle(messages, self.options, query_id=query_id, batch=batchId)


def _delivered(rows: Iterator[pa.RecordBatch], options: SinkOptions, query_id: str, batch: int) -> TaskWritten:
    is_first = runs_seen().is_first(job_property(RUN_PROPERTY), batch)
    sink_task = SinkTask(query_id, batch, task_number(), options.group_prefix, options.transactional_prefix, is_first)
    delivered = write_exactly_once(whole(rows), options, sink_task)
    spare_what_is_loaded()
    return TaskWritten(delivered.written.records, delivered, query_id, sink_task.task, is_first)


class RunsSeen:
    """Runs of queries that this worker had batches of: only the first of a run may have begun in an earlier one."""

    def __init__(self) -> None:
        self._first: dict[str, int] = {}

    def is_first(self, run: str | None, batch: int) -> bool:
        if run is None:
            return True
        first = self._first.setdefault(run, batch)
        while len(self._first) > RUNS_MAX:
            del self._first[next(iter(self._first))]
        return batch <= first


@lru_cache(maxsize=1)
def runs_seen() -> RunsSeen:
    return RunsSeen()


def _told(written: Written) -> TaskWritten:
    spare_what_is_loaded()
    return TaskWritten(written.records)


def task_number() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None, "rows are written by tasks"
    return context.partitionId()


def batch_writer(options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> MoldauWriter:
    if overwrite:
        raise OptionError("mode overwrite: a topic cannot be overwritten; allowed is append")
    return MoldauWriter(_in_worker(options, schema, streaming=False))


def stream_writer(options: Mapping[str, str], schema: StructType) -> MoldauStreamWriter:
    return MoldauStreamWriter(_in_worker(options, schema, streaming=True))


def _in_worker(options: Mapping[str, str], schema: StructType, *, streaming: bool) -> SinkOptions:
    parsed = checked_options(options, schema, streaming=streaming)
    spare_what_is_loaded()
    return parsed


def checked_options(options: Mapping[str, str], schema: StructType, *, streaming: bool) -> SinkOptions:
    """As far as a driver can judge them; a topic that is to be made is there afterwards."""
    parsed = sink_options(options, streaming=streaming)
    check_columns(schema, parsed)
    check_settings(parsed.client)
    wanted = new_topic_settings(options)
    registered = with_registered(schema, parsed)
    if parsed.topic and wanted.are_given:
        keep_topic(parsed.client, parsed.topic, wanted)
    return registered
