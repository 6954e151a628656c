from __future__ import annotations

from collections.abc import Iterator

import pytest

from moldau.core.errors import ErrorCode
from moldau.wire.messages import AlterConfigsRequest, AlterConfigsResponse
from moldau.wire.messages.alter_configs import AlterableConfig, AlterConfigsResource
from tests.broker.handlers.config_resources import (
    ALL_BROKERS,
    BROKER,
    BROKER_LOGGER,
    GROUP,
    TOPIC,
    await_value,
    value,
)
from tests.broker.handlers.wire import Wire

WEEK_MS = "604800000"
Configs = list[tuple[str, str | None]]


def resource(kind: int, name: str, configs: Configs) -> AlterConfigsResource:
    changes = [AlterableConfig(name=key, value=text) for key, text in configs]
    return AlterConfigsResource(resource_type=kind, resource_name=name, configs=changes)


def ask(
    wire: Wire, *resources: AlterConfigsResource, version: int = 2, validate_only: bool = False
) -> list[tuple[int, str, int, str | None]]:
    request = AlterConfigsRequest(resources=list(resources), validate_only=validate_only)
    responses = wire.ask(request, version, AlterConfigsResponse).responses
    return [(each.resource_type, each.resource_name, each.error_code, each.error_message) for each in responses]


def alter(
    wire: Wire, kind: int, name: str, *configs: tuple[str, str | None], validate_only: bool = False, version: int = 2
) -> tuple[int, str | None]:
    asked = resource(kind, name, list(configs))
    ((found_kind, found_name, error, message),) = ask(wire, asked, version=version, validate_only=validate_only)
    assert (found_kind, found_name) == (kind, name)
    return error, message


@pytest.fixture
def topic(wire: Wire, name: str) -> str:
    wire.create_topic(name, retention_ms="5000", segment_ms="9000")
    return name


@pytest.fixture
def own(wire: Wire, broker_id: int) -> Iterator[str]:
    """The broker's name as a resource; what a test sets there goes with it."""
    yield str(broker_id)
    alter(wire, BROKER, str(broker_id))


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_topic_has_what_is_given_and_no_more(wire: Wire, topic: str, version: int) -> None:
    assert alter(wire, TOPIC, topic, ("retention.ms", "7000"), version=version) == (ErrorCode.NONE, None)
    await_value(wire, TOPIC, topic, "retention.ms", "7000")
    assert value(wire, TOPIC, topic, "segment.ms") == WEEK_MS


def test_nothing_given_is_nothing_set(wire: Wire, topic: str) -> None:
    assert alter(wire, TOPIC, topic) == (ErrorCode.NONE, None)
    await_value(wire, TOPIC, topic, "retention.ms", WEEK_MS)


def test_a_dry_run_changes_nothing(wire: Wire, topic: str) -> None:
    assert alter(wire, TOPIC, topic, ("retention.ms", "1"), validate_only=True) == (ErrorCode.NONE, None)
    assert value(wire, TOPIC, topic, "retention.ms") == "5000"


@pytest.mark.parametrize("validate_only", [False, True])
@pytest.mark.parametrize(
    ("configs", "error", "message"),
    [
        (
            [("retention.ms", "abc")],
            ErrorCode.INVALID_CONFIG,
            "Invalid value abc for configuration retention.ms: Not a number of type LONG",
        ),
        ([("no.such.key", "1")], ErrorCode.INVALID_CONFIG, "Unknown topic config name: no.such.key"),
        ([("retention.ms", None)], ErrorCode.INVALID_REQUEST, "Null value not supported for : retention.ms"),
        (
            [("retention.ms", "1"), ("retention.ms", None)],
            ErrorCode.INVALID_REQUEST,
            "Error due to duplicate config keys",
        ),
    ],
)
def test_configs_that_make_no_sense(
    wire: Wire, topic: str, configs: Configs, error: ErrorCode, message: str, validate_only: bool
) -> None:
    assert alter(wire, TOPIC, topic, *configs, validate_only=validate_only) == (error, message)
    assert value(wire, TOPIC, topic, "retention.ms") == "5000"


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        (
            "there-is-no-such-topic",
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "The topic 'there-is-no-such-topic' does not exist.",
        ),
        ("", ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed."),
        ("..", ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic name is invalid: '..' is not allowed"),
    ],
)
def test_a_topic_that_is_not_there(wire: Wire, name: str, error: ErrorCode, message: str) -> None:
    assert alter(wire, TOPIC, name, ("retention.ms", "1")) == (error, message)


def test_a_broker(wire: Wire, own: str) -> None:
    assert alter(wire, BROKER, own, ("log.cleaner.threads", "2")) == (ErrorCode.NONE, None)
    await_value(wire, BROKER, own, "log.cleaner.threads", "2")
    assert alter(wire, BROKER, own) == (ErrorCode.NONE, None)
    await_value(wire, BROKER, own, "log.cleaner.threads", "1")


@pytest.mark.parametrize(
    ("name", "key", "text", "message"),
    [
        ("own", "log.dirs", "/elsewhere", "Cannot update these configs dynamically: [log.dirs]"),
        (
            "own",
            "log.cleaner.threads",
            "x",
            "Invalid value x for configuration log.cleaner.threads: Not a number of type INT",
        ),
        (ALL_BROKERS, "node.id", "1", "Cannot update these configs dynamically: [node.id]"),
        ("77", "log.cleaner.threads", "2", "Unexpected broker id, expected {}, but received 77"),
        ("abc", "log.cleaner.threads", "2", "Node id must be an integer, but it is: abc"),
    ],
)
def test_what_a_broker_refuses(wire: Wire, own: str, name: str, key: str, text: str, message: str) -> None:
    asked = own if name == "own" else name
    assert alter(wire, BROKER, asked, (key, text)) == (ErrorCode.INVALID_REQUEST, message.format(own))


@pytest.mark.parametrize("kind", [0, 99, BROKER_LOGGER])
def test_a_kind_that_can_not_be_altered(wire: Wire, own: str, kind: int) -> None:
    assert alter(wire, kind, own, ("x", "1")) == (ErrorCode.INVALID_REQUEST, f"Unknown resource type {kind}")


@pytest.mark.usefixtures("moldau_only")
def test_a_resource_that_is_named_twice_stays_as_it_is(wire: Wire, topic: str) -> None:
    first, second = (resource(TOPIC, topic, [("retention.ms", text)]) for text in ("1", "2"))
    refused = (TOPIC, topic, ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
    assert ask(wire, first, second) == [refused, refused]
    assert value(wire, TOPIC, topic, "retention.ms") == "5000"


def test_one_bad_resource_does_not_hurt_another(wire: Wire, topic: str) -> None:
    found = ask(
        wire,
        resource(TOPIC, "there-is-no-such-topic", []),
        resource(BROKER, "77", []),
        resource(TOPIC, topic, [("retention.ms", "2000")]),
    )
    assert [(kind, name, error) for kind, name, error, _ in found] == [
        (TOPIC, "there-is-no-such-topic", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (BROKER, "77", ErrorCode.INVALID_REQUEST),
        (TOPIC, topic, ErrorCode.NONE),
    ]


def test_nothing_asked_nothing_answered(wire: Wire) -> None:
    assert ask(wire) == []


def test_a_group_loses_what_is_not_named(wire: Wire, name: str) -> None:
    session, heartbeat = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
    alter(wire, GROUP, name, (session, "50000"))
    await_value(wire, GROUP, name, session, "50000")
    alter(wire, GROUP, name, (heartbeat, "6000"))
    await_value(wire, GROUP, name, heartbeat, "6000")
    assert value(wire, GROUP, name, session) == "45000"
