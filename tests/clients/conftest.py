"""Drivers against the broker of this test run, ended with the last test here, and topics with names of their own."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator

import pytest

from tests.brokers import running_broker
from tests.clients.drivers import ClientError, Driver, Drivers

LEADER_S_MAX = 10.0

NewTopic = Callable[..., str]


@pytest.fixture(scope="package")
def drivers(bootstrap: str) -> Iterator[Drivers]:
    started = Drivers(bootstrap)
    yield started
    started.close()


@pytest.fixture(scope="package")
def strict_drivers(broker_kind: str) -> Iterator[Drivers]:
    """Drivers against a broker that creates no topic unless it is told to."""
    with running_broker(broker_kind, properties={"auto.create.topics.enable": "false"}) as address:
        started = Drivers(address)
        yield started
        started.close()


@pytest.fixture(scope="package")
def new_topic(drivers: Drivers) -> NewTopic:
    """Creates a topic and gives its name once every partition has its leader.

    Apache Kafka answers earlier, and an idempotent producer whose first batch then fails and whose second does not can
    never send the first again.
    """
    admin = drivers["kafka-python"]  # librdkafka would remember for seconds that there was no leader

    def create(*, partitions: int = 1, configs: dict[str, str] | None = None) -> str:
        topic = unique_name()
        admin.create_topic(topic, partitions=partitions, configs=configs)
        for partition in range(partitions):
            wait_for_leader(admin, topic, partition)
        return topic

    return create


def wait_for_leader(admin: Driver, topic: str, partition: int) -> None:
    deadline = time.monotonic() + LEADER_S_MAX
    while True:
        try:
            admin.list_offset(topic, "latest", partition=partition)
            return
        except ClientError:
            if time.monotonic() > deadline:
                raise


def unique_name() -> str:
    return f"clients-{uuid.uuid4().hex[:12]}"
