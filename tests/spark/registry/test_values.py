"""Columns by a registry, without a Spark: what Confluent's serializers write is read, and the other way round."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import (
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    header_schema_id_serializer,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from moldau.schemas.framing import write_id
from moldau.schemas.registry_client import RegistryUnreachable
from moldau.spark.columns import HEADERS_TYPE
from moldau.spark.formats import EncodingFailed, FormatError, decoder_of, encoder_of
from moldau.spark.formats.interface import Decoded, FramedDecoder, SideOptions
from moldau.spark.formats.registry.decoder import RegistryDecoder, UnknownWriter, payload_decoder
from moldau.spark.formats.registry.framed import Written
from moldau.spark.formats.registry.options import client_of
from moldau.spark.formats.registry.registering import check_registrable, registered
from moldau.spark.formats.type_names import spark_name
from moldau.spark.registry_names import login_of
from moldau.spark.sql.peeking import registry_options
from moldau.spark.sql.refusals import Refused
from tests.spark.registry.serializing import (
    AVRO,
    LATER_AVRO,
    LATER_JSON_SCHEMA,
    LATER_PROTO,
    avro_bytes,
    json_bytes,
    proto_bytes,
    read_avro,
    read_json,
    read_proto,
)

WRITERS: dict[str, tuple[Callable[..., bytes], Any, str]] = {
    "avro": (avro_bytes, LATER_AVRO, "struct<id:bigint,name:string,at:timestamp,price:double>"),
    "json": (json_bytes, LATER_JSON_SCHEMA, "struct<id:bigint,name:string,price:double>"),
    "protobuf": (proto_bytes, LATER_PROTO, "struct<id:bigint,name:string,price:double>"),
}
READERS = {"avro": read_avro, "json": read_json, "protobuf": read_proto}
ROW = pa.struct(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("name", pa.string()),
        ("tags", pa.list_(pa.string())),
        ("one", pa.struct([("x", pa.int32())])),
    ]
)


@pytest.fixture
def topic() -> str:
    return f"orders-{uuid.uuid4().hex[:8]}"


class Values:
    """One topic's values."""

    def __init__(self, url: str, topic: str) -> None:
        self.options = {"schema.registry.url": url, "valueRegistryTopic": topic}

    def decode(self, name: str, *values: bytes | None, **options: str) -> Decoded:
        decoder = decoder_of(name, {**self.options, **options}, side="value")
        return decoder.decode(pa.array(values, pa.binary()))

    def encode(self, name: str, rows: list[Any], kind: pa.DataType, **options: str) -> list[bytes | None]:
        said = {**self.options, **options}
        check_registrable(name, SideOptions("value", said), kind)
        told = registered(name, SideOptions("value", said), kind)
        # As a task has it: with what was registered, and without the registry.
        found: list[bytes | None] = encoder_of(name, told, side="value").encode(pa.array(rows, kind)).to_pylist()
        return found


@pytest.fixture
def values(registry_url: str, topic: str) -> Iterator[Values]:
    made = Values(registry_url, topic)
    yield made
    client_of(login_of(made.options)).close()


@pytest.mark.parametrize("name", list(WRITERS))
def test_what_confluents_serializers_write_is_columns(
    name: str, registry: SchemaRegistryClient, values: Values, topic: str
) -> None:
    write, later, expected = WRITERS[name]
    old = write(registry, topic, {"id": 1, "name": "a"})
    pinned = decoder_of(name, values.options, side="value")
    new = write(registry, topic, {"id": 2, "price": 1.5}, later)
    found = values.decode(name, new, None, old, b"text", write_id(1 << 20) + b"\0x", new)
    assert spark_name(found.values.type) == expected
    price = None if name != "protobuf" else 0.0
    rows = [row and (row["id"], row["name"], row["price"]) for row in found.values.to_pylist()]
    assert rows == [(2, None, 1.5), None, (1, "a", price), None, None, (2, None, 1.5)]
    assert found.failed is not None
    assert found.failed.to_pylist() == [False, False, False, True, True, False]
    assert "value: the payload starts with 0x74: no schema id" in found.reasons[0]
    assert f"value: the registry has no schema {1 << 20}" in found.reasons[1]
    # A writer that moves on is read by the schema that the columns were made of.
    before = pinned.decode(pa.array([new, old], pa.binary())).values.to_pylist()
    assert [(row["id"], row["name"], "price" in row) for row in before] == [(2, None, False), (1, "a", False)]
    first = values.decode(name, old, valueSchemaVersion="1")
    assert spark_name(first.values.type) == expected.replace(",price:double", "")


@pytest.mark.parametrize("name", list(READERS))
def test_confluents_deserializers_read_what_is_written(
    name: str, registry: SchemaRegistryClient, values: Values, topic: str
) -> None:
    rows = [{"id": 1, "name": "é", "tags": ["a"], "one": {"x": 5}}, None, {"id": 2, "tags": []}]
    first, none, second = values.encode(name, rows, ROW)
    assert none is None
    assert first is not None
    found = READERS[name](registry, topic, first)
    if name == "protobuf":
        assert (found.id, found.name, list(found.tags), found.one.x) == (1, "é", ["a"], 5)
    else:
        assert found == rows[0]
    again = values.decode(name, first, none, second).values.to_pylist()
    assert [row and (row["id"], row["name"], row["tags"]) for row in again] == [(1, "é", ["a"]), None, (2, None, [])]


@pytest.mark.parametrize("name", list(READERS))
def test_a_frame_evolves_as_the_subject_allows(
    name: str, registry: SchemaRegistryClient, values: Values, topic: str
) -> None:
    values.encode(name, [], ROW)
    more = pa.struct([("new", pa.string()), *ROW])
    values.encode(name, [], more)
    assert registry.get_latest_version(f"{topic}-value").version == 2
    other = pa.struct([("id", pa.string())])
    for refuse in (check_registrable, registered):
        with pytest.raises(FormatError, match="column value: "):
            refuse(name, SideOptions("value", values.options), other)
    assert len(registry.get_versions(f"{topic}-value")) == 2


def test_the_registrys_words_are_told(values: Values) -> None:
    values.encode("avro", [], ROW)
    with pytest.raises(FormatError) as failed:
        registered("avro", SideOptions("value", values.options), pa.struct([("id", pa.bool_())]))
    assert "incompatible with an earlier schema for subject" in str(failed.value)
    assert " of the registry at http://" in str(failed.value)


def test_the_record_of_the_subject_keeps_its_name(registry: SchemaRegistryClient, values: Values, topic: str) -> None:
    avro_bytes(registry, topic, {"id": 1})
    kind = pa.struct(
        [pa.field("id", pa.int64(), nullable=False), ("name", pa.string()), ("at", pa.timestamp("ms", "UTC"))]
    )
    with pytest.raises(FormatError, match="would refuse"):
        values.encode("avro", [], pa.struct([("id", pa.string())]))
    (written,) = values.encode("avro", [{"id": 7}], kind, **{"use.latest.version": "true"})
    assert read_avro(registry, topic, written or b"") == {"id": 7, "name": None, "at": None}
    assert registry.get_latest_version(f"{topic}-value").version == 1
    derived = values.encode("avro", [{"id": 8}], pa.struct([*list(kind)[:2], ("new", pa.string())]))
    assert read_avro(registry, topic, derived[0] or b"")["id"] == 8
    assert '"name":"Order"' in registry.get_latest_version(f"{topic}-value").schema.schema_str.replace(" ", "")


def test_nothing_is_registered_where_that_was_said(registry: SchemaRegistryClient, values: Values, topic: str) -> None:
    quiet = {"auto.register.schemas": "false"}
    with pytest.raises(FormatError, match=r"column value: .*not found"):
        values.encode("avro", [], ROW, **quiet)
    assert f"{topic}-value" not in registry.get_subjects()
    values.encode("avro", [], ROW)
    assert values.encode("avro", [{"id": 1}], ROW, **quiet)[0] is not None


def test_members_that_a_json_schema_requires(registry: SchemaRegistryClient, values: Values, topic: str) -> None:
    json_bytes(registry, topic, {"id": 1})
    latest, kind = {"use.latest.version": "true"}, pa.struct([("id", pa.int64()), ("name", pa.string())])
    (written,) = values.encode("json", [{"id": 5, "name": None}], kind, **latest)
    assert read_json(registry, topic, written or b"") == {"id": 5}
    with pytest.raises(
        EncodingFailed, match='value: row 1: it does not fit the schema: at the root: "id" is a required property'
    ):
        values.encode("json", [{"id": 5}, {"name": "a"}], kind, **latest)
    unjudged = values.encode("json", [{"name": "a"}], kind, **latest, **{"json.fail.invalid.schema": "false"})
    assert (unjudged[0] or b"")[5:] == b'{"name":"a"}'
    with pytest.raises(FormatError, match="does not fit the schema"):
        values.encode("json", [], pa.struct([("id", pa.string())]), **latest)


def test_a_given_schema_is_the_one_that_is_registered(
    registry: SchemaRegistryClient, values: Values, topic: str
) -> None:
    kind = pa.struct([("id", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
    at = datetime(2024, 1, 1, tzinfo=UTC)
    (written,) = values.encode("avro", [{"id": 1, "at": at}], kind, valueAvroSchema=json.dumps(AVRO))
    assert read_avro(registry, topic, written or b"") == {"id": 1, "name": None, "at": at}


def test_what_is_wrong_is_told_before_anything_is_read(
    registry: SchemaRegistryClient, values: Values, topic: str
) -> None:
    with pytest.raises(FormatError, match=f"Subject '{topic}-value' not found"):
        values.decode("avro")
    avro_bytes(registry, topic, {"id": 1})
    with pytest.raises(FormatError, match=f"valueFormat = json: the schema of subject {topic}-value is AVRO, not JSON"):
        values.decode("json")
    with pytest.raises(FormatError, match="Version 9 not found"):
        values.decode("avro", valueSchemaVersion="9")
    gone = {"schema.registry.url": "http://127.0.0.1:1", "schema.registry.max.retries": "0"}
    with pytest.raises(RegistryUnreachable, match="no schema registry answers at"):
        values.decode("avro", **gone)


def test_messages_beside_the_first(registry: SchemaRegistryClient, values: Values, topic: str) -> None:
    two = 'syntax = "proto3"; package shop; message A { int32 a = 1; message In { string b = 1; } }'
    first = proto_bytes(registry, topic, {"a": 1}, two)
    schema_id = registry.get_latest_version(f"{topic}-value").schema_id
    nested = write_id(schema_id, (0, 0)) + b"\x0a\x01x"
    found = values.decode("protobuf", first, nested)
    assert found.values.to_pylist() == [{"a": 1}, None]
    assert found.reasons == ["value: a message shop.A.In, and the columns are of shop.A (option valueRecordName)"]
    inner = values.decode("protobuf", first, nested, valueRecordName="shop.A.In")
    assert inner.values.to_pylist() == [None, {"b": "x"}]


def test_a_session_of_sql_sees_what_values_are(
    registry: SchemaRegistryClient, registry_url: str, values: Values, topic: str
) -> None:
    settings = {"schema.registry.url": registry_url}
    assert values.options.items() >= settings.items()
    avro, json_value = avro_bytes(registry, topic, {"id": 1}), json_bytes(registry, f"{topic}-json", {"id": 1})
    assert registry_options([avro, None, avro], settings) == {"valueFormat": "avro"}
    assert registry_options([json_value], settings) == {"valueFormat": "json"}
    for others in ([avro, json_value], [avro, b"text"], [write_id(1 << 20)], [], [None]):
        assert registry_options(others, settings) == {}
    assert registry_options([avro], {}) == {}
    away = {"schema.registry.url": "http://127.0.0.1:1", "schema.registry.max.retries": "0"}
    with pytest.raises(Refused, match="no schema registry answers"):
        registry_options([avro], away)


def test_the_registry_is_asked_again_for_a_schema_that_it_lacked(
    registry: SchemaRegistryClient, values: Values, topic: str
) -> None:
    first, second = ({**AVRO, "name": f"R{uuid.uuid4().hex}"} for _ in range(2))  # with the newest ids
    avro_bytes(registry, topic, {"id": 1}, first)
    decoder = decoder_of("avro", values.options, side="value")
    assert isinstance(decoder, RegistryDecoder)
    coming = registry.get_latest_version(f"{topic}-value").schema_id + 1

    def reason_at(now_s: float) -> str:
        try:
            payload_decoder(decoder.options, decoder.reader, Written(coming), monotonic=lambda: now_s)
        except UnknownWriter as unknown:
            return str(unknown)
        return ""

    assert f"the registry has no schema {coming}" in reason_at(0.0)
    assert write_id(coming) == avro_bytes(registry, f"{topic}-2", {"id": 1}, second)[:5]
    assert reason_at(1.0) != ""
    assert reason_at(61.0) == ""


def test_schemas_named_in_headers(registry: SchemaRegistryClient, values: Values, topic: str) -> None:
    told: list[tuple[str, bytes]] = []
    conf = {"schema.id.serializer": header_schema_id_serializer}
    serializer = AvroSerializer(registry, json.dumps(AVRO), conf=conf)
    payload = serializer({"id": 5}, SerializationContext(topic, MessageField.VALUE, told))
    assert [name for name, _ in told] == ["__value_schema_id"]
    headers = pa.array([[{"key": name, "value": value} for name, value in told], None], HEADERS_TYPE)
    decoder = decoder_of("avro", values.options, side="value")
    assert isinstance(decoder, FramedDecoder)
    found = decoder.decode_framed(pa.array([payload, avro_bytes(registry, topic, {"id": 6})], pa.binary()), headers)
    assert [row["id"] for row in found.values.to_pylist()] == [5, 6]


REFERRING = {
    "AVRO": (
        '{"type": "record", "name": "Line", "fields": [{"name": "item", "type": "string"}]}',
        '{"type": "record", "name": "Order", "fields": [{"name": "line", "type": "Line"}]}',
        "Line",
        b"\x06tea",
    ),
    "JSON": (
        '{"type": "object", "properties": {"item": {"type": "string"}}}',
        '{"type": "object", "properties": {"line": {"$ref": "line.json"}}}',
        "line.json",
        b'{"line":{"item":"tea"}}',
    ),
    "PROTOBUF": (
        'syntax = "proto3"; message Line { string item = 1; }',
        'syntax = "proto3"; import "line.proto"; message Order { Line line = 1; }',
        "line.proto",
        b"\0\x0a\x05\x0a\x03tea",
    ),
}


@pytest.mark.parametrize("kind", list(REFERRING))
def test_schemas_that_refer_to_others(kind: str, registry: SchemaRegistryClient, values: Values, topic: str) -> None:
    line, order, name, payload = REFERRING[kind]
    registry.register_schema(f"{topic}-line", Schema(line, kind))
    reference = SchemaReference(name, f"{topic}-line", 1)
    schema_id = registry.register_schema(f"{topic}-value", Schema(order, kind, [reference]))
    found = values.decode(kind.lower(), write_id(schema_id) + payload)
    assert found.values.to_pylist() == [{"line": {"item": "tea"}}]
    # A column as it was read is written by the same schema.
    latest = values.encode(kind.lower(), found.values.to_pylist(), found.values.type, **{"use.latest.version": "true"})
    assert latest == [write_id(schema_id) + payload]


def test_keys_have_subjects_of_their_own(registry: SchemaRegistryClient, registry_url: str, topic: str) -> None:
    said = {"schema.registry.url": registry_url, "keyRegistryTopic": topic}
    told = registered("avro", SideOptions("key", said), pa.string())
    (written,) = encoder_of("avro", told, side="key").encode(pa.array(["k"])).to_pylist()
    assert AvroDeserializer(registry)(written, SerializationContext(topic, MessageField.KEY)) == "k"
    assert registry.get_latest_version(f"{topic}-key").version == 1
    decoder = decoder_of("avro", said, side="key")
    assert decoder.decode(pa.array([written, None], pa.binary())).values.to_pylist() == ["k", None]
    client_of(login_of(said)).close()


def test_rules_of_a_json_schema_about_values(registry: SchemaRegistryClient, values: Values, topic: str) -> None:
    line = Schema('{"type": "object", "properties": {"item": {"type": "string", "minLength": 2}}}', "JSON")
    registry.register_schema(f"{topic}-line", line)
    reference = SchemaReference("line.json", f"{topic}-line", 1)
    properties = {"id": {"type": "integer", "minimum": 1}, "line": {"$ref": "line.json"}, "state": {"enum": ["new"]}}
    order = Schema(json.dumps({"type": "object", "properties": properties}), "JSON", [reference])
    registry.register_schema(f"{topic}-value", order)
    kind = pa.struct([("id", pa.int64()), ("line", pa.struct([("item", pa.string())])), ("state", pa.string())])
    latest = {"use.latest.version": "true"}
    assert len(values.encode("json", [{"id": 1, "line": {"item": "tea"}}, None], kind, **latest)) == 2
    with pytest.raises(EncodingFailed, match=r"row 1: it does not fit the schema: at /id: 0 is less than the minimum"):
        values.encode("json", [{"id": 1}, {"id": 0}], kind, **latest)
    with pytest.raises(EncodingFailed, match=r"row 0: it does not fit the schema: at /line/item: "):
        values.encode("json", [{"line": {"item": "x"}}], kind, **latest)
    with pytest.raises(EncodingFailed, match=r"row 0: it does not fit the schema: at /state: \"old\" is not"):
        values.encode("json", [{"state": "old"}], kind, **latest)
