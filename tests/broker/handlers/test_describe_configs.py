from __future__ import annotations

import pytest

from moldau.core.errors import ErrorCode
from moldau.wire.messages import DescribeConfigsRequest, DescribeConfigsResponse
from moldau.wire.messages.describe_configs import (
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
)
from tests.broker.handlers.wire import Wire

TOPIC, BROKER, BROKER_LOGGER, GROUP = 2, 4, 8, 32
TOPIC_CONFIG, DEFAULT_CONFIG, LOGGER_CONFIG = 1, 5, 6
INT, LONG, LIST, UNKNOWN = 3, 5, 7, 0
SINCE_TYPES = 3


def describe(
    wire: Wire,
    kind: int,
    name: str,
    *keys: str,
    version: int = 4,
    synonyms: bool = False,
    documentation: bool = False,
) -> DescribeConfigsResult:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=list(keys) or None)
    request = DescribeConfigsRequest(
        resources=[resource], include_synonyms=synonyms, include_documentation=documentation
    )
    (result,) = wire.ask(request, version, DescribeConfigsResponse).results
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result


def configs(result: DescribeConfigsResult) -> dict[str, DescribeConfigsResourceResult]:
    assert (result.error_code, result.error_message) == (ErrorCode.NONE, "")
    return {each.name: each for each in result.configs}


def refusal(result: DescribeConfigsResult) -> tuple[int, str | None]:
    assert result.configs == []
    return result.error_code, result.error_message


@pytest.mark.parametrize("version", range(1, 5))
def test_all_of_a_topic(wire: Wire, name: str, version: int) -> None:
    wire.create_topic(name, retention_ms="5000")
    found = configs(describe(wire, TOPIC, name, version=version))
    assert len(found) == 33
    retention, segment = found["retention.ms"], found["segment.bytes"]
    assert (retention.value, retention.config_source) == ("5000", TOPIC_CONFIG)
    assert (segment.value, segment.config_source) == ("1073741824", DEFAULT_CONFIG)
    assert (retention.config_type, segment.config_type) == (
        (LONG, INT) if version >= SINCE_TYPES else (UNKNOWN, UNKNOWN)
    )
    assert not any(each.read_only or each.is_sensitive or each.synonyms for each in found.values())
    assert all(each.documentation is None for each in found.values() if version >= SINCE_TYPES)


def test_only_what_is_asked_for(wire: Wire, name: str) -> None:
    wire.create_topic(name)
    found = configs(describe(wire, TOPIC, name, "retention.ms", "no.such.key", "retention.ms"))
    assert found.keys() == {"retention.ms"}


@pytest.mark.parametrize("keys", [None, []])
def test_no_keys_are_all_keys(wire: Wire, name: str, keys: list[str] | None) -> None:
    wire.create_topic(name)
    resource = DescribeConfigsResource(resource_type=TOPIC, resource_name=name, configuration_keys=keys)
    (result,) = wire.ask(DescribeConfigsRequest(resources=[resource]), 4, DescribeConfigsResponse).results
    assert len(result.configs) == 33


def test_what_a_value_would_be_otherwise(wire: Wire, name: str) -> None:
    wire.create_topic(name, segment_bytes="2000000")
    found = configs(describe(wire, TOPIC, name, "segment.bytes", "retention.bytes", synonyms=True))
    assert [(each.name, each.value, each.source) for each in found["segment.bytes"].synonyms] == [
        ("segment.bytes", "2000000", TOPIC_CONFIG),
        ("log.segment.bytes", "1073741824", DEFAULT_CONFIG),
    ]
    assert [(each.name, each.value, each.source) for each in found["retention.bytes"].synonyms] == [
        ("log.retention.bytes", "-1", DEFAULT_CONFIG)
    ]


@pytest.mark.parametrize("version", [3, 4])
def test_documentation_is_for_those_who_ask(wire: Wire, name: str, version: int) -> None:
    wire.create_topic(name)
    found = configs(describe(wire, TOPIC, name, version=version, documentation=True))
    assert all(each.documentation for each in found.values())


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("there-is-no-such-topic", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ""),
        ("", ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic name is invalid: the empty string is not allowed"),
        ("..", ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic name is invalid: '..' is not allowed"),
    ],
)
def test_a_topic_that_is_not_there(wire: Wire, name: str, error: ErrorCode, message: str) -> None:
    assert refusal(describe(wire, TOPIC, name)) == (error, message)


def test_all_of_a_broker(wire: Wire, broker_id: int) -> None:
    found = configs(describe(wire, BROKER, str(broker_id), synonyms=True))
    partitions, threads = found["num.partitions"], found["log.cleaner.threads"]
    assert (partitions.value, partitions.read_only, partitions.config_type) == ("1", True, INT)
    assert (threads.value, threads.read_only) == ("1", False)
    assert [(each.name, each.value, each.source) for each in threads.synonyms] == [
        ("log.cleaner.threads", "1", DEFAULT_CONFIG)
    ]
    assert found["log.cleanup.policy"].config_type == LIST
    assert found["node.id"].value == str(broker_id)


def test_the_defaults_of_all_brokers_are_what_was_set_for_them(wire: Wire) -> None:
    assert "num.partitions" not in configs(describe(wire, BROKER, ""))


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        (BROKER, "77", "Unexpected broker id, expected {} or empty string, but received 77"),
        (BROKER, "abc", "Broker id must be an integer, but it is: abc"),
        (BROKER_LOGGER, "77", "Unexpected broker id, expected {} but received 77"),
        (BROKER_LOGGER, "", "Broker id must not be empty"),
    ],
)
def test_a_broker_speaks_for_itself(wire: Wire, broker_id: int, kind: int, name: str, message: str) -> None:
    assert refusal(describe(wire, kind, name)) == (ErrorCode.INVALID_REQUEST, message.format(broker_id))


def test_loggers(wire: Wire, broker_id: int) -> None:
    found = configs(describe(wire, BROKER_LOGGER, str(broker_id), synonyms=True))
    root = found["root"]
    assert root.value in {"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"}
    assert (root.config_source, root.config_type, root.read_only, root.synonyms) == (LOGGER_CONFIG, UNKNOWN, False, [])
    assert root.documentation == ""


@pytest.mark.parametrize("kind", [0, 1, 99])
def test_a_kind_that_does_not_exist_spoils_the_request(wire: Wire, name: str, kind: int) -> None:
    wire.create_topic(name)
    resources = [
        DescribeConfigsResource(resource_type=TOPIC, resource_name=name),
        DescribeConfigsResource(resource_type=kind, resource_name="x"),
    ]
    results = wire.ask(DescribeConfigsRequest(resources=resources), 4, DescribeConfigsResponse).results
    assert [(each.resource_type, each.error_code, each.configs) for each in results] == [
        (TOPIC, ErrorCode.INVALID_REQUEST, []),
        (kind, ErrorCode.INVALID_REQUEST, []),
    ]


def test_answers_follow_the_questions(wire: Wire, name: str, broker_id: int) -> None:
    wire.create_topic(name)
    asked = [(BROKER, str(broker_id)), (TOPIC, "there-is-no-such-topic"), (TOPIC, name), (TOPIC, name)]
    resources = [DescribeConfigsResource(resource_type=kind, resource_name=each) for kind, each in asked]
    results = wire.ask(DescribeConfigsRequest(resources=resources), 4, DescribeConfigsResponse).results
    assert [(each.resource_type, each.resource_name) for each in results] == asked
    assert wire.ask(DescribeConfigsRequest(resources=[]), 4, DescribeConfigsResponse).results == []


@pytest.mark.usefixtures("moldau_only")
def test_a_small_request_gets_no_enormous_answer(wire: Wire, broker_id: int) -> None:
    resources = [DescribeConfigsResource(resource_type=BROKER, resource_name=str(broker_id))] * 10_000
    with pytest.raises(ConnectionError):
        wire.ask(DescribeConfigsRequest(resources=resources), 4, DescribeConfigsResponse)


def test_a_group_need_not_exist(wire: Wire, name: str) -> None:
    found = configs(describe(wire, GROUP, name, synonyms=True))
    assert len(found) == 17
    heartbeat = found["consumer.heartbeat.interval.ms"]
    assert (heartbeat.value, heartbeat.config_source, heartbeat.read_only) == ("5000", DEFAULT_CONFIG, False)
    assert [each.name for each in heartbeat.synonyms] == ["group.consumer.heartbeat.interval.ms"]
    assert refusal(describe(wire, GROUP, "")) == (ErrorCode.INVALID_REQUEST, "Group name must not be empty")
