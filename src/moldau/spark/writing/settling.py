"""After a batch: tasks that had groups of their own are noted together, and their groups are deleted."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaException, TopicPartition
from pyspark.sql.datasource import WriterCommitMessage

from moldau.client.security import ClientSettings
from moldau.spark.clients.librdkafka import ANSWER_S_MAX, NoAnswer, admin_client, group_consumer, patiently, reason
from moldau.spark.options import SinkOptions
from moldau.spark.writing.delivery import Delivered
from moldau.spark.writing.librdkafka import noted, noted_tasks
from moldau.spark.writing.producing import Written
from moldau.spark.writing.task_progress import BatchChanged, done_slot, note_of, query_group


@dataclass(frozen=True, slots=True)
class TaskWritten(WriterCommitMessage):
    """What one task did."""

    records: int
    delivered: Delivered | None = None
    query_id: str | None = None  # the driver's side of a sink is not told
    task: int = 0
    may_be_noted: bool = False  # by an earlier run of the query


def deliveries(messages: Sequence[WriterCommitMessage | None]) -> list[Delivered]:
    return [each.delivered for each in messages if isinstance(each, TaskWritten) and each.delivered is not None]


def settle(messages: Sequence[WriterCommitMessage | None], options: SinkOptions, *, query_id: str, batch: int) -> None:
    """Called before Spark notes the batch as done: if it is run again all the same, the whole batch is known here."""
    told = [each for each in messages if isinstance(each, TaskWritten)]
    if any(each.may_be_noted for each in told):
        with_rows = {each.task for each in told if each.delivered and each.delivered.slot}
        check_tasks(with_rows, options, query_id=query_id, batch=batch, is_written=bool(with_rows))
    group = query_group(options.group_prefix, query_id)
    apart = [each for each in deliveries(messages) if each.slot is not None and each.slot.group != group]
    topic = next((each.topic for each in apart if each.topic is not None), None)
    if topic is None:
        return
    rows = Written(
        sum(each.rows.records for each in apart),
        sum(each.rows.size_bytes for each in apart),
        schemas=next(each.rows.schemas for each in apart),
    )
    slot = done_slot(group)
    try:
        if any(each.is_known_as_whole for each in apart):
            done = noted(options.client, slot, topic, in_any_topic=options.topic is None)
            if done is not None and not done.is_of(rows):
                raise BatchChanged(
                    f"batch {batch} of query {query_id} has {rows.records} records of {rows.size_bytes} bytes in tasks "
                    f"beyond the partitions of its topic, but was written with {done.note['records']} of "
                    f"{done.note['bytes']}: the checkpoint, the options or the number of partitions changed "
                    "in between. Put them back, or run the batch once with delivery=at-least-once, which writes "
                    "part of it twice."
                )
        else:
            note = TopicPartition(topic, slot.partition, batch, note_of(rows))
            group_consumer(options.client, slot.group).commit(offsets=[note], asynchronous=False)
    except KafkaException as wrong:
        raise NoAnswer(f"batch {batch} of query {query_id} could not be noted: {reason(wrong)}") from None
    delete_groups(options.client, {each.slot.group for each in apart if each.slot is not None})


def check_tasks(
    tasks: Container[int], options: SinkOptions, *, query_id: str, batch: int, is_written: bool = False
) -> None:
    """The rows of a task that noted the batch in an earlier run, and has none now, are in others that don't know it."""
    group = query_group(options.group_prefix, query_id)
    try:
        found = patiently(lambda: noted_tasks(options.client, group, batch, options.topic))
    except KafkaException as wrong:
        raise NoAnswer(f"batch {batch} of query {query_id}: its notes could not be read: {reason(wrong)}") from None
    missing = sorted(task for task in found if task not in tasks)
    if missing:
        since = ", and rows of that task may have been written by others since" if is_written else ""
        raise BatchChanged(
            f"batch {batch} of query {query_id} was written with rows in task {missing[0]}, which has none now: the "
            f"checkpoint, the options or the number of partitions changed in between{since}. Put them back, or run the "
            "batch once with delivery=at-least-once, which writes part of it twice."
        )


def delete_groups(client: ClientSettings, groups: set[str]) -> None:
    """One that stays behind does no harm, and goes with the next batch or in time."""
    if not groups:
        return
    deletions = admin_client(client).delete_consumer_groups(sorted(groups), request_timeout=ANSWER_S_MAX)
    for deletion in deletions.values():
        deletion.exception()
