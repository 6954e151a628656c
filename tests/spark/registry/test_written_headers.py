"""Ids in headers, as Confluent's serializers write them."""

from __future__ import annotations

import uuid
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from moldau.schemas.protobuf.schema import parse
from moldau.spark.columns import HEADERS_TYPE
from moldau.spark.formats import FormatError, decoder_of, encoder_of
from moldau.spark.formats.interface import FramedDecoder, SideOptions
from moldau.spark.formats.registry.headers import with_header
from moldau.spark.formats.registry.options import client_of
from moldau.spark.formats.registry.registering import registered
from moldau.spark.registry_names import login_of
from moldau.spark.writing.rows_to_records import RowsToRecords

ROW = pa.struct([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())])
HEADER = "__value_schema_id"


def read_by_confluent(registry: SchemaRegistryClient, name: str, topic: str, row: dict[str, Any]) -> Any:
    told = [(header["key"], header["value"]) for header in row["headers"]]
    where = SerializationContext(topic, MessageField.VALUE, told)
    if name == "avro":
        return AvroDeserializer(registry)(row["value"], where)
    text = registry.get_latest_version(f"{topic}-value").schema.schema_str
    if name == "json":
        return JSONDeserializer(text, schema_registry_client=registry)(row["value"], where)
    made = ProtobufDeserializer(parse(text).message_class(), {"use.deprecated.format": False}, registry)
    found = made(row["value"], where)
    return {"id": found.id, "name": found.name}


@pytest.mark.parametrize("name", ["avro", "json", "protobuf"])
def test_confluents_readers_find_the_id_in_its_header(
    name: str, registry: SchemaRegistryClient, registry_url: str
) -> None:
    topic = f"orders-{uuid.uuid4().hex[:8]}"
    said = {"schema.registry.url": registry_url, "valueRegistryTopic": topic, "schema.id.serializer": "header"}
    told = registered(name, SideOptions("value", said), ROW)
    shape = RowsToRecords(topic, {"value": encoder_of(name, told, side="value")})
    stale = [{"key": HEADER, "value": b"stale"}, {"key": "from", "value": b"x"}]
    batch = pa.RecordBatch.from_arrays(
        [pa.array([{"id": 1, "name": "émile"}, None], ROW), pa.array([stale, stale], HEADERS_TYPE)],
        ["value", "headers"],
    )
    (records,) = shape.records(batch)
    assert records.headers is not None
    values, headers = records.values, records.headers
    first, second = ({"value": values[row].as_py(), "headers": headers[row].as_py()} for row in (0, 1))
    assert [pair["key"] for pair in first["headers"]] == ["from", HEADER]
    assert second == {"value": None, "headers": stale[1:]}  # a tombstone has no schema
    assert read_by_confluent(registry, name, topic, first) == {"id": 1, "name": "émile"}
    decoder = decoder_of(name, said, side="value")
    assert isinstance(decoder, FramedDecoder)
    found = decoder.decode_framed(values.cast(pa.binary()), headers)
    assert found.failed is None
    assert [row and row["id"] for row in found.values.to_pylist()] == [1, None]
    client_of(login_of(said)).close()


def test_keys_have_headers_of_their_own(registry: SchemaRegistryClient, registry_url: str) -> None:
    topic = f"orders-{uuid.uuid4().hex[:8]}"
    java = "io.confluent.kafka.serializers.schema.id.HeaderSchemaIdSerializer"
    said = {"schema.registry.url": registry_url, "keyRegistryTopic": topic, "key.schema.id.serializer": java}
    told = registered("avro", SideOptions("key", said), pa.string())
    shape = RowsToRecords(topic, {"key": encoder_of("avro", told, side="key")})
    (records,) = shape.records(pa.RecordBatch.from_pydict({"key": ["a longer key"], "value": [b"v"]}))
    assert records.keys is not None
    assert records.headers is not None
    pairs = [(pair["key"], pair["value"]) for pair in records.headers[0].as_py()]
    where = SerializationContext(topic, MessageField.KEY, pairs)
    assert AvroDeserializer(registry)(records.keys[0].as_py(), where) == "a longer key"
    client_of(login_of(said)).close()


def test_what_else_it_might_be_called_is_refused() -> None:
    said = {"schema.registry.url": "http://127.0.0.1:1", "valueSubject": "s", "schema.id.serializer": "footer"}
    with pytest.raises(FormatError, match=r"option schema.id.serializer = 'footer': allowed are prefix and header"):
        registered("avro", SideOptions("value", said), ROW)


def test_rows_without_headers_and_parts_of_a_column() -> None:
    payloads = pa.array([b"a", None, b"b"])
    made = with_header(None, HEADER, b"id", payloads)
    assert [len(row) for row in made.to_pylist()] == [1, 0, 1]
    pair = {"key": "a", "value": None}
    told = pa.array([[], [pair], None, [pair, pair]], HEADERS_TYPE).slice(1)
    made = with_header(told, HEADER, b"id", payloads)
    assert made.to_pylist() == [
        [pair, {"key": HEADER, "value": b"id"}],
        [],
        [pair, pair, {"key": HEADER, "value": b"id"}],
    ]
    assert with_header(told.slice(3), HEADER, b"id", payloads.slice(3)).to_pylist() == []
