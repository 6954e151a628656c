"""At least once and exactly once into topics.

Exactly once: a task writes its rows in one transaction, with a transactional id of the query and the task, and in the
same transaction commits the number of the batch as an offset of a group of the query. A task that finds its batch
committed writes nothing. Data and progress are one fact, on any Kafka.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Protocol

import pyarrow as pa

from moldau.spark.clients.librdkafka import NoAnswer
from moldau.spark.option_values import OptionError
from moldau.spark.options import SinkOptions
from moldau.spark.writing.librdkafka import done_by_library, noted_by_library, opened_by_library, write_by_library
from moldau.spark.writing.plain_delivery import (
    PlainTransaction,
    can_send,
    done_plainly,
    noted_plainly,
    opened_plainly,
    write_plainly,
)
from moldau.spark.writing.producing import Written, measure
from moldau.spark.writing.rows_to_records import RowsToRecords, to_records
from moldau.spark.writing.task_progress import (
    BatchChanged,
    Fenced,
    NotedBatch,
    NoteSlot,
    SinkTask,
    TransactionExpired,
    transaction_timeout_ms,
)

OTHERS_S_MAX = 60.0
PAUSE_S = 0.1


@dataclass(frozen=True, slots=True)
class Delivered:
    """What a task did with its batch: `rows` are those of the batch, written now or by an earlier attempt."""

    written: Written
    rows: Written
    topic: str | None = None
    slot: NoteSlot | None = None
    is_known_as_whole: bool = False


class OpenTransaction(Protocol):
    """Of one task, after whatever an earlier attempt had left open has ended."""

    slot: NoteSlot

    def write(self, rows: Iterable[pa.RecordBatch], shape: RowsToRecords, sink_task: SinkTask, topic: str) -> Written:
        """Rows and progress, committed together when it returns."""
        ...


def write_at_least_once(batches: Iterable[pa.RecordBatch], options: SinkOptions) -> Written:
    write = write_plainly if _is_plain(options) else write_by_library
    return write(batches, options.client, to_records(options))


def write_exactly_once(batches: Iterable[pa.RecordBatch], options: SinkOptions, sink_task: SinkTask) -> Delivered:
    rows = iter(batches)
    first = next((batch for batch in rows if batch.num_rows), None)
    if first is None:
        return _without_rows(options, sink_task)
    topic = next(to_records(options).records(first)).topic
    rows = chain([first], rows)
    began_s = time.monotonic()
    try:
        opened = _opened(options, sink_task, topic)
        if isinstance(opened, NotedBatch):
            found = _check_same(rows, options, sink_task, opened)
            return Delivered(Written(), found, topic, opened.slot, opened.is_whole)
        written = opened.write(rows, to_records(options), sink_task, topic)
        return Delivered(written, written, topic, opened.slot)
    except Fenced:
        return _after_fencing(options, sink_task, topic, open_s=time.monotonic() - began_s)


def end_open(options: SinkOptions, sink_tasks: Iterable[SinkTask]) -> None:
    """Tasks of a job that failed may be at it still: who takes their ids over ends what they have begun.

    A producer of librdkafka for each takes too long, and so does a cluster that is gone, which would be waited for
    once for each: what is left may leave a group behind, or a transaction that ends in time.
    """
    with suppress(NoAnswer, OptionError):
        for sink_task in sink_tasks if _is_plain(options) else ():
            with suppress(Fenced):
                PlainTransaction(options.client, sink_task.transactional_id, NoteSlot(sink_task.task_group, 0))


def _without_rows(options: SinkOptions, sink_task: SinkTask) -> Delivered:
    """Rows that the task wrote when the batch ran before would be in others now, which know nothing of them."""
    look = noted_plainly if _is_plain(options) else noted_by_library
    done = look(options.client, sink_task, options.topic) if sink_task.may_be_noted else None
    if done is None or done.batch < sink_task.batch:
        return Delivered(Written(), Written())
    found = _check_same((), options, sink_task, done)
    return Delivered(Written(), found, options.topic, done.slot, done.is_whole)


def _is_plain(options: SinkOptions) -> bool:
    return options.writer == "auto" and can_send(options.client)


def _opened(options: SinkOptions, sink_task: SinkTask, topic: str) -> OpenTransaction | NotedBatch:
    """A transaction to write into, or what is committed if the batch is."""
    opened = opened_plainly if _is_plain(options) else opened_by_library
    return opened(options.client, sink_task, topic, in_any_topic=options.topic is None)


def _check_same(rows: Iterable[pa.RecordBatch], options: SinkOptions, sink_task: SinkTask, done: NotedBatch) -> Written:
    """The batch is in the topic: nothing is written, after a look whether it is the same batch."""
    found = measure(rows, to_records(options))
    if done.batch > sink_task.batch or not (done.is_whole or done.is_of(found)):
        others = " others" if done.note["records"] == found.records else ""
        raise BatchChanged(
            f"batch {sink_task.batch} of query {sink_task.query_id}, task {sink_task.task}, "
            f"has {found.records} records of "
            f"{found.size_bytes} bytes, but batch {done.batch} was written with {done.note['records']} of "
            f"{done.note['bytes']}{others}: the checkpoint, the options or the number of partitions changed in "
            "between. Put them back, or run the batch once with delivery=at-least-once, which writes part of it twice."
        )
    return found


def _after_fencing(options: SinkOptions, sink_task: SinkTask, topic: str, *, open_s: float) -> Delivered:
    """Another attempt of this task took the id over, or the transaction's time was up.

    If another attempt commits the batch, there is nothing left to do.
    """
    deadline_s = time.monotonic() + OTHERS_S_MAX
    look = done_plainly if _is_plain(options) else done_by_library
    while time.monotonic() < deadline_s:
        done = look(options.client, sink_task, topic, in_any_topic=options.topic is None)
        if done is not None and done.batch >= sink_task.batch:
            rows = Written(done.note["records"], done.note["bytes"])
            return Delivered(Written(), rows, topic, done.slot, done.is_whole)
        if open_s >= transaction_timeout_ms(options.client) / 1000:
            raise _expired(options, sink_task, open_s)
        time.sleep(PAUSE_S)
    raise NoAnswer(f"another attempt of task {sink_task.task} took over batch {sink_task.batch} and did not finish it")


def _expired(options: SinkOptions, sink_task: SinkTask, open_s: float) -> TransactionExpired:
    allowed_ms = transaction_timeout_ms(options.client)
    return TransactionExpired(
        f"batch {sink_task.batch} of query {sink_task.query_id}, task {sink_task.task}: "
        f"its transaction took {open_s:.0f} s, "
        f"and kafka.transaction.timeout.ms = {allowed_ms} allows no more: the cluster has aborted it. "
        "Set it higher (the brokers' transaction.max.timeout.ms is its limit), or give each task less to write, with a "
        "lower maxOffsetsPerTrigger or maxRecordsPerPartition of the source."
    )
