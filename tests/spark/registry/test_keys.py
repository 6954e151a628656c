"""Tables of topics whose keys are framed by a registry: one key has other bytes by each schema that wrote it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from tests.spark.pipelines.pipelines import Pipelines
from tests.spark.registry.serializing import json_bytes
from tests.spark.topics import Topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEY: dict[str, Any] = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "long"}]}
LATER_KEY: dict[str, Any] = {
    **KEY,
    "fields": [*KEY["fields"], {"name": "region", "type": ["null", "string"], "default": None}],
}


@pytest.fixture
def pipelines(spark: SparkSession, bootstrap: str, tmp_path: Path) -> Pipelines:
    return Pipelines(spark, bootstrap, tmp_path)


def key_bytes(registry: SchemaRegistryClient, topic: str, key: int, schema: dict[str, Any]) -> bytes:
    made: bytes = AvroSerializer(registry, json.dumps(schema))(
        {"id": key}, SerializationContext(topic, MessageField.KEY)
    )
    return made


@pytest.mark.long
def test_a_key_is_what_it_means_whatever_schema_wrote_it(
    topics: Topics, pipelines: Pipelines, registry_url: str, registry: SchemaRegistryClient
) -> None:
    orders, customers, out = topics.create("orders"), topics.create("customers", partitions=2), topics.name("enriched")

    def put(number: int, name: str | None, schema: dict[str, Any], partition: int) -> None:
        value = None if name is None else json_bytes(registry, customers, {"id": number, "name": name})
        topics.produce(customers, [value], key=key_bytes(registry, customers, number, schema), partition=partition)

    for number in (1, 2, 3):
        put(number, f"old{number}", KEY, 0)
    put(2, "new2", LATER_KEY, 1)
    put(3, None, LATER_KEY, 1)
    path = pipelines.written(f"""
        set schema.registry.url = '{registry_url}';
        create stream orders from topic '{orders}'
            with (valueFormat = json, valueSchema = 'id bigint, round int', schema.registry.url = '');
        create table customers from topic '{customers}' key (id)
            with (keyFormat = avro, valueFormat = json);
        create sink enriched into topic '{out}' with (valueFormat = string)
            as select concat_ws(' ', o.round, o.id, c.name) as value from orders o left join customers c on o.id = c.id;
    """)

    def found(turn: int) -> list[str]:
        topics.produce(orders, [json.dumps({"id": number, "round": turn}).encode() for number in (1, 2, 3, 4)])
        outcome = pipelines.run(path)
        assert outcome.ended_well, outcome.said
        told = sorted((value or b"").decode() for value in topics.values(out))
        return [line.removeprefix(f"{turn} ") for line in told if line.startswith(f"{turn} ")]

    assert found(1) == ["1 old1", "2 new2", "3", "4"]
    put(1, None, LATER_KEY, 1)  # these are kept beside the snapshot
    put(3, "back3", KEY, 0)
    put(4, "late4", KEY, 0)
    put(4, "later4", LATER_KEY, 1)
    assert found(2) == ["1", "2 new2", "3 back3", "4 later4"]
