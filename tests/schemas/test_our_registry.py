"""Confluent's serializers, our reader and writer, and `moldau registry` between them."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import json_format

import moldau
from moldau.schemas import protobuf
from moldau.schemas.model import Json, Reference, SchemaType
from moldau.schemas.registry_client import RegistryClient, RegistryError, SchemaText
from moldau.schemas.values import ValueReader, ValueWriter, Writing

pytestmark = pytest.mark.xdist_group("schemas-registry")

LINE = SchemaText(SchemaType.PROTOBUF, 'syntax = "proto3"; package shop; message Line { string sku = 1; }')
ORDER_TEXT = """
syntax = "proto3";
package shop;
message Other {}
message Order { string id = 1; map<string, int32> n = 2; }
"""
START_S_MAX = 60.0
ORDER = SchemaText(SchemaType.PROTOBUF, ORDER_TEXT)
VALUE: Json = {"id": "A-1", "n": {"a": 7}}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    ready = tmp_path_factory.mktemp("registry") / "ready"
    with moldau.run() as broker:
        command = [sys.executable, "-m", "moldau", "registry", "--port", "0", "-b", broker.bootstrap_servers]
        process = subprocess.Popen(
            [*command, "--ready-file", str(ready), "--stop-with-stdin"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        try:
            yield wait_for(ready, process)
        finally:
            process.communicate(timeout=60)


def wait_for(ready: Path, process: subprocess.Popen[bytes]) -> str:
    deadline = time.monotonic() + START_S_MAX
    while not ready.exists() or not ready.read_text().endswith("}"):
        assert process.poll() is None, "it ended before it answered"
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return str(json.loads(ready.read_text())["url"])


@pytest.fixture
def client(url: str) -> Iterator[RegistryClient]:
    with RegistryClient({"url": url, "max.retries": 0}) as client:
        yield client


@pytest.fixture
def theirs(url: str) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": url}) as client:
        yield client


def context(topic: str, headers: list[tuple[str, bytes]] | None = None) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE, headers)


@pytest.mark.parametrize("in_headers", [False, True], ids=["prefix", "header"])
def test_values_go_both_ways(in_headers: bool, client: RegistryClient, theirs: SchemaRegistryClient) -> None:
    topic = f"orders-{in_headers}"
    schema = protobuf.parse(ORDER_TEXT)
    message = schema.message_class(schema.message_indexes("Order"))
    headers: list[tuple[str, bytes]] = []
    conf = {"use.deprecated.format": False} | (
        {"schema.id.serializer": header_schema_id_serializer} if in_headers else {}
    )
    payload = ProtobufSerializer(message, theirs, conf)(
        json_format.ParseDict(VALUE, message()), context(topic, headers)
    )
    assert bool(headers) == in_headers
    assert ValueReader(client).read(topic, False, payload, headers) == VALUE

    writer = ValueWriter(client, Writing(ids_in_headers=in_headers))
    ours, added = writer.write(topic, False, VALUE, schema=ORDER, message="shop.Order")
    # Their client keeps the text that registering answered and would take it for a descriptor: readers have their own.
    with SchemaRegistryClient({"url": client.url}) as readers:
        read = ProtobufDeserializer(message, {"use.deprecated.format": False}, readers)(ours, context(topic, added))
    assert json_format.MessageToDict(read) == VALUE


def test_schemas_are_stored_as_we_print_them_and_given_serialized(
    client: RegistryClient, theirs: SchemaRegistryClient
) -> None:
    stored = client.register("printed", ORDER)
    assert stored.id is not None
    assert client.by_id(stored.id).schema.text == protobuf.parse(ORDER_TEXT).canonical
    assert client.by_id(stored.id).guid is not None
    serialized = theirs.get_schema(stored.id, fmt="serialized").schema_str
    assert protobuf.parse(serialized).normalized == protobuf.parse(ORDER_TEXT).normalized
    same = SchemaText(SchemaType.PROTOBUF, "// the same\n" + ORDER_TEXT)
    assert client.lookup("printed", same).id == stored.id


def test_references_and_verdicts(client: RegistryClient) -> None:
    client.register("line.proto", LINE)
    text = 'syntax = "proto3"; package shop; import "line.proto"; message Cart { repeated Line lines = 1; }'
    cart = SchemaText(SchemaType.PROTOBUF, text, (Reference("line.proto", "line.proto", 1),))
    payload, _ = ValueWriter(client).write("carts", False, {"lines": [{"sku": "x"}]}, schema=cart)
    assert payload is not None
    assert ValueReader(client).read("carts", False, payload) == {"lines": [{"sku": "x"}]}

    broken = SchemaText(SchemaType.PROTOBUF, text.replace("repeated Line lines", "string lines"), cart.references)
    verdict = client.compatibility("carts-value", broken)
    assert not verdict.compatible
    assert "FIELD_KIND_CHANGED" in " ".join(verdict.messages)
    with pytest.raises(RegistryError) as refused:
        client.register("carts-value", broken)
    assert refused.value.code == 40901
    with pytest.raises(RegistryError, match="line 1:") as refused:
        client.register("carts-value", SchemaText(SchemaType.PROTOBUF, "message {"))
    assert refused.value.code == 42201


def test_ids_of_a_context_are_read_in_it(client: RegistryClient) -> None:
    writing = Writing.of({"schema.context": "staging"})
    payload, _ = ValueWriter(client, writing).write("orders", False, {}, schema=LINE)
    assert payload is not None
    assert ValueReader(client, context=writing.context).read("orders", False, payload) == {"sku": ""}
