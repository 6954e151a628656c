"""A registry's columns in a real Spark: batches, streams whose writers move on, pipelines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from moldau.spark.pipelines.plan import PipelineError
from tests.brokers import running_broker
from tests.spark.pipelines.pipelines import Pipelines
from tests.spark.reading.test_stream_read import stream
from tests.spark.registries import running_registry
from tests.spark.registry.serializing import (
    AVRO,
    JSON_SCHEMA,
    LATER_AVRO,
    avro_bytes,
    json_bytes,
    proto_bytes,
    read_avro,
    read_json,
    read_proto,
)
from tests.spark.topics import Topics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WRITE = {"avro": avro_bytes, "json": json_bytes, "protobuf": proto_bytes}
READ = {"avro": read_avro, "json": read_json, "protobuf": read_proto}
PASSWORD = "hunter2"


def options(topics: Topics, url: str, **more: str) -> dict[str, str]:
    login = {"schema.registry.basic.auth.user.info": f"ann:{PASSWORD}"}  # which a registry without users does not mind
    return {"kafka.bootstrap.servers": topics.bootstrap, "schema.registry.url": url, **login, **more}


def plan_of(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().toString())


def check_both_ways(spark: SparkSession, topics: Topics, url: str, registry: SchemaRegistryClient, name: str) -> None:
    source, target = topics.create("typed"), topics.create("written")
    topics.produce(source, [WRITE[name](registry, source, {"id": 1, "name": "é"}), None, b"text"])
    said = options(topics, url, valueFormat=name)
    frame = spark.read.format("moldau").options(**said, subscribe=source, onError="skip").load()
    assert PASSWORD not in plan_of(frame)
    rows = frame.select("value.id", "value.name", "offset").orderBy("offset").collect()
    assert [tuple(row) for row in rows] == [(1, "é", 0), (None, None, 1)]
    written = frame.selectExpr(
        "cast(offset as string) as key", "if(value is null, null, struct(value.id, value.name)) as value"
    )
    written.write.format("moldau").options(**said, topic=target).mode("append").save()
    records = {row.key: row.value for row in topics.rows(target)}
    assert records[b"1"] is None
    found: Any = READ[name](registry, target, records[b"0"] or b"")
    assert (found if isinstance(found, dict) else {"id": found.id, "name": found.name}) == {"id": 1, "name": "é"}


def test_avro_in_and_out(
    spark: SparkSession, topics: Topics, registry_url: str, registry: SchemaRegistryClient
) -> None:
    check_both_ways(spark, topics, registry_url, registry, "avro")


@pytest.mark.long
@pytest.mark.parametrize("name", ["json", "protobuf"])
def test_the_other_formats_in_and_out(
    name: str, spark: SparkSession, topics: Topics, registry_url: str, registry: SchemaRegistryClient
) -> None:
    check_both_ways(spark, topics, registry_url, registry, name)


@pytest.mark.long
def test_it_is_the_same_with_apache_kafka(spark: SparkSession) -> None:
    with (
        running_broker("apache") as bootstrap,
        running_registry(bootstrap) as url,
        SchemaRegistryClient({"url": url}) as registry,
    ):
        for name in WRITE:
            check_both_ways(spark, Topics(bootstrap), url, registry, name)


@pytest.mark.long
def test_a_stream_keeps_its_columns_while_writers_move_on(
    spark: SparkSession, topics: Topics, registry_url: str, registry: SchemaRegistryClient, checkpoint: Path
) -> None:
    topic, copies = topics.create("evolving"), topics.create("copies")
    said = options(topics, registry_url, valueFormat="avro", subscribe=topic, onError="deadletter")
    topics.produce(topic, [avro_bytes(registry, topic, {"id": 1, "name": "a"})])
    frame = stream(spark, topics, **said)

    def run(frame: DataFrame) -> None:
        writer = frame.selectExpr("to_json(value) as value").writeStream.format("moldau")
        query = writer.options(**options(topics, registry_url), topic=copies)
        done = query.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
        assert done.awaitTermination(240)
        assert PASSWORD not in str(done.lastProgress)

    run(frame)
    topics.produce(topic, [avro_bytes(registry, topic, {"id": 2, "price": 2.5}, LATER_AVRO), b"text"])
    run(frame)
    topics.produce(topic, [avro_bytes(registry, topic, {"id": 3, "price": 3.5}, LATER_AVRO)])
    run(stream(spark, topics, **said))
    assert not [path for path in checkpoint.rglob("*") if path.is_file() and PASSWORD.encode() in path.read_bytes()]
    found = [json.loads(value or b"") for value in topics.values(copies)]
    assert found == [{"id": 1, "name": "a"}, {"id": 2}, {"id": 3, "price": 3.5}]
    (letter,) = topics.rows(f"{topic}.dead-letters")
    assert letter.value == b"text"
    assert b"no schema id" in (dict(letter.headers)["moldau.dead-letter.reason"] or b"")


@pytest.mark.long
def test_a_write_that_the_registry_refuses_writes_nothing(
    spark: SparkSession, topics: Topics, registry_url: str, registry: SchemaRegistryClient, checkpoint: Path
) -> None:
    source, target = topics.create("numbers"), topics.create("refused")
    registry.register_schema(f"{target}-value", Schema(json.dumps(AVRO), "AVRO"))
    topics.produce(source, [b"1"])
    frame = stream(spark, topics, subscribe=source).selectExpr("struct(true as id) as value")
    writer = frame.writeStream.format("moldau").options(
        **options(topics, registry_url, valueFormat="avro"), topic=target
    )
    with pytest.raises(Exception, match="incompatible with an earlier schema") as failed:
        writer.option("checkpointLocation", str(checkpoint)).start().awaitTermination(240)
    assert PASSWORD not in str(failed.value)
    assert topics.rows(target) == []


@pytest.fixture
def pipelines(spark: SparkSession, bootstrap: str, tmp_path: Path) -> Pipelines:
    return Pipelines(spark, bootstrap, tmp_path)


@pytest.mark.long
def test_a_pipeline_joins_a_table_and_writes_by_the_registry(
    topics: Topics, pipelines: Pipelines, registry_url: str, registry: SchemaRegistryClient
) -> None:
    orders, customers = topics.create("orders"), topics.create("customers")
    out = topics.name("enriched")
    for number in (1, 2):
        topics.produce(orders, [avro_bytes(registry, orders, {"id": number})])
        customer = json_bytes(registry, customers, {"id": number, "name": f"n{number}"})
        topics.produce(customers, [customer], key=b"%d" % number)
    path = pipelines.written(f"""
        set schema.registry.url = '{registry_url}';
        create stream orders from topic '{orders}' with (valueFormat = avro);
        create table customers from topic '{customers}' key (id) with (valueFormat = json);
        create sink enriched into topic '{out}' with (valueFormat = protobuf)
            as select o.id, c.name from orders o join customers c on o.id = c.id;
    """)
    outcome = pipelines.run(path)
    assert outcome.ended_well, outcome.said
    found = [read_proto(registry, out, value or b"") for value in topics.values(out)]
    assert sorted((one.id, one.name) for one in found) == [(1, "n1"), (2, "n2")]


@pytest.mark.long
def test_a_pipeline_asks_the_registry_before_anything_runs(
    topics: Topics, pipelines: Pipelines, registry_url: str, registry: SchemaRegistryClient
) -> None:
    orders, out = topics.create("orders"), topics.create("out")
    topics.produce(orders, [avro_bytes(registry, orders, {"id": 1})])
    registry.register_schema(f"{out}-value", Schema(json.dumps(JSON_SCHEMA), "JSON"))
    text = f"""
        set schema.registry.url = '{registry_url}';
        create stream orders from topic '{orders}' with (valueFormat = avro);
        create sink out into topic '{out}' with (valueFormat = json) as select cast(id as string) as id from orders;
    """
    with pytest.raises(PipelineError, match="4: sink out: column value: the registry would refuse its schema for"):
        pipelines.run(pipelines.written(text))
    with pytest.raises(PipelineError, match=r"3: orders: .*not found"):
        pipelines.run(pipelines.written(text.replace("valueFormat = avro", "valueFormat = avro, valueSubject = none")))
    assert topics.rows(out) == []


@pytest.mark.long
def test_change_events_come_by_the_registry_too(
    topics: Topics, pipelines: Pipelines, registry_url: str, registry: SchemaRegistryClient
) -> None:
    row = {
        "type": "record",
        "name": "Value",
        "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}],
    }
    envelope = {
        "type": "record",
        "name": "Envelope",
        "fields": [
            {"name": "before", "type": ["null", row], "default": None},
            {"name": "after", "type": ["null", "Value"], "default": None},
            {"name": "op", "type": "string"},
            {"name": "ts_ms", "type": ["null", "long"], "default": None},
        ],
    }
    changes, newest = topics.create("changes"), topics.name("newest")
    ann = {"id": 1, "name": "ann"}
    for event in ({"after": ann, "op": "c", "ts_ms": 1}, {"before": ann, "op": "d", "ts_ms": 2}):
        topics.produce(changes, [avro_bytes(registry, changes, event, envelope)])
    path = pipelines.written(f"""
        create stream changes from topic '{changes}' changes key (id)
            with (valueFormat = avro, schema.registry.url = '{registry_url}');
        create sink newest into topic '{newest}' key (id) upsert as select id, name, _op from changes;
    """)
    outcome = pipelines.run(path)
    assert outcome.ended_well, outcome.said
    assert [(row.key, row.value) for row in topics.rows(newest)] == [(b"1", b'{"id":1,"name":"ann"}'), (b"1", None)]
