"""`moldau consume` and `moldau produce` by a registry of ours, beside Confluent's serializers."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import json_format

from moldau.cli.main import main
from moldau.schemas import protobuf
from moldau.web.logins import hashed
from tests.registry.running import RunningRegistry, running_registry

ORDER_AVRO = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"], "default": None}],
}
ORDER_JSON = {"title": "Order", "type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
ORDER_PROTO = """
syntax = "proto3";
package shop;
message Envelope { string id = 1; }
message Order { string id = 1; int64 total_cents = 2; message Line { string sku = 1; } }
"""
FILES = {"order.avsc": json.dumps(ORDER_AVRO), "order.json": json.dumps(ORDER_JSON), "order.proto": ORDER_PROTO}
READ_S_MAX = 30.0
pytestmark = pytest.mark.xdist_group("schemas of records")

Run = Callable[..., tuple[int, str, str]]
Done = Callable[..., str]


@contextmanager
def own_registry(bootstrap: str, folder: Path, *arguments: str) -> Iterator[RunningRegistry]:
    """In a group of its own, for others at this broker elect their leaders, too."""
    name = uuid.uuid4().hex[:8]
    config = folder / "registry.properties"
    config.write_text(f"kafkastore.topic=_schemas-{name}\nschema.registry.group.id=registry-{name}\n")
    with running_registry(bootstrap, "--config", str(config), *arguments) as running:
        yield running


@pytest.fixture(scope="module")
def registry(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRegistry]:
    with own_registry(bootstrap, tmp_path_factory.mktemp("registry")) as running:
        yield running


@pytest.fixture
def theirs(registry: RunningRegistry) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry.url}) as client:
        yield client


@pytest.fixture(scope="module")
def producer(bootstrap: str) -> Producer:
    return Producer({"bootstrap.servers": bootstrap})


@pytest.fixture
def run(
    bootstrap: str, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> Run:
    """A tool in this process, in a folder with schemas; `lines` are its input. Processes would cost seconds."""
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)

    def finished(*arguments: str, lines: Sequence[object] = ()) -> tuple[int, str, str]:
        words = [*arguments, "-b", bootstrap]
        if arguments[0] == "produce":
            texts = [line if isinstance(line, str) else json.dumps(line, ensure_ascii=False) for line in lines]
            (tmp_path / "lines").write_text("".join(f"{text}\n" for text in texts))
            words += ["-F", "lines"]
        exit_code = main(words)
        told = capsysbinary.readouterr()
        return exit_code, told.out.decode(), told.err.decode()

    return finished


@pytest.fixture
def done(run: Run) -> Done:
    def finished(*arguments: str, lines: Sequence[object] = ()) -> str:
        exit_code, out, err = run(*arguments, lines=lines)
        assert (exit_code, err) == (0, "")
        return out

    return finished


@pytest.fixture
def orders(done: Done, moldau_topic: str) -> str:
    """A topic of one partition."""
    done("topics", "create", moldau_topic)
    return moldau_topic


def register(registry: RunningRegistry, subject: str, text: str = ORDER_PROTO, kind: str = "PROTOBUF") -> int:
    status, answer = registry.ask("POST", f"/subjects/{subject}/versions", {"schema": text, "schemaType": kind})
    assert status == 200, answer
    id_: int = answer["id"]
    return id_


def context(topic: str, part: str = MessageField.VALUE, headers: list[Any] | None = None) -> SerializationContext:
    return SerializationContext(topic, part, headers)


def order_class(name: str = "shop.Order") -> Any:
    schema = protobuf.parse(ORDER_PROTO)
    return schema.message_class(schema.message_indexes(name))


def messages(bootstrap: str, topic: str, count: int) -> list[Any]:
    """The records of partition 0, by a client that knows no schemas."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[Any] = []
    while len(found) < count:
        more = consumer.consume(count - len(found), timeout=READ_S_MAX)
        assert more, f"{len(found)} of {count} records"
        found += more
    consumer.close()
    assert not [message.error() for message in found if message.error()]
    return found


def contents(bootstrap: str, topic: str, count: int) -> list[tuple[bytes | None, bytes | None, Any]]:
    return [(each.key(), each.value(), each.headers()) for each in messages(bootstrap, topic, count)]


def test_what_their_serializers_write_is_shown(
    done: Done, registry: RunningRegistry, theirs: SchemaRegistryClient, producer: Producer, orders: str
) -> None:
    """Avro, JSON Schema and Protobuf, with ids before the bytes and in headers, and null."""
    key = AvroSerializer(theirs, '"string"')("anna", context(orders, MessageField.KEY))
    avro = AvroSerializer(theirs, json.dumps(ORDER_AVRO))({"id": 1, "note": "žluť"}, context(orders))
    by_record = {"subject.name.strategy": lambda _context, name: name}
    described = JSONSerializer(json.dumps(ORDER_JSON), theirs, conf=by_record)({"id": 2}, context(orders))
    line, headers = order_class("shop.Order.Line")(sku="x"), list[Any]()
    conf = {"use.deprecated.format": False, "schema.id.serializer": header_schema_id_serializer}
    framed = ProtobufSerializer(type(line), theirs, conf | by_record)(line, context(orders, headers=headers))
    producer.produce(orders, avro, key)
    producer.produce(orders, described)
    producer.produce(orders, framed, headers=headers)
    producer.produce(orders, None, key)
    producer.flush()
    options = ("--registry", registry.url, "--from-beginning", "-e")
    shown = done("consume", orders, *options, "-f", "%k %v\\n")
    assert shown == '"anna" {"id":1,"note":{"string":"žluť"}}\nnull {"id":2}\nnull {"sku":"x"}\n"anna" null\n'
    assert done("consume", orders, *options, "--grep", "žl") == '{"id":1,"note":{"string":"žluť"}}\n'
    found = [json.loads(each) for each in done("consume", orders, *options, "-o", "json").splitlines()]
    assert [each["value"] for each in found] == [{"id": 1, "note": {"string": "žluť"}}, {"id": 2}, {"sku": "x"}, None]
    assert [each["key"] for each in found] == ["anna", None, None, "anna"]
    kinds = [each["value_schema"] and each["value_schema"]["type"] for each in found]
    assert kinds == ["AVRO", "JSON", "PROTOBUF", None]
    assert found[0]["value_schema"].keys() == {"id", "type"}
    assert found[2]["value_schema"]["message"] == "shop.Order.Line"
    assert uuid.UUID(found[2]["value_schema"]["guid"]).bytes == headers[0][1][1:17]
    only_keys = done("consume", orders, *options, "--registry-for", "key", "-n", "1", "-f", "%k %v{hex}\\n")
    assert only_keys == f'"anna" {avro.hex()}\n'


def test_a_member_of_a_group_sees_the_same(done: Done, registry: RunningRegistry, orders: str) -> None:
    done("produce", orders, "--registry", registry.url, "--value-schema", "order.avsc", lines=[{"id": 1}])
    group = f"group-{orders}"
    assert done("consume", orders, "--registry", registry.url, "-g", group, "--from-beginning", "-e") == (
        '{"id":1,"note":null}\n'
    )


def test_their_deserializers_read_what_is_produced(
    done: Done, registry: RunningRegistry, theirs: SchemaRegistryClient, bootstrap: str, orders: str
) -> None:
    by_registry, by_record = ("--registry", registry.url), ("--subject-strategy", "record")
    (Path.cwd() / "key.avsc").write_text('"string"')
    avro = ("--key-schema", "key.avsc", "--value-schema", "order.avsc", "-K", "\\t")
    done("produce", orders, *by_registry, *avro, lines=['"anna"\t{"id": 1, "note": {"string": "x"}}', '"anna"\tnull'])
    done("produce", orders, *by_registry, *by_record, "--value-schema", "order.json", lines=[{"id": 2}])
    message = ("--value-schema", "order.proto", "--message", "Order", "--header-ids")
    subject = f"{orders}-messages"
    register(registry, subject)
    versioned = ("--value-schema", f"{subject}:1", *message[2:])
    done("produce", orders, *by_registry, *versioned, lines=[{"id": "3", "totalCents": "12"}])
    done("produce", orders, *by_registry, "--value-schema", "latest", lines=[{"id": 4}])
    first, tombstone, described, message_, latest = messages(bootstrap, orders, 5)
    assert AvroDeserializer(theirs)(first.key(), context(orders, MessageField.KEY)) == "anna"
    assert AvroDeserializer(theirs)(first.value(), context(orders)) == {"id": 1, "note": "x"}
    assert (tombstone.key(), tombstone.value()) == (first.key(), None)
    read = JSONDeserializer(json.dumps(ORDER_JSON), schema_registry_client=theirs)
    assert read(described.value(), context(orders)) == {"id": 2}
    assert [name for name, _ in message_.headers()] == ["__value_schema_id"]
    conf = {"use.deprecated.format": False}
    order = ProtobufDeserializer(order_class(), conf, theirs)(
        message_.value(), context(orders, headers=message_.headers())
    )
    assert json_format.MessageToDict(order) == {"id": "3", "totalCents": "12"}
    assert AvroDeserializer(theirs)(latest.value(), context(orders)) == {"id": 4, "note": None}
    assert {f"{orders}-key", f"{orders}-value", "Order"} <= set(registry.ask("GET", "/subjects")[1])


def test_json_is_read_back_as_it_was(
    done: Done, run: Run, registry: RunningRegistry, bootstrap: str, orders: str
) -> None:
    """Byte for byte: strings, numbers and null of a schema, plain text, bytes and null beside each other."""
    by_registry = ("--registry", registry.url)
    Path("string.avsc").write_text('"string"')
    done("produce", orders, *by_registry, "--value-schema", "string.avsc", "--key-schema", "string.avsc", "-k", '"k"',
         "--subject-strategy", "topic", "--header-ids", lines=['"text"', "null"])  # fmt: skip
    subject = f"{orders}-proto"
    register(registry, subject)
    done("produce", orders, *by_registry, "--value-schema", f"{subject}:latest", "--message", "Order.Line",
         lines=[{"sku": "x"}])  # fmt: skip
    null = {"value": None, "value_schema": {"id": register(registry, f"{orders}-null", '"null"', "AVRO")}}
    plain = ["text", {"base64": "gIE="}, None, {"base64": "AAAAAP8="}]
    done("produce", orders, "-i", "json", lines=[{"value": value} for value in plain])
    done("produce", orders, *by_registry, "-i", "json", lines=[null])
    shown = run("consume", orders, *by_registry, "--from-beginning", "-e", "-o", "json")[1].splitlines()
    assert [json.loads(line)["value"] for line in shown] == ["text", None, {"sku": "x"}, *plain, None]
    done("topics", "create", f"{orders}-copy")
    done("produce", f"{orders}-copy", *by_registry, "-i", "json", lines=shown)
    assert contents(bootstrap, f"{orders}-copy", 8) == contents(bootstrap, orders, 8)


def test_another_schema_may_be_written_than_a_line_names(
    done: Done, registry: RunningRegistry, bootstrap: str, orders: str
) -> None:
    """As when records go to another registry: the old header must not name the schema of what is written now."""
    line = {"value": {"id": 1}, "value_schema": {"id": 999}, "headers": [["__value_schema_id", "x"], ["a", "b"]]}
    options = ("--registry", registry.url, "--value-schema", "order.avsc", "-i", "json")
    done("produce", orders, *options, lines=[line, {"value": None}])
    (written, null) = messages(bootstrap, orders, 2)
    assert (written.value()[:1], written.value()[5:], written.headers()) == (b"\0", b"\2\0", [("a", b"b")])
    assert null.value() is None


def test_what_names_no_schema_or_a_wrong_one_is_shown_as_it_is(
    run: Run, done: Done, registry: RunningRegistry, producer: Producer, orders: str
) -> None:
    """With one line for the first; keys that are text are nothing to tell of unless keys are asked for."""
    done("produce", orders, "--registry", registry.url, "--value-schema", "order.avsc", lines=[{"id": 1}])
    for value in (b"plain", b"\0\x7f\xff\xff\xffx", b"\0\0\0\0", b""):
        producer.produce(orders, value, b"a key")
    producer.flush()
    options = ("--registry", registry.url, "--from-beginning", "-e", "-o", "json")
    exit_code, out, err = run("consume", orders, *options)
    found = [json.loads(line) for line in out.splitlines()]
    assert [each["value"] for each in found] == [
        {"id": 1, "note": None},
        "plain",
        {"base64": "AH////94"},
        "\0\0\0\0",
        "",
    ]
    assert (exit_code, err.count("\n")) == (0, 1)
    assert f"{orders}-0 at offset 1: the value is shown as it is" in err
    assert "the payload starts with 0x70: no schema id" in err
    _, _, err = run("consume", orders, *options, "--registry-for", "both")
    assert [line.split(": ")[2][:7] for line in err.splitlines()] == ["the key", "the val"]
    exit_code, out, err = run("consume", orders, *options[:-2], "--strict")
    assert (exit_code, len(out.splitlines()), err.count("\n")) == (1, 1, 1)
    assert f"{orders}-0 at offset 1: the value can't be read by the registry: the payload starts with 0x70" in err


@pytest.mark.parametrize(
    ("file", "wrong", "complaint"),
    [
        ("order.avsc", {"id": 2, "note": 3}, "line 2 of lines: value: in note: 3 is none of the union's"),
        ("order.avsc", "{", "line 2 of lines: value: no JSON at line 1, column 2"),
        ("order.json", {"id": "x"}, 'line 2 of lines: value: at /id: "x" is not of type "integer"'),
        (
            "order.proto",
            {"ID": 1},
            'line 2 of lines: value: the value is no shop.Envelope: Message type "shop.Envelope"',
        ),
    ],
)
def test_a_value_that_does_not_fit_is_not_sent(
    run: Run, done: Done, registry: RunningRegistry, orders: str, file: str, wrong: object, complaint: str
) -> None:
    fine = {"id": "1"} if file == "order.proto" else {"id": 1}
    options = ("--registry", registry.url, "--value-schema", file)
    exit_code, _, err = run("produce", orders, *options, lines=[fine, wrong, fine])
    assert (exit_code, err.count("\n")) == (1, 1)
    assert complaint in err
    assert len(done("consume", orders, "--from-beginning", "-e", "-f", "%o\n").splitlines()) == 1


def test_what_the_registry_refuses_is_told_in_its_words(
    run: Run, done: Done, registry: RunningRegistry, orders: str
) -> None:
    by_registry = ("--registry", registry.url)
    done("produce", orders, *by_registry, "--value-schema", "order.avsc", lines=[{"id": 1}])
    narrow = {**ORDER_AVRO, "fields": [{"name": "id", "type": "string"}]}
    Path("narrow.avsc").write_text(json.dumps(narrow))
    Path("no.avsc").write_text('{"type": "recor"}')
    for options, code, words in (
        (("--value-schema", "narrow.avsc"), 1, "TYPE_MISMATCH"),
        (("--value-schema", "narrow.avsc", "--no-register"), 1, "Schema not found"),
        (("--value-schema", "no.avsc"), 2, '--value-schema no.avsc: at the root: "recor" is no type'),
        (("--value-schema", "id:99999"), 1, "Schema 99999 not found"),
        (("--value-schema", f"{orders}-value:7"), 1, "Version 7 not found"),
        (("--key-schema", "latest"), 1, f"Subject '{orders}-key' not found"),
    ):
        exit_code, _, err = run("produce", orders, *by_registry, *options, lines=[{"id": "1"}])
        assert (exit_code, err.count("\n")) == (code, 1), options
        assert words in err, options


def test_a_line_that_names_no_schema_that_is_there(run: Run, registry: RunningRegistry, orders: str) -> None:
    for named, code, words in (
        ({"id": 99999}, 1, "line 1 of lines: value_schema: Schema 99999 not found"),
        ({"guid": "x"}, 2, "line 1 of lines: value_schema: 'x' is no GUID"),
        (7, 2, 'line 1 of lines: value_schema: expected an object such as {"id": 7}'),
        ({"id": 7, "message": 1}, 2, "value_schema: message: expected the name of one"),
    ):
        line = {"value": 1, "value_schema": named}
        exit_code, _, err = run("produce", orders, "-i", "json", "--registry", registry.url, lines=[line])
        assert (exit_code, err.count("\n")) == (code, 1), named
        assert words in err, named
    exit_code, _, err = run("produce", orders, "-i", "json", lines=[{"value": 1, "value_schema": {"id": 1}}])
    assert (exit_code, err.count("\n")) == (2, 1)
    assert "value_schema: of which registry? Give --registry URL" in err


def test_references_are_registered_with_the_schema(
    done: Done, registry: RunningRegistry, theirs: SchemaRegistryClient, orders: str
) -> None:
    register(registry, f"{orders}-line")
    Path("basket.proto").write_text(
        'syntax = "proto3"; import "order.proto"; message Basket { repeated shop.Order orders = 1; }'
    )
    options = ("--value-schema", "basket.proto", "--schema-reference", f"order.proto={orders}-line:1")
    basket = {"orders": [{"id": "1", "totalCents": "5"}]}
    done("produce", orders, "--registry", registry.url, *options, lines=[basket])
    assert theirs.get_latest_version(f"{orders}-value").schema.references[0].subject == f"{orders}-line"
    shown = done("consume", orders, "--registry", registry.url, "--from-beginning", "-e")
    assert json.loads(shown) == basket


def test_a_registry_that_is_not_there(run: Run, done: Done, orders: str) -> None:
    done("produce", orders, "-i", "json", lines=[{"value": {"base64": "AAAAAAECAA=="}}])
    nowhere = ("--registry", "http://127.0.0.1:1", "-X", "schema.registry.max.retries=0")
    for arguments in (("consume", "--from-beginning", "-e"), ("produce", "--value-schema", "latest")):
        exit_code, out, err = run(arguments[0], orders, *arguments[1:], *nowhere)
        assert (exit_code, out, err.count("\n")) == (1, "", 1)
        assert "no schema registry answers at http://127.0.0.1:1: Connection refused; is it running" in err


def test_a_login_is_kept_in_a_file(run: Run, done: Done, bootstrap: str, orders: str, tmp_path: Path) -> None:
    """As Confluent's clients name it; without it the registry says no, and we what to do."""
    users, config = tmp_path / "users", tmp_path / "client.properties"
    users.write_text(f"anna: {hashed('hush')}, read, write\n")
    config.write_text("basic.auth.credentials.source=USER_INFO\nbasic.auth.user.info=anna:hush\n")
    with own_registry(bootstrap, tmp_path, "--users", str(users)) as guarded:
        options = ("--registry", guarded.url, "--command-config", str(config))
        done("produce", orders, *options, "--value-schema", "order.avsc", lines=[{"id": 1}])
        assert done("consume", orders, *options, "--from-beginning", "-e") == '{"id":1,"note":null}\n'
        exit_code, out, err = run("consume", orders, *options[:2], "--from-beginning", "-e")
    assert (exit_code, out, err.count("\n")) == (1, "", 1)
    assert "give a login with basic.auth.user.info=user:password" in err
