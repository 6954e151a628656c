"""What is said about a registry, understood without asking one."""

from __future__ import annotations

import pytest

from moldau.spark.formats import FormatError, decoder_of, encoder_of, wants_inference
from moldau.spark.formats.interface import SideOptions
from moldau.spark.formats.registry.options import subject_options
from moldau.spark.option_values import OptionError
from moldau.spark.options import sink_options, source_options
from moldau.spark.registry_names import login_of, uses_registry
from moldau.spark.secrets import is_secret, masked

URL = {"schema.registry.url": "http://localhost:8081"}


@pytest.mark.parametrize(
    ("options", "subject"),
    [
        ({"valueRegistryTopic": "orders"}, "orders-value"),
        ({"valueSubject": "mine", "valueRegistryTopic": "orders"}, "mine"),
        ({"VALUESUBJECTNAMESTRATEGY": "RecordNameStrategy", "valueRecordName": "a.B"}, "a.B"),
        (
            {
                "value.subject.name.strategy": "io.confluent.kafka.serializers.subject.TopicRecordNameStrategy",
                "valueRecordName": "a.B",
                "valueRegistryTopic": "orders",
            },
            "orders-a.B",
        ),
    ],
)
def test_a_subject_is_named(options: dict[str, str], subject: str) -> None:
    found = subject_options("avro", SideOptions("value", {**URL, **options}))
    assert found.named(found.record_name) == subject


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "option valueSubject is missing: with several topics"),
        ({"valueSubjectNameStrategy": "RecordName"}, "option valueRecordName is missing: RecordNameStrategy names"),
        ({"valueSubjectNameStrategy": "Best"}, "option valueSubjectNameStrategy: unknown subject name strategy 'Best'"),
        ({"valueSchemaVersion": "0"}, "option valueSchemaVersion = '0': allowed are latest and the numbers"),
        ({"use.latest.version": "perhaps"}, "option use.latest.version = 'perhaps': allowed are true and false"),
        (
            {"use.schema.id": "one"},
            "option use.schema.id = 'one': allowed is the id of a schema, a whole number",
        ),
        ({"use.schema.id": "1", "valueSchemaVersion": "2"}, "options use.schema.id and valueSchemaVersion exclude"),
        ({"value.use.schema.id": "1", "use.latest.version": "true"}, "value.use.schema.id and use.latest.version excl"),
        (
            {"use.schema.id": "1", "keyFormat": "avro", "valueFormat": "avro"},
            "key and value have schemas both; give key.use.schema.id and value.use.schema.id",
        ),
        ({"latest.compatibility.strict": "false"}, "option latest.compatibility.strict = false is not supported"),
        ({"latest.compatibility.strict": "perhaps"}, "option latest.compatibility.strict = 'perhaps': allowed are"),
        ({"json.fail.invalid.schema": "perhaps"}, "option json.fail.invalid.schema = 'perhaps': allowed are true and"),
        ({"value.schema.id.serializer": "Best"}, "option value.schema.id.serializer = 'Best': allowed are prefix and"),
        ({"schema.registry.colour": "red"}, "Unknown setting 'colour' of the schema registry; known are"),
        ({"schema.registry.url": "ftp://ann:hunter2@x"}, "Invalid URL 'x' of a schema registry"),
        ({"basic.auth.user.info": "ann"}, "basic.auth.user.info has to be user:password"),
    ],
)
def test_what_cannot_be_meant_is_told(options: dict[str, str], said: str) -> None:
    with pytest.raises(FormatError) as failed:
        subject_options("avro", SideOptions("value", {**URL, **options})).named(None)
    assert said in str(failed.value)
    assert "hunter2" not in str(failed.value)


def test_ids_of_schemas_are_of_a_side() -> None:
    both = {**URL, "keyFormat": "avro", "valueFormat": "avro", "key.use.schema.id": "1", "value.use.schema.id": "2"}
    assert [subject_options("avro", SideOptions(side, both)).schema_id for side in ("key", "value")] == [1, 2]
    frame = {**URL, "use.schema.id": "1", "valueRegistrySchemaId": "3"}
    assert subject_options("avro", SideOptions("value", frame)).schema_id == 3, "of the frame, or the batch's first run"


@pytest.mark.parametrize("read", [True, False], ids=["source", "sink"])
@pytest.mark.parametrize(
    "name",
    ["rule.executors", "Rule.Executors.mine.class", "context.name.strategy", "value.context.name.strategy"],
)
def test_what_is_not_supported_is_refused(read: bool, name: str) -> None:
    said = {"kafka.bootstrap.servers": "x", "valueFormat": "avro", **URL, name: "x", "topic": "orders"}
    parse, own = (source_options, {"subscribe": "orders"}) if read else (sink_options, {})
    with pytest.raises(OptionError, match=f"option {name.lower()} is not supported: "):
        parse({**said, **own}, streaming=True)


def test_rules_about_values_are_of_writing() -> None:
    said = {"kafka.bootstrap.servers": "x", "json.fail.invalid.schema": "true"}
    assert sink_options({**said, "topic": "orders"}, streaming=True).formats["json.fail.invalid.schema"] == "true"
    with pytest.raises(OptionError, match=r"option json\.fail\.invalid\.schema = true is not supported on reading"):
        source_options({**said, "subscribe": "orders"}, streaming=False)


def test_a_format_is_of_a_registry_where_there_is_one() -> None:
    assert uses_registry("AVRO", URL)
    assert not uses_registry("string", URL)
    assert not uses_registry("avro", {"schema.registry.url": ""})
    assert not wants_inference("json", URL, side="value")
    with pytest.raises(FormatError, match=r"schema\.registry\.url is missing: valueFormat=protobuf"):
        decoder_of("protobuf", {}, side="value")
    with pytest.raises(FormatError, match=r"schema\.registry\.url is missing: keyFormat=protobuf"):
        encoder_of("protobuf", {}, side="key")


def test_options_take_the_login_and_the_only_topic_along() -> None:
    said = {
        "kafka.bootstrap.servers": "x:1",
        "subscribe": "orders",
        "valueFormat": "avro",
        "basic.auth.user.info": "ann:hunter2",
        "Schema.Registry.Url": "http://localhost:8081",
    }
    formats = source_options(said, streaming=True).formats
    assert dict(login_of(formats)) == {"url": "http://localhost:8081", "basic.auth.user.info": "ann:hunter2"}
    assert formats["valueRegistryTopic"] == "orders"
    several = source_options({**said, "subscribe": "a,b"}, streaming=True).formats
    assert "valueRegistryTopic" not in several
    assert sink_options({**said, "topic": "out"}, streaming=True).formats["valueRegistryTopic"] == "out"


def test_logins_are_secrets() -> None:
    assert is_secret("schema.registry.basic.auth.user.info")
    assert is_secret("bearer.auth.token")
    assert masked("with (schema.registry.basic.auth.user.info = 'ann:pw')").endswith("user.info = ***)")
