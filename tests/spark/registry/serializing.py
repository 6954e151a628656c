"""Confluent's own serializers and deserializers, which our bytes have to be theirs for."""

from __future__ import annotations

import json
from typing import Any

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from moldau.schemas.protobuf.schema import parse

AVRO: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["null", "string"], "default": None},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}], "default": None},
    ],
}
LATER_AVRO: dict[str, Any] = {
    **AVRO,
    "fields": [*AVRO["fields"], {"name": "price", "type": ["null", "double"], "default": None}],
}
JSON_SCHEMA: dict[str, Any] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Order",
    "type": "object",
    "additionalProperties": False,
    "properties": {"id": {"type": "integer"}, "name": {"oneOf": [{"type": "null"}, {"type": "string"}]}},
    "required": ["id"],
}
LATER_JSON_SCHEMA: dict[str, Any] = {
    **JSON_SCHEMA,
    "properties": {**JSON_SCHEMA["properties"], "price": {"type": "number"}},
}
PROTO = 'syntax = "proto3"; package shop; message Order { int64 id = 1; optional string name = 2; }'
LATER_PROTO = PROTO.replace("= 2;", "= 2; double price = 3;")


def context(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE)


def avro_bytes(registry: SchemaRegistryClient, topic: str, row: dict[str, Any], schema: Any = AVRO) -> bytes:
    made: bytes = AvroSerializer(registry, json.dumps(schema))(row, context(topic))
    return made


def json_bytes(registry: SchemaRegistryClient, topic: str, row: dict[str, Any], schema: Any = JSON_SCHEMA) -> bytes:
    made: bytes = JSONSerializer(json.dumps(schema), registry)(row, context(topic))
    return made


def proto_bytes(registry: SchemaRegistryClient, topic: str, row: dict[str, Any], schema: str = PROTO) -> bytes:
    message = parse(schema).message_class()
    made: bytes = ProtobufSerializer(message, registry, {"use.deprecated.format": False})(
        message(**row), context(topic)
    )
    return made


def read_avro(registry: SchemaRegistryClient, topic: str, data: bytes) -> Any:
    return AvroDeserializer(registry)(data, context(topic))


def read_json(registry: SchemaRegistryClient, topic: str, data: bytes) -> Any:
    text = registry.get_latest_version(f"{topic}-value").schema.schema_str
    return JSONDeserializer(text, schema_registry_client=registry)(data, context(topic))


def read_proto(registry: SchemaRegistryClient, topic: str, data: bytes) -> Any:
    text = registry.get_latest_version(f"{topic}-value").schema.schema_str
    message = parse(text).message_class()
    return ProtobufDeserializer(message, {"use.deprecated.format": False})(data, context(topic))
