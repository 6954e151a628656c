"""What each client's producer is told when a record cannot be taken."""

from __future__ import annotations

from unittest.mock import ANY

import pytest

from tests.clients.conftest import NewTopic, unique_name
from tests.clients.drivers import CLIENTS, ClientError, Drivers, Record

UNKNOWN_SERVER_ERROR = -1
UNKNOWN_TOPIC_OR_PARTITION = 3
REQUEST_TIMED_OUT = 7
MESSAGE_TOO_LARGE = 10
INVALID_TOPIC_EXCEPTION = 17
INVALID_RECORD = 87

# How each client reports a topic that stays unknown: most wait for it to appear and then say so in their own way.
UNKNOWN_TOPIC = {
    "confluent": (UNKNOWN_TOPIC_OR_PARTITION, "UNKNOWN_TOPIC_OR_PART"),
    "kafka-python": (None, "KafkaTimeoutError"),
    "aiokafka": (UNKNOWN_TOPIC_OR_PARTITION, "UnknownTopicOrPartitionError"),
    "kafkajs": (UNKNOWN_TOPIC_OR_PARTITION, "UNKNOWN_TOPIC_OR_PARTITION"),
    "franz-go": (UNKNOWN_TOPIC_OR_PARTITION, "UNKNOWN_TOPIC_OR_PARTITION"),
    "java": (REQUEST_TIMED_OUT, "TimeoutException"),
    "java-3.9": (REQUEST_TIMED_OUT, "TimeoutException"),
}
# Those that look at the name themselves, or hear of it only as a topic that does not come.
INVALID_NAME = {
    "kafka-python": (None, "ValueError"),
    "aiokafka": (UNKNOWN_TOPIC_OR_PARTITION, "UnknownTopicOrPartitionError"),
}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_topic_that_nobody_created(strict_drivers: Drivers, client: str) -> None:
    with pytest.raises(ClientError) as failure:
        strict_drivers[client].produce(unique_name(), [Record(b"v")])
    assert (failure.value.code, failure.value.name) == UNKNOWN_TOPIC[client]


@pytest.mark.parametrize("acks", ["1", "all"])
@pytest.mark.parametrize("client", CLIENTS)
def test_a_record_that_is_larger_than_its_topic_takes(
    drivers: Drivers, new_topic: NewTopic, client: str, acks: str
) -> None:
    topic, driver = new_topic(configs={"max.message.bytes": "1000"}), drivers[client]
    with pytest.raises(ClientError) as failure:
        driver.produce(topic, [Record(b"v" * 2_000)], acks=acks)
    assert failure.value.code == MESSAGE_TOO_LARGE
    assert driver.produce(topic, [Record(b"v" * 200)], acks=acks) == [0]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_record_without_a_key_in_a_compacted_topic(drivers: Drivers, new_topic: NewTopic, client: str) -> None:
    topic, driver = new_topic(configs={"cleanup.policy": "compact"}), drivers[client]
    with pytest.raises(ClientError) as failure:
        driver.produce(topic, [Record(b"v")])
    # aiokafka is older than this error and has no name for it.
    assert failure.value.code == (UNKNOWN_SERVER_ERROR if client == "aiokafka" else INVALID_RECORD)
    assert driver.produce(topic, [Record(b"v", key=b"k")]) == [0]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_topic_name_that_cannot_be(drivers: Drivers, client: str) -> None:
    with pytest.raises(ClientError) as failure:
        drivers[client].produce("white space", [Record(b"v")])
    assert (failure.value.code, failure.value.name) == INVALID_NAME.get(client, (INVALID_TOPIC_EXCEPTION, ANY))
