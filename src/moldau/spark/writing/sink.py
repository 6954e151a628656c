"""Writing into topics: what Spark asks of a sink, batch and streaming."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from moldau.spark.clients.librdkafka import ANSWER_S_MAX, admin_client, check_settings
from moldau.spark.option_values import OptionError
from moldau.spark.options import EXACTLY_ONCE, SinkOptions, sink_options
from moldau.spark.running_batch import running_batch
from moldau.spark.workers import ArrivesInWorkers, spare_what_is_loaded
from moldau.spark.writing.delivery import write_at_least_once, write_exactly_once
from moldau.spark.writing.outgoing import check_columns
from moldau.spark.writing.producing import Written
from moldau.spark.writing.tickets import Ticket


@dataclass(frozen=True, slots=True)
class TaskWritten(WriterCommitMessage):
    """What one task did; `progress_group` is where it noted it, if it did."""

    records: int
    progress_group: str | None


class MoldauWriter(ArrivesInWorkers, DataSourceArrowWriter):
    """A batch write. Exactly once means here: however often a task is tried, its rows are there once.

    Inside of foreachBatch, with queryId and batchId, it means all that it means in a streaming write.
    """

    def __init__(self, options: SinkOptions) -> None:
        self.options = options
        self.job = f"batch-{uuid.uuid4().hex}"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        if self.options.delivery != EXACTLY_ONCE:
            return _written(write_at_least_once(iterator, self.options), None)
        if self.options.query_id and self.options.batch is not None:
            ticket = Ticket(self.options.query_id, self.options.batch, task_number())
            return _written(write_exactly_once(iterator, self.options, ticket), None)
        ticket = Ticket(self.job, batch=0, task=task_number())
        return _written(write_exactly_once(iterator, self.options, ticket), ticket.name)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """The job's notes have done their service."""
        groups = [each.progress_group for each in messages if isinstance(each, TaskWritten) and each.progress_group]
        if groups:
            deletions = admin_client(self.options.client).delete_consumer_groups(groups, request_timeout=ANSWER_S_MAX)
            for deletion in deletions.values():
                # A task without rows left no note, and one that stays behind does no harm.
                deletion.exception()


class MoldauStreamWriter(ArrivesInWorkers, DataSourceStreamArrowWriter):
    """A streaming write: Spark tells each task which batch of which query it is part of."""

    def __init__(self, options: SinkOptions) -> None:
        self.options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        if self.options.delivery != EXACTLY_ONCE:
            return _written(write_at_least_once(iterator, self.options), None)
        running = running_batch()
        assert running is not None, "a streaming task knows its query and its batch"
        ticket = Ticket(running.query_id, running.batch, task_number())
        return _written(write_exactly_once(iterator, self.options, ticket), ticket.name)


def _written(written: Written, note: str | None) -> TaskWritten:
    spare_what_is_loaded()
    return TaskWritten(written.records, note)


def task_number() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None, "rows are written by tasks"
    return context.partitionId()


def batch_writer(options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> MoldauWriter:
    if overwrite:
        raise OptionError("mode overwrite: a topic cannot be overwritten; allowed is append")
    return MoldauWriter(_checked(options, schema, streaming=False))


def stream_writer(options: Mapping[str, str], schema: StructType) -> MoldauStreamWriter:
    return MoldauStreamWriter(_checked(options, schema, streaming=True))


def _checked(options: Mapping[str, str], schema: StructType, *, streaming: bool) -> SinkOptions:
    parsed = sink_options(options, streaming=streaming)
    check_columns(schema, parsed)
    check_settings(parsed.client, side="producer")
    spare_what_is_loaded()
    return parsed
