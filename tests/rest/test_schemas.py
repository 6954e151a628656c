"""Avro, JSON Schema and Protobuf by a registry: what the proxy writes Confluent's deserializers read, and back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from moldau.web.logins import hashed
from tests.rest.proxies import V2, WAIT_S_MAX, Proxy, eventually, running_proxy
from tests.rest.reading import records
from tests.spark.registries import running_registry

pytestmark = pytest.mark.xdist_group("rest")

AVRO = '{"type":"record","name":"Order","fields":[{"name":"id","type":"string"},{"name":"n","type":"long"}]}'
JSON_SCHEMA = '{"type":"object","title":"Order","properties":{"n":{"type":"integer"}},"required":["n"]}'
PROTOBUF = 'syntax = "proto3"; message Order { string id = 1; int64 n = 2; }'
SCHEMAS = {"avro": AVRO, "jsonschema": JSON_SCHEMA, "protobuf": PROTOBUF}
VALUES: dict[str, dict[str, Any]] = {
    "avro": {"id": "a", "n": 9007199254740993},
    "jsonschema": {"n": 7},
    "protobuf": {"id": "a", "n": "9007199254740993"},
}


ANNA = ("anna", "secret")


@dataclass(frozen=True, slots=True)
class Both:
    proxy: Proxy
    registry: SchemaRegistryClient
    registry_url: str


@pytest.fixture(scope="module")
def both(kafka: str) -> Iterator[Both]:
    with (
        running_registry(kafka) as url,
        running_proxy(kafka, "--registry", url) as proxy,
        SchemaRegistryClient({"url": url}) as registry,
    ):
        yield Both(proxy, registry, url)


def media_type(kind: str) -> str:
    return f"application/vnd.kafka.{kind}.v2+json"


def context(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE)


@pytest.mark.parametrize("kind", [*SCHEMAS])
def test_v2_writes_and_reads(both: Both, topic: str, kind: str) -> None:
    both.proxy.create_topic(topic)
    body = {"value_schema": SCHEMAS[kind], "records": [{"value": VALUES[kind]}, {"value": None}]}
    answer = both.proxy.post(f"/topics/{topic}", body, kind=media_type(kind))
    assert answer.status == 200, answer.content
    schema_id = answer.json["value_schema_id"]
    assert both.registry.get_latest_version(f"{topic}-value").schema_id == schema_id
    again = {"value_schema_id": schema_id, "records": [{"value": VALUES[kind]}]}
    assert both.proxy.post(f"/topics/{topic}", again, kind=media_type(kind)).json["value_schema_id"] == schema_id
    found = records(both.proxy.bootstrap, topic, 3)
    assert found[0].value()[:5] == b"\0" + schema_id.to_bytes(4, "big")
    assert found[1].value() is None
    group = f"/consumers/{topic}"
    both.proxy.post(group, {"name": "i", "format": kind, "auto.offset.reset": "earliest"}, kind=V2)
    path = f"{group}/instances/i"
    both.proxy.post(f"{path}/assignments", {"partitions": [{"topic": topic, "partition": 0}]}, kind=V2)
    read: list[Any] = []

    def is_read() -> bool:
        read.extend(each["value"] for each in both.proxy.get(f"{path}/records", accept=media_type(kind)).json)
        return len(read) == 3

    eventually(is_read)
    assert read == [VALUES[kind], None, VALUES[kind]]
    assert both.proxy.ask("DELETE", path).status == 204


def test_confluents_deserializers_read_what_is_written(both: Both, topic: str) -> None:
    path = both.proxy.create_topic(topic)
    wanted = [
        {"value": {"type": "AVRO", "schema": AVRO, "data": VALUES["avro"]}},
        {"value": {"type": "JSONSCHEMA", "subject": f"{topic}-json", "schema": JSON_SCHEMA, "data": {"n": 7}}},
        {"value": {"data": VALUES["avro"]}},
        {"value": {"schema_version": 1, "data": VALUES["avro"]}},
        {"value": {"type": "AVRO", "schema": AVRO, "subject_name_strategy": "RECORD_NAME", "data": VALUES["avro"]}},
    ]
    lines = both.proxy.post(f"{path}/records", "".join(map(json.dumps, wanted))).lines
    assert [each["error_code"] for each in lines] == [200] * 5, lines
    latest = both.registry.get_latest_version(f"{topic}-value")
    assert lines[0]["value"]["schema_id"] == latest.schema_id
    assert (lines[0]["value"]["subject"], lines[0]["value"]["schema_version"]) == (f"{topic}-value", 1)
    assert [each["value"]["type"] for each in lines] == ["AVRO", "JSONSCHEMA", "AVRO", "AVRO", "AVRO"]
    assert lines[4]["value"]["subject"] == "Order"
    found = [each.value() for each in records(both.proxy.bootstrap, topic, 5)]
    avro = AvroDeserializer(both.registry)
    assert [avro(found[each], context(topic)) for each in (0, 2, 3, 4)] == [VALUES["avro"]] * 4
    assert JSONDeserializer(JSON_SCHEMA, lambda value, _: value)(found[1], context(topic)) == {"n": 7}


def test_a_stream_shows_what_confluents_serializer_wrote(both: Both, topic: str) -> None:
    path = both.proxy.create_topic(topic)
    producer = Producer({"bootstrap.servers": both.proxy.bootstrap})
    serializer = AvroSerializer(both.registry, AVRO)
    producer.produce(topic, key=b"k", value=serializer(VALUES["avro"], context(topic)))
    producer.produce(topic, value=b"\0\x7f\xff\xff\xffnobody knows this id")
    producer.flush(WAIT_S_MAX)
    schema_id = both.registry.get_latest_version(f"{topic}-value").schema_id
    query = "from=beginning&until=end"
    shown = [each["value"] for each in both.proxy.get(f"{path}/records?{query}").lines]
    assert shown[0] == {"type": "AVRO", "schema_id": schema_id, "data": VALUES["avro"]}
    assert shown[1]["type"] in ("BINARY", "STRING")
    asked = [each["value"] for each in both.proxy.get(f"{path}/records?{query}&value_format=schema").lines]
    assert "can't be had" in asked[1]["error"]


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ({"type": "AVRO", "schema": AVRO, "data": {"id": 7}}, 42203),
        ({"type": "AVRO", "schema": '{"type":"cake"}', "data": 1}, 42205),
        ({"schema_id": 1_000_000, "data": 1}, 42207),
        ({"data": 1}, 42207),
        ({"type": "AVRO", "schema": AVRO, "schema_id": 1, "data": 1}, 400),
        ({"type": "AVRO", "data": 1}, 400),
        ({"type": "JSON", "schema": AVRO, "data": 1}, 400),
        ({"subject_name_strategy": "RECORD_NAME", "data": 1}, 400),
    ],
)
def test_what_does_not_fit(both: Both, topic: str, value: dict[str, Any], code: int) -> None:
    path = both.proxy.create_topic(topic)
    (line,) = both.proxy.post(f"{path}/records", {"value": value}).lines
    assert line["error_code"] == code, line


@pytest.mark.parametrize(
    "names",
    [{"subject": "orders-value"}, {"subject_name_strategy": "RECORD_NAME"}],
    ids=["subject", "record name"],
)
def test_a_user_of_some_topics_registers_nothing_elsewhere(
    both: Both, topic: str, tmp_path: Path, names: dict[str, str]
) -> None:
    """The proxy's login may register anywhere: its users may where they may write."""
    both.proxy.create_topic(topic)
    users = tmp_path / "users"
    users.write_text(f"anna: {hashed('secret')}, write={topic}\n")
    schema = json.dumps({**json.loads(JSON_SCHEMA), "title": "orders-value"})
    value = {"type": "JSONSCHEMA", "schema": schema, "data": {"n": 7}}
    registry = both.registry_url
    with running_proxy(both.proxy.bootstrap, "--registry", registry, "--users", str(users)) as proxy:
        cluster = f"/v3/clusters/{proxy.get('/v3/clusters', login=ANNA).json['data'][0]['cluster_id']}"
        path = f"{cluster}/topics/{topic}/records"
        assert proxy.post(path, {"value": {**value, **names}}, login=ANNA).lines[0]["error_code"] == 40301
        assert "orders-value" not in both.registry.get_subjects()
        assert proxy.post(path, {"value": value}, login=ANNA).lines[0]["error_code"] == 200
        known = {**value, "subject": f"{topic}-value"}
        assert proxy.post(path, {"value": known}, login=ANNA).lines[0]["error_code"] == 200
