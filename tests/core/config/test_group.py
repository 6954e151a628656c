"""A group's values: the broker's defaults, its own within the broker's bounds, and what is refused."""

from __future__ import annotations

import pytest

from moldau.core.config.broker import BrokerConfig
from moldau.core.config.definitions import ConfigError
from moldau.core.config.group import GROUP_CONFIGS, effective_group_int, validate_group_overrides

SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
BROKER = BrokerConfig.of({})


def test_a_group_has_the_brokers_value_until_it_has_its_own() -> None:
    broker = BrokerConfig.of({"group.consumer.session.timeout.ms": "46000"})
    assert effective_group_int(SESSION, {}, broker) == 46_000
    assert effective_group_int(SESSION, {SESSION: "50000"}, broker) == 50_000


@pytest.mark.parametrize(("text", "effective"), [("50000", 49_000), ("45000", 48_000), ("48500", 48_500)])
def test_bounds_that_changed_later_move_a_value(text: str, effective: int) -> None:
    bounds = {
        "group.consumer.session.timeout.ms": "48000",
        "group.consumer.min.session.timeout.ms": "48000",
        "group.consumer.max.session.timeout.ms": "49000",
    }
    assert effective_group_int(SESSION, {SESSION: text}, BrokerConfig.of(bounds)) == effective


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            {HEARTBEAT: "4999"},
            f"{HEARTBEAT} must be greater than or equal to group.consumer.min.heartbeat.interval.ms",
        ),
        ({SESSION: "60001"}, f"{SESSION} must be less than or equal to group.consumer.max.session.timeout.ms"),
        ({SESSION: "0"}, f"Invalid value 0 for configuration {SESSION}: Value must be at least 1"),
        ({SESSION: "x"}, f"Invalid value x for configuration {SESSION}: Not a number of type INT"),
        ({"retention.ms": "1"}, "Unknown group config name: retention.ms"),
        ({SESSION: "1", "no.such": "1"}, "Unknown group config name: no.such"),
    ],
)
def test_what_can_not_be_set(overrides: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        validate_group_overrides(overrides, BROKER)
    assert str(refused.value) == message


def test_a_session_is_longer_than_a_heartbeat() -> None:
    names = ("session.timeout.ms", "max.session.timeout.ms", "min.session.timeout.ms")
    broker = BrokerConfig.of({f"group.consumer.{name}": "9000" for name in names} | {
        "group.consumer.max.heartbeat.interval.ms": "9500"
    })  # fmt: skip
    with pytest.raises(ConfigError, match=f"{SESSION} must be greater than {HEARTBEAT}"):
        validate_group_overrides({HEARTBEAT: "9000"}, broker)


@pytest.mark.parametrize(
    "value", ["earliest", "latest", "by_duration:PT1H", "by_duration:P2DT3H4M5.5S", "by_duration:P1D"]
)
def test_where_a_share_group_may_begin(value: str) -> None:
    validate_group_overrides({"share.auto.offset.reset": value}, BROKER)


@pytest.mark.parametrize(
    "value", ["", "never", "by_duration", "by_duration:", "by_duration:P", "by_duration:PT", "by_duration:-PT1H"]
)
def test_where_it_may_not(value: str) -> None:
    with pytest.raises(ConfigError):
        validate_group_overrides({"share.auto.offset.reset": value}, BROKER)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("group.consumer.session.timeout.ms", "70000", "must be less than or equal to group.consumer.max.session"),
        ("group.consumer.heartbeat.interval.ms", "1", "must be greater than or equal to group.consumer.min.heartbeat"),
        ("group.consumer.max.heartbeat.interval.ms", "4000", "must be greater than or equal to group.consumer.min"),
        ("group.streams.num.standby.replicas", "3", "must be less than or equal to group.streams.max.standby.replicas"),
    ],
)
def test_a_broker_whose_defaults_are_out_of_its_bounds_does_not_start(key: str, value: str, message: str) -> None:
    with pytest.raises(ConfigError, match=f"{key} {message}"):
        BrokerConfig.of({key: value})


def test_every_key_is_documented() -> None:
    assert [name for name, definition in GROUP_CONFIGS.items() if not definition.doc] == []
