"""confluent-kafka's serializers of each format, blocking and not, with everything that their users set."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka.schema_registry import (
    AsyncSchemaRegistryClient,
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    header_schema_id_serializer,
    record_subject_name_strategy,
)
from confluent_kafka.schema_registry.avro import (
    AsyncAvroDeserializer,
    AsyncAvroSerializer,
    AvroDeserializer,
    AvroSerializer,
)
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import (
    AsyncJSONDeserializer,
    AsyncJSONSerializer,
    JSONDeserializer,
    JSONSerializer,
)
from confluent_kafka.schema_registry.protobuf import (
    AsyncProtobufDeserializer,
    AsyncProtobufSerializer,
    ProtobufDeserializer,
    ProtobufSerializer,
)
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import json_format

from moldau.schemas.model import ReferencedText
from moldau.schemas.protobuf import parse
from tests.registry.running import RunningRegistry

pytestmark = pytest.mark.xdist_group("registry")

MONEY = {
    "AVRO": '{"type":"record","name":"Money","fields":[{"name":"cents","type":"long"}]}',
    "JSON": '{"title":"Money","type":"object","properties":{"cents":{"type":"integer"}}}',
    "PROTOBUF": 'syntax = "proto3"; message Money { int64 cents = 1; }',
}
IMPORT = {"AVRO": "Money", "JSON": "money.json", "PROTOBUF": "money.proto"}
ORDER = {
    "AVRO": '{"type":"record","name":"Order","fields":[{"name":"id","type":"string"},{"name":"sum","type":"Money"}]}',
    "JSON": '{"title":"Order","type":"object","additionalProperties":false,'
    '"properties":{"id":{"type":"string"},"sum":{"$ref":"money.json"}},"required":["id"]}',
    "PROTOBUF": 'syntax = "proto3"; import "money.proto"; message Order { string id = 1; Money sum = 2; }',
}
LATER = {
    "AVRO": ORDER["AVRO"][:-2] + ',{"name":"note","type":"string","default":""}]}',
    "JSON": ORDER["JSON"].replace('"properties":{', '"properties":{"note":{"type":"string"},'),
    "PROTOBUF": ORDER["PROTOBUF"][:-1] + "string note = 3; }",
}
BREAKING = {
    "AVRO": ORDER["AVRO"].replace('"name":"id"', '"name":"number"'),
    "JSON": ORDER["JSON"].replace('"required":["id"]', '"required":["id","sum"]'),
    "PROTOBUF": ORDER["PROTOBUF"].replace("string id", "int64 id"),
}
VALUE: dict[str, Any] = {"id": "two coffees", "sum": {"cents": 640}}
FORMATS = [*MONEY]


@dataclass(frozen=True, slots=True)
class Kit:
    """Of one kind of client. What it answers is waited for where there is something to wait for."""

    client: Any
    kind: str
    made: dict[str, tuple[Any, Any]]

    async def asked(self, answer: Any) -> Any:
        return await answer if inspect.isawaitable(answer) else answer

    async def registered(self, subject: str, text: str, *references: SchemaReference) -> Any:
        """Normalized, as names in a compiled Protobuf are: `.Money` for `Money`."""
        schema = Schema(text, self.kind, [*references])
        return await self.asked(self.client.register_schema(subject, schema, normalize_schemas=True))

    async def serializer(self, text: str, subject: str, **settings: Any) -> Callable[..., Any]:
        money = SchemaReference(IMPORT[self.kind], f"{subject}-money", 1)
        make, schema = self.made[self.kind][0], Schema(text, self.kind, [money])
        settings = {name.replace("_", "."): value for name, value in settings.items()}
        if self.kind == "AVRO":
            found = make(self.client, schema, conf=settings)
        elif self.kind == "JSON":
            found = make(schema, self.client, conf=settings)
        else:
            message = _message(text)
            # It registers what it imports by itself; the others name it in their schema.
            imports = {"reference.subject.name.strategy": lambda _context, _reference: f"{subject}-money"}
            conf = {"use.deprecated.format": False, **imports, **settings}
            serialize = await self.asked(make(message, self.client, conf))
            return lambda value, context: serialize(json_format.ParseDict(value, message()), context)
        serializer: Callable[..., Any] = await self.asked(found)
        return serializer

    async def deserializer(self, text: str, subject: str, **settings: Any) -> Callable[..., Any]:
        money = SchemaReference(IMPORT[self.kind], f"{subject}-money", 1)
        make = self.made[self.kind][1]
        settings = {name.replace("_", "."): value for name, value in settings.items()}
        if self.kind == "AVRO":
            found = make(self.client, conf=settings)
        elif self.kind == "JSON":
            found = make(Schema(text, "JSON", [money]), schema_registry_client=self.client, conf=settings)
        else:
            conf = {"use.deprecated.format": False, **settings}
            read = await self.asked(make(_message(text), schema_registry_client=self.client, conf=conf))

            async def as_dict(payload: bytes, context: SerializationContext) -> Any:
                message = await self.asked(read(payload, context))
                return json.loads(json_format.MessageToJson(message).replace('"640"', "640"))

            return as_dict
        deserializer: Callable[..., Any] = await self.asked(found)
        return deserializer


def _message(text: str) -> Any:
    return parse(text, [ReferencedText("money.proto", MONEY["PROTOBUF"])]).message_class()


@asynccontextmanager
async def kit(url: str, kind: str, *, is_async: bool) -> AsyncIterator[Kit]:
    blocking = {
        "AVRO": (AvroSerializer, AvroDeserializer),
        "JSON": (JSONSerializer, JSONDeserializer),
        "PROTOBUF": (ProtobufSerializer, ProtobufDeserializer),
    }
    waiting = {
        "AVRO": (AsyncAvroSerializer, AsyncAvroDeserializer),
        "JSON": (AsyncJSONSerializer, AsyncJSONDeserializer),
        "PROTOBUF": (AsyncProtobufSerializer, AsyncProtobufDeserializer),
    }
    if is_async:
        async with AsyncSchemaRegistryClient({"url": url}) as client:
            yield Kit(client, kind, waiting)
    else:
        with SchemaRegistryClient({"url": url}) as blocking_client:
            yield Kit(blocking_client, kind, blocking)


Run = Callable[[Callable[[Kit], Awaitable[None]]], None]


@pytest.fixture(params=[False, True], ids=["blocking", "async"])
def is_async(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(params=FORMATS)
def run(request: pytest.FixtureRequest, registry: RunningRegistry, is_async: bool) -> Run:
    def run_it(check: Callable[[Kit], Awaitable[None]]) -> None:
        async def with_kit() -> None:
            async with kit(registry.url, request.param, is_async=is_async) as found:
                await check(found)

        asyncio.run(with_kit())

    return run_it


def context(subject: str) -> SerializationContext:
    return SerializationContext(subject, MessageField.VALUE, [])


def test_a_schema_with_a_reference_registers_itself_and_grows(run: Run, subject: str) -> None:
    async def check(kit: Kit) -> None:
        where, value = context(subject), f"{subject}-value"
        await kit.registered(f"{subject}-money", MONEY[kit.kind])
        write = await kit.serializer(ORDER[kit.kind], subject)
        payload = await kit.asked(write(VALUE, where))
        assert payload[0] == 0
        first = await kit.asked(kit.client.get_latest_version(value))
        assert int.from_bytes(payload[1:5], "big") == first.schema_id
        assert [(each.name, each.subject, each.version) for each in first.schema.references] == [
            (IMPORT[kit.kind], f"{subject}-money", 1)
        ]
        later = await kit.serializer(LATER[kit.kind], subject)
        longer = {**VALUE, "note": "to go"}
        second = await kit.asked(later(longer, where))
        assert await kit.asked(kit.client.get_versions(value)) == [1, 2]
        read = await kit.deserializer(LATER[kit.kind], subject)
        found = await kit.asked(read(payload, where))
        assert {name: each for name, each in found.items() if name != "note"} == VALUE
        assert await kit.asked(read(second, where)) == longer
        breaking = await kit.serializer(BREAKING[kit.kind], subject)
        wrong = {"number": "1", "id": "1", **({"sum": VALUE["sum"]})}
        with pytest.raises(SchemaRegistryError) as refused:
            await kit.asked(breaking(wrong if kit.kind != "PROTOBUF" else {"id": "1"}, where))
        assert refused.value.error_code == 40_901

    run(check)


def test_only_what_is_registered_is_written(run: Run, subject: str) -> None:
    async def check(kit: Kit) -> None:
        where, value = context(subject), f"{subject}-value"
        await kit.registered(f"{subject}-money", MONEY[kit.kind])
        strict = {"auto_register_schemas": False, "normalize_schemas": True}
        write = await kit.serializer(ORDER[kit.kind], subject, **strict)
        with pytest.raises(SchemaRegistryError) as refused:
            await kit.asked(write(VALUE, where))
        assert refused.value.error_code == 40_401
        money = SchemaReference(IMPORT[kit.kind], f"{subject}-money", 1)
        for text in (ORDER, LATER):
            await kit.registered(value, text[kit.kind], money)
        write = await kit.serializer(ORDER[kit.kind], subject, **strict)
        latest = await kit.serializer(LATER[kit.kind], subject, **strict, use_latest_version=True)
        ids = [(await kit.asked(kit.client.get_version(value, number))).schema_id for number in (1, 2)]
        longer = {**VALUE, "note": "to go"}
        assert int.from_bytes((await kit.asked(write(VALUE, where)))[1:5], "big") == ids[0]
        assert int.from_bytes((await kit.asked(latest(longer, where)))[1:5], "big") == ids[1]

    run(check)


def test_guids_in_headers(run: Run, subject: str) -> None:
    async def check(kit: Kit) -> None:
        where = context(subject)
        await kit.registered(f"{subject}-money", MONEY[kit.kind])
        settings = {"schema_id_serializer": header_schema_id_serializer}
        payload = await kit.asked((await kit.serializer(ORDER[kit.kind], subject, **settings))(VALUE, where))
        ((name, guid),) = where.headers
        assert (name, guid[0], payload[0] != 0) == ("__value_schema_id", 1, True)
        read = await kit.deserializer(ORDER[kit.kind], subject)
        assert await kit.asked(read(payload, where)) == VALUE

    run(check)


def test_subjects_by_records(run: Run, subject: str) -> None:
    """The same record in two topics is one subject."""

    async def check(kit: Kit) -> None:
        text = ORDER[kit.kind].replace("Order", f"Order{subject[-8:]}")
        await kit.registered(f"{subject}-money", MONEY[kit.kind])
        settings = {"subject_name_strategy": record_subject_name_strategy}
        write = await kit.serializer(text, subject, **settings)
        payloads = [await kit.asked(write(VALUE, context(topic))) for topic in (subject, f"{subject}-2")]
        assert payloads[0] == payloads[1]
        assert await kit.asked(kit.client.get_versions(f"Order{subject[-8:]}")) == [1]

    run(check)


def test_a_version_with_tags_is_written_and_read(run: Run, registry: RunningRegistry, subject: str) -> None:
    async def check(kit: Kit) -> None:
        where, versions = context(subject), f"/subjects/{subject}-value/versions"
        await kit.registered(f"{subject}-money", MONEY[kit.kind])
        payload = await kit.asked((await kit.serializer(ORDER[kit.kind], subject))(VALUE, where))
        entity = {"entityPath": {"JSON": "object.id"}.get(kit.kind, "Order.id"), "entityType": "sr_field"}
        body = {"tagsToAdd": [{"schemaEntity": entity, "tags": ["PII"]}]}
        answer = registry.ask("POST", f"{versions}/1/tags", body)
        assert (answer[0], answer[1]["version"]) == (200, 2), answer
        latest = await kit.serializer(ORDER[kit.kind], subject, auto_register_schemas=False, use_latest_version=True)
        tagged = await kit.asked(latest(VALUE, where))
        assert int.from_bytes(tagged[1:5], "big") == answer[1]["id"]
        read = await kit.deserializer(ORDER[kit.kind], subject)
        for each in (payload, tagged):
            assert await kit.asked(read(each, where)) == VALUE
        again = await kit.serializer(ORDER[kit.kind], subject)
        assert await kit.asked(again(VALUE, where)) == payload, "the text without tags is the first version"

    run(check)
