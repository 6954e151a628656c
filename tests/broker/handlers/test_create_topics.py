from __future__ import annotations

import pytest

from moldau.core.errors import ErrorCode
from moldau.core.ids import ZERO_UUID
from moldau.wire.messages import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from moldau.wire.messages.create_topics import CreatableTopicResult
from moldau.wire.messages.describe_topic_partitions import TopicRequest
from tests.broker.handlers.wire import Wire, topic

DEFAULT = -1
SINCE_CONFIGS = 5
SINCE_TOPIC_IDS = 7
TOPIC_CONFIG, DEFAULT_CONFIG = 1, 5


def exists(wire: Wire, name: str) -> bool:
    request = DescribeTopicPartitionsRequest(topics=[TopicRequest(name=name)])
    (found,) = wire.ask(request, 0, DescribeTopicPartitionsResponse).topics
    return found.error_code == ErrorCode.NONE


def refusal(result: CreatableTopicResult) -> tuple[int, str | None]:
    assert (result.topic_id, result.num_partitions, result.replication_factor) == (ZERO_UUID, -1, -1)
    assert result.configs == []
    return result.error_code, result.error_message


@pytest.mark.parametrize("version", range(2, 8))
def test_a_topic_is_created_and_described(wire: Wire, name: str, version: int) -> None:
    result = wire.create(topic(name, 3, configs={"retention.ms": "5000"}), version=version)
    assert (result.name, result.error_code, result.error_message) == (name, ErrorCode.NONE, None)
    wire.await_topic(name, 3)
    assert (result.topic_id != ZERO_UUID) == (version >= SINCE_TOPIC_IDS)
    if version >= SINCE_CONFIGS:
        assert (result.num_partitions, result.replication_factor, result.topic_config_error_code) == (3, 1, 0)
        configs = {each.name: (each.value, each.config_source) for each in result.configs or []}
        assert configs["retention.ms"] == ("5000", TOPIC_CONFIG)
        assert configs["segment.bytes"] == ("1073741824", DEFAULT_CONFIG)
        assert len(configs) == 33
        assert not any(each.read_only or each.is_sensitive for each in result.configs or [])


@pytest.mark.parametrize("version", [2, 4, 7])
def test_the_broker_has_defaults(wire: Wire, name: str, version: int) -> None:
    result = wire.create(topic(name, DEFAULT, replication_factor=DEFAULT), version=version)
    assert result.error_code == ErrorCode.NONE
    assert result.num_partitions == (1 if version >= SINCE_CONFIGS else -1)


def test_a_dry_run_creates_nothing(wire: Wire, name: str) -> None:
    result = wire.create(topic(name, 2), validate_only=True)
    assert (result.error_code, result.num_partitions) == (ErrorCode.NONE, 2)
    assert not exists(wire, name)


@pytest.mark.parametrize("version", [2, 5, 7])
def test_a_name_is_taken_once(wire: Wire, name: str, version: int) -> None:
    wire.create_topic(name)
    assert refusal(wire.create(topic(name), version=version)) == (
        ErrorCode.TOPIC_ALREADY_EXISTS,
        f"Topic '{name}' already exists.",
    )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("a/b", "'a/b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("ü", "'ü' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("x" * 250, f"the length of '{'x' * 250}' is longer than the max allowed length 249"),
    ],
)
def test_names_that_no_topic_can_have(wire: Wire, wrong: str, message: str) -> None:
    assert refusal(wire.create(topic(wrong))) == (
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        f"Topic name is invalid: {message}",
    )


def test_a_name_of_249_characters_is_not_too_long(wire: Wire, name: str) -> None:
    assert wire.create(topic(name.ljust(249, "x")), validate_only=True).error_code == ErrorCode.NONE


def test_names_that_would_share_their_metrics(wire: Wire, name: str) -> None:
    wire.create_topic(f"{name}.x")
    assert refusal(wire.create(topic(f"{name}_x"))) == (
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        f"Topic '{name}_x' collides with existing topic: {name}.x",
    )


@pytest.mark.parametrize("partitions", [0, -2])
def test_a_topic_has_partitions(wire: Wire, name: str, partitions: int) -> None:
    assert refusal(wire.create(topic(name, partitions))) == (
        ErrorCode.INVALID_PARTITIONS,
        "Number of partitions was set to an invalid non-positive value.",
    )


def test_a_request_has_a_limit_of_partitions(wire: Wire, name: str) -> None:
    error, _ = refusal(wire.create(topic(name, 100_001)))
    assert error == ErrorCode.POLICY_VIOLATION


@pytest.mark.parametrize("factor", [0, -2])
def test_a_partition_has_replicas(wire: Wire, name: str, factor: int) -> None:
    assert refusal(wire.create(topic(name, replication_factor=factor))) == (
        ErrorCode.INVALID_REPLICATION_FACTOR,
        "Replication factor must be larger than 0, or -1 to use the default value.",
    )


def test_no_more_replicas_than_brokers(wire: Wire, name: str) -> None:
    error, message = refusal(wire.create(topic(name, replication_factor=2)))
    assert error == ErrorCode.INVALID_REPLICATION_FACTOR
    assert message is not None
    assert message.startswith(
        "Unable to replicate the partition 2 time(s): The target replication factor of 2 cannot be reached because "
        "only 1 broker(s) are registered"
    )


def test_an_assignment_by_hand(wire: Wire, name: str, broker_id: int) -> None:
    assignments = {0: [broker_id], 1: [broker_id]}
    result = wire.create(topic(name, DEFAULT, replication_factor=DEFAULT, assignments=assignments))
    assert (result.error_code, result.num_partitions, result.replication_factor) == (ErrorCode.NONE, 2, 1)


@pytest.mark.parametrize(
    ("assignments", "message"),
    [
        ({1: [0]}, "partitions should be a consecutive 0-based integer sequence"),
        ({0: [0], 2: [0]}, "partitions should be a consecutive 0-based integer sequence"),
        ({0: [0, 0]}, "The manual partition assignment includes the broker {} more than once."),
        ({0: [99]}, "The manual partition assignment includes broker 99, but no such broker is registered."),
        ({0: []}, "The manual partition assignment includes an empty replica list."),
    ],
)
def test_assignments_that_make_no_sense(
    wire: Wire, name: str, broker_id: int, assignments: dict[int, list[int]], message: str
) -> None:
    ours = {index: [each or broker_id for each in brokers] for index, brokers in assignments.items()}
    assert refusal(wire.create(topic(name, DEFAULT, replication_factor=DEFAULT, assignments=ours))) == (
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        message.format(broker_id),
    )


@pytest.mark.parametrize(
    ("partitions", "factor", "what"), [(2, DEFAULT, "numPartitions"), (DEFAULT, 1, "replication factor")]
)
def test_an_assignment_says_everything(
    wire: Wire, name: str, broker_id: int, partitions: int, factor: int, what: str
) -> None:
    wanted = topic(name, partitions, replication_factor=factor, assignments={0: [broker_id]})
    assert refusal(wire.create(wanted)) == (
        ErrorCode.INVALID_REQUEST,
        f"A manual partition assignment was specified, but {what} was not set to -1.",
    )


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("retention.ms", "abc", "Invalid value abc for configuration retention.ms: Not a number of type LONG"),
        ("retention.ms", "-2", "Invalid value -2 for configuration retention.ms: Value must be at least -1"),
        ("retention.ms", None, "Null value not supported for topic configs: retention.ms"),
        ("no.such.key", "1", "Unknown topic config name: no.such.key"),
        (
            "cleanup.policy",
            "shred",
            "Invalid value shred for configuration cleanup.policy: String must be one of: compact, delete",
        ),
        (
            "segment.bytes",
            "99999999999",
            "Invalid value 99999999999 for configuration segment.bytes: Not a number of type INT",
        ),
    ],
)
def test_configs_that_make_no_sense(wire: Wire, name: str, key: str, value: str | None, message: str) -> None:
    assert refusal(wire.create(topic(name, configs={key: value}))) == (ErrorCode.INVALID_CONFIG, message)
    assert not exists(wire, name)


def test_one_bad_topic_does_not_hurt_another(wire: Wire, name: str) -> None:
    wanted = [topic(f"{name}-1"), topic(f"{name}-2", 0), topic(f"{name}-3")]
    response = wire.ask(CreateTopicsRequest(topics=wanted, timeout_ms=20_000), 7, CreateTopicsResponse)
    assert [(each.name, each.error_code) for each in response.topics] == [
        (f"{name}-1", ErrorCode.NONE),
        (f"{name}-2", ErrorCode.INVALID_PARTITIONS),
        (f"{name}-3", ErrorCode.NONE),
    ]


def test_a_topic_that_is_named_twice_is_not_created(wire: Wire, name: str) -> None:
    wanted = [topic(f"{name}-1"), topic(f"{name}-1", 2), topic(f"{name}-2")]
    response = wire.ask(CreateTopicsRequest(topics=wanted, timeout_ms=20_000), 7, CreateTopicsResponse)
    assert {each.name: (each.error_code, each.error_message) for each in response.topics} == {
        f"{name}-1": (ErrorCode.INVALID_REQUEST, "Duplicate topic name."),
        f"{name}-2": (ErrorCode.NONE, None),
    }
    assert len(response.topics) == 2
    assert not exists(wire, f"{name}-1")


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_who_does_not_wait_gets_nothing(wire: Wire, name: str, timeout_ms: int) -> None:
    request = CreateTopicsRequest(topics=[topic(name)], timeout_ms=timeout_ms)
    (result,) = wire.ask(request, 7, CreateTopicsResponse).topics
    assert refusal(result) == (ErrorCode.REQUEST_TIMED_OUT, None)
    assert not exists(wire, name)


def test_the_cluster_s_own_topic_is_not_for_users(wire: Wire) -> None:
    assert refusal(wire.create(topic("__cluster_metadata"))) == (
        ErrorCode.INVALID_REQUEST,
        "Creation of internal topic __cluster_metadata is prohibited.",
    )


def test_nothing_asked_nothing_answered(wire: Wire) -> None:
    assert wire.ask(CreateTopicsRequest(topics=[]), 7, CreateTopicsResponse).topics == []
