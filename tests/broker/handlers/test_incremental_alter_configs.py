from __future__ import annotations

from collections.abc import Iterator

import pytest

from moldau.core.errors import ErrorCode
from moldau.wire.messages import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse
from moldau.wire.messages.incremental_alter_configs import AlterableConfig, AlterConfigsResource
from tests.broker.handlers.config_resources import (
    ALL_BROKERS,
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
    await_value,
    synonyms,
    value,
)
from tests.broker.handlers.wire import Wire

SET, DELETE, APPEND, SUBTRACT = range(4)
TOPIC_CONFIG, BROKER_CONFIG, ALL_BROKERS_CONFIG, DEFAULT_CONFIG, CLIENT_METRICS_CONFIG = 1, 2, 3, 5, 7
WEEK_MS = "604800000"
Change = tuple[str, int, str | None]


def resource(kind: int, name: str, *changes: Change) -> AlterConfigsResource:
    configs = [AlterableConfig(name=key, config_operation=operation, value=text) for key, operation, text in changes]
    return AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)


def ask(
    wire: Wire, *resources: AlterConfigsResource, version: int = 1, validate_only: bool = False
) -> list[tuple[int, str, int, str | None]]:
    request = IncrementalAlterConfigsRequest(resources=list(resources), validate_only=validate_only)
    responses = wire.ask(request, version, IncrementalAlterConfigsResponse).responses
    return [(each.resource_type, each.resource_name, each.error_code, each.error_message) for each in responses]


def alter(
    wire: Wire, kind: int, name: str, *changes: Change, version: int = 1, validate_only: bool = False
) -> tuple[int, str | None]:
    asked = resource(kind, name, *changes)
    ((found_kind, found_name, error, message),) = ask(wire, asked, version=version, validate_only=validate_only)
    assert (found_kind, found_name) == (kind, name)
    return error, message


DONE = (ErrorCode.NONE, None)


@pytest.fixture
def topic(wire: Wire, name: str) -> str:
    wire.create_topic(name, retention_ms="5000")
    return name


@pytest.fixture
def own(wire: Wire, broker_id: int) -> Iterator[str]:
    """The broker's name as a resource; what the tests set there goes with them."""
    yield str(broker_id)
    for each in (str(broker_id), ALL_BROKERS):
        alter(wire, BROKER, each, ("log.retention.ms", DELETE, None), ("log.cleaner.threads", DELETE, None))


@pytest.mark.parametrize("version", [0, 1])
def test_set_and_delete(wire: Wire, topic: str, version: int) -> None:
    assert alter(wire, TOPIC, topic, ("retention.ms", SET, "7000"), version=version) == DONE
    await_value(wire, TOPIC, topic, "retention.ms", "7000")
    assert alter(wire, TOPIC, topic, ("retention.ms", DELETE, None), version=version) == DONE
    await_value(wire, TOPIC, topic, "retention.ms", WEEK_MS)


def test_what_is_not_named_stays(wire: Wire, topic: str) -> None:
    assert alter(wire, TOPIC, topic, ("segment.ms", SET, "9000")) == DONE
    await_value(wire, TOPIC, topic, "segment.ms", "9000")
    assert value(wire, TOPIC, topic, "retention.ms") == "5000"


def test_lists_grow_and_shrink(wire: Wire, topic: str) -> None:
    for operation, item, expected in (
        (APPEND, "compact", "delete,compact"),
        (APPEND, "compact", "delete,compact"),
        (SUBTRACT, "delete", "compact"),
        (SUBTRACT, "unheard-of", "compact"),
        (APPEND, "delete", "compact,delete"),
    ):
        assert alter(wire, TOPIC, topic, ("cleanup.policy", operation, item)) == DONE
        await_value(wire, TOPIC, topic, "cleanup.policy", expected)


def test_a_list_may_become_empty(wire: Wire, topic: str) -> None:
    assert alter(wire, TOPIC, topic, ("cleanup.policy", SUBTRACT, "delete")) == DONE
    await_value(wire, TOPIC, topic, "cleanup.policy", "")
    assert synonyms(wire, TOPIC, topic, "cleanup.policy") == (
        "", [("cleanup.policy", "", TOPIC_CONFIG), ("log.cleanup.policy", "delete", DEFAULT_CONFIG)]
    )  # fmt: skip


def test_a_dry_run_changes_nothing(wire: Wire, topic: str) -> None:
    assert alter(wire, TOPIC, topic, ("retention.ms", SET, "1"), validate_only=True) == DONE
    assert value(wire, TOPIC, topic, "retention.ms") == "5000"


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (
            [("retention.ms", APPEND, "1")],
            ErrorCode.INVALID_CONFIG,
            "Can't APPEND to key retention.ms because its type is not LIST.",
        ),
        (
            [("retention.ms", SUBTRACT, "1")],
            ErrorCode.INVALID_CONFIG,
            "Can't SUBTRACT to key retention.ms because its type is not LIST.",
        ),
        (
            [("cleanup.policy", APPEND, "shred")],
            ErrorCode.INVALID_CONFIG,
            "Invalid value shred for configuration cleanup.policy: String must be one of: compact, delete",
        ),
        (
            [("retention.ms", SET, "abc"), ("segment.ms", SET, "5")],
            ErrorCode.INVALID_CONFIG,
            "Invalid value abc for configuration retention.ms: Not a number of type LONG",
        ),
        ([("no.such.key", SET, "1")], ErrorCode.INVALID_CONFIG, "Unknown topic config name: no.such.key"),
        (
            [("retention.ms", SET, None), ("segment.ms", SET, None)],
            ErrorCode.INVALID_REQUEST,
            "Null value not supported for : retention.ms, segment.ms",
        ),
        (
            [("retention.ms", SET, "1"), ("retention.ms", DELETE, None)],
            ErrorCode.INVALID_REQUEST,
            "Error due to duplicate config keys",
        ),
    ],
)
def test_changes_that_make_no_sense(
    wire: Wire, topic: str, changes: list[Change], error: ErrorCode, message: str
) -> None:
    assert alter(wire, TOPIC, topic, *changes) == (error, message)
    assert value(wire, TOPIC, topic, "retention.ms") == "5000"


@pytest.mark.usefixtures("moldau_only")
@pytest.mark.parametrize("operation", [-1, 4, 9])
def test_an_operation_that_does_not_exist(wire: Wire, topic: str, own: str, operation: int) -> None:
    expected = (ErrorCode.INVALID_REQUEST, f"Unknown operations type {operation}")
    assert alter(wire, TOPIC, topic, ("retention.ms", operation, "1")) == expected
    assert alter(wire, BROKER, own, ("log.cleaner.threads", operation, "1")) == expected
    assert alter(wire, BROKER_LOGGER, own, ("root", operation, "INFO")) == expected


def test_deleting_what_is_not_set_is_no_mistake(wire: Wire, topic: str) -> None:
    assert alter(wire, TOPIC, topic, ("segment.ms", DELETE, None), ("no.such.key", DELETE, None)) == DONE


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        (
            "there-is-no-such-topic",
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "The topic 'there-is-no-such-topic' does not exist.",
        ),
        ("", ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed."),
    ],
)
def test_a_topic_that_is_not_there(wire: Wire, name: str, error: ErrorCode, message: str) -> None:
    assert alter(wire, TOPIC, name, ("retention.ms", SET, "1")) == (error, message)


def test_a_broker_s_own_setting_wins_over_the_one_for_all(wire: Wire, topic: str, own: str) -> None:
    assert alter(wire, BROKER, ALL_BROKERS, ("log.retention.ms", SET, "888888")) == DONE
    assert alter(wire, BROKER, own, ("log.retention.ms", SET, "777777")) == DONE
    await_value(wire, BROKER, own, "log.retention.ms", "777777")
    await_value(wire, BROKER, ALL_BROKERS, "log.retention.ms", "888888")
    below = [
        ("log.retention.ms", "777777", BROKER_CONFIG),
        ("log.retention.ms", "888888", ALL_BROKERS_CONFIG),
        ("log.retention.hours", "168", DEFAULT_CONFIG),
    ]
    assert synonyms(wire, BROKER, own, "log.retention.ms") == ("777777", below)
    assert synonyms(wire, TOPIC, topic, "retention.ms") == ("5000", [("retention.ms", "5000", TOPIC_CONFIG), *below])
    assert alter(wire, TOPIC, topic, ("retention.ms", DELETE, None)) == DONE
    await_value(wire, TOPIC, topic, "retention.ms", "777777")
    assert alter(wire, BROKER, own, ("log.retention.ms", DELETE, None)) == DONE
    await_value(wire, TOPIC, topic, "retention.ms", "888888")


@pytest.mark.parametrize(
    ("key", "operation", "text", "message"),
    [
        ("log.dirs", SET, "/elsewhere", "Cannot update these configs dynamically: [log.dirs]"),
        ("num.partitions", SET, "4", "Cannot update these configs dynamically: [num.partitions]"),
        (
            "log.segment.bytes",
            SET,
            "100",
            "Invalid value 100 for configuration log.segment.bytes: Value must be at least 1048576",
        ),
        ("log.retention.ms", SET, None, "Null value not supported for : log.retention.ms"),
    ],
)
@pytest.mark.parametrize("for_all", [False, True])
def test_what_a_broker_refuses(
    wire: Wire, own: str, key: str, operation: int, text: str | None, message: str, for_all: bool
) -> None:
    name = ALL_BROKERS if for_all else own
    assert alter(wire, BROKER, name, (key, operation, text)) == (ErrorCode.INVALID_REQUEST, message)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("77", "Unexpected broker id, expected {}, but received 77"),
        ("abc", "Node id must be an integer, but it is: abc"),
        ("+-1", "Node id must be an integer, but it is: +-1"),
        ("9" * 5000, "Node id must be an integer, but it is: " + "9" * 5000),
    ],
)
def test_a_broker_changes_itself_only(wire: Wire, own: str, name: str, message: str) -> None:
    found = alter(wire, BROKER, name, ("log.cleaner.threads", SET, "2"))
    assert found == (ErrorCode.INVALID_REQUEST, message.format(own))


@pytest.mark.usefixtures("moldau_only")
def test_a_broker_has_one_name_however_it_is_written(wire: Wire, own: str) -> None:
    assert alter(wire, BROKER, f"+0{own}", ("log.cleaner.threads", SET, "2")) == DONE
    assert value(wire, BROKER, own, "log.cleaner.threads") == "2"


def test_the_level_of_a_logger(wire: Wire, own: str) -> None:
    before = value(wire, BROKER_LOGGER, own, "root")
    assert alter(wire, BROKER_LOGGER, own, ("root", SET, "ERROR"), validate_only=True) == DONE
    assert value(wire, BROKER_LOGGER, own, "root") == before
    assert alter(wire, BROKER_LOGGER, own, ("root", SET, "ERROR")) == DONE
    assert value(wire, BROKER_LOGGER, own, "root") == "ERROR"
    assert alter(wire, BROKER_LOGGER, own, ("root", SET, before)) == DONE


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (("no.such.logger", SET, "INFO"), ErrorCode.INVALID_CONFIG, "Logger no.such.logger does not exist!"),
        (
            ("root", SET, "LOUD"),
            ErrorCode.INVALID_CONFIG,
            "Cannot set the log level of root to LOUD as it is not a supported log level. "
            "Valid log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN",
        ),
        (
            ("root", DELETE, None),
            ErrorCode.INVALID_REQUEST,
            "Removing the log level of the root logger is not allowed",
        ),
        (
            ("root", APPEND, "INFO"),
            ErrorCode.INVALID_REQUEST,
            "APPEND operation is not allowed for the BROKER_LOGGER resource",
        ),
        (("root", SET, None), ErrorCode.INVALID_REQUEST, "Null value not supported for : root"),
    ],
)
def test_levels_that_make_no_sense(wire: Wire, own: str, change: Change, error: ErrorCode, message: str) -> None:
    assert alter(wire, BROKER_LOGGER, own, change) == (error, message)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("77", "Unexpected node id. Expected {}, but received 77"),
        ("", "Node id must be an integer, but it is: "),
    ],
)
def test_a_broker_changes_its_own_loggers_only(wire: Wire, own: str, name: str, message: str) -> None:
    found = alter(wire, BROKER_LOGGER, name, ("root", SET, "INFO"))
    assert found == (ErrorCode.INVALID_REQUEST, message.format(own))


def test_a_subscription_for_client_metrics(wire: Wire, name: str) -> None:
    assert alter(wire, CLIENT_METRICS, name, ("interval.ms", SET, "1000"), ("metrics", SET, "*")) == DONE
    await_value(wire, CLIENT_METRICS, name, "interval.ms", "1000")
    assert synonyms(wire, CLIENT_METRICS, name, "metrics") == ("*", [("metrics", "*", CLIENT_METRICS_CONFIG)])
    assert alter(wire, CLIENT_METRICS, name, ("interval.ms", DELETE, None), ("metrics", DELETE, None)) == DONE
    await_value(wire, CLIENT_METRICS, name, "interval.ms", "300000")
    assert synonyms(wire, CLIENT_METRICS, name, "metrics") == ("", [])


@pytest.mark.usefixtures("moldau_only")
@pytest.mark.parametrize("pattern", [r"(a)\1", "(?!x)", "(?=x)", "a" * 5_000])
def test_patterns_for_clients_match_in_linear_time(wire: Wire, name: str, pattern: str) -> None:
    refused = (ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: client_id={pattern}")
    assert alter(wire, CLIENT_METRICS, name, ("match", SET, f"client_id={pattern}")) == refused


def test_a_resource_that_is_named_twice_stays_as_it_is(wire: Wire, topic: str) -> None:
    refused = (TOPIC, topic, ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
    first = resource(TOPIC, topic, ("retention.ms", SET, "1"))
    second = resource(TOPIC, topic, ("segment.ms", SET, "2"))
    assert ask(wire, first, second) == [refused, refused]
    assert value(wire, TOPIC, topic, "retention.ms") == "5000"


def test_one_bad_resource_does_not_hurt_another(wire: Wire, topic: str, own: str) -> None:
    found = ask(
        wire,
        resource(TOPIC, "there-is-no-such-topic", ("retention.ms", SET, "1")),
        resource(99, "x"),
        resource(BROKER, "77", ("log.cleaner.threads", SET, "2")),
        resource(TOPIC, topic, ("retention.ms", SET, "2000")),
        resource(BROKER_LOGGER, own, ("no.such.logger", SET, "INFO")),
    )
    assert {(kind, name): error for kind, name, error, _ in found} == {
        (TOPIC, "there-is-no-such-topic"): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        (99, "x"): ErrorCode.INVALID_REQUEST,
        (BROKER, "77"): ErrorCode.INVALID_REQUEST,
        (TOPIC, topic): ErrorCode.NONE,
        (BROKER_LOGGER, own): ErrorCode.INVALID_CONFIG,
    }
    await_value(wire, TOPIC, topic, "retention.ms", "2000")


def test_nothing_asked_nothing_answered(wire: Wire, topic: str) -> None:
    assert ask(wire) == []
    assert alter(wire, TOPIC, topic) == DONE


def test_a_group_is_configured(wire: Wire, name: str) -> None:
    assert alter(wire, GROUP, name, ("consumer.heartbeat.interval.ms", SET, "6000")) == DONE
    await_value(wire, GROUP, name, "consumer.heartbeat.interval.ms", "6000")
    assert alter(wire, GROUP, name, ("consumer.heartbeat.interval.ms", DELETE, None)) == DONE
    await_value(wire, GROUP, name, "consumer.heartbeat.interval.ms", "5000")
