"""What tasks leave behind in the cluster, however many there are: groups, transactional ids, and their names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.spark.topics import Topics
from tests.spark.writing.test_sink import write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCHES = 2
MANY = [12, pytest.param(200, marks=[pytest.mark.long, pytest.mark.timeout(600)])]


def left_behind(topics: Topics, prefix: str) -> tuple[list[str], list[str]]:
    """Groups and transactional ids of that prefix."""
    groups = [group for group in topics.groups() if group.startswith(prefix)]
    return groups, [name for name in topics.transactional_ids() if name.startswith(prefix)]


def prefixes(prefix: str) -> dict[str, str]:
    return {"groupIdPrefix": prefix, "transactionalIdPrefix": prefix}


@pytest.mark.parametrize("tasks", MANY)
@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_a_query_leaves_two_groups_for_its_sink(
    spark: SparkSession, topics: Topics, checkpoint: Path, tasks: int, delivery: str
) -> None:
    source, target, prefix = topics.create(), topics.create(partitions=3), topics.name("team")
    before = set(topics.groups()), set(topics.transactional_ids())
    count = BATCHES * tasks
    topics.produce(source, [b"%d" % number for number in range(count)])
    servers = {"kafka.bootstrap.servers": topics.bootstrap, **prefixes(prefix)}
    rows = (
        spark.readStream.format("moldau")
        .options(subscribe=source, startingOffsets="earliest", maxOffsetsPerTrigger=tasks, **servers)
        .load()
    )
    writer = rows.select("value").repartition(tasks).writeStream.format("moldau").queryName(prefix)
    writer = writer.options(topic=target, delivery=delivery, checkpointLocation=str(checkpoint), **servers)
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(300)
    assert sorted(int(value or b"") for value in topics.values(target)) == list(range(count))
    groups, ids = left_behind(topics, prefix)
    sinks = [f"{prefix}-{query.id}-sink", f"{prefix}-{query.id}-sink-done"] if delivery == "exactly-once" else []
    assert groups == sorted([*sinks, f"{prefix}-{prefix}"])
    assert len(ids) == (tasks if sinks else 0)
    # Nothing has a name of another kind.
    assert set(topics.groups()) - before[0] == set(groups)
    assert set(topics.transactional_ids()) - before[1] == set(ids)


@pytest.mark.parametrize("tasks", MANY)
def test_a_job_leaves_no_groups_and_one_transactional_id_a_task(
    spark: SparkSession, topics: Topics, tasks: int
) -> None:
    target, prefix = topics.create(partitions=3), topics.name("team")
    frame = spark.range(0, tasks, 1, tasks).selectExpr("cast(id as string) as value")
    write(frame, topics, topic=target, delivery="exactly-once", **prefixes(prefix))
    assert sorted(int(value or b"") for value in topics.values(target)) == list(range(tasks))
    groups, ids = left_behind(topics, prefix)
    assert (groups, len(ids)) == ([], tasks)


@pytest.mark.parametrize("numbered", [False, True])
def test_a_job_that_failed_leaves_groups_only_if_it_can_come_back(
    spark: SparkSession, topics: Topics, numbered: bool
) -> None:
    """The last task fails when the others are done: one that is still under way may leave its group behind."""
    target, prefix = topics.create(), topics.name("team")
    own: dict[str, Any] = {"queryId": "q", "batchId": "0"} if numbered else {}
    frame = spark.range(0, 4, 1, 4).mapInPandas(refused_at_last(topics.bootstrap, target), "value string")
    with pytest.raises(Exception, match="no"):
        write(frame, topics, topic=target, delivery="exactly-once", **prefixes(prefix), **own)
    groups, _ = left_behind(topics, prefix)
    assert bool(groups) == numbered, groups


def refused_at_last(bootstrap: str, topic: str) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Travels to Spark's workers by value."""

    def values(frames: Iterator[Any]) -> Iterator[Any]:
        import time

        from confluent_kafka import Consumer, TopicPartition

        for frame in frames:
            if (frame["id"] == 3).any():
                consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "onlooker"})
                deadline_s = time.monotonic() + 60
                # A record and the marker of its transaction from each of the others.
                while consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)[1] < 6:
                    assert time.monotonic() < deadline_s, "the others are not done"
                    time.sleep(0.05)
                consumer.close()
                raise ValueError("no")
            yield frame["id"].astype(str).to_frame("value")

    return values
