"""Options under the stock connector's names, and what is said about wrong ones."""

from __future__ import annotations

import pytest

from moldau.core.ids import TopicPartition
from moldau.spark.offsets.bounds import AtOffsets, AtTimestamp, AtTimestamps, Everywhere
from moldau.spark.option_values import OptionError
from moldau.spark.options import SourceOptions, Subscription, sink_options, source_options

SERVERS = {"kafka.bootstrap.servers": "localhost:9092"}


def source(**options: str) -> SourceOptions:
    return source_options({**SERVERS, "subscribe": "orders", **options}, streaming=False)


def client(**options: str) -> dict[str, str]:
    return dict(source(**{f"kafka.{name}": value for name, value in options.items()}).client)


def test_defaults_differ_between_batch_and_stream() -> None:
    assert (source().starting, source().ending) == (Everywhere(-2), Everywhere(-1))
    assert source_options({**SERVERS, "subscribe": "orders"}, streaming=True).starting == Everywhere(-1)
    assert sink_options({**SERVERS, "topic": "t"}, streaming=True).delivery == "exactly-once"
    assert sink_options({**SERVERS, "topic": "t"}, streaming=False).delivery == "at-least-once"


def test_names_have_no_case() -> None:
    parsed = source_options({**SERVERS, "SUBSCRIBE": "b, a", "FailOnDataLoss": "FALSE"}, streaming=False)
    assert parsed.subscription == Subscription(topics=("a", "b"))
    assert not parsed.fails_on_data_loss


def test_where_a_read_begins() -> None:
    place = TopicPartition("orders", 0)
    assert source(startingOffsets='{"orders":{"0":-2}}').starting == AtOffsets({place: -2})
    assert source(startingOffsetsByTimestamp='{"orders":{"0":5}}').starting == AtTimestamps({place: 5})
    both = source(startingTimestamp="7", startingOffsetsByTimestamp='{"orders":{"0":5}}')
    assert both.starting == AtTimestamp(7)


def test_limits() -> None:
    admission = source(maxOffsetsPerTrigger="10", minOffsetsPerTrigger="5", maxTriggerDelay="2m").admission
    assert (admission.records_max, admission.records_min, admission.delay_ms_max) == (10, 5, 120_000)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"subscribePattern": "x"}, "subscribe and subscribePattern exclude each other"),
        ({"startingOffsets": "now"}, "startingOffsets = 'now'"),
        ({"startingOffsets": '{"orders":{"0":-3}}'}, "-1 for the latest and -2 for the earliest"),
        ({"endingOffsets": "earliest"}, "cannot end at the earliest offset"),
        ({"failOnDataLoss": "maybe"}, "failOnDataLoss = 'maybe': allowed are true and false"),
        ({"maxOffsetsPerTrigger": "0"}, "allowed is a whole number above 0"),
        ({"maxTriggerDelay": "soon"}, "as in 15m"),
        ({"maxOffsetsPerTrigger": "5", "minOffsetsPerTrigger": "6"}, "maxOffsetsPerTrigger is only 5"),
        ({"startingOffsetsByTimestampStrategy": "guess"}, "allowed are error, latest"),
        ({"maxOffsetPerTrigger": "5"}, "maxOffsetsPerTrigger was probably meant"),
        ({"kafka.enable.auto.commit": "true"}, "kafka.enable.auto.commit = 'true': it cannot be set"),
        ({"kafka.value.deserializer": "x"}, "use valueFormat"),
    ],
)
def test_wrong_options_are_named(options: dict[str, str], told: str) -> None:
    with pytest.raises(OptionError, match=told):
        source(**options)


def test_nothing_to_read_and_nobody_to_ask() -> None:
    with pytest.raises(OptionError, match="give one of the options subscribe, subscribePattern, assign"):
        source_options(SERVERS, streaming=False)
    with pytest.raises(OptionError, match=r"kafka\.bootstrap\.servers is missing"):
        source_options({"subscribe": "orders"}, streaming=False)


def test_options_of_spark_itself_pass() -> None:
    assert source(path="/x", somethingElse="y").subscription.topics == ("orders",)


def test_java_names_are_translated() -> None:
    assert client(**{"fetch.max.wait.ms": "5", "isolation.level": "read_committed"}) == {
        "bootstrap.servers": "localhost:9092",
        "fetch.wait.max.ms": "5",
        "isolation.level": "read_committed",
    }
    assert client(**{"acks": "all", "linger.ms": "3"}) == {"bootstrap.servers": "localhost:9092"}
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="a\\"b";'
    assert client(**{"sasl.jaas.config": jaas, "sasl.mechanism": "PLAIN"}) == {
        "bootstrap.servers": "localhost:9092",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "me",
        "sasl.password": 'a"b',
    }


def test_a_password_stays_out_of_messages() -> None:
    with pytest.raises(OptionError) as caught:
        client(**{"sasl.jaas.config": "secret-stuff"})
    assert "secret-stuff" not in str(caught.value)


def test_a_group_of_the_users_own() -> None:
    assert source(**{"kafka.group.id": "mine"}).group_id == "mine"
    assert source(groupId="ours", **{"kafka.group.id": "mine"}).group_id == "ours"
