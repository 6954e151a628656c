"""Every setting of Java's clients has its effect, or is said to have none, or is refused; so has every option."""

from __future__ import annotations

import ast
import time
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

import moldau.spark
from moldau.spark.clients.java_settings import REFUSED, WITHOUT_EFFECT
from moldau.spark.clients.librdkafka import patiently
from moldau.spark.clients.settings import CONSUMER_ONLY, PRODUCER_ONLY, client_settings
from moldau.spark.option_values import OptionError, OptionValues
from moldau.spark.options import (
    ENDS,
    FORMATS,
    SINK_OPTIONS,
    SOURCE_OPTIONS,
    STARTS,
    SUBSCRIPTIONS,
    SinkOptions,
    SourceOptions,
    sink_options,
    source_options,
)
from moldau.spark.writing.new_topics import new_topic_settings

SOURCE = Path(moldau.spark.__file__).parent
SERVERS = {"kafka.bootstrap.servers": "localhost:9092"}


class JavaKey(NamedTuple):
    """`clients` has a letter for each of consumer, producer and admin client that knows the key."""

    name: str
    clients: str
    default: str


def java_keys() -> list[JavaKey]:
    """What ConsumerConfig, ProducerConfig and AdminClientConfig of Apache Kafka 4.3.1 define."""
    recorded = Path(__file__).with_name("client_keys_4.3.1.tsv").read_text().splitlines()
    return [JavaKey(*line.split("\t")) for line in recorded]


def settings(side: str, **kafka: str) -> dict[str, str]:
    given = {f"kafka.{name}": value for name, value in kafka.items()}
    return dict(client_settings(OptionValues({**SERVERS, **given}), side=side))


def is_known_to_librdkafka(name: str, *, side: str) -> bool:
    make: Any = Consumer if side == "consumer" else Producer
    try:
        make({"group.id": "unused", name: "\x01"} if side == "consumer" else {name: "\x01"})
    except KafkaException as wrong:
        told = str(wrong)
        # It knows some of Java's names only to say what to use in their place.
        return "No such configuration property" not in told and "Java" not in told
    return True


@pytest.mark.parametrize("side", ["consumer", "producer"])
def test_no_setting_of_java_is_dropped_without_a_word(side: str) -> None:
    others = PRODUCER_ONLY if side == "consumer" else CONSUMER_ONLY
    for key in java_keys():
        classes = [key.name in REFUSED, key.name in WITHOUT_EFFECT]
        assert sum(classes) <= 1, key
        if any(classes) or key.name in others or key.name == "sasl.jaas.config":
            continue
        # The settings beside it without which it says nothing.
        beside = {"compression.type": key.name.split(".")[1]} if key.name.startswith("compression.") else {}
        value = "true" if key.default == "false" else key.default or "1"
        made = settings(side, **{**beside, key.name: value})
        gained = made.keys() - settings(side, **beside).keys() | made.keys() & {key.name}
        assert gained, f"nothing reads kafka.{key.name}: translate it, or give it a row in java_settings.py"
        for name in gained:
            assert is_known_to_librdkafka(name, side=side), f"kafka.{key.name} becomes {name}, which librdkafka lacks"


def test_no_row_is_about_a_setting_that_librdkafka_has() -> None:
    of_java = {key.name for key in java_keys()}
    older = {"auto.include.jmx.reporter", "enable.auto.offset.store"}
    assert {*REFUSED, *WITHOUT_EFFECT} - older <= of_java


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("partitioner.class", "com.example.MyPartitioner", "a column partition says where each row goes"),
        ("partitioner.class", "org.apache.kafka.clients.producer.RoundRobinPartitioner", "a class of Java"),
        ("sasl.login.callback.handler.class", "com.example.Login", r"kafka\.sasl\.oauthbearer\.method=oidc"),
        ("sasl.client.callback.handler.class", "com.example.Login", "a class of Java cannot run here"),
        ("exclude.internal.topics", "false", "name those in subscribe"),
        ("ssl.enabled.protocols", "TLSv1.3", "the brokers choose"),
        ("ssl.truststore.type", "JKS", "export its certificates as PEM"),
        ("ssl.truststore.type", "PKCS12", "export its certificates as PEM"),
        ("transaction.two.phase.commit.enable", "true", "ends its transactions itself"),
    ],
)
def test_what_would_harm_if_it_did_nothing_is_refused(name: str, value: str, told: str) -> None:
    for side in ("consumer", "producer"):
        with pytest.raises(OptionError, match=rf"kafka\.{name} = '{value}': it cannot be set: .*{told}"):
            settings(side, **{name: value})


def test_a_delegation_token_is_refused() -> None:
    login = 'ScramLoginModule required username="id" password="hmac" tokenauth="true";'
    with pytest.raises(OptionError, match="logs in by no delegation token"):
        settings("consumer", **{"sasl.jaas.config": login})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("partitioner.class", "org.apache.kafka.clients.producer.internals.DefaultPartitioner"),
        ("partitioner.class", ""),
        ("exclude.internal.topics", "true"),
        ("ssl.enabled.protocols", "TLSv1.2,TLSv1.3"),
        ("ssl.protocol", "TLSv1.3"),
        ("sasl.login.class", ""),
    ],
)
def test_a_value_that_asks_for_nothing_is_taken(name: str, value: str) -> None:
    assert settings("producer", **{name: value}) == {"bootstrap.servers": "localhost:9092"}


def test_what_has_no_effect_is_told_with_the_reason(caplog: pytest.LogCaptureFixture) -> None:
    assert settings("consumer", **{"max.poll.records": "77"}) == {"bootstrap.servers": "localhost:9092"}
    assert "option kafka.max.poll.records = '77' has no effect: maxOffsetsPerTrigger and" in caplog.text


def test_a_password_without_effect_is_not_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    settings("consumer", **{"ssl.truststore.password": "hunter2"})
    assert "option kafka.ssl.truststore.password = '***' has no effect" in caplog.text


def test_java_settings_that_librdkafka_says_otherwise() -> None:
    producer = settings("producer", **{"partitioner.ignore.keys": "true", "compression.type": "zstd",
                                       "compression.zstd.level": "7", "compression.gzip.level": "1"})  # fmt: skip
    assert producer.items() >= {"partitioner": "random", "compression.level": "7"}.items()
    pem = settings("consumer", **{"ssl.keystore.type": "PEM", "ssl.keystore.location": "/k.pem"})
    assert pem.items() >= {"ssl.certificate.location": "/k.pem", "ssl.key.location": "/k.pem"}.items()
    assert settings("consumer", **{"ssl.keystore.location": "/k.p12"})["ssl.keystore.location"] == "/k.p12"
    kinit = settings("consumer", **{"sasl.kerberos.kinit.cmd": "/opt/kinit"})["sasl.kerberos.kinit.cmd"]
    assert kinit == '/opt/kinit -t "%{sasl.kerberos.keytab}" -k %{sasl.kerberos.principal}'


@cache
def nodes_of_readers() -> list[ast.AST]:
    """The code but for the module that parses options."""
    paths = [path for path in SOURCE.rglob("*.py") if path.name != "options.py" or path.parent != SOURCE]
    return [node for path in paths for node in ast.walk(ast.parse(path.read_text()))]


def read_while_parsing(monkeypatch: pytest.MonkeyPatch, *maps: dict[str, str], is_sink: bool) -> set[str]:
    read: set[str] = set()
    look_up = OptionValues.text

    def text(self: OptionValues, name: str) -> str | None:
        read.add(name)
        return look_up(self, name)

    monkeypatch.setattr(OptionValues, "text", text)
    for options in maps:
        given = {**SERVERS, **options}
        if is_sink:
            sink_options(given, streaming=False)
            new_topic_settings({**given, "topic": "t"})
        else:
            source_options(given, streaming=False)
    return read


def test_every_option_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    formats = dict.fromkeys(FORMATS, "x")
    topics = [{"subscribe": "t"}, {"subscribePattern": "t"}, {"assign": '{"t":[0]}'}]
    read = read_while_parsing(monkeypatch, *({**formats, **one} for one in topics), is_sink=False)
    assert set(SOURCE_OPTIONS) - read == set()
    assert {*SUBSCRIPTIONS, *STARTS, *ENDS} <= read
    read = read_while_parsing(monkeypatch, {**formats, "batchId": "1", "queryId": "q"}, is_sink=True)
    assert set(SINK_OPTIONS) - read == set()


@pytest.mark.parametrize("options", [SourceOptions, SinkOptions])
def test_every_option_that_is_parsed_is_used(options: type[SourceOptions] | type[SinkOptions]) -> None:
    used = {node.attr for node in nodes_of_readers() if isinstance(node, ast.Attribute)}
    assert set(options.__dataclass_fields__) - used == set()
    texts = {node.value for node in nodes_of_readers() if isinstance(node, ast.Constant)}
    for name in FORMATS:
        # Formats look for their options by the name without the side.
        assert {name.lower(), name.removeprefix("key").removeprefix("value").removeprefix(".")} & texts, (
            f"nothing reads {name}"
        )


def test_offsets_are_asked_for_as_often_as_the_user_says() -> None:
    """The stock connector's options for it; without them the cluster is waited for 30 s."""
    patience = source_options(
        {**SERVERS, "subscribe": "t", "fetchOffset.numRetries": "2", "fetchOffset.retryIntervalMs": "3"},
        streaming=True,
    ).patience
    asked: list[float] = []

    def ask() -> None:
        asked.append(time.monotonic())
        raise KafkaException(KafkaError(KafkaError._TRANSPORT))

    with pytest.raises(KafkaException):
        patiently(ask, patience)
    assert len(asked) == 3
    assert asked[-1] - asked[0] >= 0.006
