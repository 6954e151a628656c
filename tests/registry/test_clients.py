"""confluent-kafka's client and serializers, as their users have them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.schema_registry import (
    AsyncSchemaRegistryClient,
    ConfigCompatibilityLevel,
    Metadata,
    MetadataProperties,
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    ServerConfig,
    header_schema_id_serializer,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from tests.registry.running import RunningRegistry

pytestmark = pytest.mark.xdist_group("registry")

ORDER = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]})
WITH_NOTE = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": "string", "default": ""}],
    }
)
WITHOUT_DEFAULT = WITH_NOTE.replace(', "default": ""', "")
LINE = json.dumps({"type": "record", "name": "Line", "fields": [{"name": "order", "type": "Order"}]})


@pytest.fixture
def client(registry: RunningRegistry) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry.url}) as found:
        yield found


def avro(text: str, *references: SchemaReference, **more: Any) -> Schema:
    return Schema(text, "AVRO", [*references], **more)


def test_a_subject_from_its_first_version_to_its_end(client: SchemaRegistryClient, subject: str) -> None:
    first = client.register_schema(subject, avro(ORDER))
    assert client.register_schema(subject, avro(ORDER)) == first
    with pytest.raises(SchemaRegistryError) as refused:
        client.register_schema(subject, avro(WITHOUT_DEFAULT))
    assert (refused.value.http_status_code, refused.value.error_code) == (409, 40_901)
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in str(refused.value)
    assert not client.test_compatibility(subject, avro(WITHOUT_DEFAULT))
    assert client.register_schema(subject, avro(WITH_NOTE)) > first
    assert client.get_versions(subject) == [1, 2]
    assert client.lookup_schema(subject, avro(ORDER)).version == 1
    assert client.get_schema(first).schema_str is not None
    assert client.delete_version(subject, 2) == 2
    assert client.delete_subject(subject) == [1]
    assert client.delete_subject(subject, permanent=True) == [1, 2]
    with pytest.raises(SchemaRegistryError) as gone:
        client.get_versions(subject)
    assert gone.value.error_code == 40_401


def test_levels_of_compatibility(client: SchemaRegistryClient, subject: str) -> None:
    client.register_schema(subject, avro(ORDER))
    client.set_compatibility(subject, "NONE")
    assert client.get_compatibility(subject) == "NONE"
    assert client.test_compatibility(subject, avro(WITHOUT_DEFAULT))
    client.set_config(subject, ServerConfig(compatibility=ConfigCompatibilityLevel.FULL, compatibility_group="major"))
    assert client.get_config(subject).compatibility_group == "major"


def test_a_guid_finds_its_schema(client: SchemaRegistryClient, subject: str) -> None:
    registered = client.register_schema_full_response(subject, avro(ORDER))
    assert registered.guid
    assert json.loads(client.get_schema_by_guid(registered.guid).schema_str) == json.loads(ORDER)


def test_metadata_is_kept_and_found(client: SchemaRegistryClient, subject: str) -> None:
    metadata = Metadata(properties=MetadataProperties({"owner": "billing"}), tags=None, sensitive=None)
    client.register_schema(subject, avro(ORDER, metadata=metadata))
    found = client.get_latest_with_metadata(subject, {"owner": "billing"})
    assert found.schema.metadata.properties.properties == {"owner": "billing"}


@pytest.mark.parametrize(
    "settings", [{"auto.register.schemas": True}, {"auto.register.schemas": False, "use.latest.version": True}]
)
def test_avro_with_a_reference(client: SchemaRegistryClient, subject: str, settings: dict[str, Any]) -> None:
    client.register_schema(f"{subject}-order", avro(ORDER))
    line = avro(LINE, SchemaReference("Order", f"{subject}-order", 1))
    client.register_schema(f"{subject}-value", line)
    context = SerializationContext(subject, MessageField.VALUE, [])
    write = AvroSerializer(client, line, conf=settings)
    payload = write({"order": {"id": 7}}, context)
    assert payload[0] == 0
    assert AvroDeserializer(client)(payload, context) == {"order": {"id": 7}}


def test_values_of_before_are_read_by_the_schema_of_now(client: SchemaRegistryClient, subject: str) -> None:
    context = SerializationContext(subject, MessageField.VALUE, [])
    payload = AvroSerializer(client, ORDER)({"id": 7}, context)
    client.register_schema(f"{subject}-value", avro(WITH_NOTE))
    read = AvroDeserializer(client, conf={"use.latest.version": True})
    assert read(payload, context) == {"id": 7, "note": ""}
    assert AvroDeserializer(client, WITH_NOTE)(payload, context) == {"id": 7, "note": ""}


def test_ids_in_headers(client: SchemaRegistryClient, subject: str) -> None:
    context = SerializationContext(subject, MessageField.VALUE, [])
    settings = {"schema.id.serializer": header_schema_id_serializer}
    value = {"id": 7, "note": "two coffees"}  # the deserializer takes nothing shorter than a magic byte and an id
    payload = AvroSerializer(client, WITH_NOTE, conf=settings)(value, context)
    assert payload == b"\x0e\x16two coffees", "nothing stands before it"
    assert [name for name, _ in context.headers] == ["__value_schema_id"]
    assert AvroDeserializer(client)(payload, context) == value


def test_json_schema(client: SchemaRegistryClient, subject: str) -> None:
    schema = json.dumps({"title": "Order", "type": "object", "properties": {"id": {"type": "integer"}}})
    context = SerializationContext(subject, MessageField.VALUE, [])
    payload = JSONSerializer(schema, client)({"id": 7}, context)
    assert JSONDeserializer(None, schema_registry_client=client)(payload, context) == {"id": 7}
    assert client.get_latest_version(f"{subject}-value").schema.schema_type == "JSON"


def message_class() -> Any:
    """`message Order { shop.Money sum = 1; }` and what it imports, without a compiler."""
    pool = descriptor_pool.DescriptorPool()
    money = descriptor_pb2.FileDescriptorProto(name="shop/money.proto", package="shop", syntax="proto3")
    field = money.message_type.add(name="Money").field.add(name="cents", number=1)
    field.type, field.label = field.TYPE_INT64, field.LABEL_OPTIONAL
    order = descriptor_pb2.FileDescriptorProto(name="shop/order.proto", package="shop", syntax="proto3")
    order.dependency.append("shop/money.proto")
    field = order.message_type.add(name="Order").field.add(name="sum", number=1, type_name=".shop.Money")
    field.type, field.label = field.TYPE_MESSAGE, field.LABEL_OPTIONAL
    pool.Add(money)
    pool.Add(order)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))


def test_protobuf_with_an_import(client: SchemaRegistryClient, subject: str) -> None:
    order = message_class()
    context = SerializationContext(subject, MessageField.VALUE, [])
    payload = ProtobufSerializer(order, client)(order(sum={"cents": 350}), context)
    assert ProtobufDeserializer(order, schema_registry_client=client)(payload, context).sum.cents == 350
    found = client.get_latest_version(f"{subject}-value").schema
    assert (found.schema_type, [each.name for each in found.references]) == ("PROTOBUF", ["shop/money.proto"])


def test_the_asynchronous_client(registry: RunningRegistry, subject: str) -> None:
    async def use() -> list[int]:
        async with AsyncSchemaRegistryClient({"url": registry.url}) as client:
            await client.register_schema(subject, avro(ORDER))
            found: list[int] = await client.get_versions(subject)
            return found

    assert asyncio.run(use()) == [1]
