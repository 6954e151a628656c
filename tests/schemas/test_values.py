"""Keys and values by a registry: what Confluent's serializers write we read, and the other way round."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import (
    SchemaRegistryClient,
    dual_schema_id_deserializer,
    header_schema_id_serializer,
    record_subject_name_strategy,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import json_format

from moldau.schemas import formats, protobuf
from moldau.schemas.model import InvalidValue, Json, SchemaType
from moldau.schemas.protobuf.compiler import find_protoc
from moldau.schemas.registry_client import RegistryClient, RegistryError, SchemaText
from moldau.schemas.subjects import SubjectNameStrategy
from moldau.schemas.values import ValueReader, ValueWriter, Writing
from tests.schemas.stand_in_registry import StandIn, running_stand_in

ORDER_PROTO = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
message Envelope { string id = 1; }
message Order {
  string id = 1;
  google.protobuf.Timestamp at = 2;
  map<string, int64> counts = 3;
  repeated Line lines = 4;
  message Line { string sku = 1; optional double price = 2; }
}
"""
ORDER: Json = {
    "id": "A-1",
    "at": "2026-01-02T03:04:05Z",
    "counts": {"a": "1"},
    "lines": [{"sku": "x", "price": 1.5}, {"sku": "y"}],
}
PERSON_AVRO = json.dumps(
    {
        "type": "record",
        "namespace": "people",
        "name": "Person",
        "fields": [{"name": "name", "type": "string"}, {"name": "age", "type": "int"}],
    }
)
PERSON_JSON = json.dumps(
    {
        "title": "Person",
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name"],
    }
)
PERSON: Json = {"name": "Ann", "age": 41}
VALUES: dict[str, Json] = {
    "shop.Order": ORDER,
    "shop.Order.Line": {"sku": "x", "price": 1.5},
    "shop.Envelope": {"id": "e"},
}
BOTH = [SchemaType.AVRO, SchemaType.JSON]
TEXTS = {SchemaType.AVRO: PERSON_AVRO, SchemaType.JSON: PERSON_JSON}


@pytest.fixture
def registry() -> Iterator[StandIn]:
    with running_stand_in() as stand_in:
        yield stand_in


@pytest.fixture
def client(registry: StandIn) -> Iterator[RegistryClient]:
    with RegistryClient({"url": registry.url, "max.retries": 0}) as client:
        yield client


@pytest.fixture
def theirs(registry: StandIn) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry.url}) as client:
        yield client


def context(headers: list[Any] | None = None) -> SerializationContext:
    return SerializationContext("orders", MessageField.VALUE, headers)


def order_class(name: str = "shop.Order") -> Any:
    schema = protobuf.parse(ORDER_PROTO)
    return schema.message_class(schema.message_indexes(name))


@pytest.mark.parametrize("name", ["shop.Order", "shop.Order.Line", "shop.Envelope"])
def test_their_protobuf_is_read(name: str, theirs: SchemaRegistryClient, client: RegistryClient) -> None:
    message = order_class(name)
    value = VALUES[name]
    serialize = ProtobufSerializer(message, theirs, {"use.deprecated.format": False})
    payload = serialize(json_format.ParseDict(value, message()), context())
    assert ValueReader(client).read("orders", False, payload) == value


@pytest.mark.parametrize("name", ["shop.Order", "shop.Order.Line", "shop.Envelope"])
def test_our_protobuf_is_read_by_them(name: str, theirs: SchemaRegistryClient, client: RegistryClient) -> None:
    value = VALUES[name]
    schema = SchemaText(SchemaType.PROTOBUF, ORDER_PROTO)
    payload, headers = ValueWriter(client).write("orders", False, value, schema=schema, message=name)
    deserialize = ProtobufDeserializer(order_class(name), {"use.deprecated.format": False}, theirs)
    assert json_format.MessageToDict(deserialize(payload, context())) == value
    assert headers == []


def test_what_they_register_is_what_we_register(theirs: SchemaRegistryClient, client: RegistryClient) -> None:
    """A descriptor in base64 and the normalized text are the same schema to a registry that normalizes."""
    message = order_class()
    ProtobufSerializer(message, theirs, {"use.deprecated.format": False})(message(), context())
    registered = protobuf.parse(client.by_id(1).schema.text)
    assert registered.normalized == protobuf.parse(ORDER_PROTO).normalized


@pytest.mark.parametrize("kind", BOTH)
def test_their_avro_and_json_are_read(kind: SchemaType, theirs: SchemaRegistryClient, client: RegistryClient) -> None:
    if kind is SchemaType.AVRO:
        payload = AvroSerializer(theirs, PERSON_AVRO)(PERSON, context())
    else:
        payload = JSONSerializer(PERSON_JSON, theirs)(PERSON, context())
    assert ValueReader(client).read("orders", False, payload) == PERSON


@pytest.mark.parametrize("kind", BOTH)
def test_our_avro_and_json_are_read_by_them(
    kind: SchemaType, theirs: SchemaRegistryClient, client: RegistryClient
) -> None:
    payload, _ = ValueWriter(client).write("orders", False, PERSON, schema=SchemaText(kind, TEXTS[kind]))
    if kind is SchemaType.AVRO:
        assert AvroDeserializer(theirs)(payload, context()) == PERSON
    else:
        assert JSONDeserializer(PERSON_JSON, schema_registry_client=theirs)(payload, context()) == PERSON


def test_ids_in_headers_are_read_from_them(theirs: SchemaRegistryClient, client: RegistryClient) -> None:
    message = order_class()
    conf = {"use.deprecated.format": False, "schema.id.serializer": header_schema_id_serializer}
    headers: list[tuple[str, bytes]] = []
    payload = ProtobufSerializer(message, theirs, conf)(json_format.ParseDict(ORDER, message()), context(headers))
    assert [name for name, _ in headers] == ["__value_schema_id"]
    assert ValueReader(client).read("orders", False, payload, headers) == ORDER


def test_ids_in_headers_are_read_by_them(theirs: SchemaRegistryClient, client: RegistryClient) -> None:
    writer = ValueWriter(client, Writing(ids_in_headers=True))
    schema = SchemaText(SchemaType.PROTOBUF, ORDER_PROTO)
    payload, headers = writer.write("orders", False, ORDER, schema=schema, message="Order")
    conf = {"use.deprecated.format": False, "schema.id.deserializer": dual_schema_id_deserializer}
    read = ProtobufDeserializer(order_class(), conf, theirs)(payload, context(headers))
    assert json_format.MessageToDict(read) == ORDER
    assert ValueReader(client).read("orders", False, payload, headers) == ORDER


def test_a_registry_without_guids_can_not_have_ids_in_headers(registry: StandIn, client: RegistryClient) -> None:
    registry.guids = False
    writer = ValueWriter(client, Writing(ids_in_headers=True))
    with pytest.raises(InvalidValue, match="no GUIDs"):
        writer.write("orders", False, {"id": "a"}, schema=SchemaText(SchemaType.PROTOBUF, ORDER_PROTO))


def test_subjects_are_named_as_they_name_them(
    registry: StandIn, theirs: SchemaRegistryClient, client: RegistryClient
) -> None:
    conf = {"use.deprecated.format": False, "subject.name.strategy": record_subject_name_strategy}
    message = order_class("shop.Envelope")
    ProtobufSerializer(message, theirs, conf)(message(), context())
    writer = ValueWriter(client, Writing(value_strategy=SubjectNameStrategy.RECORD_NAME))
    writer.write("orders", False, {"id": "a"}, schema=SchemaText(SchemaType.PROTOBUF, ORDER_PROTO))
    assert set(registry.subjects) == {"shop.Envelope"}


def test_a_value_is_written_by_the_latest_version_without_a_schema(registry: StandIn, client: RegistryClient) -> None:
    writer = ValueWriter(client)
    with pytest.raises(RegistryError, match="Subject not found"):
        writer.write("orders", True, {"id": "a"})
    client.register("orders-key", SchemaText(SchemaType.PROTOBUF, ORDER_PROTO))
    payload, _ = writer.write("orders", True, {"id": "a"})
    assert payload == bytes.fromhex("00 00000001 00 0a0161")
    assert ValueReader(client).read("orders", True, payload) == {"id": "a"}
    by_record = ValueWriter(client, Writing(key_strategy=SubjectNameStrategy.RECORD_NAME))
    with pytest.raises(InvalidValue, match="give the schema"):
        by_record.write("orders", True, {"id": "a"})


def test_a_schema_that_is_not_registered_is_refused_without_auto_register(client: RegistryClient) -> None:
    schema = SchemaText(SchemaType.PROTOBUF, ORDER_PROTO)
    writer = ValueWriter(client, Writing.of({"auto.register.schemas": "false"}))
    with pytest.raises(RegistryError, match="40401"):
        writer.write("orders", False, {"id": "a"}, schema=schema)
    client.register("orders-value", schema)
    assert writer.write("orders", False, {"id": "a"}, schema=schema)[0] == bytes.fromhex("00 00000001 00 0a0161")


def test_a_value_is_written_by_the_id_that_is_given(client: RegistryClient) -> None:
    client.register("anything", SchemaText(SchemaType.PROTOBUF, ORDER_PROTO))
    writer = ValueWriter(client, Writing.of({"use.schema.id": 1}))
    assert writer.write("orders", False, {"id": "a"})[0] == bytes.fromhex("00 00000001 00 0a0161")


def test_a_context_names_the_subjects_and_the_ids(registry: StandIn, client: RegistryClient) -> None:
    writing = Writing.of({"schema.context": "staging"})
    payload, _ = ValueWriter(client, writing).write(
        "orders", False, {"id": "a"}, schema=SchemaText(SchemaType.PROTOBUF, ORDER_PROTO)
    )
    assert list(registry.subjects) == [":.staging:orders-value"]
    ValueReader(client, context=writing.context).read("orders", False, payload)
    assert registry.asked[-1][1] == "/schemas/ids/1?subject=%3A.staging%3A"


def test_no_payload_is_no_value(client: RegistryClient) -> None:
    assert ValueReader(client).read("orders", False, None) is None
    assert ValueWriter(client).write("orders", False, None) == (None, [])


def test_a_payload_that_names_no_schema_is_an_invalid_value(client: RegistryClient) -> None:
    with pytest.raises(InvalidValue, match="starts with 0x7b: no schema id"):
        ValueReader(client).read("orders", False, b'{"a": 1}')


def test_an_unknown_id_is_an_invalid_value_and_asked_for_once_in_a_while(
    registry: StandIn, client: RegistryClient
) -> None:
    now = [0.0]
    reader = ValueReader(client, monotonic=lambda: now[0])
    for seconds, asked in ((0.0, 1), (9.0, 1), (11.0, 2)):
        now[0] = seconds
        with pytest.raises(InvalidValue, match="the value of topic orders was written by the schema of id 7"):
            reader.read("orders", False, bytes.fromhex("00 00000007 00"))
        assert len(registry.asked) == asked


def test_a_registry_that_fails_is_no_fault_of_the_value(registry: StandIn, client: RegistryClient) -> None:
    registry.failing = [500]
    with pytest.raises(RegistryError, match="not now"):
        ValueReader(client).read("orders", False, bytes.fromhex("00 00000007 00"))


@pytest.mark.parametrize("payload", ["00 00000001 04 00", "00 00000001 02 0a", "00 00000001 00 ff", "00 00000001"])
def test_bytes_that_do_not_fit_the_schema_are_an_invalid_value(payload: str, client: RegistryClient) -> None:
    client.register("orders-value", SchemaText(SchemaType.PROTOBUF, ORDER_PROTO))
    with pytest.raises(InvalidValue):
        ValueReader(client).read("orders", False, bytes.fromhex(payload))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"auto.register": "true"}, "Unknown setting 'auto.register' of a serializer"),
        ({"auto.register.schemas": "yes"}, "Invalid value 'yes' for auto.register.schemas: expected true or false"),
        ({"schema.id.serializer": "footer"}, "expected header or prefix"),
        ({"value.subject.name.strategy": "x"}, "unknown subject name strategy"),
    ],
)
def test_settings_that_can_not_be_are_refused(settings: dict[str, str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Writing.of(settings)


def test_settings_have_confluents_names() -> None:
    settings = {
        "use.latest.version": "true",
        "normalize.schemas": True,
        "schema.id.serializer": "io.confluent.kafka.serializers.schema.id.HeaderSchemaIdSerializer",
        "key.subject.name.strategy": "io.confluent.kafka.serializers.subject.RecordNameStrategy",
    }
    assert Writing.of(settings) == Writing(
        use_latest_version=True, normalize=True, ids_in_headers=True, key_strategy=SubjectNameStrategy.RECORD_NAME
    )


UNIT_PROTO = 'syntax = "proto3"; package moldau.generated; enum Unit { KG = 0; METRE = 1; }'
ITEM_PROTO = """
syntax = "proto3";
package moldau.generated;
import "moldau_generated/unit.proto";
message Header {}
message Item { string two_words = 1; Unit unit = 2; map<string, Part> parts = 3; message Part { sint32 n = 1; } }
"""


def test_generated_classes_with_references_are_read(
    theirs: SchemaRegistryClient, client: RegistryClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "moldau_generated"
    folder.mkdir()
    (folder / "unit.proto").write_text(UNIT_PROTO)
    (folder / "item.proto").write_text(ITEM_PROTO)
    files = ["moldau_generated/unit.proto", "moldau_generated/item.proto"]
    subprocess.run([find_protoc(), "-I.", "--python_out=.", *files], cwd=tmp_path, check=True)
    monkeypatch.syspath_prepend(str(tmp_path))
    generated = import_module("moldau_generated.item_pb2")

    item = generated.Item(two_words="x", unit=1, parts={"a": generated.Item.Part(n=-1)})
    payload = ProtobufSerializer(generated.Item, theirs, {"use.deprecated.format": False})(item, context())
    value: Json = {"twoWords": "x", "unit": "METRE", "parts": {"a": {"n": -1}}}
    assert ValueReader(client).read("orders", False, payload) == value
    assert client.subjects() == ["moldau_generated/unit.proto", "orders-value"]

    stored = client.version("orders-value").schema
    ours, _ = ValueWriter(client, Writing(auto_register=False)).write(
        "orders", False, value, schema=stored, message="Item"
    )
    assert ours == payload
    deserialize = ProtobufDeserializer(generated.Item, {"use.deprecated.format": False}, theirs)
    assert deserialize(ours, context()) == item


@pytest.mark.parametrize("value", [{"\ud800": "a"}, {"a": "\ud800"}], ids=["name", "text"])
@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (SchemaType.AVRO, '{"type":"map","values":"string"}'),
        (SchemaType.AVRO, '["null",{"type":"map","values":["null","string"]}]'),
        (SchemaType.JSON, "{}"),
        (SchemaType.PROTOBUF, 'syntax = "proto3"; message M { map<string, string> m = 1; }'),
    ],
)
def test_half_a_surrogate_pair_is_no_text(kind: SchemaType, text: str, value: dict[str, str]) -> None:
    given: Any = {"m": value} if kind is SchemaType.PROTOBUF else value
    with pytest.raises(InvalidValue):
        formats.parse(kind, text).encode(given)
