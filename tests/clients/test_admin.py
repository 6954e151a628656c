"""Topics, partitions, configurations and the cluster as each client's administration sees them."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.clients.conftest import NewTopic, unique_name
from tests.clients.drivers import CLIENTS, ClientError, Driver, Drivers, Record

VISIBLE_S_MAX = 10.0

UNKNOWN_TOPIC_OR_PARTITION = 3
INVALID_TOPIC_EXCEPTION = 17
TOPIC_ALREADY_EXISTS = 36
INVALID_PARTITIONS = 37
INVALID_REPLICATION_FACTOR = 38
INVALID_CONFIG = 40


@pytest.mark.parametrize("client", CLIENTS)
def test_a_topic_is_created_listed_described_and_deleted(drivers: Drivers, bootstrap: str, client: str) -> None:
    topic, driver = unique_name(), drivers[client]
    driver.create_topic(topic, partitions=5, configs={"retention.ms": "1234567"})
    leader = driver.describe_cluster()["controller"]
    wait_for_partitions(driver, topic, 5)
    assert driver.describe_topic(topic) == [{"id": number, "leader": leader} for number in range(5)]
    assert topic in driver.list_topics()
    driver.delete_topic(topic)
    deadline = time.monotonic() + VISIBLE_S_MAX
    while topic in driver.list_topics():
        assert time.monotonic() < deadline, "the topic is still there"


@pytest.mark.parametrize("client", CLIENTS)
def test_partitions_grow_and_are_written_to(drivers: Drivers, new_topic: NewTopic, client: str) -> None:
    topic, driver = new_topic(partitions=2), drivers[client]
    driver.create_partitions(topic, total=4)
    wait_for_partitions(driver, topic, 4)
    # A producer that saw the two partitions may keep them for minutes, so another client writes.
    writer = "kafkajs" if client == "confluent" else "confluent"
    assert drivers[writer].produce(topic, [Record(b"new", partition=3)]) == [0]
    assert [record.value for record in driver.consume(topic, partition=3, count=1)] == [b"new"]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_topics_configuration_is_described_and_changed(drivers: Drivers, new_topic: NewTopic, client: str) -> None:
    topic, driver = new_topic(configs={"retention.ms": "3600000"}), drivers[client]
    before = driver.describe_configs("topic", topic)
    assert before["retention.ms"] == "3600000"
    assert before["cleanup.policy"] == "delete"
    driver.alter_configs("topic", topic, set={"retention.ms": "7200000", "cleanup.policy": "compact"})
    deadline = time.monotonic() + VISIBLE_S_MAX
    while (after := driver.describe_configs("topic", topic))["retention.ms"] != "7200000":
        assert time.monotonic() < deadline, "the change did not come"
    assert after["cleanup.policy"] == "compact"
    assert after.keys() == before.keys()


@pytest.mark.parametrize("client", CLIENTS)
def test_the_cluster_is_the_broker_we_came_to(drivers: Drivers, bootstrap: str, client: str) -> None:
    cluster = drivers[client].describe_cluster()
    (broker,) = cluster["brokers"]
    assert f"{broker['host']}:{broker['port']}" == bootstrap
    assert broker["id"] == cluster["controller"]
    assert cluster["cluster_id"]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_brokers_configuration_is_described(drivers: Drivers, client: str) -> None:
    driver = drivers[client]
    configs = driver.describe_configs("broker", str(driver.describe_cluster()["controller"]))
    assert configs["message.max.bytes"] == "1048588"
    assert configs["log.retention.hours"] == "168"
    assert configs["num.partitions"] == "1"


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"topic": "white space"}, INVALID_TOPIC_EXCEPTION),
        ({"topic": "n" * 250}, INVALID_TOPIC_EXCEPTION),
        ({"replication_factor": 5}, INVALID_REPLICATION_FACTOR),
        ({"configs": {"retention.ms": "soon"}}, INVALID_CONFIG),
        ({"configs": {"no.such.config": "1"}}, INVALID_CONFIG),
    ],
    ids=["name", "long name", "replicas", "value", "key"],
)
def test_a_topic_that_cannot_be_is_refused(
    drivers: Drivers, client: str, settings: dict[str, object], code: int
) -> None:
    wanted: dict[str, object] = {"topic": unique_name(), "partitions": 1, "replication_factor": 1, "configs": {}}
    with pytest.raises(ClientError) as failure:
        drivers[client].perform("create_topic", **{**wanted, **settings})
    assert failure.value.code == code


@pytest.mark.parametrize("client", CLIENTS)
def test_a_topic_is_created_only_once(drivers: Drivers, new_topic: NewTopic, client: str) -> None:
    topic = new_topic()
    with pytest.raises(ClientError) as failure:
        drivers[client].create_topic(topic)
    assert failure.value.code == TOPIC_ALREADY_EXISTS


@pytest.mark.parametrize("client", CLIENTS)
def test_partitions_do_not_shrink(drivers: Drivers, new_topic: NewTopic, client: str) -> None:
    topic = new_topic(partitions=3)
    with pytest.raises(ClientError) as failure:
        drivers[client].create_partitions(topic, total=2)
    assert failure.value.code == INVALID_PARTITIONS


@pytest.mark.parametrize("client", CLIENTS)
def test_a_configuration_that_cannot_be_is_refused(drivers: Drivers, new_topic: NewTopic, client: str) -> None:
    topic = new_topic()
    with pytest.raises(ClientError) as failure:
        drivers[client].alter_configs("topic", topic, set={"cleanup.policy": "burn"})
    assert failure.value.code == INVALID_CONFIG


@pytest.mark.parametrize("client", CLIENTS)
def test_an_unknown_topic_is_not_deleted_grown_or_described(drivers: Drivers, client: str) -> None:
    driver, topic = drivers[client], unique_name()
    attempts: list[Callable[[], object]] = [
        lambda: driver.delete_topic(topic),
        lambda: driver.create_partitions(topic, total=2),
    ]
    if "hear errors of describe_configs" not in CLIENTS[client].cannot:
        attempts.append(lambda: driver.describe_configs("topic", topic))
    for attempt in attempts:
        with pytest.raises(ClientError) as failure:
            attempt()
        assert failure.value.code == UNKNOWN_TOPIC_OR_PARTITION


def wait_for_partitions(driver: Driver, topic: str, count: int) -> None:
    """The answer to a creation may come before every broker has heard of it."""
    deadline = time.monotonic() + VISIBLE_S_MAX
    while len(partitions_if_known(driver, topic)) != count:
        assert time.monotonic() < deadline, f"{topic} did not get {count} partitions"


def partitions_if_known(driver: Driver, topic: str) -> list[dict[str, int]]:
    try:
        return driver.describe_topic(topic)
    except ClientError as failure:
        if failure.code != UNKNOWN_TOPIC_OR_PARTITION:
            raise
        return []
