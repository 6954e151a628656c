"""Where tasks note their batches, where earlier versions and runs had them, and the notes of whole batches."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, TopicPartition

from moldau.spark.options import SinkOptions, sink_options
from moldau.spark.writing.delivery import Delivered
from moldau.spark.writing.librdkafka import done_by_library
from moldau.spark.writing.plain_delivery import done_plainly
from moldau.spark.writing.producing import Written
from moldau.spark.writing.settling import TaskWritten, settle
from moldau.spark.writing.task_progress import BatchChanged, NotedBatch, NoteSlot, SinkTask, note_of, noted
from tests.spark.topics import Topics

ROWS = Written(3, 40)


def options_of(topics: Topics, topic: str) -> SinkOptions:
    return sink_options({"kafka.bootstrap.servers": topics.bootstrap, "topic": topic}, streaming=True)


def groups(topics: Topics, query: str) -> list[str]:
    found = topics.admin.list_consumer_groups().result().valid
    return sorted(each.group_id for each in found if query in each.group_id)


def note(topics: Topics, group: str, topic: str, batch: int, partition: int = 0) -> None:
    consumer = Consumer({"bootstrap.servers": topics.bootstrap, "group.id": group})
    consumer.commit(offsets=[TopicPartition(topic, partition, batch, note_of(ROWS))], asynchronous=False)
    consumer.close()


def test_prefixes_are_those_of_the_options() -> None:
    sink_task = SinkTask("q", batch=1, task=2, group_prefix="team", transactional_prefix="team-tx")
    assert sink_task.transactional_id == "team-tx-q-sink-2"
    assert sink_task.slot(3) == NoteSlot("team-q-sink", 2)
    assert sink_task.slot(2) == NoteSlot("team-q-sink-2", 0)


@pytest.mark.parametrize("look", [done_plainly, done_by_library])
@pytest.mark.parametrize("task", [1, 5])
def test_a_note_of_the_older_layout_is_recognised(topics: Topics, look: object, task: int) -> None:
    """It had a group for each task, also where the topic has a partition for it."""
    topic, query = topics.create(partitions=2), topics.name("query")
    sink_task = SinkTask(query, batch=7, task=task)
    assert callable(look)
    client = options_of(topics, topic).client
    assert look(client, sink_task, topic, in_any_topic=False) is None
    note(topics, f"moldau-spark-{query}-sink-{task}", topic, 7)
    assert look(client, sink_task, topic, in_any_topic=False) == NotedBatch(7, noted(ROWS))


@pytest.mark.parametrize("look", [done_plainly, done_by_library])
def test_tasks_without_a_partition_find_the_note_of_the_whole_batch(topics: Topics, look: object) -> None:
    topic, query = topics.create(partitions=1), topics.name("query")
    options = options_of(topics, topic)
    tasks = [SinkTask(query, batch=7, task=task) for task in (1, 2)]
    for sink_task in tasks:
        note(topics, sink_task.task_group, topic, 7)
    written = [TaskWritten(3, Delivered(ROWS, ROWS, topic, sink_task.slot(1)), query) for sink_task in tasks]
    settle(written, options, query_id=query, batch=7)
    assert groups(topics, query) == [f"moldau-spark-{query}-sink-done"]
    assert callable(look)
    for sink_task in tasks:
        assert look(options.client, sink_task, topic, in_any_topic=False) == NotedBatch(
            7, noted(Written(6, 80)), is_whole=True
        )
    # The topic may have got partitions in between.
    topics.admin.create_partitions([new_count(topic, 3)])[topic].result()
    assert look(options.client, tasks[0], topic, in_any_topic=False) == NotedBatch(
        7, noted(Written(6, 80)), is_whole=True
    )


def test_a_whole_batch_that_comes_back_with_other_rows_is_refused(topics: Topics) -> None:
    topic, query = topics.create(), topics.name("query")
    options = options_of(topics, topic)
    slot = SinkTask(query, batch=4, task=3).slot(1)
    settle([TaskWritten(3, Delivered(ROWS, ROWS, topic, slot), query)], options, query_id=query, batch=4)

    def repeated(rows: Written) -> list[TaskWritten]:
        return [TaskWritten(0, Delivered(Written(), rows, topic, slot, is_known_as_whole=True), query)]

    settle(repeated(ROWS), options, query_id=query, batch=4)
    with pytest.raises(
        BatchChanged, match=f"batch 4 of query {query} has 2 records of 40 bytes .* written with 3 of 40"
    ):
        settle(repeated(Written(2, 40)), options, query_id=query, batch=4)


def new_count(topic: str, partitions: int) -> object:
    from confluent_kafka.admin import NewPartitions

    return NewPartitions(topic, partitions)
