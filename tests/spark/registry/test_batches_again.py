"""Batches that run again after a later version was registered: each row is there once."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from moldau.spark.options import sink_options
from moldau.spark.pipelines.language.grammar import parse
from moldau.spark.pipelines.running.joining.states import TableState
from moldau.spark.record_formats import pinned
from moldau.spark.writing.batch_job import write_batch
from moldau.spark.writing.delivery import write_exactly_once
from moldau.spark.writing.producing import Written
from moldau.spark.writing.registered_schemas import with_registered
from moldau.spark.writing.task_progress import BatchChanged, SinkTask
from tests.spark.pipelines.running.joining.tables import Customers
from tests.spark.reading.test_stream_read import stream
from tests.spark.registry.serializing import AVRO, LATER_AVRO, avro_bytes
from tests.spark.topics import Topics
from tests.spark.writing.test_sink import forget_last_commit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

LATEST = {"valueFormat": "avro", "use.latest.version": "true"}
ROWS = pa.RecordBatch.from_pylist([{"id": 1}, {"id": 2}])


def columns() -> StructType:
    from pyspark.sql.types import LongType, StructField, StructType

    return StructType([StructField("id", LongType(), nullable=False)])


def said(topics: Topics, url: str, topic: str, **more: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": topics.bootstrap, "schema.registry.url": url, "topic": topic, **more}


def ids(values: list[bytes | None]) -> list[int]:
    """Of the schemas that wrote them."""
    return [int.from_bytes((value or b"")[1:5], "big") for value in values]


def register(registry: SchemaRegistryClient, topic: str, schema: Any) -> int:
    made: int = registry.register_schema(f"{topic}-value", Schema(json.dumps(schema), "AVRO"))
    return made


def nullable(schema: Any) -> Any:
    """With an id that may be null, as columns of a computed stream are."""
    first, *others = schema["fields"]
    return {**schema, "fields": [{**first, "type": ["null", "long"], "default": None}, *others]}


def test_a_batch_of_spark_keeps_the_schema_that_it_had(
    spark: SparkSession, topics: Topics, registry_url: str, registry: SchemaRegistryClient
) -> None:
    topic = topics.create(partitions=2)
    first = register(registry, topic, AVRO)
    query = uuid.uuid4().hex
    batch = said(topics, registry_url, topic, **LATEST, queryId=query, batchId="7")
    frame = spark.range(1, 5, 1, 2).select("id")
    begun = with_registered(frame.schema, sink_options(batch, streaming=False))
    write_exactly_once(iter([ROWS]), begun, SinkTask(query, batch=7, task=0))
    later = register(registry, topic, LATER_AVRO)
    for _ in range(2):
        write_batch(frame, batch)
        assert ids(topics.values(topic)) == [first] * 4
    frame.write.format("moldau").options(**batch).mode("append").save()
    assert ids(topics.values(topic)) == [first] * 4
    write_batch(frame, {**batch, "batchId": "8"})
    assert sorted(ids(topics.values(topic))) == [first] * 4 + [later] * 4


@pytest.mark.parametrize("writer", ["auto", "librdkafka"])
def test_a_task_knows_its_rows_by_another_schema(
    topics: Topics, registry_url: str, registry: SchemaRegistryClient, writer: str
) -> None:
    """A stream's sink is not told the query: it begins a run with the schema of then."""
    topic = topics.create()
    register(registry, topic, AVRO)
    options = sink_options(said(topics, registry_url, topic, **LATEST, writer=writer), streaming=True)
    task = SinkTask(uuid.uuid4().hex, batch=0, task=0)
    write_exactly_once(iter([ROWS]), with_registered(columns(), options), task)
    register(registry, topic, LATER_AVRO)
    later = with_registered(columns(), options)
    assert write_exactly_once(iter([ROWS]), later, task).written == Written()
    with pytest.raises(BatchChanged, match="has 1 records"):
        write_exactly_once(iter([ROWS.slice(1)]), later, task)
    assert len(topics.values(topic)) == 2


@pytest.mark.parametrize("task", [0, 3], ids=["of a partition", "of a group of its own"])
def test_a_batch_whose_schema_is_made_of_columns(
    topics: Topics, registry_url: str, registry: SchemaRegistryClient, task: int
) -> None:
    """The name of the subject's latest record is that of what is registered: it may have become another."""
    topic = topics.create()
    own = {"queryId": uuid.uuid4().hex, "batchId": "0", "valueFormat": "avro", "groupIdPrefix": topics.name("team")}
    options = sink_options(said(topics, registry_url, topic, **own), streaming=False)
    registry.set_compatibility(f"{topic}-value", "NONE")
    of_task = SinkTask(own["queryId"], 0, task, own["groupIdPrefix"])
    write_exactly_once(iter([ROWS]), with_registered(columns(), options), of_task)
    register(registry, topic, {**AVRO, "name": "Renamed"})
    again = with_registered(columns(), options)
    assert write_exactly_once(iter([ROWS]), again, of_task).written == Written()
    write_exactly_once(iter([ROWS]), with_registered(columns(), replace(options, batch=1)), replace(of_task, batch=1))
    found = ids(topics.values(topic))
    assert found[0] == found[1] != found[2] == found[3]


def test_an_id_says_what_is_written_and_read(topics: Topics, registry_url: str, registry: SchemaRegistryClient) -> None:
    topic = topics.create()
    first, _later = register(registry, topic, AVRO), register(registry, topic, LATER_AVRO)
    own = {"valueFormat": "avro", "use.schema.id": str(first)}
    options = with_registered(columns(), sink_options(said(topics, registry_url, topic, **own), streaming=True))
    write_exactly_once(iter([ROWS]), options, SinkTask(uuid.uuid4().hex, batch=0, task=0))
    assert ids(topics.values(topic)) == [first] * 2
    from moldau.spark.reading.typed_columns import schema_of

    reading = {"kafka.bootstrap.servers": topics.bootstrap, "schema.registry.url": registry_url, "subscribe": topic}
    schema: Any = schema_of({**reading, **own})
    assert schema["value"].dataType.names == ["id", "name", "at"]
    assert pinned(schema, {}) == {"valueRegistrySchemaId": str(first)}


def test_a_table_goes_on_where_a_later_version_has_its_columns(
    spark: SparkSession, topics: Topics, registry_url: str, registry: SchemaRegistryClient, tmp_path: Path
) -> None:
    customers = Customers(topics, spark, tmp_path)

    def state() -> TableState:
        text = (
            f"set bootstrap.servers = '{topics.bootstrap}'; set schema.registry.url = '{registry_url}'; "
            f"create table customers from topic '{customers.topic}' key (id) with (valueFormat = avro);"
        )
        plan = parse(text, "test.sql", name="test")
        return TableState(plan.sources[0], plan, str(customers.folder))

    topics.produce(customers.topic, [avro_bytes(registry, customers.topic, {"id": 1, "name": "Ann"})], key=b"1")
    assert [row[:2] for row in customers.rows(state(), 0)] == [(1, "Ann")]
    register(registry, customers.topic, {**AVRO, "doc": "who buys"})
    topics.produce(customers.topic, [avro_bytes(registry, customers.topic, {"id": 2, "name": "Bob"})], key=b"2")
    assert [row[:2] for row in customers.rows(state(), 1)] == [(1, "Ann"), (2, "Bob")]
    assert "changes-1" in customers.files(), "what was kept is gone on from"
    assert "snapshot-0" in customers.files()
    register(registry, customers.topic, LATER_AVRO)
    assert [row[:2] for row in customers.rows(state(), 2)] == [(1, "Ann"), (2, "Bob")]
    assert "snapshot-2" in customers.files(), "another column's values are in the topic alone"


@pytest.mark.long
def test_a_streams_batch_that_runs_again_after_a_restart(
    spark: SparkSession, topics: Topics, registry_url: str, registry: SchemaRegistryClient, checkpoint: Path
) -> None:
    source, target = topics.create(), topics.create()
    first = register(registry, target, nullable(AVRO))

    def run() -> None:
        frame = stream(spark, topics, subscribe=source).selectExpr("cast(cast(value as string) as bigint) as id")
        writer = frame.where("id is not null").writeStream.format("moldau")
        query = writer.options(**said(topics, registry_url, target, **LATEST), checkpointLocation=str(checkpoint))
        assert query.trigger(availableNow=True).start().awaitTermination(240)

    topics.produce(source, [b"1", b"2"])
    run()
    forget_last_commit(checkpoint)
    later = register(registry, target, nullable(LATER_AVRO))
    topics.produce(source, [b"3"])
    run()
    assert ids(topics.values(target)) == [first, first, later]
